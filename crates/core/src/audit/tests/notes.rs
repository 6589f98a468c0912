//! Notes, keys, checkpoints and proofs: what is taken and what is refused.

use proptest::prelude::*;
use signed_note::{StandardVerifier, Verifier, VerifierList};

use super::{ORIGIN, checkpoint, leaves, log_key, reference_root, stored};
use crate::audit::{
    checkpoint::{Checkpoint, CheckpointError, decimal, hash_of},
    nodes::Plan,
    note::{KeyError, KeyKind, Note, NoteError, SigningKey, VerifierKey, signatures},
    proof::{ProofError, TlogProof},
};

fn witness() -> SigningKey {
    SigningKey::new("witness.example/w1", KeyKind::Witness, &[9; 32]).unwrap()
}

#[test]
fn several_keys_sign_and_any_of_them_opens() {
    let old = log_key(1);
    let new = log_key(2);
    let note = checkpoint(7, [3; 32]).sign(&[&old, &new]).to_string();

    for keys in [vec![&old], vec![&new], vec![&new, &old]] {
        let keys: Vec<_> = keys.into_iter().map(|key| key.verifier().clone()).collect();
        let (opened, verified) = Checkpoint::open(&note, &keys).unwrap();
        assert_eq!(opened, checkpoint(7, [3; 32]));
        assert_eq!(verified.len(), keys.len());
    }
    let stranger = [log_key(3).verifier().clone()];
    let error = Checkpoint::open(&note, &stranger).unwrap_err();
    assert_eq!(error, CheckpointError::Note(NoteError::NoKnownKey));
}

#[test]
fn a_witness_signs_with_the_time_and_is_no_log() {
    let log = log_key(1);
    let witness = witness();
    let mut note = checkpoint(7, [3; 32]).sign(&[&log]);
    note.add(witness.cosign(note.text(), 1_795_172_535));
    note.add(witness.cosign(note.text(), 1_795_172_535));
    let text = note.to_string();

    let keys = [log.verifier().clone(), witness.verifier().clone()];
    let (_, verified) = Checkpoint::open(&text, &keys).unwrap();

    assert_eq!(verified.len(), 2);
    assert_eq!(verified[1].witnessed_at, Some(1_795_172_535));
    let error = Checkpoint::open(&text, &keys[1..]).unwrap_err();
    assert_eq!(error, CheckpointError::NotByTheLog(ORIGIN.to_owned()));
    let key: VerifierKey = witness.verifier().to_string().parse().unwrap();
    assert_eq!((key.kind(), key), (KeyKind::Witness, witness.verifier().clone()));
}

/// Size of a checkpoint and number of its signatures by `keys`, as another library verifies them.
fn by_library(note: &[u8], keys: &[VerifierKey]) -> Option<(u64, usize)> {
    let standard = |key: &VerifierKey| -> Box<dyn Verifier> {
        Box::new(StandardVerifier::new(&key.to_string()).unwrap())
    };
    let note = signed_note::Note::from_bytes(note).ok()?;
    let (verified, _) =
        note.verify(&VerifierList::new(keys.iter().map(standard).collect())).ok()?;
    let checkpoint = tlog_tiles::Checkpoint::from_bytes(note.text()).ok()?;
    (checkpoint.origin() == ORIGIN).then_some((checkpoint.size(), verified.len()))
}

#[test]
fn another_verifier_takes_and_refuses_the_same_notes() {
    let [old, new] = [1, 2].map(log_key);
    let mut note = checkpoint(7, [3; 32]).sign(&[&old, &new]);
    note.add(witness().cosign(note.text(), 1_795_172_535));
    let text = note.to_string();
    let keys = [old, new].map(|key| key.verifier().clone());

    assert_eq!(by_library(text.as_bytes(), &keys), Some((7, 2)));
    for place in 0..text.len() {
        let mut changed = text.clone().into_bytes();
        changed[place] ^= 1;
        let changed_text = String::from_utf8(changed.clone()).unwrap_or_default();
        let opened = Checkpoint::open(&changed_text, &keys).ok();
        let opened = opened.map(|(checkpoint, by)| (checkpoint.size, by.len()));

        assert_eq!(by_library(&changed, &keys), opened, "{place} {changed_text}");
        assert!(opened.is_none() || place > note.text().len(), "{place} {changed_text}");
    }
}

#[test]
fn one_bad_signature_of_a_known_key_spoils_the_note() {
    let log = log_key(1);
    let other = log_key(2);
    let signed = checkpoint(7, [3; 32]).sign(&[&log]);
    let mut forged = Note::sign(checkpoint(8, [3; 32]).to_string(), &[&other]);
    forged.add(signed.signatures()[0].clone());

    let keys = [log.verifier().clone(), other.verifier().clone()];
    let error = forged.verify(&keys).unwrap_err();

    assert_eq!(error, NoteError::BadSignature(ORIGIN.to_owned()));
}

#[test]
fn a_key_of_another_name_does_not_sign_for_the_log() {
    let stranger = SigningKey::new("elsewhere.example/log", KeyKind::Log, &[1; 32]).unwrap();
    let note = checkpoint(7, [3; 32]).sign(&[&stranger]).to_string();

    let error = Checkpoint::open(&note, &[stranger.verifier().clone()]).unwrap_err();

    assert_eq!(error, CheckpointError::NotByTheLog(ORIGIN.to_owned()));
}

#[test]
fn what_is_no_note_is_refused() {
    let good = checkpoint(7, [3; 32]).sign(&[&log_key(1)]).to_string();
    assert_eq!(Note::parse(&good).unwrap().to_string(), good);
    let line = good.lines().last().unwrap();

    for bad in [
        "",
        "\n",
        "\n\n",
        "a\n",
        "a\n\n",
        "a\n\nb\n",
        good.trim_end(),
        &good.replace("\n\n", "\n"),
        &good.replace('\n', "\r\n"),
        &good.replace('\u{2014}', "-"),
        &good.replace("audit", "au\tdit"),
        &format!("{good}\n"),
        &format!("{good}{}\n", line.split_at(line.len() - 9).0),
        &format!("{good}\u{2014} a+b AAAAAAAA\n"),
        &format!("{good}\u{2014} a AAAA\n"),
        &format!("{good}{}", format!("{line}\n").repeat(64)),
        &format!("{}{good}", "x".repeat(300_000)),
    ] {
        assert!(Note::parse(bad).is_err(), "{bad:.90}");
    }
}

#[test]
fn what_is_no_checkpoint_is_refused() {
    let sign = |text: &str| Note::sign(text.to_owned(), &[&log_key(1)]).to_string();
    let root = "AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM=";
    let extended = sign(&format!("{ORIGIN}\n7\n{root}\nextension\n"));
    let keys = [log_key(1).verifier().clone()];
    assert!(Checkpoint::open(&extended, &keys).is_ok());

    for text in [
        format!("\n7\n{root}\n"),
        format!("{ORIGIN}\n07\n{root}\n"),
        format!("{ORIGIN}\n-7\n{root}\n"),
        format!("{ORIGIN}\n+7\n{root}\n"),
        format!("{ORIGIN}\n\n{root}\n"),
        format!("{ORIGIN}\n7\nAAAA\n"),
        format!("{ORIGIN}\n7\n"),
        format!("{ORIGIN}\n18446744073709551615\n{root}\n"),
        format!("{ORIGIN}\n7\n{root}\n\nmore\n"),
        format!("{ORIGIN}\n7 \n{root}\n"),
    ] {
        let error = Checkpoint::open(&sign(&text), &keys).unwrap_err();
        assert!(error.is_form(), "{text} {error}");
    }
    assert_eq!((decimal("0"), decimal("00"), decimal("")), (Some(0), None, None));
    assert_eq!(hash_of(&"é".repeat(22)), None);
}

#[test]
fn what_is_no_key_is_refused() {
    let key = log_key(1).verifier().to_string();
    let (name, rest) = key.split_once('+').unwrap();
    let (id, public) = rest.split_once('+').unwrap();
    let parsed = |text: &str| text.parse::<VerifierKey>().unwrap_err();

    assert_eq!(parsed(name), KeyError::Form);
    assert_eq!(parsed(&format!("{name}+{id}")), KeyError::Form);
    assert_eq!(parsed(&format!("{name}+0{id}+{public}")), KeyError::Form);
    assert_eq!(parsed(&format!("{name}+00000000+{public}")), KeyError::Hash);
    assert_eq!(parsed(&format!("{name}x+{id}+{public}")), KeyError::Hash);
    assert_eq!(parsed(&format!("a b+{id}+{public}")), KeyError::Name);
    assert_eq!(parsed(&format!("{name}+{id}+AgAA")), KeyError::Kind);
    assert_eq!(parsed(&format!("{name}+{id}+AQAA")), KeyError::Form);
    assert_eq!(parsed(&key.repeat(20)), KeyError::Form);
    for name in ["", "a b", "a+b", "a\nb", "a\u{a0}b"] {
        assert_eq!(SigningKey::new(name, KeyKind::Log, &[1; 32]).unwrap_err(), KeyError::Name);
    }
    let shown = format!("{:?}", log_key(1));
    assert!(shown.contains("verifier") && !shown.contains("pair"), "{shown}");
}

#[test]
fn a_proof_survives_its_text_and_fails_for_anything_else() {
    let leaves = leaves(11);
    let tiles = stored(&leaves, 11);
    let key = log_key(1);
    let keys = [key.verifier().clone()];
    let signed = checkpoint(11, reference_root(&leaves)).sign(&[&key]).to_string();
    let path = Plan::inclusion(4, 11).unwrap().hashes(&tiles).unwrap();
    let proof = TlogProof { index: 4, path, checkpoint: signed };

    let read: TlogProof = proof.to_string().parse().unwrap();

    assert_eq!(read, proof);
    assert_eq!(read.verify(&leaves[4], &keys).unwrap().size, 11);
    assert_eq!(read.verify(&leaves[5], &keys).unwrap_err(), ProofError::Root);
    let moved = TlogProof { index: 5, ..proof.clone() };
    assert_eq!(moved.verify(&leaves[4], &keys).unwrap_err(), ProofError::Root);
    let stranger = [log_key(2).verifier().clone()];
    assert!(matches!(read.verify(&leaves[4], &stranger), Err(ProofError::Checkpoint(_))));
    let extra = proof.to_string().replace("index", "extra aGk=\nindex");
    assert_eq!(extra.parse::<TlogProof>().unwrap(), proof);
}

#[test]
fn what_is_no_proof_is_refused() {
    let long = format!("c2sp.org/tlog-proof@v1\nindex 1\n{}\n\nx\n", "A\n".repeat(70));
    let zero = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
    let path = format!("c2sp.org/tlog-proof@v1\nindex 1\n{}\nx\n", zero.repeat(65));
    for bad in [
        "",
        "c2sp.org/tlog-proof@v1\nindex 1\n",
        "c2sp.org/tlog-proof@v2\nindex 1\n\nx\n",
        "c2sp.org/tlog-proof@v1\nindex 01\n\nx\n",
        "c2sp.org/tlog-proof@v1\n\nx\n",
        &long,
        &path,
        &"x".repeat(600_000),
    ] {
        assert!(bad.parse::<TlogProof>().is_err(), "{bad:.60}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_a_parser_panic(text in "(\\PC|\n|\u{2014} |\\+){0,200}") {
        let _ = Note::parse(&text);
        let _ = signatures(&text);
        let _ = text.parse::<TlogProof>();
        let _ = text.parse::<VerifierKey>();
        let _ = Note::parse(&text).map(|note| Checkpoint::of(&note));
    }
}
