//! Scanning: a prefilter over the buffer wakes detectors, and these weigh evidence.

pub(super) mod active;
mod anchors;
mod cursor;
mod doubt;
mod evidence;
pub(super) mod found;
mod glued;
mod hidden;
mod literals;
mod pass;
mod plan;
mod reach;
pub(super) mod scanner;
mod triggered;
mod triggers;
mod window;
mod windows;
