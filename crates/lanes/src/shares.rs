//! Places that are taken at once or not at all: so many in all, and so many of one party.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Places of which a party can hold its share only, for however long. `K` identifies a party.
///
/// **Invariant:** the state grows with the places that are held, never with the number of parties.
#[derive(Debug)]
pub struct Shares<K: Copy + Eq + Hash> {
    in_all: usize,
    each: usize,
    held: Mutex<HeldPlaces<K>>,
}

#[derive(Debug)]
struct HeldPlaces<K> {
    all: usize,
    parties: HashMap<K, usize>,
}

/// A place that is taken, until it is dropped.
#[derive(Debug)]
pub struct SharePlace<K: Copy + Eq + Hash> {
    shares: Arc<Shares<K>>,
    party: K,
}

impl<K: Copy + Eq + Hash> Shares<K> {
    /// So many places in all, of which each party holds at most its share.
    #[must_use]
    pub fn new(in_all: usize, each: usize) -> Self {
        Self { in_all, each, held: Mutex::new(HeldPlaces { all: 0, parties: HashMap::new() }) }
    }

    /// A place for `party`; `None` if there is none, or if it holds its share.
    #[must_use]
    pub fn take(self: &Arc<Self>, party: K) -> Option<SharePlace<K>> {
        let mut held = self.lock();
        let own = held.parties.get(&party).copied().unwrap_or_default();
        if held.all >= self.in_all || own >= self.each {
            return None;
        }
        held.all += 1;
        held.parties.insert(party, own + 1);
        Some(SharePlace { shares: Arc::clone(self), party })
    }

    fn lock(&self) -> MutexGuard<'_, HeldPlaces<K>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + Eq + Hash> Drop for SharePlace<K> {
    fn drop(&mut self) {
        let mut held = self.shares.lock();
        held.all = held.all.saturating_sub(1);
        let left = held.parties.get(&self.party).map_or(0, |own| own.saturating_sub(1));
        if left == 0 {
            held.parties.remove(&self.party);
        } else {
            held.parties.insert(self.party, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_party_that_holds_its_share_leaves_the_others_theirs() {
        let shares = Arc::new(Shares::new(5, 3));

        let one: Vec<_> = (0..10).map_while(|_| shares.take("one")).collect();
        let two: Vec<_> = (0..10).map_while(|_| shares.take("two")).collect();

        assert_eq!((one.len(), two.len()), (3, 2));
        assert!(shares.take("three").is_none(), "there are no more in all");
        drop(one);
        assert!(shares.take("three").is_some() && shares.take("two").is_some());
        drop(two);
        let held = shares.lock();
        assert_eq!((held.all, held.parties.len()), (0, 0));
    }
}
