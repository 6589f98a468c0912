//! The threads that serve connections, one for each processor.
//!
//! A connection stays with its thread: what its calls left in that processor's caches is there when
//! they go on, and none has to be handed from one thread to another. Whatever may keep a thread
//! busy for long is done on the shared runtime, where the threads help each other out.

use std::{
    io,
    num::NonZeroUsize,
    sync::Arc,
    thread::{self, JoinHandle, available_parallelism},
    time::Duration,
};

use tokio::{
    runtime::{Builder, Handle},
    task::spawn_blocking,
};
use tokio_util::sync::CancellationToken;

/// How long what runs on threads of its own for a lane may take to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// All threads that serve connections.
#[derive(Debug)]
pub struct Lanes {
    lanes: Vec<Lane>,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Lane {
    runtime: Handle,
    /// Each of its connections holds one.
    seat: Arc<()>,
    thread: JoinHandle<()>,
}

/// Where a connection is served, counted until it is dropped.
#[derive(Debug)]
pub struct Seat {
    /// The runtime of its thread.
    pub runtime: Handle,
    _counted: Arc<()>,
}

impl Lanes {
    /// One for each processor; fewer when there is no room for so many threads.
    #[must_use]
    pub fn start() -> Self {
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        let stop = CancellationToken::new();
        let started = (0..processors).map_while(|n| {
            let lane = Lane::start(n, stop.clone());
            lane.inspect_err(|error| tracing::error!(%error, "a thread could not be started")).ok()
        });
        Self { lanes: started.collect(), stop }
    }

    /// None: connections are served by the runtime that accepts them.
    #[must_use]
    pub fn none() -> Self {
        Self { lanes: Vec::new(), stop: CancellationToken::new() }
    }

    /// A seat where the fewest connections are.
    #[must_use]
    pub fn seat(&self) -> Seat {
        let emptiest = self.lanes.iter().min_by_key(|lane| Arc::strong_count(&lane.seat));
        emptiest.map_or_else(
            || Seat { runtime: Handle::current(), _counted: Arc::default() },
            |lane| Seat { runtime: lane.runtime.clone(), _counted: Arc::clone(&lane.seat) },
        )
    }

    /// Ends them, and whatever they still do.
    pub async fn end(self) {
        self.stop.cancel();
        let ended = spawn_blocking(move || {
            self.lanes.into_iter().for_each(|lane| drop(lane.thread.join()));
        });
        drop(ended.await);
    }
}

impl Lane {
    fn start(number: usize, stop: CancellationToken) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let thread = thread::Builder::new().name(format!("lane-{number}")).spawn(move || {
            runtime.block_on(stop.cancelled());
            runtime.shutdown_timeout(PATIENCE);
        })?;
        Ok(Self { runtime: handle, seat: Arc::default(), thread })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_are_spread_and_stay_where_they_are() {
        let lanes = Lanes::start();
        let name = || thread::current().name().map(str::to_owned).unwrap();
        let at = async |seat: &Seat| seat.runtime.spawn(async move { name() }).await.unwrap();

        let mut seats = Vec::new();
        let mut names = Vec::new();
        for _ in &lanes.lanes {
            let seat = lanes.seat();
            names.push(at(&seat).await);
            seats.push(seat);
        }

        let all: Vec<String> = (0..lanes.lanes.len()).map(|n| format!("lane-{n}")).collect();
        assert_eq!(names, all);
        let left = seats.pop().unwrap();
        assert_eq!(at(&left).await, all[all.len() - 1]);
        drop(left);
        assert_eq!(at(&lanes.seat()).await, all[all.len() - 1], "the seat that was left");
        lanes.end().await;
    }

    #[tokio::test]
    async fn what_still_runs_is_ended_with_them() {
        let lanes = Lanes::start();
        let stays = lanes.seat().runtime.spawn(std::future::pending::<()>());

        lanes.end().await;

        assert!(stays.await.unwrap_err().is_cancelled());
    }

    #[tokio::test]
    async fn without_any_a_connection_is_served_where_it_is_accepted() {
        let seat = Lanes::none().seat();

        assert_eq!(seat.runtime.id(), Handle::current().id());
    }
}
