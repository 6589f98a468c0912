//! Explaining: decisions with their reasons, also when only a part of the call is known.

pub(super) mod examine;
pub(super) mod known_context;
pub(super) mod near_misses;
pub(super) mod outcome;
pub(super) mod suggestion;
