//! Sealing in PostgreSQL: how logs stand is read, and what they grow by is written.

use portcullis_core::{audit::tiles::Tiles, id::OrgId};

use super::{Growth, Head, LogState, Unsealed};
use crate::{
    audit::{
        checkpoints::{self, CheckpointKind, CheckpointRow, put_checkpoint},
        counts::count_events,
        tree::{put_tiles, read_tiles},
    },
    db::{Pool, Scope, Session, all, begin, find, insert_seals, last_given, row, run},
    error::StoreError,
    row_key::RowKey,
};

/// Heads of the first of these logs: at least one, and none after `most` events.
pub(super) async fn standings(
    pool: &Pool,
    orgs: &[OrgId],
    horizon: i64,
    most: usize,
) -> Vec<Result<Option<LogState>, StoreError>> {
    let mut all = Vec::new();
    let mut rows = 0;
    for org in orgs {
        if rows >= most {
            break;
        }
        let standing = standing(pool, *org, horizon, most).await;
        rows += standing.iter().flatten().map(|it| it.rows.len()).sum::<usize>();
        all.push(standing);
    }
    all
}

async fn standing(
    pool: &Pool,
    org: OrgId,
    horizon: i64,
    most: usize,
) -> Result<Option<LogState>, StoreError> {
    // Nothing is to be committed: it ends by itself.
    let mut tx = begin(pool, Scope::from(org)).await?;
    let id = org.to_string();
    let signed: Option<CheckpointRow> =
        find!(tx, checkpoints::FIND => &id, CheckpointKind::Signed.as_str());
    let signed = signed.map(CheckpointRow::read).transpose()?;
    let head: Option<(i64, i64, i64, i64, i64)> = find!(tx, HEAD => &id);
    let Some((size, tree_size, last_position, last_recorded_at, last_given)) = head else {
        return Ok(None);
    };
    let head = Head { size, tree_size, last_position, last_recorded_at };
    if tree_size != size {
        let (rows, edge) = (Vec::new(), Tiles::default());
        return Ok(Some(LogState { signed, head, last_given, rows, edge }));
    }
    let rows = unsealed(&mut tx, org, last_position, horizon, most).await?;
    let edge = read_tiles!(tx, &id, LogState::edge_of(size)?);
    Ok(Some(LogState { signed, head, last_given, rows, edge }))
}

/// The sequence is not part of the snapshot: read with the head, it is never behind it.
const HEAD: &str = concat!(
    "SELECT size, tree_size, last_position, last_recorded_at, ",
    last_given!(postgres),
    " FROM audit_heads WHERE org_id = $1"
);

row!(UnsealedRow {
    position: i64,
    id: String,
    kind: String,
    committed_at: i64,
    packed: Option<Vec<u8>>,
    mac: Option<Vec<u8>>,
    is_known: bool,
});

/// The first `most` events without a place, and those at the position of the last one: rows that somebody added may have the position of an
/// event of the gateway, and none of those is left behind.
async fn unsealed(
    conn: &mut Session,
    org: OrgId,
    after: i64,
    horizon: i64,
    most: usize,
) -> Result<Vec<Unsealed>, StoreError> {
    let rows: Vec<UnsealedRow> = all!(
        conn, "SELECT e.position, e.id, e.type AS kind, e.committed_at, e.packed, e.mac, \
             EXISTS (SELECT 1 FROM audit_seals s WHERE s.event_id = e.id) AS is_known \
         FROM audit_events e WHERE e.org_id = $1 AND e.position > $2 AND e.position <= $3 \
         ORDER BY e.position FETCH FIRST $4 ROWS WITH TIES"
        => org, after, horizon, i64::try_from(most).unwrap_or(i64::MAX)
    );
    let read = |row: UnsealedRow| Unsealed {
        position: row.position,
        committed_at: row.committed_at,
        id: row.id,
        kind: row.kind,
        packed: row.packed,
        mac: row.mac,
        is_known: row.is_known,
    };
    Ok(rows.into_iter().map(read).collect())
}

/// Writes all of them in one transaction. Which of the logs were still as they had been read.
pub(super) async fn grow(
    pool: &Pool,
    key: &RowKey,
    growths: &[Growth],
) -> Result<Vec<bool>, StoreError> {
    let scope = match growths {
        [alone] => Scope::from(alone.org),
        _ => Scope::Installation,
    };
    let mut tx = begin(pool, scope).await?;
    if growths.iter().any(|growth| growth.refusal.is_some()) {
        tx.announce_writer().await?;
    }
    let mut ours = Vec::with_capacity(growths.len());
    for growth in growths {
        ours.push(write(&mut tx, key, growth).await?);
    }
    tx.commit().await.map_err(StoreError::of_commit)?;
    Ok(ours)
}

async fn write(tx: &mut Session, key: &RowKey, growth: &Growth) -> Result<bool, StoreError> {
    let org = growth.org.to_string();
    let moved = run!(
        tx, "UPDATE audit_heads SET size = size + $3, tree_size = tree_size + $3, \
         last_position = $4, last_recorded_at = $5 \
         WHERE org_id = $1 AND size = $2 AND tree_size = $2"
        => &org, growth.head.size, i64::try_from(growth.seals.len()).unwrap_or(0),
        growth.last_position, growth.last_recorded_at()
    );
    if moved != 1 {
        return Ok(false);
    }
    insert_seals(tx, &org, growth.head.size, &growth.seals).await?;
    count_events(tx, &org, growth.head.last_position, growth.last_position).await?;
    put_tiles!(tx, &org, &growth.tiles);
    if let Some(checkpoint) = &growth.checkpoint {
        put_checkpoint!(tx, &org, CheckpointKind::Signed, checkpoint);
    }
    if let Some(refusal) = &growth.refusal {
        tx.insert_events(key, refusal.occurred_at.as_micros(), &[refusal]).await?;
    }
    Ok(true)
}
