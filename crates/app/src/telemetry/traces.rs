//! Traces of requests: a span for the request and one for each stage of it, handed to the
//! collector.
//!
//! **Invariant:** no call waits for a trace, and no span holds anything of what was said: names of
//! tools, ids, decisions and durations, never an input, an answer, a header or an address.

mod exporter;
mod otlp;
pub(crate) mod recording;

pub use self::recording::{Attribute, Recording};

use std::sync::{Arc, Mutex, PoisonError};

use portcullis_core::{
    clock::{Clock, Timestamp},
    id::RequestId,
    random::{self, Random},
    trace::{SpanId, TraceId, TraceParent},
};
use portcullis_upstream::OtlpReceiver;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::{exporter::Exporter, recording::Ids};
use super::{Telemetry, counters, stages::Stages};

/// Requests whose traces wait to be sent; those of further ones are dropped and counted.
const WAITING: usize = 2048;

/// Selection of the requests to trace, and the receiver.
#[derive(Debug, Clone)]
pub struct TraceSettings {
    pub receiver: OtlpReceiver,
    /// Of a million requests that came without a decision of their caller, so many are traced.
    pub per_million: u32,
    /// True if what a caller traces is traced here as well.
    pub follow_callers: bool,
}

/// A span that is over.
#[derive(Debug)]
struct Span {
    id: SpanId,
    name: String,
    kind: SpanKind,
    begun: Timestamp,
    ended: Timestamp,
    attributes: Vec<Attribute>,
    /// Cause of the failure, in a word.
    failed: Option<String>,
}

/// Side of an exchange that a span describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpanKind {
    Internal,
    Server,
    Client,
}

/// Spans of one request: the first is the request itself, the others are parts of it.
#[derive(Debug)]
struct Trace {
    id: TraceId,
    /// The caller's span.
    parent: Option<SpanId>,
    spans: Vec<Span>,
}

/// Chooses which requests are traced, and takes their traces.
#[derive(Debug)]
pub(crate) struct Tracer {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    per_million: u64,
    follow_callers: bool,
    queue: mpsc::Sender<Trace>,
}

/// The tracing of a node; without settings, nothing is traced.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    tracer: Option<Arc<Tracer>>,
    /// Until it is started.
    exporter: Mutex<Option<Exporter>>,
}

impl Traces {
    pub(crate) fn new(
        settings: Option<TraceSettings>,
        node: &str,
        clock: &Arc<dyn Clock>,
        random: &Arc<dyn Random>,
    ) -> Self {
        let Some(settings) = settings else { return Self::default() };
        let (queue, waiting) = mpsc::channel(WAITING);
        let tracer = Tracer {
            clock: Arc::clone(clock),
            random: Arc::clone(random),
            per_million: settings.per_million.into(),
            follow_callers: settings.follow_callers,
            queue,
        };
        let exporter = Exporter::new(settings.receiver, node.to_owned(), waiting);
        Self { tracer: Some(Arc::new(tracer)), exporter: Mutex::new(Some(exporter)) }
    }
}

impl Tracer {
    /// Returns true if the request is traced. The decision of its caller binds all who take part;
    /// without one, chance decides.
    fn wants(&self, caller: Option<TraceParent>, request: RequestId) -> bool {
        match caller.filter(|_| self.follow_callers) {
            Some(caller) => caller.is_sampled(),
            None => request.lot() % 1_000_000 < self.per_million,
        }
    }

    fn record(self: &Arc<Self>, caller: Option<TraceParent>, arrived: Timestamp) -> Recording {
        let begun = || TraceId::new(random::bytes::<16>(&*self.random));
        let trace = caller.map_or_else(begun, |caller| caller.trace);
        let ids = Ids::after(u64::from_be_bytes(random::bytes::<8>(&*self.random)));
        Recording::begin(Arc::clone(self), trace, caller, ids, arrived)
    }

    /// Takes the trace of a request that is over, unless too many wait already.
    fn take(&self, trace: Trace) {
        if let Err(refused) = self.queue.try_send(trace) {
            counters::spans_dropped(refused.into_inner().spans.len());
        }
    }
}

impl Telemetry {
    /// The way of a request that has just arrived.
    #[must_use]
    pub fn stages(
        &self,
        caller: Option<TraceParent>,
        request: RequestId,
        arrived: Timestamp,
    ) -> Stages {
        let tracer = self.traces.tracer.as_ref().filter(|tracer| tracer.wants(caller, request));
        Stages::new(tracer.map(|tracer| tracer.record(caller, arrived)), arrived)
    }

    /// Starts to hand traces over; what waits when `stop` is cancelled is still sent, once.
    pub(crate) fn start_traces(&self, stop: &CancellationToken) {
        let exporter = &mut *self.traces.exporter.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(exporter) = exporter.take() {
            self.tasks.spawn(exporter.run(stop.clone()));
        }
    }
}
