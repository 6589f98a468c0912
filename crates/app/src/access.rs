//! Callers and what their plans allow: tokens and sessions, trust rules, limits.

pub(crate) mod limits;
pub(crate) mod sources;
pub(crate) mod tenants;
pub(crate) mod tokens;
pub(crate) mod trust;
