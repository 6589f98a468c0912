//! The way of a request through its stages: how long each took is counted and recorded with a call, and each
//! is a span of its own where the request is traced.

use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed},
};

use portcullis_core::{
    audit::Durations,
    clock::Timestamp,
    trace::{TraceId, TraceParent},
};

use super::{
    histograms::{Family, MOMENTS, Times},
    traces::recording::Recording,
};

portcullis_core::words! { listed
    /// A part of the way. Each begins where the one before ends, so that nothing is left out.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Stage {
        Authenticate = "authenticate",
        Limits = "limits",
        /// Reading and parsing the body.
        Body = "body",
        /// Scope, tool, idempotency key, schema.
        Validate = "validate",
        DlpInput = "dlp_input",
        /// Policies on the input, and what they oblige to.
        PolicyInput = "policy_input",
        /// A connection with good credentials.
        Connection = "connection",
        /// The intent on its way to the disk.
        Intent = "intent",
        /// The tool itself.
        Upstream = "upstream",
        DlpOutput = "dlp_output",
        PolicyOutput = "policy_output",
        /// The event on its way to the disk.
        Outcome = "outcome",
    }
}

/// One request on its way. Cheap to clone; when the last clone is gone, the trace is handed over.
#[derive(Debug, Clone)]
pub struct Stages(Arc<StageClock>);

#[derive(Debug)]
struct StageClock {
    /// Its place in [`Stage::ALL`]; beyond it, the request is in none.
    stage: AtomicUsize,
    /// When that began, in microseconds.
    since: AtomicI64,
    /// Microseconds that it was in each; negative for those it was not in.
    spent: [AtomicI64; Stage::ALL.len()],
    recording: Option<Recording>,
}

/// In no stage.
const NOWHERE: usize = usize::MAX;

static FAMILY: Family = Family {
    name: "portcullis_stage_seconds",
    help: "Time of requests in each of their stages",
    label: "stage",
    bounds: &MOMENTS,
};

static TIMES: LazyLock<[Arc<Times>; Stage::ALL.len()]> =
    LazyLock::new(|| Stage::ALL.map(|stage| Times::of(&FAMILY, stage.as_str())));

impl Stages {
    /// A request in its first stage, which is traced if there is a recording.
    pub(crate) fn new(recording: Option<Recording>, now: Timestamp) -> Self {
        let stage = AtomicUsize::new(NOWHERE);
        let since = AtomicI64::new(0);
        let spent = Stage::ALL.map(|_| AtomicI64::new(-1));
        let stages = Self(Arc::new(StageClock { stage, since, spent, recording }));
        stages.enter(Stage::Authenticate, now);
        stages
    }

    /// A request without a trace.
    #[must_use]
    pub fn untraced() -> Self {
        Self::new(None, Timestamp::default())
    }

    /// The stage it was in is over, and this one begins.
    pub fn enter(&self, stage: Stage, now: Timestamp) {
        self.turn(stage as usize, now);
        if let Some(recording) = &self.0.recording {
            recording.enter(stage.as_str(), now);
        }
    }

    /// The stage it was in is over.
    pub fn leave(&self, now: Timestamp) {
        self.turn(NOWHERE, now);
        if let Some(recording) = &self.0.recording {
            recording.leave(now);
        }
    }

    fn turn(&self, stage: usize, now: Timestamp) {
        let before = self.0.stage.swap(stage, Relaxed);
        let since = self.0.since.swap(now.as_micros(), Relaxed);
        if let Some((times, spent)) = TIMES.get(before).zip(self.0.spent.get(before)) {
            times.count(Timestamp::from_micros(since), now);
            let longer = now.as_micros().saturating_sub(since).max(0);
            spent.store(spent.load(Relaxed).max(0).saturating_add(longer), Relaxed);
        }
    }

    /// Durations of the stages that are over.
    #[must_use]
    pub fn durations(&self) -> Durations {
        let spent = Stage::ALL.iter().zip(&self.0.spent);
        let mut durations = Vec::with_capacity(spent.len());
        durations.extend(spent.filter_map(|(stage, spent)| {
            Some((stage.as_str(), u64::try_from(spent.load(Relaxed)).ok()?))
        }));
        Durations::new(durations)
    }

    /// Recording of the trace, if there is one.
    #[must_use]
    pub fn traced(&self) -> Option<&Recording> {
        self.0.recording.as_ref()
    }

    /// The trace that it is recorded in.
    pub(crate) fn trace_id(&self) -> Option<TraceId> {
        self.traced().map(Recording::trace_id)
    }

    /// The parent of what is sent in this stage.
    pub(crate) fn parent(&self) -> Option<TraceParent> {
        self.traced().and_then(Recording::parent)
    }
}
