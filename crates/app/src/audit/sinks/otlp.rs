//! Events as an OTLP export request for logs, in its JSON encoding: 64-bit numbers are texts, ids
//! of traces are hex.

use serde_json::{Value, json};

use super::Copy;

/// `SEVERITY_NUMBER_INFO` and `…_WARN`.
const INFO: (u32, &str) = (9, "INFO");
const WARN: (u32, &str) = (13, "WARN");

/// The request with a record for each event; its body is the event as JSON.
pub(super) fn request(node: &str, copies: &[Copy]) -> Vec<u8> {
    let records: Vec<Value> = copies.iter().map(record).collect();
    let request = json!({
        "resourceLogs": [{
            "resource": { "attributes": [
                text("service.name", "portcullis"),
                text("service.version", env!("CARGO_PKG_VERSION")),
                text("service.instance.id", node),
            ]},
            "scopeLogs": [{
                "scope": { "name": "portcullis.audit", "version": env!("CARGO_PKG_VERSION") },
                "logRecords": records,
            }],
        }],
    });
    request.to_string().into_bytes()
}

fn record(copy: &Copy) -> Value {
    let (number, severity) = if copy.denied { WARN } else { INFO };
    let mut record = json!({
        "timeUnixNano": nanos(copy.occurred_at),
        "observedTimeUnixNano": nanos(copy.recorded_at),
        "severityNumber": number,
        "severityText": severity,
        "eventName": copy.kind,
        "body": { "stringValue": copy.json },
        "attributes": [
            text("portcullis.org_id", &copy.org),
            text("portcullis.event_id", &copy.id),
            json!({
                "key": "portcullis.sequence",
                "value": { "intValue": copy.sequence.to_string() },
            }),
        ],
    });
    if let (Value::Object(members), Some(trace)) = (&mut record, &copy.trace_id) {
        members.insert("traceId".to_owned(), json!(trace));
    }
    record
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn nanos(micros: i64) -> String {
    (i128::from(micros) * 1_000).to_string()
}
