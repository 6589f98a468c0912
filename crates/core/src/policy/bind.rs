//! Binding: policies meet the tools there are, and are checked against them.

pub(super) mod access_table;
pub(super) mod binding;
pub(super) mod check;
pub(super) mod index;
pub(super) mod record;
pub(super) mod redundant;
pub(super) mod slot;
