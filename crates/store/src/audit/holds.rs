//! Legal holds: what may be neither erased nor pruned.

use async_recursion::async_recursion as boxed;
use portcullis_core::{
    clock::Timestamp,
    id::{HoldId, OrgId, PrincipalId},
};

use crate::{
    db::{NewEvent, Store, all, change, one, parse, parse_some, read, row, run},
    error::StoreError,
};

/// A hold on the events of an org that match every part given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    pub id: HoldId,
    pub org_id: OrgId,
    pub reason: String,
    /// Only what this principal did or what was done on its behalf.
    pub actor_id: Option<PrincipalId>,
    /// Only what was committed at this moment or later.
    pub from: Option<Timestamp>,
    /// Only what was committed before this moment.
    pub to: Option<Timestamp>,
    pub created_at: Timestamp,
    pub released_at: Option<Timestamp>,
}

/// Holds of an org that may be in force.
pub const MAX_HOLDS_IN_FORCE: i64 = 100;

/// Holds that are kept of an org, also those that were lifted.
pub const MAX_HOLDS: i64 = 1_000;

/// Holds that were lifted of which the rows are kept; the log tells of all.
const MAX_LIFTED: i64 = MAX_HOLDS - MAX_HOLDS_IN_FORCE;

/// Result of laying a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldLaid {
    Done,
    /// The org has as many in force as it may have; nothing was written.
    Full,
}

row!(HoldRow {
    id: String,
    reason: String,
    actor_id: Option<String>,
    from_at: Option<i64>,
    to_at: Option<i64>,
    created_at: i64,
    released_at: Option<i64>,
});

impl HoldRow {
    fn read(self, org_id: OrgId) -> Result<Hold, StoreError> {
        Ok(Hold {
            id: parse(&self.id, "audit_holds.id")?,
            org_id,
            reason: self.reason,
            actor_id: parse_some(self.actor_id.as_deref(), "audit_holds.actor_id")?,
            from: self.from_at.map(Timestamp::from_micros),
            to: self.to_at.map(Timestamp::from_micros),
            created_at: Timestamp::from_micros(self.created_at),
            released_at: self.released_at.map(Timestamp::from_micros),
        })
    }
}

/// The SQL for whether a hold in force covers the event `e`: 1 or 0.
macro_rules! held {
    () => {
        "CASE WHEN EXISTS (SELECT 1 FROM audit_holds h \
         WHERE h.org_id = e.org_id AND h.released_at IS NULL \
         AND (h.actor_id IS NULL OR h.actor_id = e.actor_id OR h.actor_id = e.via) \
         AND (h.from_at IS NULL OR e.committed_at >= h.from_at) \
         AND (h.to_at IS NULL OR e.committed_at < h.to_at)) THEN 1 ELSE 0 END"
    };
}

pub(crate) use held;

impl Store {
    /// Lays a hold, unless the org has as many in force as it may have; its event is committed with it. Of those
    /// that were lifted, the ones lifted longest ago are deleted.
    #[boxed]
    pub async fn lay_hold(&self, hold: &Hold, event: &NewEvent) -> Result<HoldLaid, StoreError> {
        let org = hold.org_id.to_string();
        change!(self, hold.org_id, |tx| {
            // The lock keeps another one from being laid between the count and the insertion.
            tx.lock_tokens(&org).await?;
            let in_force: i64 = one!(tx, scalar COUNT => &org);
            if in_force >= MAX_HOLDS_IN_FORCE {
                return Ok(HoldLaid::Full);
            }
            run!(tx, DELETE_OLD => &org, MAX_LIFTED);
            run!(
                tx, "INSERT INTO audit_holds (id, org_id, reason, actor_id, from_at, to_at, created_at) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7)"
                => hold.id, &org, &hold.reason, hold.actor_id.map(|id| id.to_string()),
                hold.from.map(Timestamp::as_micros), hold.to.map(Timestamp::as_micros),
                hold.created_at.as_micros()
            );
            tx.record_event(&self.row_key, event).await?;
        });
        Ok(HoldLaid::Done)
    }

    /// Lifts a hold that is in force; its event is committed with it. `false`,
    /// and nothing is written, if there is none.
    #[boxed]
    pub async fn lift_hold(
        &self,
        org: OrgId,
        id: HoldId,
        event: &NewEvent,
    ) -> Result<bool, StoreError> {
        let now = event.occurred_at.as_micros();
        change!(self, org, |tx| {
            let lifted = run!(tx, "UPDATE audit_holds SET released_at = $3 \
                 WHERE org_id = $1 AND id = $2 AND released_at IS NULL" => org, id, now);
            if lifted == 0 {
                return Ok(false);
            }
            tx.record_event(&self.row_key, event).await?;
        });
        Ok(true)
    }

    /// The org's holds behind `after`, oldest first and at most `limit`, also those that were lifted.
    #[boxed]
    pub async fn list_holds(
        &self,
        org: OrgId,
        after: Option<HoldId>,
        limit: i64,
    ) -> Result<Vec<Hold>, StoreError> {
        let rows: Vec<HoldRow> = read!(self, org, |conn| {
            all!(
                conn, "SELECT id, reason, actor_id, from_at, to_at, created_at, released_at \
                 FROM audit_holds WHERE org_id = $1 AND id > $2 ORDER BY id LIMIT $3"
                => org, after.map(|id| id.to_string()).unwrap_or_default(), limit
            )
        });
        rows.into_iter().map(|row| row.read(org)).collect()
    }
}

const COUNT: &str = "SELECT COUNT(*) FROM audit_holds WHERE org_id = $1 AND released_at IS NULL";

const DELETE_OLD: &str = "
DELETE FROM audit_holds WHERE org_id = $1 AND id IN (
    SELECT id FROM (
        SELECT id, ROW_NUMBER() OVER (ORDER BY released_at DESC, id DESC) AS place
        FROM audit_holds WHERE org_id = $1 AND released_at IS NOT NULL
    ) AS lifted WHERE place > $2)";
