//! Audit events: what is recorded of a call, in which form it is hashed.
//!
//! Three layers, one rule: **the leaf is the canonical JSON of the record without `detached` and
//! `integrity`.** What is personal or payload stands in `detached`; the leaf only commits to it
//! with a salted hash, so it can be erased and every proof stays valid.

mod commitment;
mod leaf;
mod record;

pub use self::{
    commitment::Detached,
    leaf::{LeafError, leaf_bytes, leaf_hash},
    record::{
        Actor, Auth, Credential, DlpFinding, DlpResult, Event, EventType, Governance, Outcome,
        OutcomeStatus, RecordedDecision, Request, SCHEMA, Target,
    },
};
