//! Telemetry of a node: counters, time histograms, stages of requests, and traces.

pub mod counters;
pub mod histograms;
pub(crate) mod stages;
pub(crate) mod traces;

use std::sync::Arc;

use self::traces::{TraceSettings, Traces};
use crate::base::Base;

/// Tracing of a node. Counters and histograms are the process's.
#[derive(Debug)]
pub struct Telemetry {
    base: Arc<Base>,
    traces: Traces,
}

impl Telemetry {
    pub(crate) fn new(base: Arc<Base>, settings: Option<TraceSettings>) -> Self {
        let traces = Traces::new(settings, &base.node, &base.clock, &base.random);
        Self { base, traces }
    }
}
