//! The index of events: the columns that lists, holds and retention find them by, with the entries that the
//! sealer made of these on SQLite. All of it follows from the records; what does not fit is written anew.

use async_recursion::async_recursion as boxed;
use portcullis_core::id::OrgId;

use super::seal::INDEX;
use crate::{
    db::{
        Db, FromRow, MOST_BYTES, NewEvent, RecordTexts, Row, Session, Store, Value, all, change,
        events_of_seals, has_sealed_twin, index_entries, read, row, run,
    },
    error::{DriverError, StoreError},
};

/// Entries of the index that are looked at together.
const ENTRIES: i64 = 2_000;
/// Bytes of records that are read together, as they are packed and as they are unpacked; one may have more.
const PORTION_BYTES: usize = 32 << 20;

/// The text columns that events are found by, each with the JSON pointer of its value in the record.
pub const TEXT_COLUMNS: [(&str, &str); 11] = [
    ("id", "/id"),
    ("type", "/type"),
    ("actor_id", "/actor/id"),
    ("via", "/actor/via"),
    ("token_id", "/actor/token_id"),
    ("target", "/target/id"),
    ("decision", "/governance/decision"),
    ("policy", "/governance/policy"),
    ("dlp_result", "/governance/dlp_result"),
    ("outcome", "/outcome/status"),
    ("request_id", "/request/id"),
];

/// The columns that an event is found by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexColumns {
    /// In the order of [`TEXT_COLUMNS`].
    pub texts: [Option<String>; 11],
    /// Moment at which it happened, in microseconds.
    pub occurred_at: i64,
    /// Moment at which it was committed, in microseconds: holds and erasures select by it.
    pub committed_at: i64,
    /// Moment at which its payload was committed, if one is kept: retention selects by it.
    pub payload_at: Option<i64>,
}

impl IndexColumns {
    /// Names of the columns that are others in `self`.
    #[must_use]
    pub fn differing(&self, other: &Self) -> Vec<&'static str> {
        let texts = TEXT_COLUMNS.iter().zip(self.texts.iter().zip(&other.texts));
        let texts = texts.map(|((name, _), (one, other))| (*name, one == other));
        let moments = [
            ("occurred_at", self.occurred_at == other.occurred_at),
            ("committed_at", self.committed_at == other.committed_at),
            ("payload_at", self.payload_at == other.payload_at),
        ];
        texts.chain(moments).filter(|(_, same)| !same).map(|(name, _)| name).collect()
    }
}

row!(IndexedRow {
    sequence: i64,
    sealed_position: i64,
    position: i64,
    id: String,
    kind: String,
    occurred_at: i64,
    committed_at: i64,
    recorded_at: i64,
    payload_at: Option<i64>,
    actor_id: Option<String>,
    via: Option<String>,
    token_id: Option<String>,
    target: Option<String>,
    decision: Option<String>,
    policy: Option<String>,
    dlp_result: Option<String>,
    outcome: Option<String>,
    request_id: Option<String>,
    packed: Option<Vec<u8>>,
    leaf_hash: Vec<u8>,
    is_indexed: i64,
    is_twin: i64,
});

/// A sealed event as it is found and as it is recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexedEvent {
    pub sequence: i64,
    /// Its position among all events, as the event and as its seal have it. Positions ascend with
    /// sequences.
    pub positions: (i64, i64),
    /// When it was committed, or the event in front if that was later, in microseconds.
    pub recorded_at: i64,
    pub columns: IndexColumns,
    /// The record, as JSON; empty if it cannot be read.
    pub core: String,
    /// The erasable part, as JSON.
    pub detached: Option<String>,
    /// The salts of the erasable part, as JSON.
    pub salts: Option<String>,
    /// Hash of its leaf, as the seal has it.
    pub leaf_hash: Vec<u8>,
    /// True if the index that the sealer writes has all its entries.
    pub is_indexed: bool,
    /// True if another event has a place and the same id.
    pub is_twin: bool,
}

/// Sealed events that were read together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedPortion {
    pub events: Vec<IndexedEvent>,
    /// The first place that was not looked at.
    pub end: i64,
}

/// A row whose columns may not be readable, at its place.
struct FoundRow {
    sequence: i64,
    row: Option<IndexedRow>,
}

impl FromRow for FoundRow {
    fn from_row(row: Row<'_>) -> Result<Self, DriverError> {
        Ok(Self { sequence: row.get("sequence")?, row: IndexedRow::from_row(row).ok() })
    }
}

impl IndexedPortion {
    /// Unpacks rows up to the place `end`, as far as they have no more bytes than may be read together.
    fn read(rows: Vec<FoundRow>, end: i64) -> Self {
        let mut portion = Self { events: Vec::with_capacity(rows.len()), end };
        let mut bytes = 0_usize;
        for FoundRow { sequence, row } in rows {
            let event = row.map_or_else(|| IndexedEvent::unreadable(sequence), IndexedRow::read);
            let texts = [Some(&event.core), event.detached.as_ref(), event.salts.as_ref()];
            bytes += texts.into_iter().flatten().map(String::len).sum::<usize>();
            if bytes > PORTION_BYTES && !portion.events.is_empty() {
                portion.end = sequence;
                break;
            }
            portion.events.push(event);
        }
        portion
    }
}

impl IndexedEvent {
    /// An event whose columns are not of their types: nothing is known of it.
    fn unreadable(sequence: i64) -> Self {
        Self { sequence, is_indexed: true, ..Self::default() }
    }
}

impl IndexedRow {
    fn read(self) -> IndexedEvent {
        let texts = RecordTexts::of_row(self.packed.as_deref());
        let RecordTexts { core, detached, salts } = texts.unwrap_or_default();
        IndexedEvent {
            sequence: self.sequence,
            positions: (self.position, self.sealed_position),
            recorded_at: self.recorded_at,
            columns: IndexColumns {
                texts: [
                    Some(self.id),
                    Some(self.kind),
                    self.actor_id,
                    self.via,
                    self.token_id,
                    self.target,
                    self.decision,
                    self.policy,
                    self.dlp_result,
                    self.outcome,
                    self.request_id,
                ],
                occurred_at: self.occurred_at,
                committed_at: self.committed_at,
                payload_at: self.payload_at,
            },
            core,
            detached,
            salts,
            leaf_hash: self.leaf_hash,
            is_indexed: self.is_indexed == 1,
            is_twin: self.is_twin == 1,
        }
    }
}

/// An entry of the index of the sealer that no event has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrayEntry {
    /// The org of the event at its position, if there is one.
    pub org: Option<OrgId>,
    kind: i64,
    name: String,
    position: i64,
}

/// Place of an entry in the index of the sealer.
pub type EntryPlace = (i64, String, i64);

row!(EntryRow {
    kind: i64,
    name: String,
    position: i64,
    org_id: Option<String>,
    is_of_event: i64
});

impl Store {
    /// The sealed events of the org from the place `first` up to, not including, `end`, as far as they are kept and
    /// have no more bytes than may be read together, each with the columns that it is found by.
    #[boxed]
    pub async fn indexed_events(
        &self,
        org: OrgId,
        first: i64,
        end: i64,
    ) -> Result<IndexedPortion, StoreError> {
        let [lengths, select] = self.indexed_sql();
        let portion = read!(self, org, |conn| {
            let lengths: Vec<(i64, i64)> = all!(conn, lengths => org, first, end);
            let end = portion_end(&lengths, end);
            IndexedPortion::read(all!(conn, select => org, first, end), end)
        });
        Ok(portion)
    }

    /// Writes the columns of the events of a portion anew that are not those that `derive` gives, and the entries that
    /// they lack, in one transaction. `derive` gives `None` for an event that is to be left as it is; `tell` makes
    /// the event that is committed with it if anything was written. Number of the events that were mended.
    ///
    /// An erasure at the same moment waits, or is waited for.
    pub async fn mend_events<D, T>(
        &self,
        org: OrgId,
        first: i64,
        end: i64,
        derive: D,
        tell: T,
    ) -> Result<u64, StoreError>
    where
        D: Fn(&[IndexedEvent]) -> Vec<Option<IndexColumns>> + Send,
        T: Fn(u64) -> NewEvent + Send,
    {
        let [_, select] = self.indexed_sql();
        let is_sqlite = matches!(&self.db, Db::Sqlite { .. });
        let mended = change!(self, org, |tx| {
            tx.announce_writer().await?;
            if !is_sqlite {
                let _: Vec<i64> = all!(tx, scalar LOCK => org, first, end);
            }
            let IndexedPortion { events, end } =
                IndexedPortion::read(all!(tx, select => org, first, end), end);
            let mut mended = 0;
            let derived = derive(&events);
            // The entries follow from the columns, which are only known of records that are those of the log.
            let is_proven = derived.iter().all(Option::is_some);
            for (event, columns) in events.iter().zip(derived) {
                let Some(mut columns) = columns else { continue };
                if let ([id, ..], [stored, ..], false) =
                    (&mut columns.texts, &event.columns.texts, is_sqlite)
                {
                    // A key, by which its seal names it.
                    id.clone_from(stored);
                }
                if columns != event.columns {
                    mend(&mut tx, org, event, columns).await?;
                } else if event.is_indexed {
                    continue;
                }
                mended += 1;
            }
            if is_sqlite && is_proven {
                run!(tx, INDEX => org, first, end);
            }
            if mended > 0 {
                let event = tell(mended);
                tx.insert_events(&self.row_key, event.occurred_at.as_micros(), &[&event]).await?;
            }
            mended
        });
        Ok(mended)
    }

    /// The entries of the sealer's index behind `after` that no event has, of some thousand that are looked at, and
    /// the last of these; `None` at the end. PostgreSQL has no such index.
    pub async fn stray_entries(
        &self,
        after: &EntryPlace,
    ) -> Result<(Vec<StrayEntry>, Option<EntryPlace>), StoreError> {
        if matches!(&self.db, Db::Postgres(_)) {
            return Ok((Vec::new(), None));
        }
        let (kind, name, position) = after;
        let rows: Vec<EntryRow> = read!(self, installation, |conn| {
            all!(conn, ENTRIES_BEHIND => *kind, name.as_str(), *position, ENTRIES)
        });
        let last = rows.last().map(|row| (row.kind, row.name.clone(), row.position));
        let stray = rows.into_iter().filter(|row| row.is_of_event != 1);
        let stray = stray.map(|row| StrayEntry {
            org: row.org_id.and_then(|org| org.parse().ok()),
            kind: row.kind,
            name: row.name,
            position: row.position,
        });
        Ok((stray.collect(), last))
    }

    /// Removes these entries unless an event has them by now. `tell` makes the event that is committed with it if
    /// anything was removed.
    pub async fn remove_stray_entries<T>(
        &self,
        entries: &[StrayEntry],
        tell: T,
    ) -> Result<u64, StoreError>
    where
        T: Fn(u64) -> Option<NewEvent> + Send,
    {
        let removed = change!(self, installation, |tx| {
            tx.announce_writer().await?;
            let mut removed = 0;
            for entry in entries {
                removed +=
                    run!(tx, REMOVE_ENTRY => entry.kind, entry.name.as_str(), entry.position);
            }
            if let (1.., Some(event)) = (removed, tell(removed)) {
                tx.insert_events(&self.row_key, event.occurred_at.as_micros(), &[&event]).await?;
            }
            removed
        });
        Ok(removed)
    }

    /// The statements for the lengths of the packed records of events, and for the events.
    fn indexed_sql(&self) -> [&'static str; 2] {
        match &self.db {
            Db::Sqlite { .. } => [lengths_sql!(sqlite), indexed_sql!(sqlite)],
            Db::Postgres(_) => [lengths_sql!(postgres), indexed_sql!(postgres)],
        }
    }
}

/// The first place, up to `end`, in front of which records of these lengths may be read together.
fn portion_end(lengths: &[(i64, i64)], end: i64) -> i64 {
    let mut bytes = 0_usize;
    let is_beyond = |(_, length): &&(i64, i64)| {
        // A longer one is not read at all.
        bytes += usize::try_from(*length).unwrap_or(0).min(MOST_BYTES);
        bytes > PORTION_BYTES
    };
    lengths.iter().find(is_beyond).map_or(end, |(sequence, _)| *sequence)
}

/// Writes the columns of one event.
async fn mend(
    tx: &mut Session,
    org: OrgId,
    event: &IndexedEvent,
    columns: IndexColumns,
) -> Result<u64, DriverError> {
    let id = event.columns.texts.first().cloned().flatten();
    let mut values = vec![event.positions.0.bound(), id.bound(), org.bound()];
    values.extend([
        columns.occurred_at.bound(),
        columns.committed_at.bound(),
        columns.payload_at.bound(),
    ]);
    values.extend(columns.texts.into_iter().map(Value::bound));
    tx.run(MEND, values).await
}

const MEND: &str = "
UPDATE audit_events SET occurred_at = $4, committed_at = $5, payload_at = $6, id = $7, type = $8,
    actor_id = $9, via = $10, token_id = $11, target = $12, decision = $13, policy = $14,
    dlp_result = $15, outcome = $16, request_id = $17
WHERE position = $1 AND id = $2 AND org_id = $3";

/// Keeps these events as they are until the transaction ends.
const LOCK: &str = "
SELECT position FROM audit_events WHERE org_id = $1 AND position >= (SELECT MIN(position) FROM audit_seals
        WHERE org_id = $1 AND sequence >= $2 AND sequence < $3)
    AND position <= (SELECT MAX(position) FROM audit_seals
        WHERE org_id = $1 AND sequence >= $2 AND sequence < $3)
ORDER BY position FOR UPDATE";

/// The SQL for whether `audit_index` has the entries of the event `e`: 1 or 0.
macro_rules! is_indexed {
    (postgres) => {
        "1::bigint"
    };
    (sqlite) => {
        concat!(
            "NOT EXISTS (SELECT 1 FROM (",
            index_entries!("(SELECT 1)", "true"),
            ") n WHERE NOT EXISTS (SELECT 1 FROM audit_index i
            WHERE i.kind = n.kind AND i.name = n.name AND i.position = n.position))"
        )
    };
}
use is_indexed;

/// The SQL for whether the id of the event `e` has two places: 1 or 0. On PostgreSQL it is a key.
macro_rules! is_twin {
    (postgres) => {
        "0::bigint"
    };
    (sqlite) => {
        has_sealed_twin!()
    };
}
use is_twin;

macro_rules! indexed_sql {
    ($dialect:ident) => {
        concat!(
            "
SELECT s.sequence, s.position AS sealed_position, e.position, e.id, e.type AS kind, e.occurred_at,
    e.committed_at, s.recorded_at, e.payload_at, e.actor_id, e.via, e.token_id, e.target, e.decision, e.policy, e.dlp_result, e.outcome,
    e.request_id, CASE WHEN length(e.packed) <= 16777216 THEN e.packed END AS packed, s.leaf_hash, ",
            is_indexed!($dialect),
            " AS is_indexed, ",
            is_twin!($dialect),
            " AS is_twin
FROM ",
            events_of_seals!($dialect),
            "
WHERE s.org_id = $1 AND e.org_id = $1 AND s.sequence >= $2 AND s.sequence < $3
ORDER BY s.sequence"
        )
    };
}
use indexed_sql;

macro_rules! lengths_sql {
    ($dialect:ident) => {
        concat!(
            "SELECT s.sequence, CAST(COALESCE(length(e.packed), 0) AS BIGINT) FROM ",
            events_of_seals!($dialect),
            " WHERE s.org_id = $1 AND e.org_id = $1 AND s.sequence >= $2 AND s.sequence < $3 ORDER BY s.sequence"
        )
    };
}
use lengths_sql;

/// The SQL for whether the entry `i` is that of an event: 1 or 0. A note that an event waits for its seal ends with
/// the seal.
macro_rules! is_of_event {
    () => {
        concat!(
            "EXISTS (SELECT 1 FROM audit_events e WHERE e.position = i.position
        AND (i.kind = 6 AND i.name = e.org_id
                AND NOT EXISTS (SELECT 1 FROM audit_seals s WHERE s.position = e.position)
            OR EXISTS (SELECT 1 FROM (",
            index_entries!("(SELECT 1)", "true"),
            ") n WHERE n.kind = i.kind AND n.name = i.name)))"
        )
    };
}

const ENTRIES_BEHIND: &str = concat!(
    "
SELECT i.kind, i.name, i.position,
    (SELECT e.org_id FROM audit_events e WHERE e.position = i.position) AS org_id, ",
    is_of_event!(),
    " AS is_of_event
FROM audit_index i WHERE (i.kind, i.name, i.position) > ($1, $2, $3)
ORDER BY i.kind, i.name, i.position LIMIT $4"
);

const REMOVE_ENTRY: &str = concat!(
    "DELETE FROM audit_index AS i WHERE i.kind = $1 AND i.name = $2 AND i.position = $3 AND NOT ",
    is_of_event!()
);
