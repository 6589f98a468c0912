//! How many may be at something at once, and how many wait to be: calls of one upstream, for one.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

/// How long a call waits for its place.
const PATIENCE: Duration = Duration::from_millis(40);

/// A number of places. As many as there are places may wait for one, for at most 40 ms; all others
/// are refused at once.
#[derive(Debug)]
pub struct Places {
    free: Semaphore,
    most_waiting: usize,
    waiting: AtomicUsize,
}

impl Places {
    /// So many places, all of them free.
    #[must_use]
    pub fn new(places: usize) -> Self {
        Self { free: Semaphore::new(places), most_waiting: places, waiting: AtomicUsize::new(0) }
    }

    /// A place, until it is dropped. `None` when there is none in time.
    pub async fn take(&self) -> Option<SemaphorePermit<'_>> {
        if let Ok(place) = self.free.try_acquire() {
            return Some(place);
        }
        let _queued = self.queue()?;
        timeout(PATIENCE, self.free.acquire()).await.ok()?.ok()
    }

    fn queue(&self) -> Option<Queued<'_>> {
        let queued = Queued(&self.waiting);
        (self.waiting.fetch_add(1, Ordering::AcqRel) < self.most_waiting).then_some(queued)
    }
}

/// One who waits. The count is given back when it is dropped, also by one who was refused.
struct Queued<'a>(&'a AtomicUsize);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn some_wait_a_moment_and_all_others_are_refused_at_once() {
        let places = Places::new(2);
        let held = [places.take().await.unwrap(), places.take().await.unwrap()];
        let start = Instant::now();

        let waited = |places| async move {
            let refused = Places::take(places).await.is_none();
            (refused, start.elapsed())
        };
        let all = tokio::join!(waited(&places), waited(&places), waited(&places), waited(&places));

        assert_eq!((all.0, all.1), ((true, PATIENCE), (true, PATIENCE)));
        assert_eq!((all.2, all.3), ((true, Duration::ZERO), (true, Duration::ZERO)));
        assert_eq!(places.waiting.load(Ordering::Acquire), 0);
        drop(held);
        assert!(places.take().await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_that_becomes_free_is_taken_by_one_who_waits() {
        let places = Places::new(1);
        let held = places.take().await.unwrap();

        let (waited, ()) = tokio::join!(places.take(), async {
            tokio::time::sleep(PATIENCE / 2).await;
            drop(held);
        });

        assert!(waited.is_some());
    }
}
