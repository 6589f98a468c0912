//! The published test vectors of the log.

use super::{ORIGIN, hash, reference_root};
use crate::audit::{
    checkpoint::{Checkpoint, CheckpointError},
    leaf_hash,
    note::{NoteError, VerifierKey},
    proof::{ProofError, TlogProof},
};

const VKEY: &str = "gateway.acme.example/audit/org_01M754BKTKX1YB8Q05NMW9TP4G+74f92713+ATk8sVfHeJq8C9QvG+zxsWe8wms0UNjoyWlGYSj/YJHB";

const PROOF: &str = "c2sp.org/tlog-proof@v1
index 2
LGMEUrasF4JTTZlz2V6Z8cRbuay37w3GjcTYCfNuIC4=
vIO4nCJqIeGHLhKwR2vouGPojfHmy7fzrPgrEaNCwfU=
xis8Obg1pCe9DdNCRyBYownu+o/PGzn5YLr7lNKY7mA=

gateway.acme.example/audit/org_01M754BKTKX1YB8Q05NMW9TP4G
5
r4yo5qD1d5qbftLFnenug1JUxLx2lfh9HqupPKaOj/A=

\u{2014} gateway.acme.example/audit/org_01M754BKTKX1YB8Q05NMW9TP4G dPknE1PTwYrFskVFrjmE39XQBsTRgxO42mFhmt/RW2mAJQvHhhVeogBPAto2/vVz+v2FlMFKl8Qlu+Iv+AK0dBXzrgQ=
";

const LEAF: &str = concat!(
    r#"{"actor":{"id":"usr_01M754BKTKFVJC7V0B9VHVKZBP","type":"user"},"#,
    r#""commitments":{"actor_name":"sha256:a728f1a0cdd511d9997abdca50f93b5d808b0128bda2e2b2e1e52bfa2877804a","#,
    r#""input":"sha256:cabf99614e0bf87c353fa1a6461b15fc2993da60dd45f9f4e067919575207041"},"#,
    r#""governance":{"decision":"allow","dlp_result":"passed","policy":"engineering-read"},"#,
    r#""id":"evt_01M7W9Y2TK0000000000000000","occurred_at":"2026-11-20T11:02:10.123Z","#,
    r#""org_id":"org_01M754BKTKX1YB8Q05NMW9TP4G","#,
    r#""outcome":{"executed":"yes","http_status":200,"status":"success"},"#,
    r#""schema":1,"sequence":0,"target":{"id":"github:list_repos","type":"mcp"},"#,
    r#""type":"mcp.invocation"}"#,
);

fn keys() -> Vec<VerifierKey> {
    vec![VKEY.parse().unwrap()]
}

#[test]
fn the_leaf_hashes_as_published_and_one_word_makes_another() {
    let published = "x6YkWIGhANHdlX0kxDyYYJV1Hsytlu+RuxsH6GXni/c=";

    assert_eq!(leaf_hash(LEAF.as_bytes()), hash(published));
    assert_ne!(leaf_hash(LEAF.replace("allow", "deny").as_bytes()), hash(published));
}

#[test]
fn the_verifier_key_reads_and_writes_as_published() {
    let key: VerifierKey = VKEY.parse().unwrap();

    assert_eq!(key.name(), ORIGIN);
    assert_eq!(key.to_string(), VKEY);
}

#[test]
fn the_checkpoint_opens_with_the_published_key_only() {
    let (_, note) = PROOF.split_once("\n\n").unwrap();

    let (checkpoint, verified) = Checkpoint::open(note, &keys()).unwrap();

    assert_eq!(checkpoint.origin, ORIGIN);
    assert_eq!(checkpoint.size, 5);
    assert_eq!(checkpoint.root, hash("r4yo5qD1d5qbftLFnenug1JUxLx2lfh9HqupPKaOj/A="));
    assert_eq!(verified.len(), 1);
    let other = vec![super::log_key(1).verifier().clone()];
    let error = Checkpoint::open(note, &other).unwrap_err();
    assert_eq!(error, CheckpointError::Note(NoteError::NoKnownKey));
    let larger = note.replace("\n5\n", "\n6\n");
    let error = Checkpoint::open(&larger, &keys()).unwrap_err();
    assert_eq!(error, CheckpointError::Note(NoteError::BadSignature(ORIGIN.to_owned())));
}

#[test]
fn the_proof_reads_and_writes_as_published_and_refuses_another_leaf() {
    let proof: TlogProof = PROOF.parse().unwrap();

    assert_eq!(proof.index, 2);
    assert_eq!(proof.path.len(), 3);
    assert_eq!(proof.to_string(), PROOF);
    let error = proof.verify(&leaf_hash(LEAF.as_bytes()), &keys()).unwrap_err();
    assert_eq!(error, ProofError::Root);
}

#[test]
fn known_roots_of_the_standard_s_own_example_match() {
    // The eight leaves that Certificate Transparency implementations test with.
    let inputs: [&[u8]; 8] = [
        b"",
        b"\x00",
        b"\x10",
        b"\x20\x21",
        b"\x30\x31",
        b"\x40\x41\x42\x43",
        b"\x50\x51\x52\x53\x54\x55\x56\x57",
        b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
    ];
    let hashes: Vec<_> = inputs.iter().map(|input| leaf_hash(input)).collect();
    let hex = |size: usize| {
        let root = reference_root(&hashes[..size]);
        format!("{root:02x?}").replace([',', ' ', '[', ']'], "")
    };

    assert_eq!(hex(1), "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
    assert_eq!(hex(2), "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125");
    assert_eq!(hex(8), "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328");
}
