//! Telemetry of a node: counters, time histograms, stages of requests, and traces.

pub mod counters;
pub mod histograms;
pub(crate) mod stages;
pub(crate) mod traces;

use tokio_util::task::TaskTracker;

use self::traces::Traces;

/// Tracing of a node. Counters and histograms are the process's.
#[derive(Debug)]
pub struct Telemetry {
    pub(crate) traces: Traces,
    /// Tasks that must finish before the process ends.
    pub(crate) tasks: TaskTracker,
}
