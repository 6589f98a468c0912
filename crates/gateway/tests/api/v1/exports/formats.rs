//! Contents of the files: evidence that verifies, tables that run nothing, events that a SIEM
//! understands.

use portcullis_core::audit::{
    export::{Report, Verifier},
    note::VerifierKey,
};
use portcullis_testkit::ocsf_faults;

use super::{content, export, start};
use crate::{planted::plant, prelude::*};

fn lines(file: &str) -> Vec<Value> {
    file.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Verifies a file with the keys that it names itself, which are the log's own.
fn verified(file: &str) -> Report {
    let manifest = lines(file).remove(0);
    let keys = manifest["keys"].as_array().unwrap().iter();
    let keys: Vec<VerifierKey> = keys.map(|key| key.as_str().unwrap().parse().unwrap()).collect();
    let mut verifier = Verifier::new(keys, None);
    for line in file.lines() {
        verifier.line(line.as_bytes()).unwrap();
    }
    verifier.finish().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_complete_file_a_filtered_one_and_payloads_verify() {
    // A complete file verifies and without one line it does not.
    let (gateway, who) = start();
    plant(&gateway, &who, 450).await;

    let made = export(&gateway, &who, &json!({})).await;

    let file = content(&gateway, &who, &made).await;
    let report = verified(&file);
    assert!(report.complete && report.events >= 450, "{report:?}");
    let all = lines(&file);
    assert_eq!((&all[0]["kind"], &all[0]["complete"]), (&json!("manifest"), &json!(true)));
    assert_eq!(all.last().unwrap()["kind"], "checkpoint");
    for (sequence, line) in all[1..all.len() - 1].iter().enumerate() {
        has!(line, "/kind": "event", "/event/sequence": sequence);
        assert!(line["event"]["integrity"].get("salts").is_none());
        assert!(line["event"]["detached"].get("input").is_none());
    }
    let keys = vec![all[0]["keys"][0].as_str().unwrap().parse().unwrap()];
    let mut verifier = Verifier::new(keys, None);
    let mut shorter = file.lines().enumerate().filter(|(at, _)| *at != 7);
    let read = shorter.try_for_each(|(_, line)| verifier.line(line.as_bytes()));
    assert!(read.and_then(|()| verifier.finish()).is_err());

    // Each event of a filtered file has a proof if that is asked for.
    plant(&gateway, &who, 300).await;
    let filters = json!({"type": ["mcp.invocation", "token.revoked"]});

    let with = json!({"filters": filters, "include": ["proofs"]});
    let with = content(&gateway, &who, &export(&gateway, &who, &with).await).await;
    let without = export(&gateway, &who, &json!({"filters": filters})).await;
    let without = content(&gateway, &who, &without).await;

    let report = verified(&with);
    assert!(!report.complete && report.events >= 30, "{report:?}");
    assert!(lines(&without).iter().all(|line| line.get("proof").is_none()));
    assert_eq!(lines(&without).len(), lines(&with).len());

    // Payloads come with the salts that open their commitments.
    plant(&gateway, &who, 20).await;

    let made = export(&gateway, &who, &json!({"include": ["payloads"]})).await;

    let file = content(&gateway, &who, &made).await;
    let report = verified(&file);
    assert!(report.values_proven > 0 && report.values_unproven == 0, "{report:?}");
    assert!(file.contains("\"input\":\"a payload\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_is_complete_and_nothing_in_a_table_runs() {
    // A range within the log is complete too.
    let (gateway, who) = start();
    let early = plant(&gateway, &who, 30).await;
    gateway.get(&who, "/v1/audit/events").await;
    let from = gateway.get(&who, "/v1/audit/events?limit=1").await.at("/meta/timestamp").clone();
    let within = plant(&gateway, &who, 30).await;
    let to = gateway.get(&who, "/v1/audit/events?limit=1").await.at("/meta/timestamp").clone();
    let late = plant(&gateway, &who, 30).await;

    let made = export(&gateway, &who, &json!({"from": from, "to": to})).await;

    let file = content(&gateway, &who, &made).await;
    let report = verified(&file);
    assert!(report.complete && report.period_proven, "{report:?}");
    // The last line names the events beside the range, to prove that it ends there.
    let (events, _) = file.trim_end().rsplit_once('\n').unwrap();
    let range = report.range.unwrap();
    assert!(range.first >= 30 && range.checkpoint_size >= 90, "{range:?}");
    for (ids, there) in [(early, false), (within, true), (late, false)] {
        assert!(ids.iter().all(|id| events.contains(id.as_str()) == there));
    }

    // A table has its columns and nothing in it runs.
    plant(&gateway, &who, 60).await;

    let made = export(&gateway, &who, &json!({"format": "csv"})).await;

    let file = content(&gateway, &who, &made).await;
    let (header, _) = file.split_once("\r\n").unwrap();
    assert_eq!(
        header,
        "sequence,id,occurred_at,type,actor_type,actor_id,actor_name,via,target,decision,policy,\
         policy_set,dlp_result,outcome,http_status,executed,reason,source_ip,request_id,leaf_hash"
    );
    let rows = parsed(&file);
    assert_eq!(made.at("/data/events"), rows.len() - 1);
    assert!(rows.iter().all(|row| row.len() == 20));
    let cells = || rows[1..].iter().flatten();
    assert!(!cells().any(|cell| cell.starts_with(['=', '+', '-', '@', '\t', '\n', '\r'])));
    assert!(cells().any(|cell| cell == "'=cmd|' /C calc'!A0"));
    assert!(cells().any(|cell| cell == "'@reason, \"quoted\"\r\nand more"));
    let marked = export(&gateway, &who, &json!({"format": "csv", "include": ["bom"]})).await;
    let path = marked.at("/data/file").as_str().unwrap();
    let file = gateway.request(Method::GET, path).bearer_auth(&who.token).send().await.unwrap();
    let file = file.bytes().await.unwrap();
    assert!(file.starts_with(b"\xef\xbb\xbfsequence,"));
    has!(marked, "/data/bytes": file.len(), "/data/include": ["bom"]);
}

/// RFC 4180, read by hand: a reader other than the writer's.
fn parsed(file: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = Vec::new();
    let mut cell = String::new();
    let mut characters = file.chars().peekable();
    let mut quoted = false;
    while let Some(character) = characters.next() {
        match (quoted, character) {
            (true, '"') if characters.peek() == Some(&'"') => {
                cell.push('"');
                characters.next();
            }
            (_, '"') => quoted = !quoted,
            (false, ',') => row.push(std::mem::take(&mut cell)),
            (false, '\r') => assert_eq!(characters.peek(), Some(&'\n')),
            (false, '\n') => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            (_, other) => cell.push(other),
        }
    }
    assert!(row.is_empty() && cell.is_empty() && !quoted);
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn a_siem_is_told_of_each_call_and_every_line_has_what_ocsf_demands() {
    // A call is told to a siem with its tool its policy and its caller.
    let (gateway, who) = start();
    super::call(&gateway, &who).await;

    let body = json!({"format": "ocsf", "filters": {"type": "mcp.invocation"}});
    let made = export(&gateway, &who, &body).await;

    let line = lines(&content(&gateway, &who, &made).await).remove(0);
    let text = |pointer: &str| line.pointer(pointer).unwrap_or(&Value::Null).clone();
    assert_eq!(text("/api/operation"), "sample:create_note");
    assert_eq!(text("/activity_name"), "Invoke");
    assert_eq!(text("/actor/user/uid"), who.id.as_str());
    assert_eq!(text("/actor/session/uid"), who.token_id.as_str());
    assert_eq!(text("/src_endpoint/ip"), "127.0.0.1");
    assert_eq!(text("/policy/name"), "permit-all");
    assert_eq!(text("/authorizations/0/decision"), "allow");
    assert_eq!(text("/metadata/tenant_uid"), who.org.as_str());
    let listed = gateway.get(&who, "/v1/audit/events?type=mcp.invocation").await;
    let event = listed.at("/data/items/0");
    assert_eq!(text("/metadata/uid"), event["id"]);
    assert_eq!(text("/metadata/sequence"), event["sequence"]);
    assert_eq!(text("/attestation_list/0/fingerprint/value"), event["integrity"]["leaf_hash"]);
    assert_eq!(text("/attestation_list/0/chain_uid"), event["integrity"]["log"]);

    // Every line for a siem has what ocsf demands of its class.
    super::call(&gateway, &who).await;
    gateway.invoke(&who, "sample:nothing", json!({})).await;
    plant(&gateway, &who, 340).await;

    let made = export(&gateway, &who, &json!({"format": "ocsf"})).await;

    let mut kinds = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for line in lines(&content(&gateway, &who, &made).await) {
        assert_eq!(ocsf_faults(&line), Vec::<String>::new(), "{line:#}");
        kinds.insert(line["metadata"]["event_code"].as_str().unwrap().to_owned());
        for name in ["action_id", "disposition_id", "status_id", "severity_id", "activity_id"] {
            seen.insert((name, line[name].as_i64().unwrap()));
        }
    }
    assert!(kinds.len() >= 17, "{kinds:?}");
    for (name, values) in [
        ("action_id", &[1, 2, 3, 4][..]),
        ("disposition_id", &[1, 2, 11, 17, 26]),
        ("status_id", &[0, 1, 2]),
        ("severity_id", &[4]),
        ("activity_id", &[1, 4, 99]),
    ] {
        for value in values {
            assert!(seen.contains(&(name, *value)), "{name} {value} in {seen:?}");
        }
    }
}
