//! A number of slots, shared fairly by parties that want more of them than there are.
//!
//! While slots are free no request waits. Otherwise every party has a queue of its own, and queues
//! are served in turn: a request waits for at most one of each other party, however many those have
//! waiting. Where slots may be held for long, some are kept free for parties that hold few.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};

/// For how long a party that asked for a slot is one that may ask again.
const LATELY: Duration = Duration::from_mins(1);

/// Number of slots, of those who may wait for one, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct FairLimits {
    pub slots: usize,
    /// Slots that a party which holds its share already leaves to others, if others asked lately.
    pub reserve: usize,
    /// Number that may wait, of all parties together.
    pub waiting: usize,
    /// The longest time that anybody waits.
    pub patience: Duration,
}

/// Slots shared fairly by parties. `K` identifies a party.
///
/// **Invariant:** the state grows with slots and queue length, never with the number of parties.
#[derive(Debug)]
pub struct FairSlots<K: Copy + Eq + Hash> {
    limits: FairLimits,
    /// Held for a few steps at a time.
    state: Mutex<State<K>>,
}

/// A slot that is taken, until it is dropped.
#[derive(Debug)]
pub struct FairSlot<K: Copy + Eq + Hash> {
    slots: Arc<FairSlots<K>>,
    party: K,
}

#[derive(Debug)]
struct State<K> {
    free: usize,
    waiting: usize,
    tickets: u64,
    /// Parties that hold slots or wait for one.
    shares: HashMap<K, Share>,
    /// Parties that wait, in the order of their turns.
    turns: VecDeque<K>,
    /// The two parties that asked last: of any party they tell whether another one asked lately.
    asked: [Option<(K, Instant)>; 2],
}

#[derive(Debug, Default)]
struct Share {
    held: usize,
    queue: VecDeque<(u64, oneshot::Sender<()>)>,
}

/// A request in a queue.
struct Waiting<'a, K: Copy + Eq + Hash> {
    slots: &'a FairSlots<K>,
    party: K,
    ticket: u64,
    told: oneshot::Receiver<()>,
    /// The slot has an owner, who gives it back.
    taken: bool,
}

enum SlotAnswer {
    Given,
    Full,
    Queued(u64, oneshot::Receiver<()>),
}

impl<K: Copy + Eq + Hash> FairSlots<K> {
    /// All slots are free.
    #[must_use]
    pub fn new(limits: FairLimits) -> Self {
        let state = State {
            free: limits.slots,
            waiting: 0,
            tickets: 0,
            shares: HashMap::new(),
            turns: VecDeque::new(),
            asked: [None; 2],
        };
        Self { limits, state: Mutex::new(state) }
    }

    /// A slot for `party`. `None` when there is none in time, or when too many wait and no other
    /// party has more of them.
    pub async fn take(self: &Arc<Self>, party: K) -> Option<FairSlot<K>> {
        let asked = self.lock().ask(party, &self.limits, Instant::now());
        match asked {
            SlotAnswer::Given => {}
            SlotAnswer::Full => return None,
            SlotAnswer::Queued(ticket, told) => {
                let mut waiting = Waiting { slots: self, party, ticket, told, taken: false };
                timeout(self.limits.patience, &mut waiting.told).await.ok()?.ok()?;
                waiting.taken = true;
            }
        }
        Some(FairSlot { slots: Arc::clone(self), party })
    }

    /// Returns true if anybody waits for a slot.
    pub(crate) fn has_waiting(&self) -> bool {
        self.lock().waiting > 0
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.lock().free
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting
    }

    fn give_back(&self, party: K) {
        self.lock().give_back(party, &self.limits, Instant::now());
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + Eq + Hash> State<K> {
    fn ask(&mut self, party: K, limits: &FairLimits, now: Instant) -> SlotAnswer {
        self.note(party, now);
        self.shares.entry(party).or_default();
        let first = self.shares.get(&party).is_some_and(|share| share.queue.is_empty());
        if first && self.may_have(party, limits, now) {
            self.grant(party);
            return SlotAnswer::Given;
        }
        if self.waiting >= limits.waiting && !self.displace(party) {
            self.forget(party);
            return SlotAnswer::Full;
        }
        let (tell, told) = oneshot::channel();
        self.tickets += 1;
        let ticket = self.tickets;
        if first {
            self.turns.push_back(party);
        }
        self.waiting += 1;
        self.shares.entry(party).or_default().queue.push_back((ticket, tell));
        SlotAnswer::Queued(ticket, told)
    }

    fn note(&mut self, party: K, now: Instant) {
        let [last, before] = &mut self.asked;
        if last.is_some_and(|(last, _)| last != party) {
            *before = last.take();
        }
        *last = Some((party, now));
    }

    /// Returns true if a free slot may be `party`'s: any, if no other party asked lately; otherwise
    /// the last ones are for those who hold less than their share.
    fn may_have(&self, party: K, limits: &FairLimits, now: Instant) -> bool {
        if self.free > limits.reserve {
            return true;
        }
        let other = |(other, at): &(K, Instant)| *other != party && now < *at + LATELY;
        let alone = !self.asked.iter().flatten().any(other);
        let held = self.shares.get(&party).map_or(0, |share| share.held);
        let share = (limits.slots / self.shares.len().max(2)).max(1);
        self.free > 0 && (alone || held < share)
    }

    fn grant(&mut self, party: K) {
        self.free -= 1;
        self.shares.entry(party).or_default().held += 1;
    }

    fn give_back(&mut self, party: K, limits: &FairLimits, now: Instant) {
        self.free += 1;
        if let Some(share) = self.shares.get_mut(&party) {
            share.held -= 1;
        }
        self.forget(party);
        self.serve(limits, now);
    }

    /// Gives what is free to those who wait, one to each in turn.
    fn serve(&mut self, limits: &FairLimits, now: Instant) {
        let mut passed_over = 0;
        while self.free > 0 && passed_over < self.turns.len() {
            let Some(party) = self.turns.pop_front() else { return };
            if !self.may_have(party, limits, now) {
                self.turns.push_back(party);
                passed_over += 1;
                continue;
            }
            passed_over = 0;
            let Some(share) = self.shares.get_mut(&party) else { continue };
            let next = share.queue.pop_front();
            if !share.queue.is_empty() {
                self.turns.push_back(party);
            }
            let Some((_, tell)) = next else { continue };
            self.waiting -= 1;
            if tell.send(()).is_ok() {
                self.grant(party);
            } else {
                self.forget(party);
            }
        }
    }

    /// Removes the last request of a longer queue of another party to queue one of `party`.
    fn displace(&mut self, party: K) -> bool {
        let length = |share: &Share| share.queue.len();
        let own = self.shares.get(&party).map_or(0, length);
        let longest = self.shares.values_mut().max_by_key(|share| length(share));
        let Some(longest) = longest.filter(|longest| length(longest) > own + 1) else {
            return false;
        };
        // The end of the channel tells the waiter.
        let displaced = longest.queue.pop_back().is_some();
        self.waiting -= usize::from(displaced);
        displaced
    }

    fn leave(&mut self, party: K, ticket: u64) -> bool {
        let Some(share) = self.shares.get_mut(&party) else { return false };
        let Some(at) = share.queue.iter().position(|(waiting, _)| *waiting == ticket) else {
            return false;
        };
        drop(share.queue.remove(at));
        if share.queue.is_empty() {
            self.turns.retain(|turn| *turn != party);
        }
        self.waiting -= 1;
        self.forget(party);
        true
    }

    /// Nothing is kept of a party that neither holds nor wants anything.
    fn forget(&mut self, party: K) {
        let idle = |share: &Share| share.held == 0 && share.queue.is_empty();
        if self.shares.get(&party).is_some_and(idle) {
            self.shares.remove(&party);
        }
    }
}

impl<K: Copy + Eq + Hash> Drop for Waiting<'_, K> {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        let mut state = self.slots.lock();
        // Slots are given under the same lock, so it is one or the other.
        if !state.leave(self.party, self.ticket) && self.told.try_recv().is_ok() {
            state.give_back(self.party, &self.slots.limits, Instant::now());
        }
    }
}

impl<K: Copy + Eq + Hash> Drop for FairSlot<K> {
    fn drop(&mut self) {
        self.slots.give_back(self.party);
    }
}

#[cfg(test)]
mod tests;
