//! `POST /v1/audit/export`, `GET /v1/audit/exports/{id}` and `GET /v1/audit/exports/{id}/file`:
//! shapes, formats, files, ends.

mod ends;
mod files;
mod formats;

use aws_lc_rs::digest;

use crate::{planted::plant, prelude::*};

const EXPORT: &str = "/v1/audit/export";

fn start() -> (Gateway, Principal) {
    serve(gateway().sample())
}

async fn ask(gateway: &Gateway, who: &Principal, body: &Value) -> Answer {
    gateway.post(who, EXPORT, &body.to_string()).await
}

/// Asks for an export and waits until it has ended.
pub(crate) async fn export(gateway: &Gateway, who: &Principal, body: &Value) -> Answer {
    let begun = ask(gateway, who, body).await;
    assert!([200, 202].contains(&begun.status.as_u16()), "{}", begun.text);
    let path = format!("/v1/audit/exports/{}", begun.at("/data/id").as_str().unwrap());
    until(|| gateway.get(who, &path), |answer| answer.at("/data/status") != "pending").await
}

/// The content of an export that is ready.
async fn content(gateway: &Gateway, who: &Principal, export: &Answer) -> String {
    assert_eq!(export.at("/data/status"), "ready", "{}", export.text);
    let file = gateway.get(who, export.at("/data/file").as_str().unwrap()).await.ok();
    assert_eq!(sha256(file.text.as_bytes()), export.at("/data/sha256").as_str().unwrap());
    assert_eq!(export.at("/data/bytes"), file.text.len());
    file.text
}

fn sha256(bytes: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, bytes);
    digest.as_ref().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

async fn call(gateway: &Gateway, who: &Principal) {
    gateway.invoke(who, "sample:create_note", json!({"title": "a", "text": "b"})).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_export_is_ready_at_once_told_and_recorded() {
    // A small export is ready at once and tells what it holds.
    let (gateway, who) = start();
    for _ in 0..3 {
        call(&gateway, &who).await;
    }

    let made = gateway.post(&who, EXPORT, "").await.ok();

    assert_framed(&made, "an export");
    assert_enveloped(&made, "an export");
    let data = made.at("/data");
    assert!(is_id(data["id"].as_str().unwrap(), "exp_"));
    has!(data, "/status": "ready", "/format": "jsonl", "/filters": {}, "/include": [],
        "/complete": true, "/error": null, "/progress": null);
    let days =
        |name: &str| Timestamp::parse_rfc3339(data[name].as_str().unwrap()).unwrap().as_micros();
    assert_eq!(days("to") - days("from"), 30 * 86_400_000_000);
    assert_eq!(days("expires_at") - days("created_at"), 86_400_000_000);
    let events = data["events"].as_i64().unwrap();
    assert!(events >= 3, "{data}");
    has!(data, "/range/first": 0, "/range/last": events - 1);
    assert!(data["range"]["checkpoint_size"].as_i64().unwrap() >= events);
    let id = data["id"].as_str().unwrap();
    assert_eq!(data["file"], format!("/v1/audit/exports/{id}/file"));
    has!(gateway.get(&who, &format!("/v1/audit/exports/{id}")).await, "/data": data);

    // Making and reading an export is recorded with what it held.
    let who = tenant(&gateway);
    call(&gateway, &who).await;
    let body = json!({"format": "csv", "filters": {"type": ["mcp.invocation"]}});

    let made = export(&gateway, &who, &body).await;
    content(&gateway, &who, &made).await;

    let mut found = list_of(&gateway, &who, "audit.exported,audit.accessed", "").await;
    // That the list was looked at is recorded too, of the log and not of an export.
    found.retain(|event| event["target"]["type"] == "export");
    let of = |kind: &str| found.iter().find(|event| event["type"] == kind).unwrap();
    let exported = of("audit.exported");
    let read = of("audit.accessed");
    let hash = format!("sha256:{}", made.at("/data/sha256").as_str().unwrap());
    assert_eq!(exported["target"]["version"], hash.as_str());
    for event in [exported, read] {
        has!(event, "/target/id": made.at("/data/id"), "/actor/id": who.id.as_str());
    }
    let told = &exported["detached"]["export"];
    for member in ["format", "from", "to", "filters", "include", "events", "bytes", "sha256"] {
        assert_eq!(&told[member], &made.at("/data")[member], "{member}");
    }

    // An export up to the last moment there is can be read.
    let who = tenant(&gateway);

    let made = export(&gateway, &who, &json!({"to": "9999-12-31T23:59:59.999999Z"})).await;

    has!(made, "/data/status": "ready", "/data/to": "9999-12-31T23:59:59.999Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fourth_export_at_once_is_refused_until_another_ends() {
    // A fourth export at once is refused until another ends.
    let (gateway, who) = start();
    let store = store(&gateway).await;
    let running = ends::pending(&store, &who, "node-9", 3).await;

    let refused = ask(&gateway, &who, &json!({})).await;
    store.fail_export(who.org.parse().unwrap(), running[0], "enough").await.unwrap();
    has!(export(&gateway, &who, &json!({})).await, "/data/status": "ready");

    assert_eq!(refused.refusal(), (429, "rate_limited"));
    assert_framed(&refused, "too many exports");
    has!(refused, "/error/details/resource": "exports", "/error/details/limit": 3);
    assert_eq!(refused.at("/error/details/retry_after").to_string(), refused.header("retry-after"));
    assert!(refused.at("/error/details/reset_at").is_string());

    // What cannot be exported is refused and the wrong is named.
    for (body, path) in [
        (json!({"from": "yesterday"}), "/from"),
        (json!({"to": "9999-12-31T23:59:59-23:59"}), "/to"),
        (json!({"since": 1_000_000}), "/since"),
        (json!({"include": "payloads,proofs"}), "/include"),
        (json!({"filters": {"type": []}}), "/filters/type"),
        (json!({"filters": {"decision": ["maybe"]}}), "/filters/decision"),
    ] {
        let answer = ask(&gateway, &who, &body).await;

        has!("{body}"; answer, 400 "invalid_request", "/error/details/violations/0/path": path);
    }
    has!(gateway.get(&who, "/v1/audit/exports/exp_x").await, 404 "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_times_and_keys_choose_what_is_in_it() {
    // Filters and times choose what is in it.
    let (gateway, who) = start();
    plant(&gateway, &who, 40).await;
    let all = export(&gateway, &who, &json!({"format": "ocsf"})).await;
    let listed = gateway.get(&who, "/v1/audit/events?decision=deny&order=asc&limit=200").await;
    let wanted: Vec<&Value> = items(&listed).iter().map(|event| &event["id"]).collect();

    let body = json!({"format": "ocsf", "filters": {"decision": ["deny"]}});
    let made = export(&gateway, &who, &body).await;
    let later = json!({"from": listed.at("/meta/timestamp"), "format": "csv"});
    let nothing = export(&gateway, &who, &later).await;

    assert_eq!(made.at("/data/complete"), false);
    let lines = content(&gateway, &who, &made).await;
    let found: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: Vec<&Value> = found.iter().map(|line| &line["metadata"]["uid"]).collect();
    assert!(!found.is_empty() && made.at("/data/events") == found.len());
    assert_eq!(found, wanted);
    assert!(all.at("/data/events").as_u64() > made.at("/data/events").as_u64());
    assert!(nothing.at("/data/events").as_u64() < Some(5), "{}", nothing.text);

    // The same request with the same key is the same export.
    let org = fresh_org(&gateway);
    let who = gateway.service(&org, ALL_SCOPES);
    let other = gateway.service(&org, "audit:export");
    let csv = json!({"format": "csv"});
    let ocsf = json!({"format": "ocsf"});

    let all = join_all((0..10).map(|_| keyed(&gateway, &who, "k", &csv))).await;
    let again = keyed(&gateway, &who, "\"k\"", &csv).await;
    has!(keyed(&gateway, &who, "k", &ocsf).await, 400 "idempotency_key_reused");
    let others = keyed(&gateway, &other, "k", &csv).await;
    has!(keyed(&gateway, &who, "a key", &csv).await, "/error/details/parameter": "Idempotency-Key");

    let id = again.at("/data/id");
    assert!(id.is_string(), "{}", again.text);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert!(all.iter().all(|answer| answer.at("/data/id") == id), "{all:?}");
    let begun = all.iter().filter(|answer| answer.header("idempotency-replayed").is_empty());
    assert_eq!(begun.count(), 1, "one of them began it");
    assert_eq!(others.header("idempotency-replayed"), "", "{}", others.text);
    assert_ne!(others.at("/data/id"), id);
}

async fn keyed(gateway: &Gateway, who: &Principal, key: &str, body: &Value) -> Answer {
    let request = gateway.json(who, EXPORT, &body.to_string());
    gateway.send(request.header("idempotency-key", key)).await
}
