//! The audit log: events, their signed log, exports, copies and retention.

pub(crate) mod accesses;
pub(crate) mod anchors;
pub(crate) mod coalesced;
pub(crate) mod events;
pub(crate) mod exports;
pub mod filters;
pub(crate) mod log;
pub(crate) mod mismatches;
pub(crate) mod repeats;
pub(crate) mod retention;
pub(crate) mod sinks;
