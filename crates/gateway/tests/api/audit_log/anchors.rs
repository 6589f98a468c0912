//! `[audit.anchor]`: checkpoints in a file and with a witness, neither in the way of anything.

use portcullis_core::audit::{
    checkpoint::Checkpoint,
    note::{KeyKind, SigningKey},
};
use portcullis_testkit::LogWitness;

use super::{Files, invoke, keys, size, verify};
use crate::prelude::*;

fn start(config: &str) -> (Gateway, Principal) {
    serve(gateway().sample().config(config))
}

fn witnessed(witness: &LogWitness) -> String {
    let url = witness.url();
    let key = witness.key();
    format!(
        "[audit.anchor]\nevery_seconds = 1\n[[audit.anchor.witnesses]]\nurl = \"{url}\"\n\
         key = \"{key}\"\nallow_private = true"
    )
}

/// Waits until the witness has seen so much of the log.
async fn wait_until_seen(witness: &LogWitness, origin: &str, size: u64) {
    let seen = async || witness.largest_size(origin).filter(|seen| *seen >= size);
    eventually("a checkpoint of that size at the witness", seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_are_appended_to_a_file_that_verification_takes() {
    let config = "[audit.anchor]\nevery_seconds = 1\nfile = \"checkpoints.jsonl\"";
    let (mut gateway, who) = start(config);
    let file = gateway.folder().join("checkpoints.jsonl");
    let origin = format!("localhost/audit/{}", who.org);
    let sizes = || -> Vec<u64> {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let ours = lines.filter(|line: &Value| line["log"] == origin.as_str());
        ours.map(|line| line["size"].as_u64().unwrap()).collect()
    };
    let mut grown = Vec::new();
    for _ in 0..3 {
        invoke(&gateway, &who).await;
        let size = size(&gateway, &who).await;
        let anchored = async || sizes().last().copied().filter(|last| *last >= size);
        eventually("a checkpoint of that size", anchored).await;
        grown.push(size);
    }
    let older = Files::of(&gateway, &who).await;
    invoke(&gateway, &who).await;
    let before = sizes();
    assert!(before.is_sorted() && grown.iter().all(|size| before.contains(size)), "{before:?}");
    gateway.stop();
    gateway.start();
    invoke(&gateway, &who).await;
    let files = Files::of(&gateway, &who).await;
    let key = &keys(&gateway, &who.org)[0];
    let since = ["--since", file.to_str().unwrap(), "--json"];
    let export = files.write("now.jsonl", &files.complete(0, files.checkpoint.size - 1).await);

    let (code, told) = verify(&gateway, &export, key, &since);

    assert_eq!(code, 0, "{told}");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert!(told["continues"].as_u64() >= grown.last().copied(), "{told}");
    let after = sizes();
    assert!(after.starts_with(&before) && after.windows(2).all(|pair| pair[0] < pair[1]));
    // An older export is held against what was published before it.
    let last = older.checkpoint.size - 1;
    let part = older.write("part.jsonl", &older.complete(0, last).await);
    let (code, told) = verify(&gateway, &part, key, &since);
    assert_eq!(code, 0, "{told}");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert!(told["continues"].as_u64() <= Some(older.checkpoint.size), "{told}");
    assert!(told["kept_beyond"].as_u64() > told["continues"].as_u64(), "{told}");
    // A line that another key signed counts for nothing.
    let thief = SigningKey::new(key.name(), KeyKind::Log, &[1; 32]).unwrap();
    let note = files.checkpoint.sign(&[&thief]).to_string();
    let line = json!({"note": note}).to_string();
    let forged = super::files::write(&gateway.folder().join("forged.jsonl"), &line);
    let since = ["--since", forged.to_str().unwrap()];
    assert_eq!(verify(&gateway, &export, key, &since).0, 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_witness_signs_what_continues_and_its_signature_is_in_the_proofs() {
    let witness = LogWitness::start("witness.example/w1").await;
    let (gateway, who) = start(&witnessed(&witness));
    let key = keys(&gateway, &who.org).remove(0);
    witness.trust(key.clone());
    let origin = key.name().to_owned();
    let ids = [invoke(&gateway, &who).await, invoke(&gateway, &who).await];
    wait_until_seen(&witness, &origin, size(&gateway, &who).await).await;

    let path = format!("/v1/audit/events/{}/proof", ids[0]);
    let both = [key.clone(), witness.key()];
    let witnessed = |it: &Answer| it.text.contains("witness.example/w1");
    let answer = until(|| gateway.get(&who, &path), witnessed).await;

    let note = answer.text.split_once("\n\n").unwrap().1;
    let (_, verified) = Checkpoint::open(note, &both).unwrap();
    let witnessed = verified.iter().find(|by| by.key.kind() == KeyKind::Witness).unwrap();
    assert_eq!(witnessed.witnessed_at, Some(1_795_172_535));
    invoke(&gateway, &who).await;
    wait_until_seen(&witness, &origin, size(&gateway, &who).await).await;
    let signed = |it: &Answer| Checkpoint::open(&it.text, &both).is_ok_and(|(_, by)| by.len() == 2);
    until(|| gateway.get(&who, "/v1/audit/checkpoint"), signed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_witness_that_saw_another_log_refuses_and_that_is_told() {
    let witness = LogWitness::start("witness.example/w1").await;
    let (gateway, who) = start(&witnessed(&witness));
    let key = keys(&gateway, &who.org).remove(0);
    witness.trust(key.clone());
    invoke(&gateway, &who).await;
    wait_until_seen(&witness, key.name(), 1).await;
    witness.misremember(key.name());
    let before = witness.largest_size(key.name());

    invoke(&gateway, &who).await;
    // It may have been asked before it trusted the log, and refused for that.
    let _ = gateway.wait_for_log("saw another log");

    assert_eq!(witness.largest_size(key.name()), before);
    let note = gateway.get(&who, "/v1/audit/checkpoint").await.text;
    assert!(Checkpoint::open(&note, &[key]).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_witness_is_in_nobodys_way() {
    let witness = LogWitness::start("witness.example/w1").await;
    witness.be_silent(true);
    let (mut gateway, who) = start(&witnessed(&witness));
    let key = keys(&gateway, &who.org).remove(0);
    witness.trust(key.clone());

    let begun = Instant::now();
    for _ in 0..5 {
        let id = invoke(&gateway, &who).await;
        gateway.get(&who, &format!("/v1/audit/events/{id}/proof")).await.ok();
    }

    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    witness.be_silent(false);
    let ended = Instant::now();
    assert_eq!(gateway.stop(), Some(0));
    assert!(ended.elapsed() < PATIENCE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_witness_needs_a_witness_s_key() {
    let log = SigningKey::new("witness.example/w1", KeyKind::Log, &[1; 32]).unwrap();
    for (key, told) in [("nonsense", "name+hash+base64"), (&*log.verifier().to_string(), "type 4")]
    {
        let url = "url = \"https://witness.example\"";
        let witness = format!("[[audit.anchor.witnesses]]\n{url}\nkey = \"{key}\"");
        let gateway = gateway().config(&witness).prepare();

        let (_, said) = failure(&gateway, &["check"]).await;

        assert!(said.contains(told), "{said}");
    }
}
