//! A number of places, and of those who may wait for one.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// A number of places. Some may wait for one, for a time; all others are refused at once.
#[derive(Debug)]
pub struct Places {
    free: Arc<Semaphore>,
    /// Those who have a place and those who wait for one: one count, so that nobody counts twice who
    /// was given a place and has not noticed yet.
    room: Arc<Semaphore>,
    patience: Duration,
}

/// A place that is taken, until it is dropped.
#[derive(Debug)]
pub struct Place {
    _place: OwnedSemaphorePermit,
    /// None is needed by one who was there before.
    _room: Option<OwnedSemaphorePermit>,
}

impl Places {
    /// So many places, all of them free; `waiting` may wait for one, for as long as `patience`.
    #[must_use]
    pub fn with_queue(places: usize, waiting: usize, patience: Duration) -> Self {
        let of = |count| Arc::new(Semaphore::new(count));
        Self { free: of(places), room: of(places.saturating_add(waiting)), patience }
    }

    /// So many places more, for others who are in the same room: how many may be there altogether
    /// stays as it is.
    #[must_use]
    pub fn more(&self, places: usize) -> Self {
        let (room, patience) = (Arc::clone(&self.room), self.patience);
        Self { free: Arc::new(Semaphore::new(places)), room, patience }
    }

    /// Whether all places are taken and nobody may wait for one any more.
    #[must_use]
    pub fn are_full(&self) -> bool {
        self.room.available_permits() == 0
    }

    /// A place. `None` when there is none in time.
    pub async fn take(&self) -> Option<Place> {
        let room = Arc::clone(&self.room).try_acquire_owned().ok()?;
        Some(Place { _place: self.free_one().await?, _room: Some(room) })
    }

    /// A place for somebody who gave one back meanwhile: also when the queue is full, for a wait that
    /// was worth while must not end with a refusal. How many of those there are is bounded elsewhere.
    pub async fn take_again(&self) -> Option<Place> {
        Some(Place { _place: self.free_one().await?, _room: None })
    }

    async fn free_one(&self) -> Option<OwnedSemaphorePermit> {
        let free = Arc::clone(&self.free);
        match Arc::clone(&free).try_acquire_owned() {
            Ok(place) => Some(place),
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
        let places = Places::with_queue(2, 2, PATIENCE);
        let held = [places.take().await.unwrap(), places.take().await.unwrap()];
        let start = Instant::now();

        let waited = |places| async move {
            let refused = Places::take(places).await.is_none();
            (refused, start.elapsed())
        };
        let all = tokio::join!(waited(&places), waited(&places), waited(&places), waited(&places));

        assert!(!places.are_full(), "two who waited have gone");
        assert_eq!((all.0, all.1), ((true, PATIENCE), (true, PATIENCE)));
        assert_eq!((all.2, all.3), ((true, Duration::ZERO), (true, Duration::ZERO)));
        drop(held);
        assert_eq!(places.room.available_permits(), 4, "nobody is counted any more");
        assert!(places.take().await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_is_as_long_and_as_patient_as_it_was_made() {
        let patience = Duration::from_secs(1);
        let places = Places::with_queue(2, 1, patience);
        let held = [places.take().await.unwrap(), places.take().await.unwrap()];
        let start = Instant::now();

        let refused = async |places: &Places| {
            assert!(places.take().await.is_none());
            start.elapsed()
        };
        assert!(!places.are_full());
        let (first, second) =
            tokio::join!(refused(&places), async { (places.are_full(), refused(&places).await) });

        assert_eq!((first, second), (patience, (true, Duration::ZERO)));
        drop(held);
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_that_becomes_free_is_taken_by_one_who_waits() {
        let places = Places::with_queue(1, 1, PATIENCE);
        let held = places.take().await.unwrap();

        let (waited, ()) = tokio::join!(places.take(), async {
            tokio::time::sleep(PATIENCE / 2).await;
            drop(held);
        });

        assert!(waited.is_some());
    }

    #[tokio::test]
    async fn who_was_there_before_needs_a_place_and_no_room() {
        let places = Places::with_queue(1, 0, PATIENCE);
        let held = places.take().await.unwrap();
        assert!(places.take().await.is_none());
        let mut again = pin!(places.take_again());
        assert!(again.as_mut().now_or_never().is_none());

        drop(held);

        assert!(again.await.is_some());
    }

    #[tokio::test]
    async fn who_was_given_a_place_and_has_not_noticed_counts_once() {
        let places = Places::with_queue(1, 1, PATIENCE);
        let held = places.take().await.unwrap();
        let mut first = pin!(places.take());
        assert!(first.as_mut().now_or_never().is_none());

        // The place is the first one's now, who was not asked again yet.
        drop(held);
        let mut second = pin!(places.take());

        assert!(second.as_mut().now_or_never().is_none(), "there is room for a second one");
        drop(first.await.unwrap());
        assert!(second.await.is_some());
    }
}
