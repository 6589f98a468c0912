//! Turns at resources: each has one holder at a time, and the others wait for it, for a time.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{SharePlace, Shares};

/// Queues at resources. `P` identifies a party and `K` a resource.
///
/// **Invariant:** a resource without a holder has no queue, so the state grows with holders and waiters only, whose
/// number is bounded, in all and of each party.
#[derive(Debug)]
pub struct Turns<P: Copy + Eq + Hash, K: Copy + Eq + Hash> {
    places: Arc<Shares<P>>,
    patience: Duration,
    queues: Mutex<HashMap<K, Arc<Semaphore>>>,
}

/// A turn at a resource, until it is dropped.
#[derive(Debug)]
pub struct FairTurn<'a, P: Copy + Eq + Hash, K: Copy + Eq + Hash> {
    turns: &'a Turns<P, K>,
    key: K,
    queue: Option<Arc<Semaphore>>,
    /// `None` while it waits.
    permit: Option<OwnedSemaphorePermit>,
    _place: SharePlace<P>,
}

impl<P: Copy + Eq + Hash, K: Copy + Eq + Hash> Turns<P, K> {
    /// Room for so many holders and waiters in all, and so many of each party, who wait for as long as `patience`.
    #[must_use]
    pub fn new(in_all: usize, each: usize, patience: Duration) -> Self {
        let places = Arc::new(Shares::new(in_all, each));
        Self { places, patience, queues: Mutex::new(HashMap::new()) }
    }

    /// A turn at the resource, after those who asked before. `None` when there is no room or it does not come in
    /// time.
    pub async fn take(&self, party: P, key: K) -> Option<FairTurn<'_, P, K>> {
        let place = self.places.take(party)?;
        let one = || Arc::new(Semaphore::new(1));
        let queue = Arc::clone(self.lock().entry(key).or_insert_with(one));
        // From here on it leaves nothing behind, also if it is given up while it waits.
        let mut turn =
            FairTurn { turns: self, key, queue: Some(queue), permit: None, _place: place };
        let queue = turn.queue.clone()?;
        turn.permit = Some(timeout(self.patience, queue.acquire_owned()).await.ok()?.ok()?);
        Some(turn)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Arc<Semaphore>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: Copy + Eq + Hash, K: Copy + Eq + Hash> Drop for FairTurn<'_, P, K> {
    fn drop(&mut self) {
        self.permit = None;
        let mut queues = self.turns.lock();
        self.queue = None;
        if queues.get(&self.key).is_some_and(|queue| Arc::strong_count(queue) == 1) {
            queues.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(40);

    #[tokio::test(start_paused = true)]
    async fn one_holds_a_resource_and_the_next_one_follows() {
        let turns = Turns::new(8, 8, PATIENCE);
        let held = turns.take("org", 1).await.unwrap();
        let mut next = pin!(turns.take("org", 1));

        assert!(next.as_mut().now_or_never().is_none(), "it is held");
        assert!(turns.take("org", 2).now_or_never().flatten().is_some(), "another one is not");
        drop(held);

        let next = next.now_or_never().flatten();
        assert!(next.is_some());
        drop(next);
        assert!(turns.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_is_bounded_in_number_and_time_and_leaves_nothing() {
        let turns = Turns::new(3, 2, PATIENCE);
        let held = turns.take("one", 1).await.unwrap();
        {
            let mut given_up = pin!(turns.take("one", 1));
            assert!(given_up.as_mut().now_or_never().is_none());
            assert!(turns.take("one", 2).await.is_none(), "the party has its share");
        }

        assert!(turns.take("two", 1).await.is_none(), "its patience ended");
        assert_eq!(turns.lock().len(), 1);
        drop(held);
        assert!(turns.lock().is_empty());
        assert!(turns.take("one", 1).await.is_some());
    }
}
