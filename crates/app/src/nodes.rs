//! The node among others: membership, background jobs and commands of the operator.

pub(crate) mod cluster;
pub(crate) mod commands;
pub(crate) mod jobs;
pub(crate) mod readiness;
