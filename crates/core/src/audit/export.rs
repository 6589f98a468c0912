//! Exports as files: the formats, and the lines of the one that is evidence.
//!
//! The first line of a `jsonl` file is a [`Manifest`], the last a [`Trailer`] with the signed checkpoint,
//! and between them stands one event a line. A *complete* file holds every event of a range of the
//! log; with the hashes left and right of the range the reader computes the signed root
//! again, so nothing inside the range can be missing. In a file that was filtered each event may
//! carry its own inclusion path.

mod verifier;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};
use utoipa::ToSchema;

pub use self::verifier::{Report, Since, Verifier};
use super::{
    checkpoint::{CheckpointError, hash_of, hash_text},
    csv::{csv_head, csv_line},
    merkle::{Hash, leaf_hash},
    ocsf::ocsf_line,
    row::{Sealed, StoredError},
    verified::{DetachedValue, LEAF, Verified, verify},
    view::Shown,
};
use crate::{
    clock::Timestamp,
    json::{self, Bounds},
};

crate::words! { listed
    /// Format of an export.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    #[schema(as = ExportFormat)]
    pub enum Format {
        #[default]
        /// A manifest, events and a checkpoint, each a line of JSON: the form that can be verified.
        Jsonl = "jsonl",
        /// A table for spreadsheets.
        Csv = "csv",
        /// OCSF API Activity, an event a line.
        Ocsf = "ocsf",
    }
}

impl Format {
    /// The names of all.
    pub const NAMES: [&str; 3] = ["jsonl", "csv", "ocsf"];

    /// The ending of its files.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Ocsf => "ocsf.jsonl",
        }
    }

    /// Its media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Jsonl | Self::Ocsf => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8; header=present",
        }
    }

    /// The bytes in front of the events, but for a manifest: the header of a table, behind the byte order
    /// mark if that is wanted.
    #[must_use]
    pub fn head(self, bom: bool) -> Vec<u8> {
        match self {
            Self::Jsonl | Self::Ocsf => Vec::new(),
            Self::Csv => csv_head(bom),
        }
    }

    /// Writes the line of an event of the log named `log`. An event that is not as the log has it is marked; the
    /// result says so. Only `jsonl` has proofs, and other erasable members than the named ones.
    pub fn write(
        self,
        out: &mut Vec<u8>,
        event: &Sealed<'_>,
        log: &str,
        shown: Shown,
        proof: Option<&[Hash]>,
    ) -> Result<bool, StoredError> {
        let mismatches = event.mismatches(shown);
        match self {
            Self::Jsonl => {
                let record = RawValue::from_string(event.record(log, shown, &mismatches)?);
                let record = record.map_err(|_| StoredError(event.sequence))?;
                out.extend_from_slice(event_line(&record, proof).as_bytes());
            }
            Self::Csv => out.extend_from_slice(&csv_line(event, &mismatches)?),
            Self::Ocsf => {
                out.extend_from_slice(ocsf_line(event, log, &mismatches)?.as_bytes());
                out.push(b'\n');
            }
        }
        Ok(!mismatches.is_empty())
    }
}

/// Identifier of the format of the lines.
pub const FORMAT: &str = "portcullis-audit-export@v1";
/// Longer lines are refused unread. An event of ours is below 3 MiB with both payloads.
pub const MAX_LINE_BYTES: usize = 16 << 20;
/// More hashes than that no proof has.
const MAX_HASHES: usize = 128;

/// Contents of the file as its first line states them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: String,
    /// The origin of the log: `<host>/audit/<org_id>`.
    pub log: String,
    pub org_id: String,
    /// When it was made, RFC 3339.
    pub created_at: String,
    /// Events recorded at this moment or later, RFC 3339.
    pub from: String,
    /// Events recorded before this moment, RFC 3339.
    pub to: String,
    /// Further filters of the export; `{}` in a complete file.
    pub filters: Value,
    /// Optional parts that are included: `payloads`, `proofs`.
    pub include: Vec<String>,
    /// True if every event of the range is in it.
    pub complete: bool,
    /// Part of the log; absent when the file holds none of it.
    pub range: Option<Range>,
    /// The log's verifier keys. **Not** evidence: the verifier brings keys from elsewhere.
    pub keys: Vec<String>,
}

/// A piece of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// Sequence of the first event.
    pub first: u64,
    /// Sequence of the last event.
    pub last: u64,
    /// Size of the tree whose checkpoint ends the file.
    pub checkpoint_size: u64,
}

impl Manifest {
    /// Its line, with the line feed.
    #[must_use]
    pub fn line(&self) -> String {
        tagged("manifest", json!(self))
    }
}

/// An event and, in a filtered file, its inclusion path.
#[derive(Debug, Clone, PartialEq)]
pub struct EventLine {
    /// The record as the API shows it.
    pub event: Map<String, Value>,
    /// The path from its leaf to the root of the checkpoint.
    pub proof: Option<Vec<Hash>>,
}

#[derive(Serialize)]
struct WrittenEvent<'a, E> {
    kind: &'static str,
    event: &'a E,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<Vec<String>>,
}

/// The line of an event, with the line feed. `event` is the record as the API shows it.
#[must_use]
pub fn event_line(event: &impl Serialize, proof: Option<&[Hash]>) -> String {
    let proof = proof.map(|hashes| hashes.iter().map(hash_text).collect());
    let line = WrittenEvent { kind: "event", event, proof };
    // Records have string keys throughout, so they always serialise.
    let mut line = serde_json::to_string(&line).unwrap_or_default();
    line.push('\n');
    line
}

/// The last line: what the events are proven against.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trailer {
    /// The signed checkpoint.
    pub note: String,
    /// Number of events above this line.
    pub events: u64,
    /// Subtree hashes left of the range of a complete file: `Plan::span(0, first)`.
    pub prefix: Vec<Hash>,
    /// Subtree hashes right of it: `Plan::span(last + 1, checkpoint_size)`.
    pub suffix: Vec<Hash>,
    /// From the checkpoint the reader holds, if it said which.
    pub consistency: Option<Consistency>,
    /// The event in front of the range: shows that the range begins where `from` wants it.
    pub before: Option<Neighbour>,
    /// The event behind the range: shows that it ends where `to` wants it.
    pub after: Option<Neighbour>,
}

/// A consistency proof between two trees of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consistency {
    /// Size of the older tree.
    pub since: u64,
    /// The proof (RFC 9162 §2.1.4).
    pub hashes: Vec<Hash>,
}

/// An event beside the range, with nothing detached, and its inclusion path.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbour {
    /// The hashed part of the record.
    pub event: Map<String, Value>,
    /// The path from its leaf to the root of the checkpoint.
    pub proof: Vec<Hash>,
}

impl Trailer {
    /// Its line, with the line feed.
    #[must_use]
    pub fn line(&self) -> String {
        let texts = |hashes: &[Hash]| hashes.iter().map(hash_text).collect::<Vec<_>>();
        let mut line = json!({
            "note": self.note,
            "events": self.events,
            "prefix": texts(&self.prefix),
            "suffix": texts(&self.suffix),
        });
        let consistency = self
            .consistency
            .as_ref()
            .map(|it| json!({"since": it.since, "hashes": texts(&it.hashes)}));
        let beside = |it: &Neighbour| json!({"event": it.event, "proof": texts(&it.proof)});
        let more = [
            ("consistency", consistency),
            ("before", self.before.as_ref().map(beside)),
            ("after", self.after.as_ref().map(beside)),
        ];
        if let Value::Object(members) = &mut line {
            let more = more.into_iter().filter_map(|(name, it)| Some((name.to_owned(), it?)));
            members.extend(more);
        }
        tagged("checkpoint", line)
    }
}

fn tagged(kind: &str, value: Value) -> String {
    let mut line = json!({ "kind": kind });
    if let (Value::Object(line), Value::Object(members)) = (&mut line, value) {
        line.extend(members);
    }
    format!("{line}\n")
}

/// One line of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// The first.
    Manifest(Box<Manifest>),
    /// Any between.
    Event(EventLine),
    /// The last.
    Checkpoint(Box<Trailer>),
}

impl Line {
    /// Reads a line without its line feed. Rejects anything but the form that is written here, such
    /// as an object that has a member twice.
    pub fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        if bytes.len() > MAX_LINE_BYTES {
            return Err(Fault::unreadable("a line is longer than 16 MiB"));
        }
        let value = json::parse(bytes, Bounds::RECORDED)
            .map_err(|error| Fault::unreadable(format!("a line is no JSON: {error}")))?;
        let Value::Object(mut line) = value else {
            return Err(Fault::unreadable("a line is no JSON object"));
        };
        match line.remove("kind").as_ref().and_then(Value::as_str) {
            Some("manifest") => serde_json::from_value(Value::Object(line))
                .map(|manifest| Self::Manifest(Box::new(manifest)))
                .map_err(|_| Fault::unreadable("the manifest has not the form of one")),
            Some("event") => {
                let event = object(&mut line, "event")?;
                let proof = line.remove("proof").as_ref().map(hashes).transpose()?;
                Ok(Self::Event(EventLine { event, proof }))
            }
            Some("checkpoint") => trailer(line).map(|trailer| Self::Checkpoint(Box::new(trailer))),
            _ => Err(Fault::unreadable("a line is neither manifest nor event nor checkpoint")),
        }
    }
}

fn trailer(mut line: Map<String, Value>) -> Result<Trailer, Fault> {
    let malformed = || Fault::unreadable("the checkpoint line has not the form of one");
    let note = line.get("note").and_then(Value::as_str).ok_or_else(malformed)?.to_owned();
    let events = line.get("events").and_then(Value::as_u64).ok_or_else(malformed)?;
    let span = |name: &str| line.get(name).map_or(Ok(Vec::new()), hashes);
    let prefix = span("prefix")?;
    let suffix = span("suffix")?;
    let consistency = line.get("consistency").map(|it| {
        let since = it.get("since").and_then(Value::as_u64).ok_or_else(malformed)?;
        let hashes = hashes(it.get("hashes").ok_or_else(malformed)?)?;
        Ok(Consistency { since, hashes })
    });
    let consistency = consistency.transpose()?;
    let mut beside = |name: &str| {
        let neighbour = line.remove(name).map(|it| {
            let Value::Object(mut it) = it else { return Err(malformed()) };
            let proof = hashes(it.get("proof").ok_or_else(malformed)?)?;
            Ok(Neighbour { event: object(&mut it, "event")?, proof })
        });
        neighbour.transpose()
    };
    let before = beside("before")?;
    let after = beside("after")?;
    Ok(Trailer { note, events, prefix, suffix, consistency, before, after })
}

fn object(line: &mut Map<String, Value>, name: &str) -> Result<Map<String, Value>, Fault> {
    match line.remove(name) {
        Some(Value::Object(members)) => Ok(members),
        _ => Err(Fault::unreadable(format!("a line has no object `{name}`"))),
    }
}

fn hashes(value: &Value) -> Result<Vec<Hash>, Fault> {
    let items = value.as_array().filter(|items| items.len() <= MAX_HASHES);
    let read = items.and_then(|items| items.iter().map(|it| hash_of(it.as_str()?)).collect());
    read.ok_or_else(|| Fault::unreadable("a line holds something else than hashes in a proof"))
}

/// Reason that a file does not prove what it should. The text says what was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not an export, proof or checkpoint at all.
    #[error("{0}")]
    Unreadable(String),
    /// The events are not those of the signed tree: something was edited, added or moved.
    #[error("{0}")]
    Root(String),
    /// The checkpoint is not signed by the log's key.
    #[error("{0}")]
    Signature(String),
    /// The log is not the continuation of the one that was seen before.
    #[error("{0}")]
    Inconsistent(String),
    /// Positions or tiles, by which the log is listed and proven, or detached values are not those of its events.
    #[error("{0}")]
    Index(String),
    /// Events or the end of the file are missing, or nothing is proven at all.
    #[error("{0}")]
    Incomplete(String),
}

impl Fault {
    /// A checkpoint, named by `what`, that did not open.
    #[must_use]
    pub fn refused(what: &str, error: &CheckpointError) -> Self {
        let text = format!("{what}: {error}");
        if error.is_form() { Self::Unreadable(text) } else { Self::Signature(text) }
    }

    /// Something that is no evidence.
    pub fn unreadable(text: impl Into<String>) -> Self {
        Self::Unreadable(text.into())
    }

    /// 1 unreadable, 10 root mismatch, 11 bad signature, 12 inconsistent with an older
    /// checkpoint, 13 range incomplete, 14 positions, tiles or detached values that are not those of the events.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Unreadable(_) => 1,
            Self::Root(_) => 10,
            Self::Signature(_) => 11,
            Self::Inconsistent(_) => 12,
            Self::Incomplete(_) => 13,
            Self::Index(_) => 14,
        }
    }

    /// The same as a word, for programs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "unreadable",
            Self::Root(_) => "root_mismatch",
            Self::Signature(_) => "bad_signature",
            Self::Inconsistent(_) => "inconsistent",
            Self::Incomplete(_) => "incomplete",
            Self::Index(_) => "index_mismatch",
        }
    }
}

/// Place of a shown event in its log, and the hash of its leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafOfEvent {
    pub sequence: u64,
    pub recorded_at: Timestamp,
    pub org_id: String,
    pub hash: Hash,
    /// Number of detached values that fit their commitments.
    pub opened: u64,
    /// Number of detached values without a salt, which cannot be checked.
    pub unopened: u64,
}

/// The leaf of an event as the API shows it: its canonical JSON without `detached` and `integrity`.
/// Rejects an event without a place in the log, one that says another leaf hash than its own, and
/// detached values that are not those committed to.
pub fn leaf_of_event(mut event: Map<String, Value>) -> Result<LeafOfEvent, Fault> {
    let detached = event.remove("detached").unwrap_or_default();
    let integrity = event.remove("integrity").unwrap_or_default();
    let text = |name: &str| event.get(name).and_then(Value::as_str);
    let sequence = event.get("sequence").and_then(Value::as_u64);
    let recorded_at = text("recorded_at").and_then(Timestamp::parse_rfc3339);
    let (Some(sequence), Some(recorded_at)) = (sequence, recorded_at) else {
        return Err(Fault::Incomplete("an event has no place in the log yet".to_owned()));
    };
    let org_id = text("org_id").unwrap_or_default().to_owned();
    let commitments = event.get("commitments").cloned().unwrap_or_default();
    let hash = leaf_hash(json::canonical(&Value::Object(event)).as_bytes());
    let said = integrity.get("leaf_hash").and_then(Value::as_str);
    let fits = said.is_none_or(|said| said == hash_text(&hash));
    let values = detached.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let values = values.map(|(name, value)| DetachedValue {
        name,
        value: Cow::Owned(json::canonical(value)),
        salt: integrity.get("salts").and_then(|salts| salts.get(name)).and_then(Value::as_str),
        commitment: commitments.get(name).and_then(Value::as_str),
    });
    let Verified { opened, unopened, mismatches, .. } = verify(Some(hash), fits, values);
    if let Some(name) = mismatches.iter().find(|name| *name != LEAF) {
        return Err(differs(sequence, &format!("its `{name}` is not the one committed to")));
    }
    if let Some(mismatch) = integrity.get("mismatch") {
        let what = format!("whoever wrote it down found that it does not fit: {mismatch}");
        return Err(differs(sequence, &what));
    }
    if !fits {
        return Err(differs(sequence, "it is not the event that its own leaf hash belongs to"));
    }
    Ok(LeafOfEvent { sequence, recorded_at, org_id, hash, opened, unopened })
}

fn differs(sequence: u64, what: &str) -> Fault {
    Fault::Root(format!("event {sequence} was changed: {what}"))
}
