//! Governed calls: [`invoke`] tells the story of an invocation, [`bracket`] makes sure that nothing
//! happens unrecorded.

pub(crate) mod answers;
mod approve;
mod attended;
mod bracket;
pub(crate) mod conversation;
mod dispatch;
mod effect;
pub(crate) mod event;
pub(crate) mod idempotency;
mod interaction;
pub(crate) mod invoke;
mod leg;
pub(crate) mod provider_task;
mod reject;
mod remarks;
mod request;
mod room;
mod spans;
mod steps;
pub(crate) mod task;
mod uninterrupted;

pub use self::{
    answers::{Answered, GovernanceView, Invoked, Replayed, ReplayedError, Stopped},
    request::{Invocation, TaskTerms, View},
    room::{CallParts, Calls},
};
