//! `portcullis audit verify` and `docs/verify_audit.py`: what holds, and with which code each
//! manipulation is found. Both have to agree.

use std::{fs::File, io::Write};

use flate2::{Compression, write::GzEncoder};
use portcullis_core::audit::{
    checkpoint::Checkpoint,
    export::Trailer,
    note::{KeyKind, SigningKey, VerifierKey},
};

use super::{Files, invoke, keys, live, logged, rewrite, verify, verify_in_python, write};
use crate::prelude::*;

/// Exit code of both verifiers for a file, which has to be the same.
fn both(gateway: &Gateway, file: &Path, key: &VerifierKey, since: Option<&Path>) -> i32 {
    let more: Vec<&str> = since.iter().flat_map(|it| ["--since", it.to_str().unwrap()]).collect();
    let (ours, told) = verify(gateway, file, key, &more);
    let (python, also) = verify_in_python(file, key, since);
    assert_eq!(ours, python, "{}: {told}\n{also}", file.display());
    ours
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_gateway_recorded_verifies() {
    let (gateway, who) = logged(9).await;
    let files = Files::of(&gateway, &who).await;
    let key = &keys(&gateway, &who.org)[0];
    let last = files.checkpoint.size - 1;
    for (first, last) in [(0, last), (3, last), (2, 7), (last, last), (0, 0)] {
        let file = files.write("export.jsonl", &files.complete(first, last).await);

        assert_eq!(both(&gateway, &file, key, None), 0, "{first} {last}");
    }
    let file = files.write("filtered.jsonl", &files.filtered().await);
    assert_eq!(both(&gateway, &file, key, None), 0);

    let file = files.write("export.jsonl", &files.complete(2, 7).await);
    let (_, told) = verify(&gateway, &file, key, &["--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["verified"], true);
    assert_eq!((told["events"].as_u64(), told["values_unproven"].as_u64()), (Some(6), Some(0)));
    let packed = gateway.folder().join("export.jsonl.gz");
    let mut gzip = GzEncoder::new(File::create(&packed).unwrap(), Compression::fast());
    gzip.write_all(files.complete(0, last).await.concat().as_bytes()).unwrap();
    gzip.finish().unwrap();
    assert_eq!(both(&gateway, &packed, key, None), 0);
    let whole = fs::read(&packed).unwrap();
    fs::write(&packed, &whole[..whole.len() - 20]).unwrap();
    assert_eq!(both(&gateway, &packed, key, None), 13);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_manipulation_is_found_with_its_code() {
    let (gateway, who) = logged(12).await;
    let files = Files::of(&gateway, &who).await;
    let key = &keys(&gateway, &who.org)[0];
    let good = files.complete(2, 10).await;
    let found = |name: &str, lines: &[String]| {
        both(&gateway, &files.write(&format!("{name}.jsonl"), lines), key, None)
    };
    assert_eq!(found("good", &good), 0);

    for (name, from, to) in [
        ("time", "\"occurred_at\":\"20", "\"occurred_at\":\"19"),
        ("type", "\"type\":\"mcp.invocation\"", "\"type\":\"token.issued\""),
        ("outcome", "\"executed\":\"yes\"", "\"executed\":\"no\""),
        ("name", "\"actor_name\":\"service", "\"actor_name\":\"user"),
        ("added", "\"schema\":1", "\"schema\":1,\"seen\":true"),
        ("leaf", "\"leaf_hash\":\"", "\"leaf_hash\":\"A"),
    ] {
        let mut edited = good.clone();
        edited[8] = edited[8].replacen(from, to, 1);
        assert_ne!(edited, good, "{name}");
        // What the event says about its own hash proves nothing, and Python does not ask it.
        if name == "leaf" {
            let file = files.write("leaf.jsonl", &edited);
            assert_eq!(verify(&gateway, &file, key, &[]).0, 10);
        } else {
            assert_eq!(found(name, &edited), 10, "{name}");
        }
    }
    let mut deleted = good.clone();
    deleted.remove(4);
    assert_eq!(found("deleted", &deleted), 13);
    let mut swapped = good.clone();
    swapped.swap(3, 4);
    assert_eq!(found("reordered", &swapped), 10);
    let mut doubled = good.clone();
    doubled.insert(4, good[4].clone());
    assert_eq!(found("doubled", &doubled), 10);
    assert_eq!(found("truncated", &good[..good.len() - 1]), 13);
    let mut cut = good.clone();
    let last = cut.last_mut().unwrap();
    last.truncate(last.len() / 2);
    assert_eq!(found("cut", &cut), 13);
    let mut shorter = files.complete(2, 9).await;
    *shorter.last_mut().unwrap() =
        Trailer { suffix: files.trailer(2, 10).await.suffix, ..files.trailer(2, 9).await }.line();
    assert_eq!(found("shorter", &shorter), 10);
    assert_eq!(found("nothing", &[]), 1);
    assert_eq!(found("something", &["{\"kind\":\"hello\"}\n".to_owned()]), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_key_is_found_with_code_11() {
    let (gateway, who) = logged(3).await;
    let files = Files::of(&gateway, &who).await;
    let key = &keys(&gateway, &who.org)[0];
    let thief = SigningKey::new(key.name(), KeyKind::Log, &[1; 32]).unwrap();
    let note = files.checkpoint.sign(&[&thief]).to_string();
    let mut lines = files.complete(0, 2).await;
    *lines.last_mut().unwrap() = Trailer { note, ..files.trailer(0, 2).await }.line();

    let file = files.write("resigned.jsonl", &lines);

    assert_eq!(both(&gateway, &file, key, None), 11);
    assert_eq!(both(&gateway, &file, thief.verifier(), None), 0);
    let good = files.write("good.jsonl", &files.complete(0, 2).await);
    assert_eq!(both(&gateway, &good, thief.verifier(), None), 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_held_against_the_checkpoint_that_was_kept() {
    let (gateway, who) = logged(4).await;
    let before = Files::of(&gateway, &who).await;
    let kept = write(&gateway.folder().join("kept.txt"), &before.note);
    for _ in 0..6 {
        invoke(&gateway, &who).await;
    }
    let files = Files::of(&gateway, &who).await;
    let key = &keys(&gateway, &who.org)[0];
    let old = before.checkpoint.size;
    let last = files.checkpoint.size - 1;

    for (first, last) in [(0, last), (old, last), (2, last), (2, old - 1)] {
        let file = files.write("grown.jsonl", &files.complete(first, last).await);
        assert_eq!(both(&gateway, &file, key, Some(&kept)), 0, "{first} {last}");
    }
    let beside = files.write("beside.jsonl", &files.complete(old + 2, last).await);
    assert_eq!(both(&gateway, &beside, key, Some(&kept)), 1);
    let shown = files.write("shown.jsonl", &files.since(old + 2, last, old).await);
    assert_eq!(both(&gateway, &shown, key, Some(&kept)), 0);

    // A holder of the log's own key signs another history.
    let seeds = fs::read_to_string(gateway.folder().join("audit-key")).unwrap();
    let ring = portcullis_core::audit::keyring::Keyring::parse(&seeds).unwrap();
    let signers = ring.signers(key.name()).unwrap();
    let mut root = before.checkpoint.root;
    root[0] ^= 1;
    let fork = Checkpoint { root, ..before.checkpoint.clone() }.sign(&[&signers[0]]).to_string();
    let fork = write(&gateway.folder().join("fork.txt"), &fork);
    for name in ["grown.jsonl", "shown.jsonl"] {
        assert_eq!(both(&gateway, &gateway.folder().join(name), key, Some(&fork)), 12, "{name}");
    }
    let later = write(&gateway.folder().join("later.txt"), &files.note);
    let earlier = before.write("earlier.jsonl", &before.complete(0, old - 1).await);
    assert_eq!(both(&gateway, &earlier, key, Some(&later)), 12);
    let stranger = SigningKey::new(key.name(), KeyKind::Log, &[1; 32]).unwrap();
    let forged = before.checkpoint.sign(&[&stranger]).to_string();
    let forged = write(&gateway.folder().join("forged.txt"), &forged);
    assert_eq!(both(&gateway, &shown, key, Some(&forged)), 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_and_a_checkpoint_are_verified_as_they_were_answered() {
    let (gateway, who) = logged(2).await;
    let id = invoke(&gateway, &who).await;
    let key = &keys(&gateway, &who.org)[0];
    let saved = |name: &str, text: &str| write(&gateway.folder().join(name), text);
    let proof = gateway.get(&who, &format!("/v1/audit/events/{id}/proof")).await.text;
    let event = gateway.get(&who, &format!("/v1/audit/events/{id}")).await.text;
    let event = saved("event.json", &event);
    let of_event = ["--event", event.to_str().unwrap()];
    let proof = saved("event.tlog-proof", &proof);

    let (code, told) = verify(&gateway, &proof, key, &of_event);
    assert_eq!(code, 0, "{told}");
    assert_eq!(verify(&gateway, &proof, key, &[]).0, 1);
    let mut edited = fs::read_to_string(&event).unwrap();
    edited = edited.replace("\"executed\":\"yes\"", "\"executed\":\"no\"");
    let edited = saved("edited.json", &edited);
    assert_eq!(verify(&gateway, &proof, key, &["--event", edited.to_str().unwrap()]).0, 10);

    let old = gateway.get(&who, "/v1/audit/checkpoint").await.text;
    let size: u64 = old.lines().nth(1).unwrap().parse().unwrap();
    let old = saved("old.txt", &old);
    invoke(&gateway, &who).await;
    let answer = gateway.get(&who, &format!("/v1/audit/checkpoint?since={size}")).await.text;
    let new = saved("new.json", &answer);
    let since = ["--since", old.to_str().unwrap()];
    assert_eq!(verify(&gateway, &old, key, &[]).0, 0);
    assert_eq!(verify(&gateway, &new, key, &since).0, 0);
    let first = answer.find("\"consistency\":[\"").unwrap() + 16;
    let mut broken = answer.clone();
    broken.replace_range(first..=first, if &answer[first..=first] == "A" { "B" } else { "A" });
    assert_eq!(verify(&gateway, &saved("broken.json", &broken), key, &since).0, 12);
    assert_eq!(verify(&gateway, &gateway.folder().join("none"), key, &[]).0, 1);
    let usage = gateway.command().args(["audit", "verify", "x", "--key", "y"]).output().unwrap();
    assert_eq!(usage.status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_are_kept_in_full_are_read_verified_exported_and_erased() {
    let (mut gateway, who) = logged(3).await;
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(invoke(&gateway, &who).await);
    }
    let note = gateway.get(&who, "/v1/audit/checkpoint").await.text;
    let kept = write(&gateway.folder().join("kept.txt"), &note);
    for _ in 0..3 {
        ids.push(invoke(&gateway, &who).await);
    }
    super::size(&gateway, &who).await;
    gateway.kill();
    for id in ids.iter().step_by(3) {
        rewrite(&gateway, id, |_| {});
    }
    gateway.start();
    invoke(&gateway, &who).await;

    let since = ["--since", kept.to_str().unwrap()];
    let told = live(&gateway, &since, 0, "complete").await;
    assert!(told.contains("continues"), "{told}");
    let stranger = SigningKey::new("gateway.example.com/x", KeyKind::Log, &[1; 32]).unwrap();
    live(&gateway, &["--key", &stranger.verifier().to_string()], 11, "").await;
    // A file or an org.
    live(&gateway, &["export.jsonl"], 2, "").await;
    for id in &ids {
        gateway.get(&who, &format!("/v1/audit/events/{id}/proof")).await.ok();
        let event = gateway.get(&who, &format!("/v1/audit/events/{id}")).await;
        assert!(event.at("/data/integrity/mismatch").is_null(), "{}", event.text);
    }
    let key = &keys(&gateway, &who.org)[0];
    for erased in [0, 3] {
        for id in &ids[..erased] {
            let reason = ["--reason", "Art. 17"];
            gateway.admin(
                &[&["audit", "erase", "--org", "acme", "--event", id][..], &reason].concat(),
            );
        }
        live(&gateway, &since, 0, "complete").await;
        let made = gateway.post(&who, "/v1/audit/export", "").await.ok();
        let text = gateway.get(&who, made.at("/data/file").as_str().unwrap()).await.text;
        let file = write(&gateway.folder().join("made.jsonl"), &text);
        assert_eq!(both(&gateway, &file, key, Some(&kept)), 0, "{erased} erased");
    }
    rewrite(&gateway, &ids[4], |texts| {
        texts.core = texts.core.replace("\"executed\":\"yes\"", "\"executed\":\"no\"");
    });
    live(&gateway, &[], 10, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filtered_export_shows_that_it_continues_what_was_kept() {
    let (gateway, who) = logged(5).await;
    let before = Files::of(&gateway, &who).await;
    let kept = write(&gateway.folder().join("kept.txt"), &before.note);
    let key = &keys(&gateway, &who.org)[0];
    invoke(&gateway, &who).await;
    let filters = json!({"type": ["mcp.invocation"]});
    let body = json!({"filters": filters, "include": ["proofs"], "since": before.checkpoint.size});

    let made = gateway.post(&who, "/v1/audit/export", &body.to_string()).await.ok();

    assert_eq!(made.at("/data/since"), before.checkpoint.size);
    let text = gateway.get(&who, made.at("/data/file").as_str().unwrap()).await.text;
    let file = write(&gateway.folder().join("filtered.jsonl"), &text);
    assert_eq!(both(&gateway, &file, key, Some(&kept)), 0);
    let output = gateway.folder().join("shell.jsonl");
    let size = before.checkpoint.size.to_string();
    let path = output.to_string_lossy();
    let command = ["audit", "export", "--org", "acme", "--type", "mcp.invocation", "--include"];
    gateway.admin(&[&command[..], &["proofs", "--since", &size, "-o", &path]].concat());
    assert_eq!(both(&gateway, &output, key, Some(&kept)), 0);
    let other = Checkpoint { root: [7; 32], ..before.checkpoint.clone() };
    let seeds = fs::read_to_string(gateway.folder().join("audit-key")).unwrap();
    let ring = portcullis_core::audit::keyring::Keyring::parse(&seeds).unwrap();
    let fork = other.sign(&[&ring.signers(key.name()).unwrap()[0]]).to_string();
    let fork = write(&gateway.folder().join("fork.txt"), &fork);
    assert_eq!(both(&gateway, &file, key, Some(&fork)), 12);
}
