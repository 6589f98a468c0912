//! How many may be at something at once, and how many wait to be: calls of one upstream, for one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// How long a call waits for its place.
const PATIENCE: Duration = Duration::from_millis(40);

/// A number of places. Some may wait for one, for at most 40 ms; all others are refused at once.
#[derive(Debug)]
pub struct Places {
    free: Arc<Semaphore>,
    most_waiting: usize,
    waiting: AtomicUsize,
}

/// A place that is taken, until it is dropped.
#[derive(Debug)]
pub struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Places {
    /// So many places, all of them free; as many may wait for one.
    #[must_use]
    pub fn new(places: usize) -> Self {
        let free = Arc::new(Semaphore::new(places));
        Self { free, most_waiting: places, waiting: AtomicUsize::new(0) }
    }

    /// The same places; half as many may wait for one. A queue that is not emptied while its last one
    /// is patient only makes calls wait that are refused in the end.
    #[must_use]
    pub fn with_short_queue(self) -> Self {
        Self { most_waiting: self.most_waiting.div_ceil(2), ..self }
    }

    /// A place. `None` when there is none in time.
    pub async fn take(&self) -> Option<Place> {
        let free = Arc::clone(&self.free);
        if let Ok(permit) = Arc::clone(&free).try_acquire_owned() {
            return Some(Place { _permit: permit });
        }
        let _queued = self.queue()?;
        let permit = timeout(PATIENCE, free.acquire_owned()).await.ok()?.ok()?;
        Some(Place { _permit: permit })
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
    async fn a_short_queue_is_half_as_long() {
        let places = Places::new(3).with_short_queue();
        let held = [places.take().await, places.take().await, places.take().await];
        let start = Instant::now();

        let refused = async |places: &Places| {
            assert!(places.take().await.is_none());
            start.elapsed()
        };
        let all = tokio::join!(refused(&places), refused(&places), refused(&places));

        assert_eq!((all.0, all.1, all.2), (PATIENCE, PATIENCE, Duration::ZERO));
        drop(held);
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
