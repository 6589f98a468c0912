//! Deciding: candidates are evaluated in order, and become one decision.

pub(super) mod decision;
pub(super) mod order;
pub(super) mod verdicts;
