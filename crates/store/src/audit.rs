//! The audit log: written before and after, sealed in order, read by sequence.
//!
//! A call's life: [`writer`] commits its intent, then its event (which removes the intent in the
//! same transaction); [`intents`] finds what a crash left open; [`seal`] gives events their place
//! in the org's log and lets its [`tree`] grow with it, whose root is kept in [`checkpoints`];
//! [`events`] reads them. **Invariant:** an event, once committed, is never changed, and a
//! sequence, once given, stays.

pub(crate) mod checkpoints;
pub(crate) mod events;
pub(crate) mod intents;
pub(crate) mod seal;
pub(crate) mod tree;
pub(crate) mod writer;
