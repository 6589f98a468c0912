//! Sealing in SQLite, on the connection that wrote what is sealed: most of it is still in the cache,
//! and what many logs need is read and written without a hop to another thread for each statement.

use portcullis_core::{audit::tiles::Tiles, clock::Timestamp, id::OrgId};
use rusqlite::{Connection, OptionalExtension, Row};

use super::{
    Growth, Head, LogState, Unsealed,
    tail::{self, Waiting},
};
use crate::{
    audit::{
        checkpoints::{self, CheckpointKind, StoredCheckpoint},
        counts,
        tree::{self, number, size_of},
    },
    db::{
        LogConnection, has_sealed_twin, index_entries, insert_events, last_given, newest_position,
        read_id,
    },
    error::StoreError,
    row_key::RowKey,
};

impl LogConnection {
    /// The last position; everything in front of it is visible.
    pub(crate) fn horizon(&mut self) -> Result<i64, StoreError> {
        Ok(last_position(self.open()?)?)
    }

    /// The orgs of the events behind `position`, and the position up to which that is known.
    pub(crate) fn committed_since(
        &mut self,
        position: i64,
    ) -> Result<(Vec<OrgId>, i64), StoreError> {
        let open = self.open()?;
        let horizon = last_position(open)?;
        if horizon <= position {
            return Ok((Vec::new(), position));
        }
        let sql = "SELECT DISTINCT org_id FROM audit_events WHERE position > ? AND position <= ?";
        let mut select = open.prepare_cached(sql)?;
        let mut rows = select.query((position, horizon))?;
        let mut orgs = Vec::new();
        while let Some(row) = rows.next()? {
            // An event whose org cannot be read is in no log; the others are sealed.
            orgs.extend(read_id::<OrgId>(row, 0, "audit_events.org_id").ok());
        }
        Ok((orgs, horizon))
    }

    /// Heads of the first of these logs: at least one, and none after `most` events.
    pub(crate) fn standings(
        &mut self,
        orgs: &[OrgId],
        horizon: i64,
        most: usize,
    ) -> Result<Vec<Result<Option<LogState>, StoreError>>, StoreError> {
        // A single read transaction: otherwise each statement takes and releases the locks of the file.
        let open = self.open()?.unchecked_transaction()?;
        let read: Vec<_> = orgs.iter().map(|org| standing(&open, *org)).collect();
        let mut waiting = Waiting::default();
        for (org, standing) in orgs.iter().zip(&read) {
            if let Ok(Some(LogState { head, .. })) = standing
                && head.tree_size == head.size
            {
                waiting.add(*org, head.last_position);
            }
        }
        waiting.read(&open, horizon, most)?;
        let mut all = Vec::new();
        let mut rows = 0;
        for (org, standing) in orgs.iter().zip(read) {
            if rows >= most {
                break;
            }
            let positions = waiting.take(*org);
            let standing = standing.and_then(|it| with_rows(&open, *org, it, &positions));
            rows += standing.iter().flatten().map(|it| it.rows.len()).sum::<usize>();
            all.push(standing);
        }
        Ok(all)
    }

    /// Writes all of them in one transaction. Which of the logs were still as they had been read.
    pub(crate) fn grow(&mut self, growths: &[Growth]) -> Result<Vec<bool>, StoreError> {
        let key = self.row_key.clone();
        self.change_intents(|open, intents| {
            intents.remove_ended(open)?;
            let grown = growths.iter().map(|growth| grow(open, &key, growth));
            let grown = grown.collect::<Result<_, StoreError>>()?;
            tail::follow(open)?;
            Ok(grown)
        })
    }

    /// Lets look-ups of events without a place pass over those that have theirs.
    pub(crate) fn follow(&mut self) -> Result<(), StoreError> {
        self.change(tail::follow)
    }
}

fn last_position(open: &Connection) -> Result<i64, rusqlite::Error> {
    open.prepare_cached(concat!("SELECT ", newest_position!()))?.query_row((), |row| row.get(0))
}

/// The head of the log and the edge of its tree, without events.
fn standing(open: &Connection, org: OrgId) -> Result<Option<LogState>, StoreError> {
    let id = org.to_string();
    let signed = signed(open, &id)?;
    let head = open.prepare_cached(HEAD)?.query_row([&id], |row| {
        let head = Head {
            size: row.get(0)?,
            tree_size: row.get(1)?,
            last_position: row.get(2)?,
            last_recorded_at: row.get(3)?,
        };
        Ok((head, row.get::<_, i64>(4)?))
    });
    let Some((head, last_given)) = head.optional()? else { return Ok(None) };
    let mut edge = Tiles::default();
    if head.tree_size == head.size {
        let mut select = open.prepare_cached(tree::TILE)?;
        for tile in LogState::edge_of(head.size)? {
            let place = (&id, i64::from(tile.level), number(tile.index));
            if let Some(hashes) = select.query_row(place, |row| row.get(0)).optional()? {
                edge.insert(tile, hashes);
            }
        }
    }
    Ok(Some(LogState { signed, head, last_given, rows: Vec::new(), edge }))
}

fn signed(open: &Connection, org: &str) -> Result<Option<StoredCheckpoint>, StoreError> {
    let mut select = open.prepare_cached(checkpoints::FIND)?;
    let mut rows = select.query((org, CheckpointKind::Signed.as_str()))?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let root: Vec<u8> = row.get(1)?;
    Ok(Some(StoredCheckpoint {
        size: size_of(row.get(0)?)?,
        root: root.try_into().map_err(|_| StoreError::Corrupt("audit_checkpoints.root"))?,
        note: row.get(2)?,
        signed_at: Timestamp::from_micros(row.get(3)?),
    }))
}

/// The same with the events of the org at these positions.
fn with_rows(
    open: &Connection,
    org: OrgId,
    standing: Option<LogState>,
    positions: &[i64],
) -> Result<Option<LogState>, StoreError> {
    let Some(standing) = standing else { return Ok(None) };
    Ok(Some(LogState { rows: unsealed(open, org, positions)?, ..standing }))
}

/// The events of the org at these positions.
fn unsealed(open: &Connection, org: OrgId, positions: &[i64]) -> Result<Vec<Unsealed>, StoreError> {
    let mut select = open.prepare_cached(UNSEALED)?;
    let org = org.to_string();
    let mut events = Vec::with_capacity(positions.len());
    for position in positions {
        let mut rows = select.query((&org, position))?;
        while let Some(row) = rows.next()? {
            events.push(read(row)?);
        }
    }
    Ok(events)
}

/// The text of a column, also if it is none: its row is refused.
fn text(row: &Row<'_>, place: usize) -> Result<String, StoreError> {
    let bytes = row.get_ref(place)?.as_bytes().unwrap_or_default();
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

fn read(row: &Row<'_>) -> Result<Unsealed, StoreError> {
    Ok(Unsealed {
        position: row.get(0)?,
        id: text(row, 1)?,
        kind: text(row, 2)?,
        committed_at: row.get(3)?,
        packed: row.get(4)?,
        mac: row.get(5)?,
        is_known: row.get(6)?,
    })
}

fn grow(open: &Connection, key: &RowKey, growth: &Growth) -> Result<bool, StoreError> {
    let org = growth.org.to_string();
    let first = growth.head.size;
    let count = i64::try_from(growth.seals.len()).unwrap_or(0);
    let moved = open.prepare_cached(MOVE_HEAD)?.execute((
        &org,
        first,
        count,
        growth.last_position,
        growth.last_recorded_at(),
    ))?;
    if moved != 1 {
        return Ok(false);
    }
    open.prepare_cached(RAISE_FLOOR)?.execute([growth.last_position])?;
    let mut insert = open.prepare_cached(INSERT_SEAL)?;
    for (seal, sequence) in growth.seals.iter().zip(first..) {
        insert.execute((&org, sequence, seal.position, seal.recorded_at, seal.leaf_hash))?;
    }
    let places = (&org, first, first + count);
    open.prepare_cached(INDEX)?.execute(places)?;
    for add in counts::ADD_BY_PLACE {
        open.prepare_cached(add)?.execute(places)?;
    }
    tail::forget(open, &org, growth.last_position)?;
    let mut put = open.prepare_cached(tree::PUT)?;
    for (tile, hashes) in &growth.tiles {
        put.execute((&org, i64::from(tile.level), number(tile.index), hashes))?;
    }
    if let Some(signed) = &growth.checkpoint {
        let kind = CheckpointKind::Signed.as_str();
        let size = number(signed.size);
        let signed_at = signed.signed_at.as_micros();
        let columns = (&org, kind, size, signed.root, &signed.note, signed_at);
        open.prepare_cached(checkpoints::PUT)?.execute(columns)?;
    }
    if let Some(refusal) = &growth.refusal {
        insert_events(open, key, refusal.occurred_at.as_micros(), &[refusal])?;
    }
    Ok(true)
}

const HEAD: &str = concat!(
    "SELECT size, tree_size, last_position, last_recorded_at, ",
    last_given!(sqlite),
    " FROM audit_heads WHERE org_id = ?"
);

/// A position is never given again, also if the row there was refused and is removed.
const RAISE_FLOOR: &str = "UPDATE audit_floor SET position = MAX(position, ?)";

const UNSEALED: &str = concat!(
    "SELECT e.position, e.id, e.type, e.committed_at, e.packed, e.mac, ",
    has_sealed_twin!(),
    " FROM audit_events e WHERE e.org_id = ? AND e.position = ?"
);

const MOVE_HEAD: &str = "
UPDATE audit_heads SET size = size + ?3, tree_size = tree_size + ?3, last_position = ?4,
    last_recorded_at = ?5
WHERE org_id = ?1 AND size = ?2 AND tree_size = ?2";

const INSERT_SEAL: &str = "
INSERT INTO audit_seals (org_id, sequence, position, recorded_at, leaf_hash)
VALUES (?, ?, ?, ?, ?)";

pub(in crate::audit) const INDEX: &str = concat!(
    "INSERT OR IGNORE INTO audit_index (kind, name, position) ",
    index_entries!(
        "audit_seals s CROSS JOIN audit_events e ON e.position = s.position",
        "s.org_id = $1 AND s.sequence >= $2 AND s.sequence < $3"
    )
);
