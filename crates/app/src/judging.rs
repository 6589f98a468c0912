//! How many calls are judged at once, and how many wait for it.

use std::{sync::Arc, time::Duration};

use portcullis_lanes::{Own, Place, Places};
use tokio::runtime::Handle;

/// Of the calls that are under way to their tools some are judged while the others wait: so many for
/// each thread that serves keep it busy and fill a commit. With more, those who are turned away hear it
/// later.
const JUDGED_BY_THREAD: usize = 32;

/// How long a call waits to be judged. Longer than it takes unless calls are very large.
const PATIENCE: Duration = Duration::from_secs(1);

/// The places where calls are judged. Each runtime has its own, so that a place which becomes free is
/// taken by a call of the same thread: to wake another thread is a system call.
#[derive(Debug)]
pub(crate) struct Judging {
    calls: usize,
    /// Whose room all calls share, with a place or waiting for one.
    shared: Places,
    each: Own<Arc<Places>>,
}

impl Judging {
    /// So many calls may be judged or wait for it.
    pub(crate) fn new(calls: usize) -> Self {
        let shared = Places::with_queue(0, calls, PATIENCE);
        Self { calls, shared, each: Own::default() }
    }

    /// Whether nobody may even wait any more.
    pub(crate) fn is_full(&self) -> bool {
        self.shared.are_full()
    }

    /// A place on this runtime. `None` when there is none in time.
    pub(crate) async fn take(&self) -> Option<Place> {
        let runtime = Handle::current();
        let places = self.each.of(runtime.id()).unwrap_or_else(|| {
            let share = runtime.metrics().num_workers().saturating_mul(JUDGED_BY_THREAD);
            let places = self.shared.more(share.min(self.calls));
            self.each.of_or(runtime.id(), Arc::new(places))
        });
        places.take().await
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use futures_util::{FutureExt, future::join_all};
    use tokio::{
        runtime::{Builder, Runtime},
        task::yield_now,
    };

    use super::*;

    #[test]
    fn each_runtime_has_places_of_its_own_in_one_room() {
        let judging = Arc::new(Judging::new(JUDGED_BY_THREAD * 2 + 1));
        let (one, other) = (runtime(), runtime());
        let taken = |runtime: &Runtime, places| {
            runtime.block_on(async {
                join_all(iter::repeat_with(|| judging.take()).take(places)).await
            })
        };

        let first = taken(&one, JUDGED_BY_THREAD);
        let second = taken(&other, JUDGED_BY_THREAD);
        assert!(first.iter().chain(&second).all(Option::is_some));
        assert!(!judging.is_full(), "one more may wait");

        // It waits for a place of its own runtime, whatever becomes free elsewhere.
        let waiting = one.spawn({
            let judging = Arc::clone(&judging);
            async move { judging.take().await }
        });
        one.block_on(yield_now());
        assert!(judging.is_full());
        drop(second);
        one.block_on(yield_now());
        assert!(!waiting.is_finished());
        drop(first);
        assert!(one.block_on(waiting).unwrap().is_some());
        assert!(!judging.is_full());
    }

    #[tokio::test]
    async fn with_room_for_one_nobody_waits() {
        let judging = Judging::new(1);

        let place = judging.take().await;

        assert!(place.is_some() && judging.is_full());
        assert!(matches!(judging.take().now_or_never(), Some(None)));
        drop(place);
        assert!(!judging.is_full());
    }

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }
}
