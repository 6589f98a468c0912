//! How many may be at something at once, and how many wait to be: calls of one upstream, for one.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// How long a call waits for its place where nothing else is said.
const PATIENCE: Duration = Duration::from_millis(40);

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
    _room: OwnedSemaphorePermit,
}

impl Places {
    /// So many places, all of them free; as many may wait for one, for 40 ms.
    #[must_use]
    pub fn new(places: usize) -> Self {
        Self::with_queue(places, places, PATIENCE)
    }

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
        let place = match Arc::clone(&self.free).try_acquire_owned() {
            Ok(place) => Ok(place),
            Err(_) => timeout(self.patience, Arc::clone(&self.free).acquire_owned()).await.ok()?,
        };
        Some(Place { _place: place.ok()?, _room: room })
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;
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
        let places = Places::new(1);
        let held = places.take().await.unwrap();

        let (waited, ()) = tokio::join!(places.take(), async {
            tokio::time::sleep(PATIENCE / 2).await;
            drop(held);
        });

        assert!(waited.is_some());
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
