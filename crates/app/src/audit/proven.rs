//! Events of a log, proven: the record of each is the leaf of the signed tree at its place, and what it is found by
//! follows from its record. Whatever removes a part of a log decides by these.
//!
//! A proof rests on the keys that sign, on SHA-256, and on the last signed checkpoint in the database. Of a log
//! that was set back as a whole, or rewritten without that checkpoint, those that were kept elsewhere tell.

use std::{borrow::Cow, collections::BTreeMap};

use portcullis_core::{
    audit::{
        Hash, Plan, Sealed, Shown, StoredError, checkpoint::Checkpoint, export::Fault,
        merkle::Frontier, note::VerifierKey, tiles::TileId,
    },
    clock::Timestamp,
    id::OrgId,
};
use portcullis_store::{
    AuditWriter, ErasableEvent, IndexColumns, IndexedEvent, IndexedPortion, LogEnds, OldEvent,
    Store, StoreError, TEXT_COLUMNS,
};
use serde_json::{Map, Value, value::RawValue};
use tokio::{sync::Mutex, task::spawn_blocking};
use tokio_util::sync::CancellationToken;

use super::{
    events::object,
    exports::{ExportError, writing::SignedLog},
    faults::{IndexFault, Unproven},
    log::LogSigner,
    pace::Pace,
};

/// Leaves of a tile.
pub(crate) const WIDTH: u64 = 256;
/// Microseconds by which the clock of a node may be set back between an event and its commit.
const CLOCKS: i64 = 60_000_000;
/// The members of which nothing but a commitment may ever have been there.
pub(crate) const PAYLOADS: [&str; 2] = ["input", "output"];

/// Means to read logs.
#[derive(Debug)]
pub(crate) struct LogReader<'a> {
    pub(crate) store: &'a Store,
    pub(crate) signer: &'a LogSigner,
    /// The writer of new events, which go first.
    pub(crate) writer: &'a AuditWriter,
    /// Cancelled when the node ends.
    pub(crate) stop: CancellationToken,
}

/// A log up to its signed end.
#[derive(Debug)]
pub(crate) struct ProvenLog<'a> {
    reader: &'a LogReader<'a>,
    pace: Mutex<Pace>,
    pub(crate) store: &'a Store,
    pub(crate) org: OrgId,
    /// Beginning of the log before it was sealed: the event that tells of it is among the signed ones.
    pub(crate) begins: u64,
    pub(crate) size: u64,
    root: Hash,
}

/// An event that the log proves.
#[derive(Debug)]
pub(crate) struct ProvenEvent {
    event: IndexedEvent,
    record: Map<String, Value>,
}

impl<'a> ProvenLog<'a> {
    /// Seals what is committed, and opens the checkpoint that covers it. Fails if the log does not reach as far as its
    /// head counts, or is not signed so far.
    pub(crate) async fn open(reader: &'a LogReader<'a>, org: OrgId) -> Result<Self, Unproven> {
        let LogReader { store, signer, writer, .. } = *reader;
        let begins = u64::try_from(store.pruned_size(org).await?).unwrap_or(0);
        let ends = store.log_ends(org).await?;
        reaches_its_head(ends)?;
        let signed = SignedLog::take(store, signer, org).await.map_err(|error| {
            if let ExportError::Store(error) = error {
                error.into()
            } else {
                Unproven::Fault(Fault::Signature(error.detail()))
            }
        })?;
        let known = signer.known(org).map_err(|error| Fault::Signature(error.to_string()))?;
        let keys: Vec<VerifierKey> = known.into_iter().map(|key| key.verifier).collect();
        let opened = Checkpoint::open(&signed.note, &keys);
        let opened = opened.map_err(|error| Fault::refused("the checkpoint of the log", &error))?;
        let Checkpoint { size, root, .. } = opened.0;
        is_signed(ends, size, None)?;
        let pace = Mutex::new(Pace::new(writer.progress().jobs));
        Ok(Self { reader, pace, store, org, begins, size, root })
    }

    /// The events from the place `first` up to `end`, as far as they are signed and may be read together, none of them
    /// left out. Fails if one is missing, or is not the one of the signed tree, or is found by others than its record.
    pub(crate) async fn portion(&self, first: u64, end: u64) -> Result<Vec<ProvenEvent>, Unproven> {
        let end = end.min(self.size);
        if first >= end {
            return Ok(Vec::new());
        }
        let stopped = || StoreError::Unavailable("the node is stopped".to_owned());
        if self.reader.stop.is_cancelled() {
            return Err(stopped().into());
        }
        let read = self.store.indexed_events(self.org, place(first), place(end)).await?;
        let org = self.org;
        let checked = spawn_blocking(move || check(org, first, read)).await;
        let Checked { events, leaves, fault } = checked.map_err(|_| stopped())??;
        if !self.has_leaves(first, &leaves).await? {
            let last = first + u64::try_from(leaves.len()).unwrap_or(0) - 1;
            let what = format!("events {first} to {last} are not those of the signed tree");
            return Err(Fault::Root(what).into());
        }
        self.pace.lock().await.rest(self.reader.writer.progress().jobs).await;
        match fault {
            Some(fault) => Err(fault.into()),
            None => Ok(events),
        }
    }

    /// True if these are the leaves of the signed tree from the place `first` on.
    pub(crate) async fn has_leaves(&self, first: u64, leaves: &[Hash]) -> Result<bool, StoreError> {
        let end = first + u64::try_from(leaves.len()).unwrap_or(u64::MAX);
        let (left, right) = (Plan::span(0, first), Plan::span(end, self.size));
        let tiles = self.store.tiles(self.org, TileId::of_plans(&[&left, &right])).await?;
        let (Ok(left), Ok(right)) = (left.hashes(&tiles), right.hashes(&tiles)) else {
            return Ok(false);
        };
        let mut tree = Frontier::default();
        let pushed = tree
            .push_span(first, &left)
            .and_then(|()| leaves.iter().try_for_each(|leaf| tree.push(*leaf)))
            .and_then(|()| tree.push_span(self.size, &right));
        Ok(pushed.is_ok() && tree.root() == self.root)
    }
}

/// Events that are those of their leaves.
struct Checked {
    events: Vec<ProvenEvent>,
    leaves: Vec<Hash>,
    /// The first that is found by others than its record.
    fault: Option<IndexFault>,
}

/// Holds events against their leaves: each has to be there, with its record.
fn check(org: OrgId, first: u64, portion: IndexedPortion) -> Result<Checked, Fault> {
    let mut stored = portion.events.into_iter();
    let (mut events, mut leaves, mut fault) = (Vec::new(), Vec::new(), None);
    let (mut position, mut before) = (i64::MIN, None);
    for at in place(first)..portion.end {
        let event = stored.next().filter(|event| event.sequence == at);
        let event = event.ok_or_else(|| Fault::Incomplete(format!("event {at} is missing")))?;
        let (record, leaf, _) = verify_event(org, &event, Shown::Bare)?;
        let found = is_placed(&event, &record, position);
        let found = found.and_then(|()| is_found(&event, &record, before));
        fault = fault.or(found.err());
        position = event.positions.0;
        before = Some(event.recorded_at);
        events.push(ProvenEvent { event, record });
        leaves.push(leaf);
    }
    Ok(Checked { events, leaves, fault })
}

/// The record, the leaf, and the number of `shown` values of an event, if it is the one that its seal has and the log
/// is that of the org.
pub(crate) fn verify_event(
    org: OrgId,
    event: &IndexedEvent,
    shown: Shown,
) -> Result<(Map<String, Value>, Hash, u64), Fault> {
    let at = event.sequence;
    let unread = || Fault::Root(StoredError(at).to_string());
    let record = object(&event.core).ok_or_else(unread)?;
    let verified = indexed(event).ok_or_else(unread)?.verify(shown);
    let leaf = verified.leaf.ok_or_else(unread)?;
    if !verified.mismatches.is_empty() {
        let what = verified.mismatches.join(", ");
        return Err(Fault::Root(format!(
            "event {at} was changed: it is not the one of the log in: {what}"
        )));
    }
    if text_at(&record, "/org_id") != Some(&org.to_string()) {
        return Err(Fault::Root(format!("event {at} is not of the org of this log")));
    }
    Ok((record, leaf, verified.opened))
}

/// Refuses an event at another position than its place has, or not behind the position `before`, or with two places.
pub(crate) fn is_placed(
    event: &IndexedEvent,
    record: &Map<String, Value>,
    before: i64,
) -> Result<(), IndexFault> {
    let (position, sealed) = event.positions;
    let sequence = event.sequence;
    if position != sealed || position <= before {
        return Err(IndexFault::Position(sequence));
    }
    if event.is_twin {
        return Err(IndexFault::Twin { id: id_of(record), sequence });
    }
    Ok(())
}

/// Refuses an event that is found by others than its record; the one in front was recorded at `before`.
pub(crate) fn is_found(
    event: &IndexedEvent,
    record: &Map<String, Value>,
    before: Option<i64>,
) -> Result<(), IndexFault> {
    let columns = differing_columns(event, columns_of(event, record, before).as_ref());
    if columns.is_empty() {
        return Ok(());
    }
    let columns = columns.join("`, `");
    Err(IndexFault::Columns { id: id_of(record), sequence: event.sequence, columns })
}

fn id_of(record: &Map<String, Value>) -> String {
    text_at(record, "/id").unwrap_or_default().to_owned()
}

impl ProvenEvent {
    pub(crate) const fn sequence(&self) -> i64 {
        self.event.sequence
    }

    pub(crate) const fn position(&self) -> i64 {
        self.event.positions.0
    }

    /// The whole millisecond of its record: never before it was committed.
    pub(crate) const fn recorded_at(&self) -> Timestamp {
        Timestamp::from_micros(self.event.recorded_at).floor_to_millis()
    }

    /// When it was committed, as far as its record does not tell another.
    pub(crate) const fn committed_at(&self) -> Timestamp {
        Timestamp::from_micros(self.event.columns.committed_at)
    }

    pub(crate) fn text_at(&self, pointer: &str) -> Option<&str> {
        text_at(&self.record, pointer)
    }

    /// True if this principal did it, or it was done on its behalf.
    pub(crate) fn concerns(&self, principal: &str) -> bool {
        ["/actor/id", "/actor/via"].into_iter().any(|at| self.text_at(at) == Some(principal))
    }

    /// A detached value. Fails unless it is there as the record commits to it.
    pub(crate) fn value(&self, name: &str) -> Result<Value, IndexFault> {
        let gone = || IndexFault::Value {
            id: id_of(&self.record),
            sequence: self.event.sequence,
            wrong: format!("the detached value `{name}` is gone or was changed"),
        };
        let verified = indexed(&self.event).ok_or_else(gone)?.verify(Shown::Whole);
        let mut values = self.event.detached.as_deref().and_then(object).ok_or_else(gone)?;
        let value = values.remove(name).filter(|value| !value.is_null());
        value.filter(|_| verified.mismatches.is_empty()).ok_or_else(gone)
    }

    /// Bytes of its record and of what stands beside it.
    pub(crate) fn bytes(&self) -> usize {
        let IndexedEvent { core, detached, salts, .. } = &self.event;
        core.len() + [detached, salts].into_iter().flatten().map(String::len).sum::<usize>()
    }

    pub(crate) fn old(&self) -> OldEvent {
        OldEvent { position: self.position(), id: id_of(&self.record) }
    }

    pub(crate) fn erasable(&self, is_held: bool) -> ErasableEvent {
        ErasableEvent { position: self.position(), id: id_of(&self.record), is_held }
    }
}

/// Refuses a log whose seals do not reach as far as its head counts, or go on beyond.
pub(crate) fn reaches_its_head(LogEnds { size, sealed, agree }: LogEnds) -> Result<(), Fault> {
    if sealed < size {
        let missing = match size - sealed {
            1 => format!("event {sealed} is missing"),
            _ => format!("events {sealed} to {} are missing", size - 1),
        };
        let what = format!("{missing}: the log has given out {size} places, and its end is cut");
        return Err(Fault::Incomplete(what));
    }
    if sealed > size || !agree {
        let what = format!(
            "the head of the log counts {size} events and is not that of the last one there, at \
             place {}",
            sealed - 1
        );
        return Err(Fault::Index(what));
    }
    Ok(())
}

/// Refuses a log that is shorter than one that was kept, or of which not all can be signed.
pub(crate) fn is_signed(ends: LogEnds, now: u64, kept: Option<u64>) -> Result<(), Fault> {
    if let Some(then) = kept.filter(|then| *then > now) {
        let what = format!(
            "the log was set back: a checkpoint of {then} events was kept, and it has {now} now"
        );
        return Err(Fault::Inconsistent(what));
    }
    if u64::try_from(ends.size).is_ok_and(|size| size > now) {
        let what = format!(
            "the log has {} events of which {now} are signed: its tree is not the continuation of \
             the one that was signed last",
            ends.size
        );
        return Err(Fault::Inconsistent(what));
    }
    Ok(())
}

/// The event as core reads it.
pub(crate) fn indexed(event: &IndexedEvent) -> Option<Sealed<'_>> {
    Some(Sealed {
        core: &event.core,
        detached: event.detached.as_deref(),
        salts: event.salts.as_deref(),
        sequence: event.sequence,
        recorded_at: Timestamp::from_micros(event.recorded_at),
        leaf_hash: event.leaf_hash.as_slice().try_into().ok()?,
    })
}

/// The columns that follow from the record of an event; the one in front was recorded at `before`.
pub(crate) fn columns_of(
    event: &IndexedEvent,
    record: &Map<String, Value>,
    before: Option<i64>,
) -> Option<IndexColumns> {
    let stored = &event.columns;
    let occurred_at = text_at(record, "/occurred_at")?;
    // Records have milliseconds.
    let is_same = Timestamp::from_micros(stored.occurred_at).to_string() == occurred_at;
    let said = Timestamp::parse_rfc3339(occurred_at)?.as_micros();
    // Recorded later than the one in front is only what was committed later.
    let is_later = before.is_some_and(|before| before < event.recorded_at);
    let fits = stored.committed_at == event.recorded_at
        || (said - CLOCKS..event.recorded_at).contains(&stored.committed_at) && !is_later;
    let committed_at = if fits { stored.committed_at } else { event.recorded_at };
    Some(IndexColumns {
        texts: TEXT_COLUMNS.map(|(_, at)| text_at(record, at).map(str::to_owned)),
        occurred_at: if is_same { stored.occurred_at } else { said },
        committed_at,
        payload_at: keeps_payload(event).then_some(committed_at),
    })
}

/// Names of the columns that are not these; `index` for entries that are not there.
pub(crate) fn differing_columns(
    event: &IndexedEvent,
    derived: Option<&IndexColumns>,
) -> Vec<&'static str> {
    let mut columns = derived.map_or_else(|| vec!["occurred_at"], |it| event.columns.differing(it));
    if !event.is_indexed {
        columns.push("index");
    }
    columns
}

pub(crate) type Values<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

pub(crate) fn values_of(event: &IndexedEvent) -> Option<Values<'_>> {
    serde_json::from_str(event.detached.as_deref().unwrap_or("{}")).ok()
}

/// True if the row has a payload, not only the commitment to one.
fn keeps_payload(event: &IndexedEvent) -> bool {
    let values = values_of(event).unwrap_or_default();
    PAYLOADS.iter().any(|name| values.get(*name).is_some_and(|value| value.get() != "null"))
}

/// The text at this place of a record.
pub(crate) fn text_at<'a>(record: &'a Map<String, Value>, pointer: &str) -> Option<&'a str> {
    let mut names = pointer.split('/').skip(1);
    let first = record.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))?.as_str()
}

pub(crate) fn place(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}
