//! What is to be sealed, read where it was written: most of it is still in the cache.

use portcullis_core::{clock::Timestamp, id::OrgId};
use rusqlite::{Connection, Row};

use super::{LogConnection, id};
use crate::{
    audit::seal::{Unsealed, UnsealedEvent},
    error::StoreError,
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
            orgs.push(id(row, 0, "audit_events.org_id")?);
        }
        Ok((orgs, horizon))
    }

    /// The first events of the org behind `after` up to `horizon`, in the order of their positions.
    pub(crate) fn unsealed(
        &mut self,
        org_id: OrgId,
        after: i64,
        horizon: i64,
        limit: i64,
    ) -> Result<Vec<Unsealed>, StoreError> {
        let mut select = self.open()?.prepare_cached(UNSEALED)?;
        let mut rows = select.query((org_id.to_string(), after, horizon, limit))?;
        let mut events = Vec::new();
        while let Some(row) = rows.next()? {
            events.push(read(org_id, row)?);
        }
        Ok(events)
    }
}

fn last_position(open: &Connection) -> Result<i64, rusqlite::Error> {
    let sql = "SELECT COALESCE(MAX(position), 0) FROM audit_events";
    open.prepare_cached(sql)?.query_row((), |row| row.get(0))
}

fn read(org_id: OrgId, row: &Row<'_>) -> Result<Unsealed, StoreError> {
    let event = UnsealedEvent { id: id(row, 1, "audit_events.id")?, org_id, core: row.get(3)? };
    let committed_at = Timestamp::from_micros(row.get(2)?);
    Ok(Unsealed { position: row.get(0)?, committed_at, event })
}

const UNSEALED: &str = "
SELECT position, id, committed_at, core FROM audit_events
WHERE org_id = ? AND position > ? AND position <= ? ORDER BY position LIMIT ?";
