//! Pruning: events beyond their retention are removed from the beginning of the log. The tree keeps
//! their hashes, so the proofs of all younger ones stay valid.

use async_recursion::async_recursion as boxed;
use portcullis_core::{clock::Timestamp, id::OrgId};

use super::{checkpoints::HeadRow, holds::held};
use crate::{
    db::{Db, Found, NewEvent, Store, all, change, events_of_seals, find, read, row, run},
    error::StoreError,
};

/// An event that may be removed, as it was proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldEvent {
    pub position: i64,
    pub id: String,
}

/// Beginning of a log that may be removed, as it was proven.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OldEvents {
    /// Place of the first.
    pub first: i64,
    /// The events, one behind the other.
    pub events: Vec<OldEvent>,
    /// True if a hold covers the event behind them.
    pub held: bool,
}

/// Result of one step of pruning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pruned {
    /// The first sequence that was removed.
    pub first: i64,
    /// The first sequence that is left.
    pub size: i64,
    /// True if a hold keeps what comes next.
    pub held: bool,
}

impl Pruned {
    /// Number of removed events.
    #[must_use]
    pub const fn events(&self) -> i64 {
        self.size - self.first
    }
}

row!(OldRow { sequence: i64, position: i64, id: String, held: i32 });

impl Store {
    /// The orgs in whose logs payloads were recorded before `payloads`, or whose first event was
    /// before `events`: only they have anything to let go. One look at all, for most have not.
    #[boxed]
    pub async fn orgs_to_prune(
        &self,
        payloads: Timestamp,
        events: Timestamp,
    ) -> Result<Vec<OrgId>, StoreError> {
        let old = match &self.db {
            Db::Sqlite { .. } => old_logs!(sqlite),
            Db::Postgres(_) => old_logs!(postgres),
        };
        let rows: Vec<Found<HeadRow>> = read!(self, installation, |conn| {
            all!(conn, old => payloads.as_micros(), events.as_micros())
        });
        Ok(self.readable(rows))
    }

    /// Removes these events from the beginning of the org's log, up to the first that a hold covers by now. `tell`
    /// makes the event that is committed with it. `None`, and nothing is removed, if the log does not begin with them
    /// any more: the caller has proven no other rows.
    pub async fn prune<F>(
        &self,
        org: OrgId,
        old: &OldEvents,
        tell: F,
    ) -> Result<Option<Pruned>, StoreError>
    where
        F: Fn(&Pruned) -> NewEvent + Send,
    {
        let first = old.first;
        let end = first.saturating_add(i64::try_from(old.events.len()).unwrap_or(i64::MAX));
        let select = match &self.db {
            Db::Sqlite { .. } => old_sql!(sqlite),
            Db::Postgres(_) => old_sql!(postgres),
        };
        let scope = org;
        let org = org.to_string();
        let pruned = change!(self, scope, |tx| {
            tx.announce_writer().await?;
            // Whether an intent has ended is told by its event.
            tx.remove_ended_intents().await?;
            let rows: Vec<OldRow> = all!(tx, select => &org, first, end);
            let found = rows.iter().map(|row| (row.sequence, row.position, &row.id));
            let proven = (first..).zip(&old.events);
            if !found.eq(proven.map(|(sequence, event)| (sequence, event.position, &event.id))) {
                return Ok(None);
            }
            let free = rows.iter().take_while(|row| row.held == 0);
            // Events are sealed in the order of their positions.
            let positions: Vec<_> = free.map(|row| row.position).collect();
            let size = first + i64::try_from(positions.len()).unwrap_or(i64::MAX);
            if size == first {
                return Ok(None);
            }
            let pruned = Pruned { first, size, held: size < end || old.held };
            let moved = run!(tx, MOVE => &org, first, size);
            if moved == 0 {
                return Ok(None);
            }
            run!(
                tx, "DELETE FROM audit_seals WHERE org_id = $1 AND sequence < $2" => &org, size
            );
            tx.delete_events(&org, &positions).await?;
            let event = tell(&pruned);
            tx.insert_events(&self.row_key, event.occurred_at.as_micros(), &[&event]).await?;
            Some(pruned)
        });
        Ok(pruned)
    }

    /// Number of events removed from the beginning of the org's log: the first sequence that
    /// may be there.
    #[boxed]
    pub async fn pruned_size(&self, org: OrgId) -> Result<i64, StoreError> {
        let size: Option<i64> = read!(self, unqueued org, |conn| {
            find!(conn, scalar "SELECT size FROM audit_pruned WHERE org_id = $1" => org)
        });
        Ok(size.unwrap_or(0))
    }
}

macro_rules! old_logs {
    ($dialect:ident) => {
        concat!(
            "
SELECT o.id AS org_id FROM orgs o
WHERE ",
            old_payload!($dialect),
            "
    OR EXISTS (SELECT 1 FROM audit_seals s
        WHERE s.org_id = o.id AND s.recorded_at < $2 AND s.sequence =
            COALESCE((SELECT p.size FROM audit_pruned p WHERE p.org_id = o.id), 0))
ORDER BY o.id"
        )
    };
}
use old_logs;

/// The SQL for whether the org `o` has a payload from before `$1`.
macro_rules! old_payload {
    (sqlite) => {
        "EXISTS (SELECT 1 FROM audit_index i
        WHERE i.kind = 5 AND i.name > o.id || ' ' AND i.name < o.id || printf(' %016d', $1))"
    };
    (postgres) => {
        "EXISTS (SELECT 1 FROM audit_events e
        WHERE e.org_id = o.id AND e.payload_at IS NOT NULL AND e.payload_at < $1)"
    };
}
use old_payload;

macro_rules! old_sql {
    ($dialect:ident) => {
        concat!(
            "SELECT s.sequence, e.position, e.id, ",
            held!(),
            " AS held FROM ",
            events_of_seals!($dialect),
            " WHERE s.org_id = $1 AND e.org_id = $1 AND s.sequence >= $2 AND s.sequence < $3 \
             ORDER BY s.sequence"
        )
    };
}
use old_sql;

pub(super) const MOVE: &str = "
INSERT INTO audit_pruned (org_id, size) VALUES ($1, $3)
ON CONFLICT (org_id) DO UPDATE SET size = $3 WHERE audit_pruned.size = $2";
