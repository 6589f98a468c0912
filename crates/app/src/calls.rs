//! Governed calls: the story of an invocation, its bracket, and simulation.

pub(crate) mod admission;
pub(crate) mod answers;
pub(crate) mod idempotency;
pub(crate) mod invoke;
pub(crate) mod recorded;
pub(crate) mod simulate;
pub(crate) mod uninterrupted;
