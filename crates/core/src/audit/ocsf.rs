//! Events as OCSF API Activity (class 6003), for SIEMs. `docs/audit-export.md` has the mapping as
//! a table.

mod classes;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::classes::{action, activity, severity, status};
use super::row::{ActorAndSource, Sealed, Stored, StoredError};
use crate::clock::Timestamp;

/// The version of the schema that the lines are written in; the profile `record_integrity` is new
/// in it.
const OCSF_VERSION: &str = "1.9.0-dev";

const CATEGORY: u32 = 6;
const CLASS: u32 = 6003;
/// Placeholder for an address that is not known; the field may not be empty.
const UNKNOWN_SOURCE: &str = "not recorded";
/// Types of which one event stands for several. OCSF's `count` is for these alone, and only above one.
const AGGREGATES: [&str; 4] =
    ["auth.rejected", "access.refused", "request.throttled", "audit.accessed"];

/// The event of the log named `log`, as one JSON object. With `mismatches` it has no attestation,
/// and names them.
pub(super) fn ocsf_line(
    sealed: &Sealed<'_>,
    log: &str,
    mismatches: &[String],
) -> Result<String, StoredError> {
    let stored = sealed.stored()?;
    let names = sealed.names()?;
    let mut line = classified(&stored);
    let mut profiles = vec!["security_control", "record_integrity"];
    line.insert("api".to_owned(), api(&stored));
    line.insert("actor".to_owned(), actor(&stored, &names));
    line.insert("src_endpoint".to_owned(), source(&stored, &names));
    control(&stored, &mut line);
    let aggregates = AGGREGATES.contains(&&*stored.kind);
    insert(&mut line, "count", stored.count.filter(|count| aggregates && *count > 1));
    insert(&mut line, "resources", resource(&stored).map(|resource| json!([resource])));
    if stored.outcome.http_status > 0 {
        let response = json!({ "code": stored.outcome.http_status });
        line.insert("http_response".to_owned(), response);
    }
    if let Some(request) = &stored.request {
        let mut told = Map::from_iter([("uid".to_owned(), json!(request.id))]);
        insert(&mut told, "user_agent", names.user_agent.as_deref());
        line.insert("http_request".to_owned(), Value::Object(told));
        if let Some(trace) = &request.trace_id {
            line.insert("trace".to_owned(), json!({ "uid": trace }));
            profiles.push("trace");
        }
    }
    if let Some(label) = &names.label {
        line.insert("ai_agent".to_owned(), json!({ "name": label }));
        profiles.push("ai_operation");
    }
    let mut more = unmapped(&stored);
    // Of others the number is one of what they did, such as of events that were erased.
    insert(&mut more, "count", stored.count.filter(|_| !aggregates));
    if mismatches.is_empty() {
        line.insert("attestation_list".to_owned(), attestations(sealed, log));
    } else {
        more.insert("integrity_mismatch".to_owned(), json!(mismatches));
    }
    line.insert("metadata".to_owned(), metadata(sealed, &stored, log, &profiles));
    line.insert("unmapped".to_owned(), Value::Object(more));
    // Strings, numbers and maps with string keys always serialise.
    Ok(serde_json::to_string(&line).unwrap_or_default())
}

fn insert(object: &mut Map<String, Value>, name: &str, value: Option<impl Serialize>) {
    if let Some(value) = value {
        object.insert(name.to_owned(), json!(value));
    }
}

/// Class and activity of an event, its outcome, and its time.
fn classified(stored: &Stored<'_>) -> Map<String, Value> {
    let activity = activity(&stored.kind);
    let (severity_id, severity) = severity(stored);
    let (status_id, status) = status(&stored.outcome.status);
    let name = activity.name();
    let mut line = Map::from_iter(
        [
            ("category_uid", json!(CATEGORY)),
            ("category_name", json!("Application Activity")),
            ("class_uid", json!(CLASS)),
            ("class_name", json!("API Activity")),
            ("activity_id", json!(activity.id())),
            ("activity_name", json!(name)),
            ("type_uid", json!(CLASS * 100 + activity.id())),
            ("type_name", json!(format!("API Activity: {name}"))),
            ("severity_id", json!(severity_id)),
            ("severity", json!(severity)),
            ("status_id", json!(status_id)),
            ("status", json!(status)),
            ("status_code", json!(stored.outcome.status)),
            ("time", json!(millis(&stored.occurred_at))),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    let reason = stored.governance.as_ref().and_then(|it| it.reason.as_deref());
    insert(&mut line, "status_detail", reason);
    line
}

fn millis(text: &str) -> u64 {
    Timestamp::parse_rfc3339(text).unwrap_or_default().as_millis()
}

/// Request and response of the call.
fn api(stored: &Stored<'_>) -> Value {
    let tool = stored.target.as_ref().filter(|target| target.kind == "mcp");
    let operation = tool.and_then(|target| target.id.as_deref()).unwrap_or(&stored.kind);
    let mut api = Map::from_iter([
        ("operation".to_owned(), json!(operation)),
        ("service".to_owned(), json!({ "name": "portcullis" })),
    ]);
    insert(&mut api, "request", stored.request.as_ref().map(|it| json!({ "uid": it.id })));
    let mut response = Map::new();
    if stored.outcome.http_status > 0 {
        response.insert("code".to_owned(), json!(stored.outcome.http_status));
    }
    insert(&mut response, "error", stored.outcome.error_code.as_deref());
    if !response.is_empty() {
        api.insert("response".to_owned(), Value::Object(response));
    }
    Value::Object(api)
}

fn actor(stored: &Stored<'_>, names: &ActorAndSource) -> Value {
    let actor = &stored.actor;
    let (type_id, kind) = match &*actor.kind {
        "user" => (1, "User"),
        "system" => (3, "System"),
        "service" => (4, "Service"),
        _ => (0, "Unknown"),
    };
    let name = names.actor_name.as_deref();
    let name = name.or_else(|| actor.id.is_none().then_some(&*actor.kind));
    let mut user =
        Map::from_iter([("type_id".to_owned(), json!(type_id)), ("type".to_owned(), json!(kind))]);
    insert(&mut user, "uid", actor.id.as_deref());
    insert(&mut user, "name", name);
    let mut told = Map::from_iter([("user".to_owned(), Value::Object(user))]);
    // The service account that acted for the user.
    insert(&mut told, "app_uid", actor.via.as_deref());
    if let Some(token) = &actor.token_id {
        let mut session = Map::from_iter([("uid".to_owned(), json!(token))]);
        insert(&mut session, "issuer", actor.auth.trust.as_deref());
        told.insert("session".to_owned(), Value::Object(session));
    }
    Value::Object(told)
}

fn source(stored: &Stored<'_>, names: &ActorAndSource) -> Value {
    match &names.source_ip {
        Some(ip) => json!({ "ip": ip }),
        // What the gateway does of its own accord comes from itself.
        None if stored.actor.kind == "system" => json!({ "name": "portcullis" }),
        None => json!({ "name": UNKNOWN_SOURCE }),
    }
}

/// Members of the profile `security_control`.
fn control(stored: &Stored<'_>, line: &mut Map<String, Value>) {
    let ((action_id, action), (disposition_id, disposition)) = action(stored);
    for (name, value) in [
        ("action_id", json!(action_id)),
        ("action", json!(action)),
        ("disposition_id", json!(disposition_id)),
        ("disposition", json!(disposition)),
        ("is_alert", json!(stored.kind == "token.reuse_detected")),
    ] {
        line.insert(name.to_owned(), value);
    }
    let Some(governance) = &stored.governance else { return };
    let policy = governance.policy.as_ref().map(|name| {
        let mut policy =
            Map::from_iter([("name".to_owned(), json!(name)), ("uid".to_owned(), json!(name))]);
        insert(&mut policy, "version", governance.policy_version.as_deref());
        insert(&mut policy, "group", governance.policy_set.as_ref().map(|set| json!({"uid": set})));
        Value::Object(policy)
    });
    if let Some(decision) = &governance.decision {
        let mut authorization = Map::from_iter([("decision".to_owned(), json!(decision))]);
        insert(&mut authorization, "policy", policy.as_ref());
        line.insert("authorizations".to_owned(), json!([authorization]));
    }
    insert(line, "policy", policy);
}

fn resource(stored: &Stored<'_>) -> Option<Value> {
    let target = stored.target.as_ref()?;
    let id = target.id.as_deref()?;
    let mut resource = Map::from_iter([
        ("uid".to_owned(), json!(id)),
        ("name".to_owned(), json!(id)),
        ("type".to_owned(), json!(target.kind)),
        ("role_id".to_owned(), json!(1)),
        ("role".to_owned(), json!("Target")),
    ]);
    insert(&mut resource, "version", target.version.as_deref());
    Some(Value::Object(resource))
}

fn attestations(sealed: &Sealed<'_>, log: &str) -> Value {
    json!([{
        "chain_uid": log,
        "fingerprint": {
            "algorithm_id": 3,
            "algorithm": "SHA-256",
            "encoding_id": 2,
            "encoding": "Base64",
            "serialization_id": 2,
            "serialization": "JCS",
            "value": STANDARD.encode(sealed.leaf_hash),
        },
    }])
}

fn metadata(sealed: &Sealed<'_>, stored: &Stored<'_>, log: &str, profiles: &[&str]) -> Value {
    json!({
        "version": OCSF_VERSION,
        "profiles": profiles,
        "product": {
            "name": "Portcullis",
            "vendor_name": "Portcullis",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "uid": stored.id,
        "original_event_uid": stored.id,
        "event_code": stored.kind,
        "sequence": sealed.sequence,
        "tenant_uid": stored.org_id,
        "log_name": log,
        "logged_time": sealed.recorded_at.as_millis(),
        "original_time": stored.occurred_at,
    })
}

/// Members that the class has no attribute for.
fn unmapped(stored: &Stored<'_>) -> Map<String, Value> {
    let mut more = Map::from_iter([("executed".to_owned(), json!(stored.outcome.executed))]);
    if let Some(governance) = &stored.governance {
        more.insert("dlp_result".to_owned(), json!(governance.dlp_result));
        let findings = serde_json::from_str(governance.dlp_findings.get());
        more.insert("dlp_findings".to_owned(), findings.unwrap_or_default());
    }
    if let Some(target) = &stored.target {
        insert(&mut more, "provider_id", target.provider_id.as_deref());
        insert(&mut more, "credential", target.credential.as_deref());
    }
    more
}
