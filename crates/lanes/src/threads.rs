//! The threads that serve connections, one for each processor.
//!
//! A connection stays with its thread, whose caches its calls find filled, and no call moves between
//! threads. Work that may keep a thread busy for long runs on the shared runtime, where threads take
//! work from each other.

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

/// Time for blocking work of a lane to end.
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
    /// Cloned by each of its connections.
    connections: Arc<()>,
    thread: JoinHandle<()>,
}

/// The lane of a connection, counted until it is dropped.
#[derive(Debug)]
pub struct LaneSlot {
    pub runtime: Handle,
    _counted: Arc<()>,
}

impl Lanes {
    /// One for each processor; fewer when the system refuses further threads.
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

    /// A slot in the lane with the fewest connections.
    #[must_use]
    pub fn assign(&self) -> LaneSlot {
        let emptiest = self.lanes.iter().min_by_key(|lane| Arc::strong_count(&lane.connections));
        emptiest.map_or_else(
            || LaneSlot { runtime: Handle::current(), _counted: Arc::default() },
            |lane| LaneSlot {
                runtime: lane.runtime.clone(),
                _counted: Arc::clone(&lane.connections),
            },
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
        Ok(Self { runtime: handle, connections: Arc::default(), thread })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_are_spread_and_stay_where_they_are() {
        let lanes = Lanes::start();
        let name = || thread::current().name().map(str::to_owned).unwrap();
        let at = async |slot: &LaneSlot| slot.runtime.spawn(async move { name() }).await.unwrap();

        let mut slots = Vec::new();
        let mut names = Vec::new();
        for _ in &lanes.lanes {
            let slot = lanes.assign();
            names.push(at(&slot).await);
            slots.push(slot);
        }

        let all: Vec<String> = (0..lanes.lanes.len()).map(|n| format!("lane-{n}")).collect();
        assert_eq!(names, all);
        let left = slots.pop().unwrap();
        assert_eq!(at(&left).await, all[all.len() - 1]);
        drop(left);
        assert_eq!(at(&lanes.assign()).await, all[all.len() - 1], "the slot that was left");
        lanes.end().await;
    }

    #[tokio::test]
    async fn what_still_runs_is_ended_with_them() {
        let lanes = Lanes::start();
        let stays = lanes.assign().runtime.spawn(std::future::pending::<()>());

        lanes.end().await;

        assert!(stays.await.unwrap_err().is_cancelled());
    }

    #[tokio::test]
    async fn without_any_a_connection_is_served_where_it_is_accepted() {
        let slot = Lanes::none().assign();

        assert_eq!(slot.runtime.id(), Handle::current().id());
    }
}
