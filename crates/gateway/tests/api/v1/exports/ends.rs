//! Exports that do not end well: restarts, other nodes, full disks, time.

use portcullis_core::id::{ExportId, OrgId};
use portcullis_store::{ExportBegan, ExportQuota, NewExport, Store};
use portcullis_testkit::unsignalled;

use super::{ask, content, export, start};
use crate::{planted::plant, prelude::*};

fn new(who: &Principal, node: &str, number: u32, created: Timestamp) -> NewExport {
    NewExport {
        id: format!("exp_01M7W9Y2TK{number:016}").parse().unwrap(),
        org_id: who.org.parse().unwrap(),
        principal_id: who.id.parse().unwrap(),
        node: node.to_owned(),
        request: json!({
            "format": "csv", "from": created.plus_seconds(-86_400), "to": created, "filters": {},
            "include": [], "since": null, "complete": false,
        })
        .to_string(),
        created_at: created,
        expires_at: created.plus_seconds(86_400),
    }
}

const MANY: ExportQuota = ExportQuota { running: 10, files: 100, bytes: 1 << 40 };

/// Exports that `node` seems to be writing.
pub(super) async fn pending(
    store: &Store,
    who: &Principal,
    node: &str,
    count: u32,
) -> Vec<ExportId> {
    let mut ids = Vec::new();
    for number in 0..count {
        let export = new(who, node, number, Timestamp::from_micros(4_000_000_000_000_000));
        let begun = store.create_export(&export, MANY, None).await.unwrap();
        assert_eq!(begun, ExportBegan::Begun);
        ids.push(export.id);
    }
    ids
}

async fn status(gateway: &Gateway, who: &Principal, id: &ExportId) -> (u16, Value) {
    let answer = gateway.get(who, &format!("/v1/audit/exports/{id}")).await;
    (answer.status.as_u16(), answer.at("/data").clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_or_a_day_left_behind_is_cleared_away() {
    // What a crash left behind has failed and is cleared away.
    let (mut gateway, who) = start();
    let open = store(&gateway).await;
    let [half, whole] = pending(&open, &who, "node-1", 2).await[..] else { panic!("two") };
    open.close().await;
    gateway.kill();
    // One died while it wrote, the other between the file and the word that it is there.
    let folder = gateway.folder().join("exports");
    fs::write(folder.join(format!("{half}.part")), "half").unwrap();
    fs::write(folder.join(format!("{whole}.csv")), "whole").unwrap();

    gateway.start();

    for id in [&half, &whole] {
        let (answered, data) = status(&gateway, &who, id).await;
        assert_eq!((answered, &data["status"]), (200, &json!("failed")), "{data}");
        assert!(data["error"].as_str().unwrap().contains("restarted"), "{data}");
        assert_eq!((&data["file"], &data["sha256"]), (&Value::Null, &Value::Null));
        has!(gateway.get(&who, &format!("/v1/audit/exports/{id}/file")).await, 404 "not_found");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    let next = export(&gateway, &who, &json!({})).await;
    content(&gateway, &who, &next).await;

    // After a day an export is gone with its file.
    let open = store(&gateway).await;
    let who = tenant(&gateway);
    let org: OrgId = who.org.parse().unwrap();
    let old = new(&who, "node-1", 7, now(&gateway).await.plus_seconds(-86_400));
    assert!(open.create_export(&old, MANY, None).await.unwrap() == ExportBegan::Begun);
    assert!(open.finish_export(org, old.id, r#"{"events":0}"#, 0).await.unwrap());
    open.close().await;
    let path = gateway.folder().join(format!("exports/{}.csv", old.id));
    fs::write(&path, "old").unwrap();
    let young = export(&gateway, &who, &json!({})).await;

    assert_eq!(status(&gateway, &who, &old.id).await.0, 404);
    has!(gateway.get(&who, &format!("/v1/audit/exports/{}/file", old.id)).await, 404);
    gateway.stop();
    gateway.start();

    assert!(!path.exists());
    content(&gateway, &who, &young).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_on_another_node_is_said_to_be_there() {
    let (gateway, who) = start();
    let open = store(&gateway).await;
    let org: OrgId = who.org.parse().unwrap();
    let id = pending(&open, &who, "node-2", 1).await[0];
    let result = r#"{"events":0,"bytes":0,"sha256":"00"}"#;
    assert!(open.finish_export(org, id, result, 0).await.unwrap());

    let (answered, data) = status(&gateway, &who, &id).await;
    let file = gateway.get(&who, &format!("/v1/audit/exports/{id}/file")).await;

    assert_eq!((answered, &data["status"]), (200, &json!("ready")));
    has!(file, 503 "unavailable", "/error/details/reason": "file_elsewhere");
}

/// Calls that go on until the set is dropped.
fn load(gateway: &Gateway, who: &Principal) -> JoinSet<()> {
    let mut calls = JoinSet::new();
    for _ in 0..4 {
        let path = "/v1/mcps/sample:create_note/invoke";
        let request = gateway.json(who, path, r#"{"input":{"title":"a","text":"b"}}"#);
        calls.spawn(async move {
            while let Ok(answer) = request.try_clone().unwrap().send().await {
                assert_eq!(answer.status(), 200);
            }
        });
    }
    calls
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_makes_way_for_calls_says_how_far_it_is_and_ends_with_its_node() {
    let (mut gateway, who) = start();
    plant(&gateway, &who, 8_000).await;
    let calls = load(&gateway, &who);

    let begun = ask(&gateway, &who, &json!({"include": ["payloads"]})).await;
    let id: ExportId = begun.at("/data/id").as_str().unwrap().parse().unwrap();
    let path = format!("/v1/audit/exports/{id}");
    let moved = |it: &Answer| it.at("/data/progress/scanned").as_i64() > Some(0);
    let under_way = until(|| gateway.get(&who, &path), moved).await;

    assert_eq!((begun.status.as_u16(), begun.at("/data/status")), (202, &json!("pending")));
    let progress = under_way.at("/data/progress");
    assert!(progress["total"].as_i64() >= Some(8_000), "{progress}");
    assert!(progress["percent"].as_i64() < Some(100), "{progress}");
    has!(gateway.get(&who, &format!("{path}/file")).await, 404 "not_found");
    drop(calls);
    gateway.stop();
    gateway.start();
    let (_, data) = status(&gateway, &who, &id).await;
    assert_eq!(data["status"], "failed", "{data}");
    assert!(data["error"].as_str().unwrap().contains("stopped"), "{data}");
    assert_eq!(fs::read_dir(gateway.folder().join("exports")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_without_room_fails_the_export_and_nothing_else() {
    let program = tempfile::tempdir().unwrap();
    let binary = unsignalled(env!("CARGO_BIN_EXE_portcullis"), program.path());
    let (gateway, who) = serve(Builder::new(binary).sample());
    plant(&gateway, &who, 3_000).await;
    let until = "2026-12-31T00:00:00Z";
    let body = json!({"format": "ocsf", "from": "2026-01-01T00:00:00Z", "to": until});
    let before = export(&gateway, &who, &body).await;
    let size = before.at("/data/bytes").as_u64().unwrap();
    // The file does not fit; the database and its log do.
    gateway.limit_writes(size - 100_000);

    let failed = export(&gateway, &who, &body).await;
    let small = json!({"format": "csv", "filters": {"type": ["mcp.invocation"]}});
    has!(export(&gateway, &who, &small).await, "/data/status": "ready");
    super::call(&gateway, &who).await;
    gateway.allow_writes();
    let after = export(&gateway, &who, &body).await;

    assert_eq!(failed.at("/data/status"), "failed", "{}", failed.text);
    let error = failed.at("/data/error").as_str().unwrap();
    assert!(error.starts_with("The file could not be written: "), "{error}");
    assert_eq!((failed.at("/data/file"), failed.at("/data/sha256")), (&Value::Null, &Value::Null));
    content(&gateway, &who, &after).await;
    let id = failed.at("/data/id").as_str().unwrap();
    for left in fs::read_dir(gateway.folder().join("exports")).unwrap() {
        assert!(!left.unwrap().file_name().to_string_lossy().contains(id));
    }
    let told = gateway.get(&who, "/v1/audit/events?type=audit.exported&limit=200").await;
    let mut events = items(&told).iter();
    assert!(events.all(|event| event["target"]["id"] != id), "a failed export is none");
}

/// A gateway with these limits of exports.
fn limited(limits: &str) -> (Gateway, Principal) {
    let config = format!("[audit.exports]\n{limits}");
    serve(gateway().config(&config).sample())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_org_that_has_its_exports_is_told_when_there_is_room_again() {
    let (gateway, who) = limited("max_per_org = 2");
    for _ in 0..2 {
        let ready = export(&gateway, &who, &json!({})).await;
        content(&gateway, &who, &ready).await;
    }

    let refused = ask(&gateway, &who, &json!({})).await;

    has!(refused, 429 "rate_limited", "/error/details/resource": "export_files",
        "/error/details/limit": 2);
    assert!(refused.at("/error/details/retry_after").as_i64().unwrap() > 80_000);
    let other = gateway.service(&gateway.org("other", &ENOUGH), ALL_SCOPES);
    let ready = export(&gateway, &other, &json!({})).await;
    content(&gateway, &other, &ready).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_crosses_the_quota_fails_and_leaves_nothing() {
    let (gateway, who) = limited("max_bytes_per_org = 500");

    let failed = export(&gateway, &who, &json!({})).await;

    assert_eq!(failed.at("/data/status"), "failed", "{}", failed.text);
    assert!(failed.at("/data/error").as_str().unwrap().contains("500 bytes"), "{}", failed.text);
    assert_eq!(fs::read_dir(gateway.folder().join("exports")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_are_refused_and_calls_are_not_while_little_is_free() {
    let (gateway, who) = limited("min_free_bytes = 9000000000000000000");

    let refused = ask(&gateway, &who, &json!({})).await;

    has!(refused, 503 "unavailable", "/error/details/reason": "space");
    let call = json!({"title": "a", "text": "b"});
    assert_eq!(gateway.invoke(&who, "sample:create_note", call).await.status, 200);
}
