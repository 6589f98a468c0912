//! Knowledge of a thread about the work that it polls: by whom, in whose turn, and for a waiter who is still there.

use std::{cell::Cell, future::poll_fn, hash::Hash, sync::Arc, task::Poll};

use tokio::{runtime::Handle, task::block_in_place};
use tokio_util::sync::CancellationToken;

use super::LARGE;
use crate::fair::{FairSlot, FairSlots};

thread_local! {
    static POLLED: Cell<PolledBy> = const { Cell::new(PolledBy::Elsewhere) };
    /// Passes the turn on, if others wait for it.
    static PASS: Cell<Option<Box<dyn Fn()>>> = const { Cell::new(None) };
    /// Cancelled once the waiter for what runs on this thread has left, where that ends it.
    static LEFT: Cell<Option<CancellationToken>> = const { Cell::new(None) };
}

/// The poller of what runs on this thread now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PolledBy {
    /// A thread that cannot offload it.
    Elsewhere,
    /// A serving thread, which can.
    Serving,
    /// A serving thread that has been asked to.
    Asked,
    Worker,
}

/// Continues the current task on a worker. Does nothing where there are no workers, or on one.
pub async fn offload() {
    poll_fn(|cx| match POLLED.get() {
        PolledBy::Elsewhere | PolledBy::Worker => Poll::Ready(()),
        PolledBy::Serving | PolledBy::Asked => {
            POLLED.set(PolledBy::Asked);
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}

/// Returns true if the current task was offloaded.
#[must_use]
pub fn is_offloaded() -> bool {
    POLLED.get() == PolledBy::Worker
}

/// Returns true if the current task asked to be offloaded.
pub(super) fn asks_for_worker() -> bool {
    POLLED.get() == PolledBy::Asked
}

/// Steps of work, of the length that a byte of clean text takes to be scanned, beyond which a serving
/// thread is no place for it.
pub(super) const MOST_STEPS: usize = 8 * LARGE;

/// Returns true if work that took so many steps may go on here. Others have their turn first where a
/// worker does it. Returns false on a serving thread for what takes long: it has to be offloaded; and on a
/// worker for [awaited](super::Workers::run_awaited) work whose waiter has left.
///
/// Work calls this between steps, and holds nothing meanwhile that others wait for.
#[must_use]
pub fn goes_on(steps: usize) -> bool {
    match POLLED.get() {
        PolledBy::Elsewhere => true,
        PolledBy::Serving | PolledBy::Asked => steps <= MOST_STEPS,
        PolledBy::Worker => {
            // Taken out meanwhile: this thread does nothing else before it has its turn again.
            if let Some(pass) = PASS.take() {
                pass();
                PASS.set(Some(pass));
            }
            !is_left()
        }
    }
}

/// Returns true if no one waits any more for what runs on this thread.
fn is_left() -> bool {
    let left = LEFT.take();
    let is_left = left.as_ref().is_some_and(CancellationToken::is_cancelled);
    LEFT.set(left);
    is_left
}

/// Sets how the leaving of a waiter is known, until it is dropped, also by a panic.
pub(super) struct Awaited;

impl Awaited {
    pub(super) fn new(left: CancellationToken) -> Self {
        LEFT.set(Some(left));
        Self
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        LEFT.set(None);
    }
}

/// Sets who polls, until it is dropped, also by a panic.
pub(super) struct As(PolledBy);

impl As {
    pub(super) fn new(polled: PolledBy) -> Self {
        Self(POLLED.replace(polled))
    }
}

impl Drop for As {
    fn drop(&mut self) {
        POLLED.set(self.0);
    }
}

/// The turn in which work is polled, until it is dropped, also by a panic.
pub(super) struct PollTurn;

impl PollTurn {
    pub(super) fn begin<K>(slots: Arc<FairSlots<K>>, party: K, slot: Option<FairSlot<K>>) -> Self
    where
        K: Copy + Eq + Hash + Send + Sync + 'static,
    {
        let slot = Cell::new(slot);
        PASS.set(Some(Box::new(move || {
            if !slots.has_waiting() {
                return;
            }
            slot.set(None);
            slot.set(block_in_place(|| Handle::current().block_on(slots.take(party))));
        })));
        Self
    }
}

impl Drop for PollTurn {
    fn drop(&mut self) {
        PASS.set(None);
    }
}
