//! Exports: what holds, and with which code each manipulation is found.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{ORIGIN, checkpoint, log_key, reference_root, stored};
use crate::{
    audit::{
        checkpoint::hash_text,
        export::{
            Consistency, FORMAT, Fault, Line, MAX_LINE_BYTES, Manifest, Neighbour, Range, Report,
            Since, Trailer, Verifier, event_line, leaf_of_event,
        },
        merkle::Hash,
        nodes::Plan,
        note::SigningKey,
        proof::{TlogProof, verify_checkpoint, verify_event},
        tiles::Tiles,
    },
    clock::Timestamp,
    json::sha256,
};

const ORG: &str = "org_01M754BKTKX1YB8Q05NMW9TP4G";
/// Event `n` is recorded `n` seconds after this moment.
const BEGAN: i64 = 1_795_172_535_000_000;

fn time(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap();
    Timestamp::from_micros(BEGAN).plus_seconds(seconds).to_string()
}

fn event(sequence: u64) -> Value {
    let salt = [7; 32];
    let name = json!(format!("user {sequence}"));
    let commitment = sha256(&[&salt, name.to_string().as_bytes()]);
    let salt = STANDARD.encode(salt);
    json!({
        "id": format!("evt_{sequence}"), "org_id": ORG, "sequence": sequence, "schema": 1,
        "recorded_at": time(sequence), "commitments": {"actor_name": commitment},
        "detached": {"actor_name": name, "input": null},
        "integrity": {"sealed": true, "salts": {"actor_name": salt}},
    })
}

fn leaf(event: &Value) -> Hash {
    leaf_of_event(event.as_object().unwrap().clone()).unwrap().hash
}

/// A log of `size` events, and files of it.
struct Log {
    events: Vec<Value>,
    leaves: Vec<Hash>,
    tiles: Tiles,
    key: SigningKey,
}

impl Log {
    fn of(events: Vec<Value>) -> Self {
        let leaves: Vec<_> = events.iter().map(leaf).collect();
        let tiles = stored(&leaves, leaves.len().max(1));
        Self { events, leaves, tiles, key: log_key(1) }
    }

    fn new(size: u64) -> Self {
        Self::of((0..size).map(event).collect())
    }

    fn size(&self) -> u64 {
        self.leaves.len() as u64
    }

    fn event(&self, at: u64) -> &Value {
        &self.events[usize::try_from(at).unwrap()]
    }

    fn note(&self, size: u64) -> String {
        let size_now = usize::try_from(size).unwrap();
        let root = reference_root(&self.leaves[..size_now]);
        checkpoint(size, root).sign(&[&self.key]).to_string()
    }

    fn manifest(&self, first: u64, last: u64) -> Manifest {
        Manifest {
            format: FORMAT.to_owned(),
            log: ORIGIN.to_owned(),
            org_id: ORG.to_owned(),
            created_at: time(1_000_000),
            from: time(first),
            to: time(last + 1),
            filters: json!({}),
            include: Vec::new(),
            complete: true,
            range: Some(Range { first, last, checkpoint_size: self.size() }),
            keys: vec![self.key.verifier().to_string()],
        }
    }

    fn path(&self, sequence: u64) -> Vec<Hash> {
        Plan::inclusion(sequence, self.size()).unwrap().hashes(&self.tiles).unwrap()
    }

    fn neighbour(&self, sequence: u64) -> Option<Neighbour> {
        let mut event = self.events.get(usize::try_from(sequence).ok()?)?.as_object()?.clone();
        event.remove("detached");
        event.remove("integrity");
        Some(Neighbour { event, proof: self.path(sequence) })
    }

    fn trailer(&self, first: u64, last: u64) -> Trailer {
        let span = |start, end| Plan::span(start, end).hashes(&self.tiles).unwrap();
        Trailer {
            note: self.note(self.size()),
            events: last + 1 - first,
            prefix: span(0, first),
            suffix: span(last + 1, self.size()),
            consistency: None,
            before: first.checked_sub(1).and_then(|it| self.neighbour(it)),
            after: self.neighbour(last + 1),
        }
    }

    /// The lines of a complete file.
    fn file(&self, first: u64, last: u64) -> Vec<String> {
        let events = (first..=last).map(|at| event_line(self.event(at), None));
        let mut lines = vec![self.manifest(first, last).line()];
        lines.extend(events);
        lines.push(self.trailer(first, last).line());
        lines
    }

    fn verify(&self, lines: &[String], since: Option<&str>) -> Result<Report, Fault> {
        let keys = vec![self.key.verifier().clone()];
        let since = since.map(|note| Since::open(note, &keys)).transpose()?;
        let mut verifier = Verifier::new(keys, since);
        lines.iter().try_for_each(|line| verifier.line(line.trim_end().as_bytes()))?;
        verifier.finish()
    }
}

fn code(result: Result<Report, Fault>) -> u8 {
    result.map_or_else(|fault| fault.exit_code(), |_| 0)
}

#[test]
fn every_range_of_every_small_log_verifies_and_proves_its_period() {
    for size in 1..=20 {
        let log = Log::new(size);
        for first in 0..size {
            for last in first..size {
                let report = log.verify(&log.file(first, last), None).unwrap();

                assert!(report.complete && report.period_proven, "{first} {last} {size}");
                assert_eq!(report.events, last + 1 - first);
                assert_eq!((report.values_proven, report.values_unproven), (report.events, 0));
            }
        }
    }
}

#[test]
fn an_edited_event_is_found_with_code_10() {
    let log = Log::new(12);
    let file = log.file(3, 9);
    for (from, to) in [
        ("evt_5", "evt_x"),
        ("\"schema\":1", "\"schema\":2"),
        ("user 5", "user 6"),
        ("\"commitments\":{", "\"commitments\":{\"input\":\"sha256:00\","),
        ("\"sealed\":true", "\"leaf_hash\":\"x\""),
        (ORG, "org_01M754BKTKX1YB8Q05NMW9TP4H"),
    ] {
        let mut edited = file.clone();
        edited[3] = edited[3].replace(from, to);

        assert_ne!(edited, file, "{from}");
        assert_eq!(code(log.verify(&edited, None)), 10, "{from}");
    }
}

#[test]
fn missing_events_are_found_with_code_13() {
    let log = Log::new(12);
    let file = log.file(3, 9);
    for place in 1..=7 {
        let mut cut = file.clone();
        cut.remove(place);
        assert_eq!(code(log.verify(&cut, None)), 13, "{place}");
    }
    for kept in 1..file.len() {
        assert_eq!(code(log.verify(&file[..kept], None)), 13, "{kept}");
    }
    assert_eq!(code(log.verify(&[], None)), 1);
}

#[test]
fn a_hole_that_manifest_and_checkpoint_line_were_fitted_to_is_found_with_code_10() {
    let log = Log::new(12);
    let mut lines = log.file(3, 9);
    lines.remove(7);
    lines[0] = Manifest { to: time(10), ..log.manifest(3, 8) }.line();
    *lines.last_mut().unwrap() =
        Trailer { suffix: log.trailer(3, 9).suffix, ..log.trailer(3, 8) }.line();

    assert_eq!(code(log.verify(&lines, None)), 10);
}

#[test]
fn a_range_that_is_narrower_than_its_period_is_found_by_its_neighbours() {
    let log = Log::new(12);
    let narrow = |before: Option<Neighbour>| {
        let mut lines = log.file(4, 9);
        lines[0] = Manifest { from: time(3), ..log.manifest(4, 9) }.line();
        *lines.last_mut().unwrap() = Trailer { before, ..log.trailer(4, 9) }.line();
        log.verify(&lines, None)
    };

    assert_eq!(code(narrow(log.neighbour(3))), 13);
    assert!(!narrow(log.neighbour(2)).unwrap().period_proven);
    assert!(!narrow(None).unwrap().period_proven);
    let mut forged = log.neighbour(3).unwrap();
    forged.event.insert("recorded_at".to_owned(), json!(time(0)));
    assert_eq!(code(narrow(Some(forged))), 10);
}

#[test]
fn a_period_without_events_is_proven_by_its_neighbours() {
    let log = Log::new(12);
    let empty = |before, after| {
        let from = format!("{}5Z", &time(4)[..20]);
        let manifest = Manifest { range: None, from, to: time(5), ..log.manifest(4, 5) };
        let trailer = Trailer { note: log.note(12), before, after, ..Trailer::default() };
        log.verify(&[manifest.line(), trailer.line()], None)
    };

    assert!(empty(log.neighbour(4), log.neighbour(5)).unwrap().period_proven);
    assert!(!empty(None, None).unwrap().period_proven);
    assert!(!empty(log.neighbour(3), log.neighbour(5)).unwrap().period_proven);
    assert_eq!(code(empty(log.neighbour(4), log.neighbour(4))), 13);
}

#[test]
fn another_order_is_found_with_code_10() {
    let log = Log::new(12);
    let file = log.file(3, 9);
    for place in 1..7 {
        let mut swapped = file.clone();
        swapped.swap(place, place + 1);
        assert_eq!(code(log.verify(&swapped, None)), 10, "{place}");
        let mut twice = file.clone();
        twice.insert(place, file[place].clone());
        assert_eq!(code(log.verify(&twice, None)), 10, "{place}");
    }
}

#[test]
fn another_key_is_found_with_code_11() {
    let log = Log::new(12);
    let mut thief = Log::new(12);
    thief.key = log_key(2);

    assert_eq!(code(log.verify(&thief.file(3, 9), None)), 11);
    let mut changed = log.file(3, 9);
    let note = log.note(12).replace("\n12\n", "\n13\n");
    *changed.last_mut().unwrap() = Trailer { note, ..log.trailer(3, 9) }.line();
    assert_eq!(code(log.verify(&changed, None)), 11);
}

#[test]
fn a_fork_is_found_with_code_12_by_whoever_kept_a_checkpoint() {
    let log = Log::new(12);
    let mut events: Vec<_> = (0..14).map(event).collect();
    events[2]["type"] = json!("rewritten");
    let fork = Log::of(events);
    let kept = log.note(9);

    for (first, last) in [(0, 13), (3, 13), (9, 13), (3, 8)] {
        assert_eq!(code(fork.verify(&fork.file(first, last), None)), 0);
        assert_eq!(code(fork.verify(&fork.file(first, last), Some(&kept))), 12, "{first} {last}");
    }
    let grown = Log::new(14);
    for (first, last) in [(0, 13), (3, 13), (9, 13), (3, 8)] {
        let report = grown.verify(&grown.file(first, last), Some(&kept)).unwrap();
        assert_eq!(report.continues, Some(9));
    }
    let short = Log::new(8);
    assert_eq!(code(short.verify(&short.file(0, 7), Some(&kept))), 12);
    let mut same_size: Vec<_> = (0..9).map(event).collect();
    same_size[8]["type"] = json!("rewritten");
    let same_size = Log::of(same_size);
    assert_eq!(code(same_size.verify(&same_size.file(0, 8), Some(&kept))), 12);
}

#[test]
fn a_checkpoint_beside_the_range_needs_the_consistency_proof_of_the_file() {
    let log = Log::new(14);
    let kept = log.note(5);
    let with = |hashes: Option<Vec<Hash>>| {
        let mut lines = log.file(9, 12);
        let consistency = hashes.map(|hashes| Consistency { since: 5, hashes });
        *lines.last_mut().unwrap() = Trailer { consistency, ..log.trailer(9, 12) }.line();
        log.verify(&lines, Some(&kept))
    };
    let proof = Plan::consistency(5, 14).unwrap().hashes(&log.tiles).unwrap();

    assert_eq!(with(Some(proof.clone())).unwrap().continues, Some(5));
    assert_eq!(code(with(Some(proof[1..].to_vec()))), 12);
    assert_eq!(code(with(None)), 1);
}

#[test]
fn each_event_of_a_filtered_file_is_proven_by_its_path_or_not_at_all() {
    let log = Log::new(12);
    let filtered = |paths: bool, sequences: &[u64]| {
        let manifest =
            Manifest { complete: false, filters: json!({"type": ["a"]}), ..log.manifest(2, 11) };
        let mut lines = vec![manifest.line()];
        lines.extend(sequences.iter().map(|at| {
            let path = paths.then(|| log.path(*at));
            event_line(log.event(*at), path.as_deref())
        }));
        let events = sequences.len() as u64;
        lines.push(Trailer { events, note: log.note(12), ..Trailer::default() }.line());
        lines
    };

    let report = log.verify(&filtered(true, &[2, 5, 11]), None).unwrap();
    assert!(!report.complete && !report.period_proven && report.events == 3);
    assert_eq!(code(log.verify(&filtered(false, &[2, 5]), None)), 13);
    assert_eq!(code(log.verify(&filtered(true, &[5, 2]), None)), 10);
    assert_eq!(code(log.verify(&filtered(true, &[1]), None)), 10);
    let mut edited = filtered(true, &[2, 5, 11]);
    edited[2] = edited[2].replace("evt_5", "evt_6");
    assert_eq!(code(log.verify(&edited, None)), 10);
    let mut cut = filtered(true, &[2, 5, 11]);
    cut.remove(2);
    assert_eq!(code(log.verify(&cut, None)), 13);
}

#[test]
fn a_file_that_lies_about_itself_is_refused() {
    let log = Log::new(12);
    let with = |change: fn(&mut Manifest)| {
        let mut lines = log.file(3, 9);
        let mut manifest = log.manifest(3, 9);
        change(&mut manifest);
        lines[0] = manifest.line();
        code(log.verify(&lines, None))
    };

    assert_eq!(with(|_| {}), 0);
    assert_eq!(with(|it| it.filters = json!({"type": ["a"]})), 1);
    assert_eq!(with(|it| it.format = "other".to_owned()), 1);
    assert_eq!(with(|it| it.log = "other".to_owned()), 10);
    assert_eq!(with(|it| it.org_id = "other".to_owned()), 10);
    assert_eq!(with(|it| it.range = None), 10);
    assert_eq!(with(|it| it.from = time(4)), 10);
    assert_eq!(with(|it| it.range.as_mut().unwrap().checkpoint_size = 11), 10);
    let whole = Range { first: 3, last: 9, checkpoint_size: 12 };
    assert_eq!(log.manifest(3, 9).range, Some(whole));
    let endless = |it: &mut Manifest| {
        it.range = Some(Range { first: 3, last: u64::MAX, checkpoint_size: 2 });
    };
    assert_eq!(with(endless), 1);
    let mut more = log.file(3, 9);
    more.push(more[1].clone());
    assert_eq!(code(log.verify(&more, None)), 10);
}

#[test]
fn lines_survive_writing_and_reading() {
    let log = Log::new(5);
    let consistency = Some(Consistency { since: 1, hashes: vec![[4; 32]] });
    let trailer = Trailer { consistency, ..log.trailer(1, 3) };
    let manifest = log.manifest(1, 3);

    let read = |line: String| Line::parse(line.trim_end().as_bytes()).unwrap();

    assert_eq!(read(trailer.line()), Line::Checkpoint(Box::new(trailer)));
    assert_eq!(read(manifest.line()), Line::Manifest(Box::new(manifest)));
    for line in [
        "{}", "[]", "{\"kind\":\"event\"}", "{\"kind\":\"checkpoint\"}", "{\"kind\":\"manifest\"}",
        "x",
    ] {
        assert_eq!(Line::parse(line.as_bytes()).unwrap_err().exit_code(), 1, "{line}");
    }
    assert!(Line::parse(&vec![b' '; MAX_LINE_BYTES + 1]).is_err());
}

#[test]
fn one_event_is_proven_by_its_proof_and_by_no_other() {
    let log = Log::new(12);
    let keys = [log.key.verifier().clone()];
    let proof = |index: u64| {
        let path = log.path(index);
        let checkpoint = log.note(12);
        TlogProof { index, path, checkpoint }.to_string()
    };
    let event = |at: u64| log.event(at).as_object().unwrap().clone();

    let proven = verify_event(event(5), &proof(5), &keys).unwrap();
    assert_eq!((proven.sequence, proven.checkpoint.size, proven.values_proven), (5, 12, 1));
    let code = |event, proof: &str| verify_event(event, proof, &keys).unwrap_err().exit_code();
    assert_eq!(code(event(6), &proof(5)), 10);
    let mut edited = event(5);
    edited.insert("type".to_owned(), json!("other"));
    assert_eq!(code(edited, &proof(5)), 10);
    assert_eq!(code(event(5), &proof(5).replace("\n12\n", "\n13\n")), 11);
    assert_eq!(code(event(5), "hello"), 1);
    let mut unsealed = event(5);
    unsealed.insert("sequence".to_owned(), Value::Null);
    assert_eq!(code(unsealed, &proof(5)), 13);
}

#[test]
fn a_checkpoint_continues_an_older_one_by_its_consistency_proof() {
    let log = Log::new(14);
    let keys = [log.key.verifier().clone()];
    let since = Since::open(&log.note(5), &keys).unwrap();
    let proof = Plan::consistency(5, 14).unwrap().hashes(&log.tiles).unwrap();
    let proof: Vec<String> = proof.iter().map(hash_text).collect();
    let verify = |note: &str, proof: &[String]| {
        let verified = verify_checkpoint(note, &keys, Some(&since), proof);
        verified.map_or_else(|fault| fault.exit_code(), |_| 0)
    };

    assert_eq!(verify(&log.note(14), &proof), 0);
    assert_eq!(verify(&log.note(5), &[]), 0);
    assert_eq!(verify(&log.note(14), &proof[1..]), 12);
    assert_eq!(verify(&log.note(14), &[]), 1);
    assert_eq!(verify(&log.note(14), &["x".to_owned()]), 1);
    assert_eq!(verify(&log.note(4), &[]), 12);
    let fork = Log::of((0..14).map(|n| event(n + 1)).collect());
    assert_eq!(verify(&fork.note(14), &proof), 12);
    assert!(verify_checkpoint(&log.note(14), &keys, None, &[]).is_ok());
}
