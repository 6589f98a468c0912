//! The months of the log. On PostgreSQL each lies in partitions of its own, which are made ahead of
//! time and dropped whole; SQLite has one file and nothing to do here.
//!
//! A month is dropped in two steps. First each org's log is told to begin behind its last event of
//! the month, with the event that tells of it; from then on no reader sees the rows. Then the
//! partitions go. What a crash between the two leaves is a month that the next round drops.

use async_recursion::async_recursion as boxed;
use portcullis_core::{clock::Timestamp, id::OrgId};

use super::pruning::{MOVE, Pruned};
use crate::{
    db::{Db, NewEvent, Pool, Scope, Store, all, begin, find, last_given, one, parse, row, run},
    error::StoreError,
};

row!(Month { name: String, low: String, high: String });
row!(EndRow { org_id: String, last: Option<i64>, stays: bool });

/// A month of which everything may go, by the columns of its rows.
#[derive(Debug)]
pub struct OldMonth {
    name: String,
    /// The ids that its events lie between.
    low: String,
    high: String,
    /// The last position that was given out before it was looked at.
    horizon: i64,
    /// The last sequence that each org has in it.
    pub ends: Vec<(OrgId, i64)>,
}

/// Part of a log up to its last event of a month, as it was proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldPart {
    pub org: OrgId,
    /// The first sequence, with which the log began.
    pub first: i64,
    /// The last sequence, and the position of the event there.
    pub last: i64,
    pub position: i64,
}

impl Store {
    /// Makes room for the events of the month of `now` and of the three after it.
    #[boxed]
    pub async fn make_months(&self, now: Timestamp) -> Result<(), StoreError> {
        let Db::Postgres(pool) = &self.db else { return Ok(()) };
        let mut tx = begin(pool, Scope::Installation).await?;
        run!(tx, MAKE => now.as_micros());
        Ok(tx.commit().await?)
    }

    /// Before which moment events are to be removed one by one, if those recorded before `before`
    /// may go: on PostgreSQL they wait until their month can be dropped, and two days longer.
    #[boxed]
    pub async fn rows_before(&self, before: Timestamp) -> Result<Timestamp, StoreError> {
        let Db::Postgres(pool) = &self.db else { return Ok(before) };
        let mut tx = begin(pool, Scope::Installation).await?;
        let floor = one!(tx, scalar FLOOR => before.as_micros());
        Ok(Timestamp::from_micros(floor))
    }

    /// The months of which everything was recorded before `before`, unless an org has a hold in force, oldest first:
    /// what their columns say of them. None where the log has no months.
    pub async fn old_months(&self, before: Timestamp) -> Result<Vec<OldMonth>, StoreError> {
        let Db::Postgres(pool) = &self.db else { return Ok(Vec::new()) };
        let mut old = Vec::new();
        for month in over(pool, before).await? {
            // What comes later than this, with an id of long ago, is looked for before the drop.
            let horizon = self.horizon().await?;
            if let Some(ends) = ends(pool, &month, before).await? {
                let Month { name, low, high } = month;
                old.push(OldMonth { name, low, high, horizon, ends });
            }
        }
        Ok(old)
    }

    /// Drops a month, of which these parts were proven. `tell` makes the event for each org whose log is shorter now.
    /// `false` if it stays, for another node pruned meanwhile, or something of it is not in these parts.
    pub async fn prune_month<F>(
        &self,
        old: &OldMonth,
        parts: &[OldPart],
        tell: F,
    ) -> Result<bool, StoreError>
    where
        F: Fn(OrgId, &Pruned) -> NewEvent + Send + Sync,
    {
        let Db::Postgres(pool) = &self.db else { return Ok(false) };
        let proven = parts.iter().map(|part| (part.org, part.last));
        if !proven.eq(old.ends.iter().copied()) {
            return Ok(false);
        }
        for part in parts {
            if !self.begin_behind(pool, old, part, &tell).await? {
                return Ok(false);
            }
        }
        drop_month(pool, old).await
    }

    /// Lets the org's log begin behind its last event of the month, and removes what is left of it
    /// before that in other months. `false` if another node pruned meanwhile.
    async fn begin_behind<F>(
        &self,
        pool: &Pool,
        month: &OldMonth,
        part: &OldPart,
        tell: &F,
    ) -> Result<bool, StoreError>
    where
        F: Fn(OrgId, &Pruned) -> NewEvent + Send + Sync,
    {
        let pruned = Pruned { first: part.first, size: part.last + 1, held: false };
        if pruned.events() <= 0 {
            return Ok(true);
        }
        let org = part.org.to_string();
        let mut tx = begin(pool, part.org.into()).await?;
        tx.announce_writer().await?;
        if run!(tx, MOVE => &org, pruned.first, pruned.size) == 0 {
            return Ok(false);
        }
        let held: bool = one!(tx, scalar HELD => &org);
        let last: Option<i64> = find!(tx, scalar POSITION => &org, part.last);
        if held || last != Some(part.position) {
            return Ok(false);
        }
        for (sql, limit, bound) in [
            (SEALS_BELOW, part.last, &month.low),
            (SEALS_ABOVE, part.last, &month.high),
            (EVENTS_BELOW, part.position, &month.low),
            (EVENTS_ABOVE, part.position, &month.high),
        ] {
            run!(tx, sql => &org, limit, bound);
        }
        let event = tell(part.org, &pruned);
        tx.insert_events(&self.row_key, event.occurred_at.as_micros(), &[&event]).await?;
        tx.commit().await.map_err(StoreError::of_commit)?;
        Ok(true)
    }
}

/// The months that ended before `before`, oldest first.
async fn over(pool: &Pool, before: Timestamp) -> Result<Vec<Month>, StoreError> {
    let mut tx = begin(pool, Scope::Installation).await?;
    Ok(all!(tx, OVER => before.as_micros()))
}

/// End of each org's part of the month; `None` if something of it has to stay.
async fn ends(
    pool: &Pool,
    month: &Month,
    before: Timestamp,
) -> Result<Option<Vec<(OrgId, i64)>>, StoreError> {
    let mut tx = begin(pool, Scope::Installation).await?;
    let rows: Vec<EndRow> = all!(tx, ENDS => &month.low, &month.high, before.as_micros());
    let end = |row: EndRow| match row.last {
        Some(last) if !row.stays => Ok(Some((parse(&row.org_id, "audit_events.org_id")?, last))),
        Some(_) | None => Ok(None),
    };
    rows.into_iter().map(end).collect()
}

/// Drops the partitions of a month of which nothing is shown any more. `false` if the log is locked
/// for long, or an event of the month was written after all: then the next round tries.
async fn drop_month(pool: &Pool, month: &OldMonth) -> Result<bool, StoreError> {
    let mut tx = begin(pool, Scope::Installation).await?;
    // A transaction that waits for a lock makes all others wait, so not for long; and shorter than
    // it takes the server to look for two that wait for each other.
    let lock = "SET LOCAL lock_timeout = '200ms'; \
                LOCK TABLE ONLY audit_events, ONLY audit_seals IN ACCESS EXCLUSIVE MODE";
    if let Err(error) = tx.script(lock).await {
        return if error.is_locked_out() { Ok(false) } else { Err(error.into()) };
    }
    if one!(tx, scalar LATE => &month.low, &month.high, month.horizon) {
        return Ok(false);
    }
    let name = &month.name;
    let drop = format!("DROP TABLE audit_events_{name}, audit_seals_{name}");
    tx.script(&drop).await?;
    tx.commit().await.map_err(StoreError::of_commit)?;
    Ok(true)
}

const MAKE: &str = "
SELECT audit_make_month(
    to_timestamp($1 / 1000000) AT TIME ZONE 'UTC' + ahead * INTERVAL '1 month'
) FROM generate_series(0, 3) AS ahead";

const FLOOR: &str = "
SELECT (extract(epoch FROM date_trunc(
    'month', to_timestamp($1 / 1000000) AT TIME ZONE 'UTC' - INTERVAL '2 days'
)) * 1000000)::BIGINT";

const OVER: &str = "
SELECT to_char(month, 'YYYY_MM') AS name, audit_first_id(month) AS low,
    audit_first_id(month + INTERVAL '1 month') AS high
FROM (
    SELECT make_timestamp(
        substring(c.relname FROM '_([0-9]{4})_[0-9]{2}$')::INT,
        substring(c.relname FROM '_([0-9]{2})$')::INT, 1, 0, 0, 0
    ) AS month
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'audit_seals'::REGCLASS
) AS months
WHERE month + INTERVAL '1 month' <= to_timestamp($1 / 1000000) AT TIME ZONE 'UTC'
ORDER BY month";

/// A month stays for an event that waits for its place (one that was refused, or has a position that was not
/// given out, does not), that is not in the tree, that is too young, or of an org that has a hold in force.
const ENDS: &str = concat!(
    "
SELECT ours.org_id, ours.last, ours.young OR ours.last >= h.tree_size
    OR EXISTS (SELECT 1 FROM audit_holds d WHERE d.org_id = ours.org_id AND d.released_at IS NULL)
    AS stays
FROM (
    SELECT e.org_id, MAX(s.sequence) AS last,
        BOOL_OR(s.sequence IS NULL OR s.recorded_at >= $3) AS young
    FROM audit_events e
    JOIN audit_heads d ON d.org_id = e.org_id
    LEFT JOIN audit_seals s ON s.event_id = e.id AND s.event_id >= $1 AND s.event_id < $2
    WHERE e.id >= $1 AND e.id < $2 AND (s.sequence IS NOT NULL OR e.position > d.last_position
        AND e.position <= ",
    last_given!(postgres),
    ")
    GROUP BY e.org_id
) AS ours
JOIN audit_heads h ON h.org_id = ours.org_id
ORDER BY ours.org_id"
);

const HELD: &str =
    "SELECT EXISTS (SELECT 1 FROM audit_holds WHERE org_id = $1 AND released_at IS NULL)";

const POSITION: &str = "SELECT position FROM audit_seals WHERE org_id = $1 AND sequence = $2";

const SEALS_BELOW: &str =
    "DELETE FROM audit_seals WHERE org_id = $1 AND sequence <= $2 AND event_id < $3";
const SEALS_ABOVE: &str =
    "DELETE FROM audit_seals WHERE org_id = $1 AND sequence <= $2 AND event_id >= $3";
const EVENTS_BELOW: &str =
    "DELETE FROM audit_events WHERE org_id = $1 AND position <= $2 AND id < $3";
const EVENTS_ABOVE: &str =
    "DELETE FROM audit_events WHERE org_id = $1 AND position <= $2 AND id >= $3";

const LATE: &str = concat!(
    "SELECT EXISTS (SELECT 1 FROM audit_events WHERE id >= $1 AND id < $2 AND position > $3 AND position <= ",
    last_given!(postgres),
    ")"
);
