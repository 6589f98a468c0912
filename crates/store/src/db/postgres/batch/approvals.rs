//! Approvals: changes of them, and their uses by intents.
//!
//! **Invariant:** requesters and then all rows that a batch changes or uses are locked at its beginning and
//! in one order, and digests are inserted in one order, so that two batches never wait for each other.

use std::{collections::BTreeSet, mem};

use portcullis_core::id::{ApprovalId, OrgId};

use crate::{
    db::{
        all,
        approvals::{TAKE, TakenUses, Uses},
        batch::Batch,
        run,
        session::Session,
    },
    error::{DriverError, StoreError},
};

pub(super) async fn change(conn: &mut Session, batch: &mut Batch<'_>) -> Result<(), StoreError> {
    lock_requesters(conn, batch).await?;
    let changed = batch.changes.iter().map(|(row, _)| (row.org_id.clone(), row.id.clone()));
    let used = batch.approved.iter().map(|(org, id)| (org.to_string(), id.to_string()));
    let (orgs, ids): (Vec<_>, Vec<_>) = changed.chain(used).unzip();
    run!(conn, LOCK => orgs, ids);
    for (row, event) in mem::take(&mut batch.changes) {
        let made = conn.run(row.sql, row.values.clone()).await? == 1;
        batch.settle_change(event, made);
    }
    Ok(())
}

/// Makes the requests of a principal wait for each other, so that each batch counts those of the others.
async fn lock_requesters(conn: &mut Session, batch: &Batch<'_>) -> Result<(), DriverError> {
    let new = batch.changes.iter().filter_map(|(row, _)| Some((&row.org_id, row.new_of.as_ref()?)));
    let requesters: BTreeSet<String> =
        new.map(|(org, principal)| format!("{org} {principal}")).collect();
    for requester in requesters {
        run!(conn, LOCK_REQUESTER => requester);
    }
    Ok(())
}

/// Locks those of the approvals that permit a call, until the batch is committed.
pub(super) async fn lock_usable(
    conn: &mut Session,
    now: i64,
    approved: &[(OrgId, ApprovalId)],
) -> Result<Uses, StoreError> {
    let rows: Vec<(OrgId, ApprovalId, String, i64)> = all!(
        conn, LOCK_USABLE => approved.iter().map(|(org, _)| org.to_string()).collect::<Vec<_>>(),
        approved.iter().map(|(_, id)| id.to_string()).collect::<Vec<_>>(), now
    );
    let mut uses = Uses::default();
    for (org, id, digest, left) in rows {
        uses.add(org, id, digest, left);
    }
    Ok(uses)
}

pub(super) async fn take(
    conn: &mut Session,
    uses: impl Iterator<Item = TakenUses>,
) -> Result<(), DriverError> {
    for taken in uses {
        run!(conn, TAKE => taken.count, taken.org, taken.id);
    }
    Ok(())
}

const LOCK_REQUESTER: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 5785245104))";

/// Approvals that have ended are never changed, and may be removed by another transaction.
const LOCK: &str = "
SELECT 1 FROM approvals
WHERE (org_id, id) IN (SELECT * FROM UNNEST($1::text[], $2::text[]))
    AND status IN ('pending', 'approved')
ORDER BY org_id, id FOR UPDATE";

const LOCK_USABLE: &str = "
SELECT org_id, id, digest, uses_left FROM approvals
WHERE (org_id, id) IN (SELECT * FROM UNNEST($1::text[], $2::text[]))
    AND status = 'approved' AND uses_left > 0 AND expires_at > $3
ORDER BY org_id, id FOR UPDATE";
