//! Traces as an OTLP export request in its JSON encoding: 64-bit numbers are texts, ids are hex.

use portcullis_core::{clock::Timestamp, trace::SpanId};
use serde_json::{Value, json};

use super::{
    Span, SpanKind, Trace,
    recording::{Attribute, AttributeValue},
};

/// `SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE`, `…_IS_REMOTE`, and the sampled flag of W3C.
const HAS_REMOTE: u32 = 0x100;
const REMOTE: u32 = 0x200;
const SAMPLED: u32 = 0x01;
/// `STATUS_CODE_ERROR`.
const ERROR: u32 = 2;

/// The request with every span of these traces.
pub(super) fn request(node: &str, traces: &[Trace]) -> Vec<u8> {
    let spans: Vec<Value> = traces.iter().flat_map(spans).collect();
    let version = env!("CARGO_PKG_VERSION");
    let request = json!({
        "resourceSpans": [{
            "resource": { "attributes": [
                attribute(&Attribute::text("service.name", "portcullis")),
                attribute(&Attribute::text("service.version", version)),
                attribute(&Attribute::text("service.instance.id", node)),
            ]},
            "scopeSpans": [{
                "scope": { "name": "portcullis", "version": version },
                "spans": spans,
            }],
        }],
    });
    request.to_string().into_bytes()
}

fn spans(trace: &Trace) -> impl Iterator<Item = Value> {
    let request = trace.spans.first().map(|request| request.id);
    trace.spans.iter().enumerate().map(move |(place, part)| {
        let (parent, flags) = match (place, trace.parent) {
            (0, None) => (None, HAS_REMOTE | SAMPLED),
            (0, Some(caller)) => (Some(caller), HAS_REMOTE | REMOTE | SAMPLED),
            _ => (request, HAS_REMOTE | SAMPLED),
        };
        span(trace, part, parent, flags)
    })
}

fn span(trace: &Trace, span: &Span, parent: Option<SpanId>, flags: u32) -> Value {
    let failed = span.failed.as_deref().map(|why| Attribute::text("error.type", why));
    let attributes: Vec<_> = span.attributes.iter().chain(&failed).map(attribute).collect();
    let mut told = json!({
        "traceId": trace.id,
        "spanId": span.id,
        "flags": flags,
        "name": span.name,
        "kind": kind(span.kind),
        "startTimeUnixNano": nanos(span.begun),
        "endTimeUnixNano": nanos(span.ended),
        "attributes": attributes,
    });
    if let Value::Object(members) = &mut told {
        if let Some(parent) = parent {
            members.insert("parentSpanId".to_owned(), json!(parent));
        }
        if failed.is_some() {
            members.insert("status".to_owned(), json!({ "code": ERROR }));
        }
    }
    told
}

const fn kind(kind: SpanKind) -> u32 {
    match kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
    }
}

fn attribute(attribute: &Attribute) -> Value {
    let value = match &attribute.value {
        AttributeValue::Text(text) => json!({ "stringValue": text }),
        AttributeValue::Number(number) => json!({ "intValue": number.to_string() }),
    };
    json!({ "key": attribute.key, "value": value })
}

fn nanos(moment: Timestamp) -> String {
    (i128::from(moment.as_micros()) * 1_000).to_string()
}
