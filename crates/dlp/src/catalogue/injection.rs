//! Instructions to a model that stand in data: what speaks is their structure, and what stands side by side.

pub(super) mod classes;
pub(super) mod links;
pub(super) mod overrides;
pub(super) mod passage;
pub(super) mod poison;
pub(super) mod requests;
pub(super) mod roles;
pub(super) mod steering;
pub(super) mod veiled;
