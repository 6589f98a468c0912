//! Loading: policy text becomes compiled policies, with every error and its place.

pub(super) mod annotations;
pub(super) mod builtins;
pub(super) mod clauses;
pub(super) mod compiled;
pub(super) mod obligations;
pub(super) mod parser;
