//! The trace of one request while it is written.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use portcullis_core::{
    clock::Timestamp,
    trace::{SpanId, TraceId, TraceParent},
};

use super::{Span, SpanKind, Trace, Tracer};

/// Something told about a span.
#[derive(Debug)]
pub struct Attribute {
    pub(super) key: &'static str,
    pub(super) value: AttributeValue,
}

#[derive(Debug)]
pub(super) enum AttributeValue {
    Text(String),
    Number(i64),
}

impl Attribute {
    /// A text; nothing that a caller or an upstream wrote.
    #[must_use]
    pub fn text(key: &'static str, text: impl Into<String>) -> Self {
        Self { key, value: AttributeValue::Text(text.into()) }
    }

    /// A whole number.
    #[must_use]
    pub fn number(key: &'static str, number: impl Into<i64>) -> Self {
        Self { key, value: AttributeValue::Number(number.into()) }
    }
}

/// The ids of the spans of one request: consecutive, from a random one.
#[derive(Debug)]
pub(super) struct Ids(u64);

impl Ids {
    pub(super) const fn after(number: u64) -> Self {
        Self(number)
    }

    fn next(&mut self) -> SpanId {
        self.0 = self.0.wrapping_add(1);
        SpanId::new(self.0)
    }
}

/// The trace of one request. When it is dropped, it is handed over; that of a stranger is not, so
/// that a client without a token cannot make others' traces go lost.
#[derive(Debug)]
pub struct Recording {
    tracer: Arc<Tracer>,
    trace: TraceId,
    caller: Option<TraceParent>,
    written: Mutex<WrittenSpans>,
}

#[derive(Debug)]
struct WrittenSpans {
    ids: Ids,
    request: Span,
    answered: bool,
    known: bool,
    stage: Option<Span>,
    over: Vec<Span>,
}

impl Recording {
    pub(super) fn begin(
        tracer: Arc<Tracer>,
        trace: TraceId,
        caller: Option<TraceParent>,
        mut ids: Ids,
        arrived: Timestamp,
    ) -> Self {
        let request = open(ids.next(), "request", SpanKind::Server, arrived);
        let answered = false;
        let known = false;
        let written = WrittenSpans {
            ids,
            request,
            answered,
            known,
            stage: None,
            over: Vec::with_capacity(12),
        };
        Self { tracer, trace, caller, written: Mutex::new(written) }
    }

    fn lock_spans(&self) -> MutexGuard<'_, WrittenSpans> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) const fn trace_id(&self) -> TraceId {
        self.trace
    }

    /// The parent of what is sent in the present stage.
    pub(crate) fn parent(&self) -> Option<TraceParent> {
        let span = self.lock_spans().stage.as_ref()?.id;
        let begun = TraceParent::starting_with(self.trace, span);
        Some(self.caller.map_or(begun, |caller| caller.from_span(span)))
    }

    pub(crate) fn enter(&self, stage: &str, now: Timestamp) {
        let written = &mut *self.lock_spans();
        written.leave(now);
        written.stage = Some(open(written.ids.next(), stage, SpanKind::Internal, now));
    }

    pub(crate) fn leave(&self, now: Timestamp) {
        self.lock_spans().leave(now);
    }

    /// The present stage is a request to another server.
    pub(crate) fn calls(&self, name: String, attributes: Vec<Attribute>) {
        if let Some(stage) = &mut self.lock_spans().stage {
            stage.kind = SpanKind::Client;
            stage.name = name;
            stage.attributes.extend(attributes);
        }
    }

    /// The present stage failed, in a word.
    pub(crate) fn fail(&self, why: &str) {
        if let Some(stage) = &mut self.lock_spans().stage {
            stage.failed = Some(why.to_owned());
        }
    }

    /// Tells more about the request.
    pub(crate) fn tell(&self, attributes: impl IntoIterator<Item = Attribute>) {
        self.lock_spans().request.attributes.extend(attributes);
    }

    /// Records that the caller is known, with these attributes.
    pub fn set_caller(&self, attributes: impl IntoIterator<Item = Attribute>) {
        self.lock_spans().known = true;
        self.tell(attributes);
    }

    /// Records the answer to the request, and why it failed if the fault is the gateway's.
    pub fn answered(
        &self,
        name: String,
        attributes: impl IntoIterator<Item = Attribute>,
        failed: Option<&str>,
    ) {
        let now = self.tracer.clock.now();
        let written = &mut *self.lock_spans();
        written.leave(now);
        written.answered = true;
        written.request.name = name;
        written.request.ended = now;
        written.request.failed = failed.map(str::to_owned);
        written.request.attributes.extend(attributes);
    }
}

impl WrittenSpans {
    fn leave(&mut self, now: Timestamp) {
        if let Some(mut stage) = self.stage.take() {
            stage.ended = now;
            self.over.push(stage);
        }
    }
}

fn open(id: SpanId, name: &str, kind: SpanKind, now: Timestamp) -> Span {
    let name = name.to_owned();
    let attributes = Vec::new();
    Span { id, name, kind, begun: now, ended: now, attributes, failed: None }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let now = self.tracer.clock.now();
        let written = self.written.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !written.known {
            return;
        }
        written.leave(now);
        let ended = if written.answered { written.request.ended } else { now };
        let unnamed = open(written.request.id, "request", SpanKind::Server, ended);
        let request = Span { ended, ..mem::replace(&mut written.request, unnamed) };
        let mut spans = Vec::with_capacity(written.over.len() + 1);
        spans.push(request);
        spans.append(&mut written.over);
        let parent = self.caller.map(|caller| caller.span);
        self.tracer.take(Trace { id: self.trace, parent, spans });
    }
}
