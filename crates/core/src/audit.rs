//! Audit events: what is recorded of a call, in which form it is hashed, and how it is proven.
//!
//! Three layers, one rule: **the leaf is the canonical JSON of the record without `detached` and
//! `integrity`.** What is personal or payload stands in `detached`; the leaf only commits to it
//! with a salted hash, so it can be erased and every proof stays valid.
//!
//! The leaves of an org are a Merkle tree ([`merkle`], [`nodes`], stored as [`tiles`]); its root
//! is signed ([`keyring`], [`note`], [`checkpoint`]); a [`proof`] leads from an event to a signed root, and an
//! [`export`] from a range of them.

pub mod checkpoint;
pub mod export;
pub mod keyring;
pub mod merkle;
pub mod nodes;
pub mod note;
pub mod proof;
pub mod tiles;

mod capture;
mod commitment;
mod csv;
mod event;
mod leaf;
mod ocsf;
mod packed;
mod record;
mod row;
mod verified;
mod view;

#[cfg(test)]
mod tests;

pub use self::{
    capture::{Capture, MOST_PAYLOAD_BYTES},
    commitment::Detached,
    event::{Durations, Event, EventParts, RecordedEvent},
    leaf::{LeafError, leaf_bytes},
    merkle::{Hash, leaf_hash},
    nodes::Plan,
    packed::{RestoredRecord, restore},
    record::{
        Actor, ActorClient, Auth, Credential, DlpFinding, DlpResult, EventType, Governance,
        Outcome, OutcomeStatus, RecordedDecision, Request, SCHEMA, Target, UsedApproval,
    },
    row::{Sealed, StoredError},
    verified::{LEAF, Verified, uncommitted},
    view::Shown,
};
