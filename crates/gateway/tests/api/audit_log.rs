//! The log as evidence: what the commands make of it, also after tampering.

mod anchors;
mod changed_database;
mod files;
mod keys;
mod tampered;
mod unproven_records;

use std::path::Path;

use portcullis_core::{
    audit::{leaf_bytes, leaf_hash, note::VerifierKey},
    clock::Timestamp,
};
use portcullis_store::RecordTexts;
use portcullis_testkit::{Gateway, Principal};
use serde_json::json;

pub(crate) use self::files::{Files, write};
use crate::{
    gateway,
    given::{run, serve},
};

/// The verifier keys of an org's log, oldest first, as the command prints them.
pub(crate) fn keys(gateway: &Gateway, org: &str) -> Vec<VerifierKey> {
    let listed = gateway.admin(&["audit", "key", "list", "--org", org]);
    let keys = listed.as_array().unwrap().iter();
    keys.map(|key| key["key"].as_str().unwrap().parse().unwrap()).collect()
}

/// Calls a tool and gives the id of the event.
pub(crate) async fn invoke(gateway: &Gateway, who: &Principal) -> String {
    let answer = gateway.invoke(who, "sample:list_items", json!({"limit": 1})).await.ok();
    answer.event_id().to_owned()
}

/// A gateway with a log of some calls.
async fn logged(calls: usize) -> (Gateway, Principal) {
    let (gateway, who) = serve(gateway().sample());
    for _ in 0..calls {
        invoke(&gateway, &who).await;
    }
    (gateway, who)
}

/// The exit code of `audit verify`, and what it tells.
fn verify(gateway: &Gateway, file: &Path, key: &VerifierKey, more: &[&str]) -> (i32, String) {
    let mut command = gateway.command();
    command.args(["audit", "verify"]).arg(file).arg("--key").arg(key.to_string()).args(more);
    run_to_end(command)
}

/// The same of the verifier in Python.
fn verify_in_python(file: &Path, key: &VerifierKey, since: Option<&Path>) -> (i32, String) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verify_audit.py");
    let mut command = std::process::Command::new("python3");
    command.arg(script).arg(file).arg(key.to_string()).args(since);
    run_to_end(command)
}

/// The output of `audit verify --org`, which has to end with this code and hold this part.
pub(crate) async fn live(gateway: &Gateway, more: &[&str], code: i32, part: &str) -> String {
    told(gateway, "verify", more, code, part).await
}

/// The same of `audit reindex --org`.
async fn reindex(gateway: &Gateway, more: &[&str], code: i32, part: &str) -> String {
    told(gateway, "reindex", more, code, part).await
}

async fn told(gateway: &Gateway, name: &str, more: &[&str], code: i32, part: &str) -> String {
    let output = run(gateway, &[&["audit", name, "--org", "acme"], more].concat()).await;
    let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(code), "{told}");
    assert!(told.contains(part), "`{part}` in {told}");
    told
}

/// Number of events that the signed checkpoint of now covers.
async fn size(gateway: &Gateway, who: &Principal) -> u64 {
    let note = gateway.get(who, "/v1/audit/checkpoint").await.text;
    note.lines().nth(1).unwrap().parse().unwrap()
}

/// Reads the record of an event as it is kept.
fn kept_record(gateway: &Gateway, id: &str) -> RecordTexts {
    let is_sqlite = gateway.database_url().starts_with("sqlite:");
    let hex = if is_sqlite { "hex(packed)" } else { "encode(packed, 'hex')" };
    let hex = gateway.ask(&format!("SELECT {hex} FROM audit_events WHERE id = '{id}'"));
    let digits = hex.as_bytes().chunks(2).map(|it| str::from_utf8(it).unwrap());
    let packed: Vec<u8> = digits.map(|it| u8::from_str_radix(it, 16).unwrap()).collect();
    RecordTexts::unpack(&packed).unwrap()
}

/// Writes the record of an event anew, in full: with its commitments and salts.
fn rewrite(gateway: &Gateway, id: &str, change: impl FnOnce(&mut RecordTexts)) {
    let mut texts = kept_record(gateway, id);
    change(&mut texts);
    let packed = texts.pack();
    let digits = packed.iter().map(|byte| format!("{byte:02x}"));
    let digits = digits.collect::<String>();
    let is_sqlite = gateway.database_url().starts_with("sqlite:");
    let bytes = if is_sqlite { format!("x'{digits}'") } else { format!("'\\x{digits}'") };
    gateway.tamper(&format!("UPDATE audit_events SET packed = {bytes} WHERE id = '{id}'"));
}

/// Writes the record of an event anew with its leaf, in its row, in its seal and in the first tile of the tree.
pub(crate) fn forge(gateway: &Gateway, org: &str, id: &str, change: impl FnOnce(&mut RecordTexts)) {
    rewrite(gateway, id, change);
    let of_event = |column: &str| {
        let seal = "audit_seals s JOIN audit_events e ON e.position = s.position";
        let asked = format!("SELECT s.{column} FROM {seal} WHERE e.id = '{id}'");
        gateway.ask(&asked).parse::<i64>().unwrap()
    };
    let at = of_event("sequence");
    let recorded_at = Timestamp::from_micros(of_event("recorded_at"));
    let leaf = leaf_bytes(&kept_record(gateway, id).core, at, recorded_at).unwrap();
    let hash = leaf_hash(leaf.as_bytes()).map(|byte| format!("{byte:02x}")).concat();
    let first = 32 * at;
    let (hash, hashes) = if gateway.database_url().starts_with("sqlite:") {
        let hash = format!("x'{hash}'");
        let rest = format!("substr(hashes, {})", first + 33);
        let hashes = format!("CAST(substr(hashes, 1, {first}) || {hash} || {rest} AS BLOB)");
        (hash, hashes)
    } else {
        let hash = format!("'\\x{hash}'::bytea");
        let hashes = format!("overlay(hashes PLACING {hash} FROM {})", first + 1);
        (hash, hashes)
    };
    let seal = format!("org_id = '{org}' AND sequence = {at}");
    gateway.tamper(&format!("UPDATE audit_seals SET leaf_hash = {hash} WHERE {seal}"));
    let tile = format!("org_id = '{org}' AND level = 0 AND tile = 0");
    gateway.tamper(&format!("UPDATE audit_tiles SET hashes = {hashes} WHERE {tile}"));
}

fn run_to_end(mut command: std::process::Command) -> (i32, String) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let told = text(&output.stdout) + &text(&output.stderr);
    assert!(!told.contains("panicked") && !told.contains("Traceback"), "{told}");
    (output.status.code().unwrap(), told)
}
