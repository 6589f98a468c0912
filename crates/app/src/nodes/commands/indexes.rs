//! Holds what a log is searched and proven by against its events: the columns of filters, the
//! positions that listing skips by, the values beside the records, the tiles of the tree, and the
//! trees that an auditor kept. Names events that have no place, and places without an event.
//!
//! The events themselves are verified before, as an export of the whole log. Here every one of them
//! is read once more, so memory does not grow with the log.

mod removals;

use std::collections::BTreeMap;

use portcullis_core::{
    audit::{
        Hash,
        tiles::{GrowingTree, TileId, Tiles},
    },
    clock::Timestamp,
    id::OrgId,
};
use portcullis_store::{IndexedEvent, StoreError};
use serde_json::{Map, Value};

use self::removals::Removals;
use super::Shell;
use crate::audit::events::object;

/// Leaves of a tile, and bytes of a hash.
const WIDTH: u64 = 256;
const HASH: usize = 32;
/// Most kept trees of which it is told that they are not of this log.
const MAX_TOLD: usize = 1_000;
/// Most changed columns that are named before the walk ends.
const MAX_COLUMNS: usize = 20;

/// A difference between what a log is searched or proven by and its events.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum IndexFault {
    /// A column of an event is not what its record says: filters show or hide it wrongly.
    #[error(
        "event {id} at place {sequence}: the column `{column}`, which filters compare, is not what \
         the record says; filters hide it or show it wrongly"
    )]
    Column {
        /// Its id, as the record has it.
        id: String,
        sequence: i64,
        column: &'static str,
    },
    #[error(
        "event {id} at place {sequence} is not in the index of events; filters or retention pass over it"
    )]
    Unlisted {
        /// Its id, as the record has it.
        id: String,
        sequence: i64,
    },
    #[error("event {id} has two places in the log, one of them {sequence}: it was copied")]
    Twin {
        /// Its id, as the record has it.
        id: String,
        sequence: i64,
    },
    /// A position is not that of the order of the log: listing passes over the event.
    #[error("the event at place {0} has a position that is out of order; lists pass over it")]
    Position(i64),
    /// An event is neither in the log nor waits to come into it: it was added from outside.
    #[error(
        "the event {0} stands among those that have a place in the log and has none: it was added or \
         changed from outside, and an `audit.rows_refused` event tells if the gateway refused it"
    )]
    Stray(String),
    /// A row that the sealer does not look at.
    #[error(
        "the event {0} stands at a position that the gateway has not given out: it was added from outside, \
         and gets no place"
    )]
    Beyond(String),
    #[error("the event at place {0} is missing")]
    Empty(i64),
    #[error("event {id} at place {sequence}: {wrong}")]
    Value {
        /// Its id, as the record has it.
        id: String,
        sequence: i64,
        /// The value, and the fault of it.
        wrong: String,
    },
    #[error("more events have lost values of `{0}` than the `audit.erased` events of it tell")]
    Erasures(String),
    #[error("the tree has another leaf at place {0} than the event there")]
    Leaf(i64),
    #[error("the tile {index} at level {level} of the tree is not that of its leaves")]
    Tile { level: u8, index: u64 },
    /// Events are passed over as removed, and nothing says that they were.
    #[error(
        "the first {0} events are passed over as if they had been removed, and no event of the log \
         tells that they were"
    )]
    Hidden(u64),
    #[error("the tree that is stored is not the one that was signed")]
    Root,
    /// Changed columns, behind what ended the walk if that was something else.
    #[error("{}", joined(.0))]
    Several(Vec<IndexFault>),
}

fn joined(faults: &[IndexFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; and ")
}

/// The part of a log that was verified as an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VerifiedLog {
    /// Place of the first event that is kept.
    pub first: u64,
    pub size: u64,
    pub root: Hash,
}

/// Result of comparing a log with its indexes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Indexed {
    /// Number of events that were compared.
    pub events: u64,
    /// Sizes and roots of kept trees that are not the beginning of this log.
    pub strangers: Vec<(u64, Hash)>,
}

impl Shell {
    /// Compares the `verified` log of the org with the columns and tiles that were made of it, and
    /// with the trees that were `kept`.
    pub(super) async fn check_indexes(
        &self,
        org: OrgId,
        verified: VerifiedLog,
        kept: &BTreeMap<u64, Vec<Hash>>,
    ) -> Result<Result<Indexed, IndexFault>, StoreError> {
        let removals = self.removals(org).await?;
        if !removals.tell_of_events_before(verified.first) {
            return Ok(Err(IndexFault::Hidden(verified.first)));
        }
        let mut walk = Walk::new(removals)?;
        let walked = self.walk(org, verified, kept, &mut walk).await?;
        let walked = walked.and_then(|()| walk.removals.suffice());
        let Walk { tree, found, columns: mut faults, .. } = walk;
        let last = match walked {
            Ok(()) => self.differing(org, tree.into_changed()).await?,
            Err(fault) => Some(fault),
        };
        if let Some(last) = last {
            faults.insert(0, last);
        }
        Ok(match faults.pop() {
            None => Ok(found),
            Some(fault) if faults.is_empty() => Err(fault),
            Some(fault) => {
                faults.push(fault);
                Err(IndexFault::Several(faults))
            }
        })
    }

    /// Walks through the log to its end, or to a fault that is no changed column.
    async fn walk(
        &self,
        org: OrgId,
        VerifiedLog { first: kept_from, size, root }: VerifiedLog,
        kept: &BTreeMap<u64, Vec<Hash>>,
        walk: &mut Walk,
    ) -> Result<Result<(), IndexFault>, StoreError> {
        for index in 0..size.div_ceil(WIDTH) {
            let first = index * WIDTH;
            let end = size.min((index + 1) * WIDTH);
            let id = TileId { level: 0, index };
            let Some(leaves) = self.tile(org, id, end - first).await? else {
                return Ok(Err(IndexFault::Tile { level: 0, index }));
            };
            let events = self.store.indexed_events(org, place(first), place(end)).await?;
            let after = walk.position;
            if let Err(fault) = walk.compare(first, &leaves, &events) {
                return Ok(Err(fault));
            }
            let oldest = place(first.max(kept_from));
            if let Some(fault) = self.stray(org, oldest, place(end), after, &events).await? {
                return Ok(Err(fault));
            }
            walk.grow(&leaves, kept)?;
            let full = walk.tree.take_full();
            if let Some(fault) = self.differing(org, full).await? {
                return Ok(Err(fault));
            }
        }
        if walk.root()? != root {
            return Ok(Err(IndexFault::Root));
        }
        if let Some(id) = self.store.stray_event(org, walk.position, None).await? {
            return Ok(Err(IndexFault::Stray(id)));
        }
        if let Some(id) = self.store.event_beyond(org).await? {
            return Ok(Err(IndexFault::Beyond(id)));
        }
        Ok(Ok(()))
    }

    /// An event between these `events`, which stand behind the position `after`, that has no place;
    /// or one of these places without an event.
    async fn stray(
        &self,
        org: OrgId,
        first: i64,
        end: i64,
        after: i64,
        events: &[IndexedEvent],
    ) -> Result<Option<IndexFault>, StoreError> {
        let Some(last) = events.last().map(|event| event.positions.0) else { return Ok(None) };
        let count = self.store.count_events(org, after, last).await?;
        if usize::try_from(count) != Ok(events.len())
            && let Some(id) = self.store.stray_event(org, after, Some(last)).await?
        {
            return Ok(Some(IndexFault::Stray(id)));
        }
        Ok(self.store.stray_seal(org, first, end).await?.map(IndexFault::Empty))
    }

    /// The first of these tiles that is not stored like this. What is stored beyond was appended
    /// meanwhile.
    async fn differing(
        &self,
        org: OrgId,
        computed: Vec<(TileId, Vec<u8>)>,
    ) -> Result<Option<IndexFault>, StoreError> {
        for (id, hashes) in computed.into_iter().filter(|(id, _)| id.level > 0) {
            let width = u64::try_from(hashes.len() / HASH).unwrap_or(u64::MAX);
            let stored = self.tile(org, id, width).await?;
            if stored.is_none_or(|stored| stored.concat() != hashes) {
                return Ok(Some(IndexFault::Tile { level: id.level, index: id.index }));
            }
        }
        Ok(None)
    }

    /// The first `width` hashes of a tile, if it has so many.
    async fn tile(
        &self,
        org: OrgId,
        id: TileId,
        width: u64,
    ) -> Result<Option<Vec<Hash>>, StoreError> {
        let stored = self.store.tiles(org, [id]).await?.take(id).unwrap_or_default();
        let hashes = stored.as_chunks::<HASH>().0;
        let width = usize::try_from(width).unwrap_or(usize::MAX);
        Ok(hashes.get(..width).map(<[Hash]>::to_vec))
    }
}

/// State of a walk through the log.
struct Walk {
    tree: GrowingTree,
    position: i64,
    recorded_at: Option<i64>,
    removals: Removals,
    found: Indexed,
    /// Changed columns that were found.
    columns: Vec<IndexFault>,
}

impl Walk {
    fn new(removals: Removals) -> Result<Self, StoreError> {
        let tree = GrowingTree::open(0, Tiles::default()).map_err(|_| damaged())?;
        let found = Indexed::default();
        let (position, columns) = (i64::MIN, Vec::new());
        Ok(Self { tree, position, recorded_at: None, removals, found, columns })
    }

    /// Keeps a changed column, so that others behind it are found, too. Fails with one too many, and with another
    /// moment of recording: it makes those behind it look wrong.
    fn note(&mut self, compared: Result<(), IndexFault>) -> Result<(), IndexFault> {
        match compared {
            Err(fault @ IndexFault::Column { column, .. })
                if column != "recorded_at" && self.columns.len() + 1 < MAX_COLUMNS =>
            {
                self.columns.push(fault);
                Ok(())
            }
            compared => compared,
        }
    }

    fn compare(
        &mut self,
        first: u64,
        leaves: &[Hash],
        events: &[IndexedEvent],
    ) -> Result<(), IndexFault> {
        for event in events {
            let (position, sealed) = event.positions;
            if position != sealed || position <= self.position {
                return Err(IndexFault::Position(event.sequence));
            }
            self.position = position;
            let within = u64::try_from(event.sequence).unwrap_or(0).saturating_sub(first);
            let leaf = usize::try_from(within).ok().and_then(|within| leaves.get(within));
            if leaf.map(<[u8; HASH]>::as_slice) != Some(event.leaf_hash.as_slice()) {
                return Err(IndexFault::Leaf(event.sequence));
            }
            let record = object(&event.core).unwrap_or_default();
            self.note(compare_columns(event, &record, self.recorded_at))?;
            self.recorded_at = Some(event.recorded_at);
            self.removals.compare(event, &record)?;
            self.note(compare_payload(event, &record))?;
            let id = || text_at(&record, "/id").unwrap_or_default().to_owned();
            if !event.is_indexed {
                return Err(IndexFault::Unlisted { id: id(), sequence: event.sequence });
            }
            if event.is_twin {
                return Err(IndexFault::Twin { id: id(), sequence: event.sequence });
            }
            self.found.events += 1;
        }
        Ok(())
    }

    /// Adds leaves to the tree, and holds it against each kept tree whose last leaf is passed.
    fn grow(&mut self, leaves: &[Hash], kept: &BTreeMap<u64, Vec<Hash>>) -> Result<(), StoreError> {
        for leaf in leaves {
            self.tree.push(*leaf);
            let size = self.tree.size();
            let Some(roots) = kept.get(&size) else { continue };
            let root = self.root()?;
            let strangers = roots.iter().filter(|it| **it != root).map(|it| (size, *it));
            let left = MAX_TOLD.saturating_sub(self.found.strangers.len());
            self.found.strangers.extend(strangers.take(left));
        }
        Ok(())
    }

    fn root(&self) -> Result<Hash, StoreError> {
        self.tree.root().map_err(|_| damaged())
    }
}

const fn damaged() -> StoreError {
    StoreError::Corrupt("audit_tiles")
}

/// Refuses an event of which a column does not say what the record says, or another time than the
/// log; the one in front was recorded at `before`.
fn compare_columns(
    event: &IndexedEvent,
    record: &Map<String, Value>,
    before: Option<i64>,
) -> Result<(), IndexFault> {
    let said = |pointer: &str| text_at(record, pointer);
    let wrong = |column| IndexFault::Column {
        id: said("/id").unwrap_or_default().to_owned(),
        sequence: event.sequence,
        column,
    };
    for (column, value, pointer) in &event.columns {
        if value.as_deref() != said(pointer) {
            return Err(wrong(column));
        }
    }
    let occurred_at = Timestamp::from_micros(event.occurred_at).to_string();
    if said("/occurred_at") != Some(&occurred_at) {
        return Err(wrong("occurred_at"));
    }
    if before.is_some_and(|before| before > event.recorded_at) {
        return Err(wrong("recorded_at"));
    }
    // Recorded later than the one in front is only what was committed later.
    let is_later = before.is_some_and(|before| before < event.recorded_at);
    if event.committed_at > event.recorded_at || is_later && event.committed_at != event.recorded_at
    {
        return Err(wrong("committed_at"));
    }
    Ok(())
}

/// Refuses an event that retention passes over, or takes too early.
fn compare_payload(event: &IndexedEvent, record: &Map<String, Value>) -> Result<(), IndexFault> {
    let kept = removals::keeps_payload(event).then_some(event.committed_at);
    let wrong = || IndexFault::Column {
        id: text_at(record, "/id").unwrap_or_default().to_owned(),
        sequence: event.sequence,
        column: "payload_at",
    };
    if event.payload_at == kept { Ok(()) } else { Err(wrong()) }
}

/// The text at this place of a record.
fn text_at<'a>(record: &'a Map<String, Value>, pointer: &str) -> Option<&'a str> {
    let mut names = pointer.split('/').skip(1);
    let first = record.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))?.as_str()
}

fn place(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}
