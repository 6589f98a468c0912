//! Permits, and a bounded queue for them.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// A number of permits. Some callers may wait for one, for a time; all others are refused at once.
#[derive(Debug)]
pub struct PermitQueue {
    free: Arc<Semaphore>,
    /// Holders and waiters in one count: a caller that was given a permit and has not been polled yet
    /// counts once.
    admitted: Arc<Semaphore>,
    patience: Duration,
}

/// A permit, held until it is dropped.
#[derive(Debug)]
pub struct Permit {
    _permit: OwnedSemaphorePermit,
    /// `None` for a holder that had been admitted before.
    _admitted: Option<OwnedSemaphorePermit>,
}

impl PermitQueue {
    /// `permits` permits, all of them free; `waiting` callers may wait for one, for as long as `patience`.
    #[must_use]
    pub fn with_queue(permits: usize, waiting: usize, patience: Duration) -> Self {
        let of = |count| Arc::new(Semaphore::new(count));
        Self { free: of(permits), admitted: of(permits.saturating_add(waiting)), patience }
    }

    /// `permits` further permits. Holders and waiters of both count together, up to the same number.
    #[must_use]
    pub fn more(&self, permits: usize) -> Self {
        let admitted = Arc::clone(&self.admitted);
        let patience = self.patience;
        Self { free: Arc::new(Semaphore::new(permits)), admitted, patience }
    }

    /// Returns true if all permits are taken and the queue is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.admitted.available_permits() == 0
    }

    /// A permit. `None` when the queue is full or none is free in time.
    pub async fn take(&self) -> Option<Permit> {
        let admitted = Arc::clone(&self.admitted).try_acquire_owned().ok()?;
        Some(Permit { _permit: self.free_one().await?, _admitted: Some(admitted) })
    }

    /// A permit for a caller that gave one back meanwhile, also when the queue is full: a wait for
    /// another party must not end with a refusal. The number of such callers is bounded elsewhere.
    pub async fn take_again(&self) -> Option<Permit> {
        Some(Permit { _permit: self.free_one().await?, _admitted: None })
    }

    async fn free_one(&self) -> Option<OwnedSemaphorePermit> {
        let free = Arc::clone(&self.free);
        match Arc::clone(&free).try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => timeout(self.patience, free.acquire_owned()).await.ok()?.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;
    use tokio::time::Instant;

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(40);

    #[tokio::test(start_paused = true)]
    async fn some_wait_a_moment_and_all_others_are_refused_at_once() {
        let permits = PermitQueue::with_queue(2, 2, PATIENCE);
        let held = [permits.take().await.unwrap(), permits.take().await.unwrap()];
        let start = Instant::now();

        let waited = |permits| async move {
            let refused = PermitQueue::take(permits).await.is_none();
            (refused, start.elapsed())
        };
        let all =
            tokio::join!(waited(&permits), waited(&permits), waited(&permits), waited(&permits));

        assert!(!permits.is_full(), "two who waited have gone");
        assert_eq!((all.0, all.1), ((true, PATIENCE), (true, PATIENCE)));
        assert_eq!((all.2, all.3), ((true, Duration::ZERO), (true, Duration::ZERO)));
        drop(held);
        assert_eq!(permits.admitted.available_permits(), 4, "nobody counts any more");
        assert!(permits.take().await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_is_as_long_and_as_patient_as_it_was_made() {
        let patience = Duration::from_secs(1);
        let permits = PermitQueue::with_queue(2, 1, patience);
        let held = [permits.take().await.unwrap(), permits.take().await.unwrap()];
        let start = Instant::now();

        let refused = async |permits: &PermitQueue| {
            assert!(permits.take().await.is_none());
            start.elapsed()
        };
        assert!(!permits.is_full());
        let (first, second) =
            tokio::join!(refused(&permits), async { (permits.is_full(), refused(&permits).await) });

        assert_eq!((first, second), (patience, (true, Duration::ZERO)));
        drop(held);
    }

    #[tokio::test(start_paused = true)]
    async fn a_permit_that_becomes_free_goes_to_a_waiter() {
        let permits = PermitQueue::with_queue(1, 1, PATIENCE);
        let held = permits.take().await.unwrap();

        let (waited, ()) = tokio::join!(permits.take(), async {
            tokio::time::sleep(PATIENCE / 2).await;
            drop(held);
        });

        assert!(waited.is_some());
    }

    #[tokio::test]
    async fn a_caller_that_was_admitted_before_passes_a_full_queue() {
        let permits = PermitQueue::with_queue(1, 0, PATIENCE);
        let held = permits.take().await.unwrap();
        assert!(permits.take().await.is_none());
        let mut again = pin!(permits.take_again());
        assert!(again.as_mut().now_or_never().is_none());

        drop(held);

        assert!(again.await.is_some());
    }

    #[tokio::test]
    async fn a_holder_that_was_not_polled_yet_counts_once() {
        let permits = PermitQueue::with_queue(1, 1, PATIENCE);
        let held = permits.take().await.unwrap();
        let mut first = pin!(permits.take());
        assert!(first.as_mut().now_or_never().is_none());

        // The permit belongs to the first one, which was not polled again yet.
        drop(held);
        let mut second = pin!(permits.take());

        assert!(second.as_mut().now_or_never().is_none(), "there is room for a second one");
        drop(first.await.unwrap());
        assert!(second.await.is_some());
    }
}
