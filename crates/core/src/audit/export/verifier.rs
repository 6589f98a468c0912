//! Verifies an export line by line, in memory that does not grow with it.

use serde::Serialize;

use super::{EventLine, FORMAT, Fault, Line, Manifest, Neighbour, Range, Trailer, leaf_of_event};
use crate::{
    audit::{
        checkpoint::Checkpoint,
        merkle::{Frontier, Hash, LeafRange, is_consistent, root_of_path},
        note::{Verified, VerifierKey},
    },
    clock::Timestamp,
};

/// The older checkpoint that the verifier kept, to hold the log against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Since(Checkpoint);

impl Since {
    /// Reads a kept checkpoint. Fails unless it is signed by a key of its log among `keys`.
    pub fn open(note: &str, keys: &[VerifierKey]) -> Result<Self, Fault> {
        let opened = Checkpoint::open(note, keys);
        let refused = |error| Fault::refused("the older checkpoint", &error);
        Ok(Self(opened.map_err(refused)?.0))
    }

    /// The checkpoint that was kept.
    #[must_use]
    pub const fn checkpoint(&self) -> &Checkpoint {
        &self.0
    }

    /// Fails unless `now` is a later state of the same log; `holds` is asked when that needs a
    /// proof.
    pub fn continued_by(
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

/// The last line: whether what was read is what the log signed.
impl Verifier {
    fn end(&self, trailer: &Trailer, manifest: &Manifest) -> Result<Report, Fault> {
        let (checkpoint, signed) = self.checkpoint(trailer, manifest)?;
        self.all_there(trailer, manifest)?;
        let period_proven = match manifest.range {
            Some(range) if manifest.complete => {
                self.whole(range, trailer, &checkpoint)?;
                self.period(manifest, trailer, &checkpoint)?
            }
            Some(_) => {
                if self.seen.root.is_some_and(|root| root != checkpoint.root) {
                    return Err(Fault::Root(
                        "the proofs do not lead to the signed root".to_owned(),
                    ));
                }
                false
            }
            None => manifest.complete && self.period(manifest, trailer, &checkpoint)?,
        };
        Ok(Report {
            log: checkpoint.origin.clone(),
            events: self.seen.events,
            complete: manifest.complete,
            period_proven,
            range: manifest.range,
            checkpoint_size: checkpoint.size,
            checkpoint_root: checkpoint.root,
            signed_by: signed.iter().map(|by| by.key.name().to_owned()).collect(),
            signing_keys: signed.iter().map(|by| by.key.id()).collect(),
            continues: self.continues(trailer, &checkpoint)?,
            values_proven: self.seen.opened,
            values_unproven: self.seen.unopened,
        })
    }

    fn checkpoint(
        &self,
        trailer: &Trailer,
        manifest: &Manifest,
    ) -> Result<(Checkpoint, Vec<Verified>), Fault> {
        let (checkpoint, signed) = Checkpoint::open(&trailer.note, &self.keys)
            .map_err(|error| Fault::refused("the checkpoint of the file", &error))?;
        if checkpoint.origin != manifest.log {
            let said = &manifest.log;
            let signed = &checkpoint.origin;
            let what = format!("the manifest is of the log `{said}`, the checkpoint of `{signed}`");
            return Err(Fault::Root(what));
        }
        if !checkpoint.is_of_org(&manifest.org_id) {
            return Err(Fault::Root("the log is not that of the org of the manifest".to_owned()));
        }
        if manifest.range.is_some_and(|range| range.checkpoint_size != checkpoint.size) {
            let what = "the checkpoint is not of the size that the manifest says";
            return Err(Fault::Root(what.to_owned()));
        }
        Ok((checkpoint, signed))
    }

    fn all_there(&self, trailer: &Trailer, manifest: &Manifest) -> Result<(), Fault> {
        if let Some(missing) = &self.seen.missing {
            return Err(Fault::Incomplete(missing.clone()));
        }
        let range = manifest.range.filter(|_| manifest.complete);
        let end = range.and_then(|range| missing(self.seen.next(range.first), range.last));
        if let Some(missing) = end {
            return Err(Fault::Incomplete(missing));
        }
        if trailer.events != self.seen.events {
            let said = trailer.events;
            let seen = self.seen.events;
            let what = format!("the file holds {seen} events and says it holds {said}");
            return Err(Fault::Incomplete(what));
        }
        Ok(())
    }

    /// Checks that prefix, events and suffix are the signed tree.
    fn whole(&self, range: Range, trailer: &Trailer, signed: &Checkpoint) -> Result<(), Fault> {
        let tree = || {
            let mut tree = Frontier::default();
            tree.push_span(range.first, &trailer.prefix).ok()?;
            tree.push_range(self.seen.leaves.as_ref()?).ok()?;
            tree.push_span(signed.size, &trailer.suffix).ok()?;
            Some(tree.root())
        };
        if tree() == Some(signed.root) {
            return Ok(());
        }
        let Range { first, last, .. } = range;
        let what = format!("events {first} to {last} are not those of the signed tree");
        Err(Fault::Root(what))
    }

    /// Checks that the neighbours show that nothing else of the log lies between `from` and `to`.
    /// Without them the period is only stated; with wrong ones the file is wrong.
    fn period(
        &self,
        manifest: &Manifest,
        trailer: &Trailer,
        signed: &Checkpoint,
    ) -> Result<bool, Fault> {
        let time = |text: &str| {
            let unread = || Fault::unreadable("the manifest's `from` and `to` are no times");
            Timestamp::parse_rfc3339(text).ok_or_else(unread)
        };
        let from = time(&manifest.from)?;
        let to = time(&manifest.to)?;
        let outside = |earliest: Option<Timestamp>, latest: Option<Timestamp>| {
            earliest.is_some_and(|time| time < from) || latest.is_some_and(|time| time >= to)
        };
        if outside(self.seen.first_time, self.seen.last.map(|(_, time)| time)) {
            return Err(Fault::Root("an event lies outside of `from` and `to`".to_owned()));
        }
        let beside = |neighbour: &Neighbour| beside(neighbour, signed);
        let before = trailer.before.as_ref().map(beside).transpose()?;
        let after = trailer.after.as_ref().map(beside).transpose()?;
        let first = manifest.range.map(|range| range.first);
        let end = manifest.range.map(|range| range.last + 1);
        let begins = before.map_or(0, |(sequence, _)| sequence + 1);
        let ends = after.map_or(signed.size, |(sequence, _)| sequence);
        let adjacent = first.map_or(begins == ends, |first| first == begins)
            && end.is_none_or(|end| end == ends);
        let early = before.is_none_or(|(_, time)| time < from);
        let late = after.is_none_or(|(_, time)| time >= to);
        if (before.is_some() && !early) || (after.is_some() && !late) {
            let what = "an event beside the range lies between `from` and `to`";
            return Err(Fault::Incomplete(what.to_owned()));
        }
        Ok(adjacent)
    }

    /// Size of the older tree, if one was given and this one continues it.
    fn continues(&self, trailer: &Trailer, signed: &Checkpoint) -> Result<Option<u64>, Fault> {
        let Some(since) = &self.since else { return Ok(None) };
        let Checkpoint { size, root, .. } = since.checkpoint();
        since.continued_by(signed, || {
            if let Some(then) = self.root_then(trailer) {
                return Ok(then == *root);
            }
            let proof = trailer.consistency.as_ref().filter(|proof| proof.since == *size);
            let Some(proof) = proof else {
                let what = format!(
                    "the file cannot show that it continues the older checkpoint: export from \
                     event {size} or earlier, or verify `/v1/audit/checkpoint?since={size}`"
                );
                return Err(Fault::Unreadable(what));
            };
            Ok(is_consistent(*size, root, signed.size, &signed.root, &proof.hashes))
        })?;
        Ok(Some(*size))
    }

    /// The root of the older tree, if that tree ends within the range.
    fn root_then(&self, trailer: &Trailer) -> Option<Hash> {
        let leaves: &LeafRange = self.seen.at_since.as_ref()?;
        let mut tree = Frontier::default();
        tree.push_span(leaves.first(), &trailer.prefix).ok()?;
        tree.push_range(leaves).ok()?;
        Some(tree.root())
    }
}

/// Sequence and time of an event beside the range, once its path leads to the signed root.
fn beside(neighbour: &Neighbour, signed: &Checkpoint) -> Result<(u64, Timestamp), Fault> {
    let leaf = leaf_of_event(neighbour.event.clone())?;
    let root = root_of_path(leaf.sequence, signed.size, &leaf.hash, &neighbour.proof);
    if root != Some(signed.root) {
        let what = "an event beside the range is not the one that the log holds there";
        return Err(Fault::Root(what.to_owned()));
    }
    Ok((leaf.sequence, leaf.recorded_at))
}
