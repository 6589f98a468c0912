//! Explaining: decisions with their reasons, also when only a part of the call is known.

pub(super) mod examine;
pub(super) mod explanation;
pub(super) mod known_context;
mod near_misses;
pub(super) mod suggestion;
