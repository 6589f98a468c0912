//! Telemetry of a node: counters, time histograms, stages of requests, and traces.

pub mod counters;
pub mod histograms;
pub(crate) mod stages;
pub(crate) mod traces;
