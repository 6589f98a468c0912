//! The audit log: written before and after, sealed in order, read by sequence.
//!
//! A call's life: [`writer`] commits its intent, then its event (which removes the intent in the
//! same transaction); [`intents`] finds what a crash left open; [`seal`] gives events their place
//! in the org's log and lets its [`tree`] grow with it, whose root is kept in [`checkpoints`],
//! and its [`counts`] by minute;
//! [`events`] reads them, and [`reindex`] makes what they are found by anew. What was detached may be let go ([`erasure`]), and the beginning of the log
//! ([`pruning`], whole [`months`] of it on PostgreSQL), unless a hold forbids it ([`holds`]). **Invariant:** the hashed part of an event,
//! once committed, is never changed, and a sequence, once given, stays.

pub(crate) mod checkpoints;
pub(crate) mod counts;
pub(crate) mod erasure;
pub(crate) mod events;
pub(crate) mod holds;
pub(crate) mod intents;
pub(crate) mod months;
pub(crate) mod pruning;
pub(crate) mod reindex;
pub(crate) mod seal;
pub(crate) mod tree;
pub(crate) mod writer;
