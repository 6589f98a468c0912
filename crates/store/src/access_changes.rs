//! Orgs of whose callers something changed: tokens, principals, plans, logins, connections.
//!
//! Triggers write it in the transaction of the change, by any writer. `SQLite` lets one write at a
//! time, so changes are numbered in the order of their commits. In `PostgreSQL` a change is known by
//! its transaction; everything below the oldest transaction under way has been seen or will never be.

use portcullis_core::id::OrgId;

use crate::{
    db::{Db, Store, boxed, changed, database_clock, one, read},
    error::StoreError,
};

/// Time for which changes are kept on PostgreSQL, in microseconds.
const KEPT: i64 = 3_600_000_000;
/// A reader that comes later than this may have missed some.
const LATE: i64 = KEPT / 2;

/// A change, by its number or transaction and its org.
pub type AccessChange = (i64, OrgId);

/// A place in the order of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessMark {
    /// Changes from here on may not have been seen.
    from: i64,
    /// When it was read, by the clock of the database; 0 where changes stay for ever.
    read_at: i64,
}

/// Changes since a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessChanges {
    /// All that are known behind the mark, also some that were told before.
    pub changes: Vec<AccessChange>,
    pub mark: AccessMark,
    /// False if others may have been missed: then every org may have changed.
    pub is_complete: bool,
}

impl Store {
    /// The changes since a mark. Without one there are none, and the first mark.
    #[boxed]
    pub async fn access_changes(
        &self,
        since: Option<AccessMark>,
    ) -> Result<AccessChanges, StoreError> {
        let changes = self.db.pick(CHANGES_SQLITE, CHANGES_POSTGRES);
        let (next, read_at, changes): (i64, i64, Option<String>) =
            read!(self, installation, |conn| {
                one!(conn, changes => since.map_or(i64::MAX, |mark| mark.from))
            });
        let rows: Vec<(i64, String)> = serde_json::from_str(changes.as_deref().unwrap_or("[]"))
            .map_err(|_| StoreError::Corrupt("access_changes.org_id"))?;
        // An org whose id cannot be read has no callers.
        let known = |(at, org): (i64, String)| Some((at, org.parse().ok()?));
        Ok(AccessChanges {
            changes: rows.into_iter().filter_map(known).collect(),
            is_complete: since.is_some_and(|mark| read_at.saturating_sub(mark.read_at) < LATE),
            mark: AccessMark { from: next, read_at },
        })
    }

    /// Forgets changes that every node has seen, or will not rely on having seen.
    #[boxed]
    pub async fn forget_access_changes(&self) -> Result<(), StoreError> {
        if let Db::Postgres(_) = &self.db {
            changed!(self, installation, FORGET => KEPT);
        }
        Ok(())
    }
}

const CHANGES_SQLITE: &str = "
SELECT (SELECT COALESCE(MAX(changed_in), 0) + 1 FROM access_changes) AS next, 0 AS read_at,
    (SELECT json_group_array(json_array(changed_in, org_id)) FROM access_changes
    WHERE changed_in >= $1) AS changes";

const CHANGES_POSTGRES: &str = concat!(
    "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS next, ",
    database_clock!(),
    " AS read_at, (SELECT jsonb_agg(jsonb_build_array(changed_in, org_id))::text \
     FROM access_changes WHERE changed_in >= $1) AS changes"
);

const FORGET: &str =
    concat!("DELETE FROM access_changes WHERE changed_at < ", database_clock!(), " - $1");
