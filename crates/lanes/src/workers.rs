//! Threads for work that would keep a serving thread busy for long, with a fair share for each party.
//!
//! A task begins on the thread that serves it. Before something large it awaits [`offload`], and a
//! worker polls it from then on. Parties take turns, so a party with much work delays itself only.
//! Each turn is one poll: a task that waits for something else holds no worker.

mod poller;

pub use self::poller::{goes_on, is_offloaded, offload};

use std::{
    fmt,
    hash::Hash,
    num::NonZeroUsize,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    thread::{self, available_parallelism},
    time::Duration,
};

use tokio::{
    runtime::{Builder, Handle},
    task::JoinHandle,
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use self::poller::{As, Awaited, PollTurn, PolledBy, asks_for_worker};
use crate::fair::{FairLimits, FairSlot, FairSlots};

/// Bytes from which on a body is large: parsing, checking and judging it takes about half a
/// millisecond.
pub const LARGE: usize = 32 << 10;

/// The queue has no end of its own: how many tasks there are is bounded where they are admitted.
const PATIENCE: Duration = Duration::from_hours(1);

/// Threads for offloaded work; they end with the last clone. `K` identifies a party.
#[derive(Clone)]
pub struct Workers<K: Copy + Eq + Hash>(Option<Arc<Pool<K>>>);

struct Pool<K: Copy + Eq + Hash> {
    runtime: Handle,
    turns: Arc<FairSlots<K>>,
    threads: usize,
    _stop: DropGuard,
}

impl<K: Copy + Eq + Hash> Workers<K> {
    /// None: everything is done where it is awaited.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// Number of threads that may be busy at once.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.0.as_ref().map_or(0, |pool| pool.threads)
    }
}

impl<K: Copy + Eq + Hash + Send + Sync + Unpin + 'static> Workers<K> {
    /// One for each processor but one, which is left to the threads that serve. None when threads
    /// cannot be started.
    #[must_use]
    pub fn start() -> Self {
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = (processors - 1).max(1);
        let runtime = Builder::new_multi_thread()
            // One more than may be busy at once, for those who queue for their turn, and for sockets.
            .worker_threads(threads + 1)
            .thread_name("worker")
            .enable_all()
            .build();
        let started = runtime.and_then(|runtime| {
            let handle = runtime.handle().clone();
            let stop = CancellationToken::new();
            let stopped = stop.clone();
            // A runtime must not be dropped by a task.
            thread::Builder::new().name("workers".to_owned()).spawn(move || {
                runtime.block_on(stopped.cancelled());
                runtime.shutdown_background();
            })?;
            let slots = threads;
            let waiting = usize::MAX;
            let limits = FairLimits { slots, reserve: 0, waiting, patience: PATIENCE };
            let turns = Arc::new(FairSlots::new(limits));
            let stop = stop.drop_guard();
            Ok(Arc::new(Pool { runtime: handle, turns, threads, _stop: stop }))
        });
        Self(
            started
                .inspect_err(
                    |error| tracing::error!(%error, "the worker threads could not be started"),
                )
                .ok(),
        )
    }

    /// Polls work of a serving thread. Work that asked to be offloaded is a task of `tasks` from
    /// then on, which ends also when it is not awaited.
    pub fn poll<F>(
        &self,
        party: K,
        work: &mut Option<Pin<Box<F>>>,
        tasks: &TaskTracker,
        cx: &mut Context<'_>,
    ) -> Polling<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        // Taken out, so that work which panics is never gone on with.
        let Some(mut taken) = work.take() else { return Polling::Pending };
        let Some(pool) = &self.0 else {
            return Polling::of(taken.as_mut().poll(cx), || *work = Some(taken));
        };
        let serving = As::new(PolledBy::Serving);
        let polled = taken.as_mut().poll(cx);
        let asked = asks_for_worker();
        drop(serving);
        if asked && polled.is_pending() {
            let turns = Turns::new(Arc::clone(&pool.turns), party, taken);
            return Polling::Offloaded(tasks.spawn_on(turns, &pool.runtime));
        }
        Polling::of(polled, || *work = Some(taken))
    }

    /// Begins a task that is polled in turns of `party`.
    pub fn spawn<F>(&self, party: K, tasks: &TaskTracker, work: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        match &self.0 {
            Some(pool) => {
                let turns = Turns::new(Arc::clone(&pool.turns), party, Box::pin(work));
                tasks.spawn_on(turns, &pool.runtime)
            }
            None => tasks.spawn(work),
        }
    }

    /// Does something of `bytes` bytes: here if that is little, otherwise in a turn of `party`'s.
    /// `None` when it panics.
    pub async fn run<T: Send + 'static>(
        &self,
        party: K,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        match self.0.as_ref().filter(|_| bytes > LARGE && !is_offloaded()) {
            Some(pool) => pool.spawn(party, work).await.ok(),
            None => Some(work()),
        }
    }

    /// Does something in a turn of `party`'s, however little it is, for as long as it is awaited: once this
    /// is dropped, [`goes_on`] tells the work to end. `None` when it panics.
    pub async fn run_awaited<T: Send + 'static>(
        &self,
        party: K,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let Some(pool) = &self.0 else { return Some(work()) };
        let left = CancellationToken::new();
        let leaving = left.clone();
        let _leaves = left.drop_guard();
        let done = pool.spawn(party, move || {
            let _awaited = Awaited::new(leaving);
            work()
        });
        done.await.ok()
    }

    /// Does something large without a waiter.
    pub fn hand(&self, party: K, work: impl FnOnce() + Send + 'static) {
        match &self.0 {
            Some(pool) => drop(pool.spawn(party, work)),
            None => work(),
        }
    }
}

impl<K: Copy + Eq + Hash + Send + Sync + Unpin + 'static> Pool<K> {
    fn spawn<T: Send + 'static>(
        &self,
        party: K,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let work = Box::pin(async move { work() });
        self.runtime.spawn(Turns::new(Arc::clone(&self.turns), party, work))
    }
}

/// Progress of work.
#[derive(Debug)]
pub enum Polling<T> {
    Ready(T),
    Pending,
    /// A worker goes on with it.
    Offloaded(JoinHandle<T>),
}

impl<T> Polling<T> {
    fn of(polled: Poll<T>, keep: impl FnOnce()) -> Self {
        match polled {
            Poll::Ready(done) => Self::Ready(done),
            Poll::Pending => {
                keep();
                Self::Pending
            }
        }
    }
}

impl<K: Copy + Eq + Hash> fmt::Debug for Workers<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").field("threads", &self.threads()).finish()
    }
}

type Taking<K> = Pin<Box<dyn Future<Output = Option<FairSlot<K>>> + Send>>;

/// Work that is polled when it is its party's turn.
struct Turns<K: Copy + Eq + Hash, F> {
    slots: Arc<FairSlots<K>>,
    party: K,
    taking: Option<Taking<K>>,
    work: Pin<Box<F>>,
}

impl<K: Copy + Eq + Hash, F> Turns<K, F> {
    fn new(slots: Arc<FairSlots<K>>, party: K, work: Pin<Box<F>>) -> Self {
        Self { slots, party, taking: None, work }
    }
}

impl<K, F> Future for Turns<K, F>
where
    K: Copy + Eq + Hash + Send + Sync + Unpin + 'static,
    F: Future,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let turn = loop {
            let slots = &this.slots;
            let party = this.party;
            let taking = this.taking.get_or_insert_with(|| {
                let slots = Arc::clone(slots);
                Box::pin(async move { slots.take(party).await })
            });
            let turn = ready!(taking.as_mut().poll(cx));
            this.taking = None;
            if turn.is_some() {
                break turn;
            }
        };
        let _turn = PollTurn::begin(Arc::clone(&this.slots), this.party, turn);
        let _worker = As::new(PolledBy::Worker);
        this.work.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Barrier, Mutex, mpsc},
        task::Waker,
    };

    use tokio::{
        task::{spawn_blocking, yield_now},
        time::Instant,
    };

    use super::{poller::MOST_STEPS, *};

    fn name() -> Option<String> {
        thread::current().name().map(str::to_owned)
    }

    #[tokio::test]
    async fn work_goes_on_with_a_worker_once_it_asks_to() {
        let workers = Workers::<u8>::start();
        let tasks = TaskTracker::new();
        let work = async {
            let before = (name(), is_offloaded());
            yield_now().await;
            offload().await;
            offload().await;
            (before.0 != name(), before.1, is_offloaded())
        };
        let mut work = Some(Box::pin(work));
        let mut cx = Context::from_waker(Waker::noop());

        let first = workers.poll(1, &mut work, &tasks, &mut cx);
        assert!(matches!(first, Polling::Pending) && work.is_some());
        let Polling::Offloaded(task) = workers.poll(1, &mut work, &tasks, &mut cx) else {
            panic!("it stays here")
        };

        assert!(work.is_none());
        assert_eq!((task.await.unwrap(), is_offloaded()), ((true, false, true), false));
    }

    #[tokio::test]
    async fn without_workers_everything_is_done_where_it_is_awaited() {
        let workers = Workers::<u8>::none();
        let tasks = TaskTracker::new();
        let mut work = Some(Box::pin(async {
            offload().await;
            name()
        }));
        let mut cx = Context::from_waker(Waker::noop());

        let done = workers.poll(1, &mut work, &tasks, &mut cx);

        assert!(matches!(done, Polling::Ready(here) if here == name()));
        assert_eq!(workers.run(1, LARGE + 1, name).await, Some(name()));
    }

    #[tokio::test]
    async fn only_what_is_large_is_given_away_and_a_panic_ends_nothing_else() {
        let workers = Workers::<u8>::start();

        assert_eq!(workers.run(1, LARGE, name).await, Some(name()));
        assert_eq!(workers.run(1, LARGE + 1, || std::panic::panic_any(7)).await, None::<()>);
        assert_eq!(workers.run(1, LARGE + 1, name).await, Some(Some("worker".to_owned())));
    }

    #[tokio::test]
    async fn work_that_goes_on_for_long_lets_others_have_their_turn() {
        const PATIENCE: Duration = Duration::from_mins(1);
        let workers = Workers::<char>::start();
        let tasks = TaskTracker::new();
        let (tell, told) = mpsc::channel::<()>();
        let told = Arc::new(Mutex::new(told));
        let begun = Arc::new(Barrier::new(workers.threads() + 1));
        // Each ends once the other party was served, or in a minute.
        let long: Vec<_> = (0..workers.threads())
            .map(|_| {
                let workers = workers.clone();
                let told = Arc::clone(&told);
                let begun = Arc::clone(&begun);
                let work = move || {
                    begun.wait();
                    let until = Instant::now() + PATIENCE;
                    let is_told = || told.lock().unwrap().try_recv().is_ok();
                    while !is_told() {
                        assert!(goes_on(usize::MAX) && Instant::now() < until);
                    }
                };
                tasks.spawn(async move { workers.run('a', LARGE + 1, work).await })
            })
            .collect();
        spawn_blocking(move || begun.wait()).await.unwrap();

        let threads = workers.threads();
        let other = move || (0..threads).for_each(|_| tell.send(()).unwrap());
        let served = workers.run('b', LARGE + 1, other).await;

        assert_eq!(served, Some(()));
        for work in long {
            assert_eq!(work.await.unwrap(), Some(()));
        }
    }

    #[tokio::test]
    async fn awaited_work_is_told_to_end_when_its_waiter_leaves() {
        let workers = Workers::<u8>::start();
        let (begun, begins) = tokio::sync::oneshot::channel();
        let (tell, told) = tokio::sync::oneshot::channel();
        let waiting = workers.clone();
        let waiter = TaskTracker::new().spawn(async move {
            let work = move || {
                begun.send(goes_on(0)).unwrap();
                while goes_on(usize::MAX) {
                    thread::yield_now();
                }
                tell.send(()).unwrap();
            };
            waiting.run_awaited(1, work).await
        });
        assert!(begins.await.unwrap(), "its waiter is there");

        waiter.abort();

        told.await.unwrap();
        let next = workers.run_awaited(1, || goes_on(usize::MAX)).await;
        assert_eq!(next, Some(true), "the next work has a waiter of its own");
        assert_eq!(workers.run(1, LARGE + 1, || goes_on(usize::MAX)).await, Some(true));
    }

    #[test]
    fn a_serving_thread_is_no_place_for_what_takes_long() {
        assert!(goes_on(usize::MAX), "nobody else would do it");

        let _serving = As::new(PolledBy::Serving);

        assert!(goes_on(MOST_STEPS) && !goes_on(MOST_STEPS + 1));
    }

    #[tokio::test]
    async fn parties_take_turns_however_much_each_has_to_do() {
        let workers = Workers::<char>::start();
        let done = Arc::new(Mutex::new(String::new()));
        let tasks = TaskTracker::new();
        let (go, gone) = mpsc::channel::<()>();
        let gone = Arc::new(Mutex::new(gone));
        // Every worker is held until all others stand in their queues.
        let held: Vec<_> = (0..workers.threads())
            .map(|_| {
                let workers = workers.clone();
                let gone = Arc::clone(&gone);
                let hold = move || gone.lock().unwrap().recv().unwrap();
                tasks.spawn(async move { workers.run('h', LARGE + 1, hold).await })
            })
            .collect();
        let turns = &workers.0.as_ref().unwrap().turns;
        while turns.free() > 0 {
            yield_now().await;
        }
        let mut all = Vec::new();
        for party in "aaaaaaaab".chars() {
            let workers = workers.clone();
            let done = Arc::clone(&done);
            let note = move || done.lock().unwrap().push(party);
            all.push(tasks.spawn(async move { workers.run(party, LARGE + 1, note).await }));
            while turns.waiting() < all.len() {
                yield_now().await;
            }
        }

        for _ in &held {
            go.send(()).unwrap();
        }
        for one in all {
            one.await.unwrap();
        }

        let at = done.lock().unwrap().find('b').unwrap();
        assert!(at <= 1 + workers.threads(), "{done:?}");
    }
}
