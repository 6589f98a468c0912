//! Settings of the operator: actions, limits, detectors of their own and exceptions.

pub(super) mod allow;
pub(super) mod custom;
pub(super) mod floor;
pub(super) mod gitleaks;
mod go_regex;
pub(super) mod options;
mod room;
