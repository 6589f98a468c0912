//! Governed calls: [`invoke`] tells the story of an invocation, [`bracket`] makes sure that nothing
//! happens unrecorded.

mod admit;
pub(crate) mod answers;
mod approve;
mod attended;
mod bracket;
mod connection;
pub(crate) mod conversation;
mod dispatch;
mod effect;
pub(crate) mod event;
mod failed;
pub(crate) mod idempotency;
mod interaction;
pub(crate) mod invoke;
mod judge;
mod leg;
mod parse;
mod reject;
mod remarks;
mod request;
mod room;
mod spans;
pub(crate) mod task;
mod uninterrupted;

pub use self::{
    answers::{Answered, GovernanceView, Invoked, Replayed, ReplayedError, Stopped},
    request::{Invocation, TaskTerms, View},
    room::{CallParts, Calls},
};
