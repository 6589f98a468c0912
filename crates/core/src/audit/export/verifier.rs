//! Verifies an export line by line, in memory that does not grow with it.

mod ending;

use serde::Serialize;

use super::{EventLine, FORMAT, Fault, Line, Manifest, Range, event::leaf_of_event};
use crate::{
    audit::{
        checkpoint::{Checkpoint, CheckpointError},
        merkle::{Hash, LeafRange, root_of_path},
        note::VerifierKey,
    },
    clock::Timestamp,
};

/// The older checkpoint that the verifier kept, to hold the log against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Since(Checkpoint);

impl Since {
    /// Reads a kept checkpoint. Fails unless it is signed by a key of its log among `keys`.
    pub fn open(note: &str, keys: &[VerifierKey]) -> Result<Self, Fault> {
        Ok(Self(open("the older checkpoint", note, keys)?))
    }

    /// The checkpoint that was kept.
    #[must_use]
    pub const fn checkpoint(&self) -> &Checkpoint {
        &self.0
    }

    /// Fails unless `now` is a later state of the same log; `holds` is asked when that needs a
    /// proof.
    pub(super) fn continued_by(
        &self,
        now: &Checkpoint,
        holds: impl FnOnce() -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        let then = &self.0;
        let size = self.0.size;
        if then.origin != now.origin {
            let what = format!("the older checkpoint is of another log, `{}`", then.origin);
            return Err(Fault::Inconsistent(what));
        }
        if size > now.size {
            let what = format!("the log had {size} events then and has {} now", now.size);
            return Err(Fault::Inconsistent(what));
        }
        let continued = if size == now.size { then.root == now.root } else { holds()? };
        let rewritten = || Fault::Inconsistent(format!("the first {size} events are not the same"));
        continued.then_some(()).ok_or_else(rewritten)
    }
}

pub(super) fn open(what: &str, note: &str, keys: &[VerifierKey]) -> Result<Checkpoint, Fault> {
    match Checkpoint::open(note, keys) {
        Ok((checkpoint, _)) => Ok(checkpoint),
        Err(error) => Err(refused(what, &error)),
    }
}

pub(super) fn refused(what: &str, error: &CheckpointError) -> Fault {
    let text = format!("{what}: {error}");
    if error.is_form() { Fault::Unreadable(text) } else { Fault::Signature(text) }
}

/// Result of verifying a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub log: String,
    /// Events that are in the signed tree.
    pub events: u64,
    /// True if every event of the range is among them.
    pub complete: bool,
    /// True if it is proven that the log has no further event between `from` and `to`; otherwise
    /// the file only says so.
    pub period_proven: bool,
    pub range: Option<Range>,
    pub checkpoint_size: u64,
    #[serde(skip)]
    pub checkpoint_root: Hash,
    /// Names of the keys whose signatures hold.
    pub signed_by: Vec<String>,
    /// Ids of these keys, in the same order.
    pub signing_keys: Vec<String>,
    /// Size of the older tree that this one continues, if one was given.
    pub continues: Option<u64>,
    /// Detached values that are those the log committed to.
    pub values_proven: u64,
    /// Detached values that came without salts, of which nothing is proven.
    pub values_unproven: u64,
}

/// Takes a file line by line.
#[derive(Debug)]
pub struct Verifier {
    keys: Vec<VerifierKey>,
    since: Option<Since>,
    manifest: Option<Manifest>,
    seen: Seen,
    report: Option<Report>,
}

/// Summary of the events so far.
#[derive(Debug, Default)]
struct Seen {
    events: u64,
    last: Option<(u64, Timestamp)>,
    /// The leaves of a complete file, and how they were when the older tree ended.
    leaves: Option<LeafRange>,
    at_since: Option<LeafRange>,
    /// The root that all paths of a filtered file lead to.
    root: Option<Hash>,
    first_time: Option<Timestamp>,
    missing: Option<String>,
    opened: u64,
    unopened: u64,
}

impl Verifier {
    /// A verifier that trusts `keys` and, if given, holds the log against an older checkpoint.
    #[must_use]
    pub fn new(keys: Vec<VerifierKey>, since: Option<Since>) -> Self {
        Self { keys, since, manifest: None, seen: Seen::default(), report: None }
    }

    /// Number of events that were read.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.seen.events
    }

    /// Takes the next line, without its line feed. If it rejects one, the file is not evidence.
    pub fn line(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        if self.report.is_some() {
            return Err(Fault::Root("there are lines behind the checkpoint".to_owned()));
        }
        match (Line::parse(bytes)?, self.manifest.take()) {
            (Line::Manifest(manifest), None) => self.begin(*manifest),
            (Line::Event(event), Some(manifest)) => {
                self.event(event, &manifest)?;
                self.manifest = Some(manifest);
                Ok(())
            }
            (Line::Checkpoint(trailer), Some(manifest)) => {
                self.report = Some(self.end(&trailer, &manifest)?);
                Ok(())
            }
            (Line::Manifest(_), Some(_)) => Err(Fault::unreadable("there are two manifests")),
            (Line::Event(_) | Line::Checkpoint(_), None) => {
                Err(Fault::unreadable("the first line is no manifest"))
            }
        }
    }

    /// Returns what the file proves. Fails if its last line was no checkpoint.
    pub fn finish(self) -> Result<Report, Fault> {
        let begun = self.manifest.is_some() || self.report.is_some();
        if !begun {
            return Err(Fault::unreadable("the file is empty"));
        }
        let cut = || "the file ends before its checkpoint line".to_owned();
        let lacks = || self.seen.missing.clone().or_else(|| self.missing_end()).unwrap_or_else(cut);
        self.report.clone().ok_or_else(|| Fault::Incomplete(lacks()))
    }

    /// Names the events that a complete file lacks at the end of its range, if it does.
    fn missing_end(&self) -> Option<String> {
        let manifest = self.manifest.as_ref().filter(|manifest| manifest.complete)?;
        missing(self.seen.next(manifest.range?.first), manifest.range?.last)
    }

    fn begin(&mut self, manifest: Manifest) -> Result<(), Fault> {
        if manifest.format != FORMAT {
            return Err(Fault::unreadable(format!("the file is not in the format `{FORMAT}`")));
        }
        let filtered = manifest.filters.as_object().is_none_or(|filters| !filters.is_empty());
        if manifest.complete && filtered {
            return Err(Fault::unreadable("the manifest claims a complete file with filters"));
        }
        if let Some(range) = manifest.range {
            let whole = range.first <= range.last && range.last < range.checkpoint_size;
            if !whole {
                return Err(Fault::unreadable("the manifest's range is not one of its tree"));
            }
            let leaves = LeafRange::new(range.first);
            let leaves = leaves.map_err(|_| Fault::unreadable("the range is beyond any log"))?;
            self.seen.leaves = manifest.complete.then_some(leaves);
        }
        self.manifest = Some(manifest);
        self.keep_if_since_ends();
        Ok(())
    }

    fn event(&mut self, line: EventLine, manifest: &Manifest) -> Result<(), Fault> {
        let none = || Fault::Root("the manifest says that there are no events".to_owned());
        let range = manifest.range.ok_or_else(none)?;
        let leaf = leaf_of_event(line.event)?;
        let at = leaf.sequence;
        if leaf.org_id != manifest.org_id {
            return Err(Fault::Root(format!("event {at} is not of the org of this log")));
        }
        self.seen.in_order(at, leaf.recorded_at, range, manifest.complete)?;
        self.seen.events += 1;
        self.seen.opened += leaf.opened;
        self.seen.unopened += leaf.unopened;
        if let Some(leaves) = &mut self.seen.leaves {
            leaves.push(leaf.hash).map_err(|_| Fault::unreadable("more events than any log"))?;
            self.keep_if_since_ends();
            return Ok(());
        }
        if let Some(path) = line.proof {
            return self.seen.leads(at, range.checkpoint_size, &leaf.hash, &path);
        }
        let what = format!("event {at} of a filtered file has no proof");
        self.seen.missing.get_or_insert(what);
        Ok(())
    }

    /// The root of the older tree can be computed where its last leaf is passed.
    fn keep_if_since_ends(&mut self) {
        let ends = self.since.as_ref().map(|since| since.0.size);
        let here = self.seen.leaves.as_ref().filter(|leaves| Some(leaves.end()) == ends);
        if let Some(leaves) = here {
            self.seen.at_since = Some(leaves.clone());
        }
    }
}

/// Names the places from `first` up to `last`, if there are any.
fn missing(first: u64, last: u64) -> Option<String> {
    match last.checked_sub(first)? {
        0 => Some(format!("event {first} is missing")),
        _ => Some(format!("events {first} to {last} are missing")),
    }
}

impl Seen {
    /// The place of the next event of a range that begins at `first`.
    fn next(&self, first: u64) -> u64 {
        self.last.map_or(first, |(last, _)| last.saturating_add(1))
    }

    /// Checks that the event belongs here. A gap is reported at the end, for only then it is known
    /// whether the events that are not here stand elsewhere.
    fn in_order(
        &mut self,
        at: u64,
        recorded_at: Timestamp,
        range: Range,
        complete: bool,
    ) -> Result<(), Fault> {
        let expected = self.next(range.first);
        let earliest = self.last.map_or(recorded_at, |(_, time)| time);
        if at < expected {
            return Err(Fault::Root(format!(
                "event {at} stands where {expected} or a later one belongs: the order was changed"
            )));
        }
        if at > range.last {
            return Err(Fault::Root(format!("event {at} is beyond the range of the manifest")));
        }
        if recorded_at < earliest {
            return Err(Fault::Root(format!("event {at} is recorded before the one in front")));
        }
        if complete && self.missing.is_none() && at > expected {
            self.missing = missing(expected, at - 1);
        }
        self.last = Some((at, recorded_at));
        self.first_time.get_or_insert(recorded_at);
        Ok(())
    }

    fn leads(&mut self, at: u64, size: u64, leaf: &Hash, path: &[Hash]) -> Result<(), Fault> {
        let root = root_of_path(at, size, leaf, path);
        let same = root.is_some_and(|root| *self.root.get_or_insert(root) == root);
        let elsewhere = || Fault::Root(format!("the proof of event {at} leads to another root"));
        same.then_some(()).ok_or_else(elsewhere)
    }
}
