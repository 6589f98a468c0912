//! The requests that wait for an answer.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
};

use portcullis_core::refusal::Executed;
use portcullis_lanes::LARGE;
use tokio::sync::oneshot;

use crate::{
    forms::FormTally,
    live::{Live, Progress},
    mcp::{message::Outcome, outgoing::Outgoing},
};

/// Reply to a request.
#[derive(Debug)]
pub(super) enum Arrival {
    /// Its answer, and whether that is large.
    Answer(Outcome, Size),
    TooLarge,
    /// Something with its id that is no answer.
    Garbled,
}

/// Size of an answer: a large one is judged by a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Small,
    Large,
}

impl Size {
    pub(super) const fn of(bytes: usize) -> Self {
        if bytes > LARGE { Self::Large } else { Self::Small }
    }
}

/// Progress of a request: still ours to withdraw, or sent.
#[derive(Debug, Default)]
pub(super) struct Ticket(AtomicU8);

const QUEUED: u8 = 0;
const SENT: u8 = 1;
const WITHDRAWN: u8 = 2;

impl Ticket {
    /// Marks it as sent, before its first byte is written. `false` if it was withdrawn.
    pub(super) fn send(&self) -> bool {
        self.leave_queue(SENT)
    }

    /// Takes it back; afterwards it is known whether it may have been executed.
    pub(super) fn withdraw(&self) -> Executed {
        if self.leave_queue(WITHDRAWN) || self.0.load(Ordering::Acquire) == WITHDRAWN {
            Executed::No
        } else {
            Executed::Unknown
        }
    }

    fn leave_queue(&self, to: u8) -> bool {
        self.0.compare_exchange(QUEUED, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// The requests of one child, by id.
#[derive(Debug, Default)]
pub(super) struct Pending(Mutex<Map>);

#[derive(Debug, Default)]
struct Map {
    closed: bool,
    waiting: HashMap<u64, Waiter>,
}

/// Receivers of the answer to a request, of its progress, and of the forms that come meanwhile.
#[derive(Debug)]
struct Waiter {
    arrival: oneshot::Sender<Arrival>,
    live: Option<Live>,
    forms: Option<FormTally>,
}

impl Pending {
    /// Registers a request; `None` when the child is gone.
    pub(super) fn add(
        self: &Arc<Self>,
        id: u64,
        request: &Outgoing<'_>,
    ) -> Option<(Waiting, oneshot::Receiver<Arrival>)> {
        let (arrival, receiver) = oneshot::channel();
        let mut map = self.lock();
        if map.closed {
            return None;
        }
        let live = request.live.cloned();
        let forms = request.forms.cloned();
        map.waiting.insert(id, Waiter { arrival, live, forms });
        Some((Waiting { pending: self.clone(), id }, receiver))
    }

    /// Hands something over to the request it is for; says whether there was one.
    pub(super) fn hand_over(&self, id: u64, arrival: Arrival) -> bool {
        let waiting = self.lock().waiting.remove(&id);
        waiting.is_some_and(|waiting| waiting.arrival.send(arrival).is_ok())
    }

    /// Passes progress on to the caller that waits for the request.
    pub(super) fn hear(&self, id: u64, progress: Progress) {
        let live = self.lock().waiting.get(&id).and_then(|waiting| waiting.live.clone());
        if let Some(live) = live {
            live.hear(progress);
        }
    }

    /// Returns true if the answer to a request is waited for.
    pub(super) fn is_waiting(&self, id: u64) -> bool {
        self.lock().waiting.contains_key(&id)
    }

    /// The calls that wait and have forms answered.
    pub(super) fn forms(&self) -> Vec<FormTally> {
        self.lock().waiting.values().filter_map(|waiting| waiting.forms.clone()).collect()
    }

    /// Lets all requests know that nothing will come any more.
    pub(super) fn close(&self) {
        let mut map = self.lock();
        map.closed = true;
        map.waiting.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Map> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A registered request; dropping it forgets it, so that a late answer finds no receiver.
#[derive(Debug)]
pub(super) struct Waiting {
    pending: Arc<Pending>,
    id: u64,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.pending.lock().waiting.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use portcullis_core::mcp::Method;

    use super::*;

    #[test]
    fn a_request_is_either_sent_or_withdrawn() {
        let sent = Ticket::default();
        let withdrawn = Ticket::default();

        assert!(sent.send());
        assert_eq!(sent.withdraw(), Executed::Unknown);
        assert_eq!(withdrawn.withdraw(), Executed::No);
        assert!(!withdrawn.send());
        assert_eq!(withdrawn.withdraw(), Executed::No);
    }

    #[test]
    fn a_late_or_second_answer_finds_nobody() {
        let request = Outgoing::bare(Method::CallTool);
        let pending = Arc::new(Pending::default());
        let (waiting, _receiver) = pending.add(1, &request).unwrap();
        let (_second, _other) = pending.add(2, &request).unwrap();

        assert!(pending.hand_over(1, Arrival::Garbled));
        assert!(!pending.hand_over(1, Arrival::Garbled));
        drop(waiting);
        assert!(!pending.hand_over(3, Arrival::TooLarge));
        pending.close();
        assert!(pending.add(4, &request).is_none());
        assert!(!pending.hand_over(2, Arrival::TooLarge));
    }
}
