//! Approvals: changes of them, and their uses by intents.
//!
//! **Invariant:** requesters and then all rows that a batch changes or uses are locked at its beginning and
//! in one order, and digests are inserted in one order, so that two batches never wait for each other.

use std::{collections::BTreeSet, mem};

use portcullis_core::{
    approval::MAX_PENDING,
    id::{ApprovalId, OrgId},
};
use sqlx::PgConnection;

use crate::{
    db::{
        approvals::{ApprovalRow, INSERT, TAKE, TakenUses, UPDATE, Uses},
        batch::Batch,
        parse,
    },
    error::StoreError,
};

pub(super) async fn change(
    conn: &mut PgConnection,
    batch: &mut Batch<'_>,
) -> Result<(), StoreError> {
    lock_requesters(conn, batch).await?;
    let changed = batch.changes.iter().map(|(row, _)| (row.org_id.clone(), row.id.clone()));
    let used = batch.approved.iter().map(|(org, id)| (org.to_string(), id.to_string()));
    let (orgs, ids): (Vec<_>, Vec<_>) = changed.chain(used).unzip();
    sqlx::query(LOCK).bind(orgs).bind(ids).execute(&mut *conn).await?;
    for (row, event) in mem::take(&mut batch.changes) {
        let made = write(conn, row).await?;
        batch.settle_change(event, made);
    }
    Ok(())
}

/// Makes the requests of a principal wait for each other, so that each batch counts those of the others.
async fn lock_requesters(conn: &mut PgConnection, batch: &Batch<'_>) -> Result<(), sqlx::Error> {
    let new = batch.changes.iter().filter(|(row, _)| row.replaces.is_none());
    let requesters: BTreeSet<String> =
        new.map(|(row, _)| format!("{} {}", row.org_id, row.principal_id)).collect();
    for requester in requesters {
        sqlx::query(LOCK_REQUESTER).bind(requester).execute(&mut *conn).await?;
    }
    Ok(())
}

async fn write(conn: &mut PgConnection, row: &ApprovalRow) -> Result<bool, sqlx::Error> {
    let write = match row.replaces {
        None => sqlx::query(INSERT)
            .bind(&row.org_id)
            .bind(&row.id)
            .bind(&row.digest)
            .bind(&row.principal_id)
            .bind(row.status)
            .bind(row.uses_left)
            .bind(row.created_at)
            .bind(row.expires_at)
            .bind(&row.state)
            .bind(&row.tool_id)
            .bind(&row.audience)
            .bind(row.size)
            .bind(&row.input)
            .bind(i64::from(MAX_PENDING)),
        Some(revision) => sqlx::query(UPDATE)
            .bind(row.status)
            .bind(row.uses_left)
            .bind(row.expires_at)
            .bind(&row.state)
            .bind(&row.tool_id)
            .bind(&row.audience)
            .bind(row.size)
            .bind(&row.input)
            .bind(&row.org_id)
            .bind(&row.id)
            .bind(&row.digest)
            .bind(revision),
    };
    Ok(write.execute(conn).await?.rows_affected() == 1)
}

/// Locks those of the approvals that permit a call, until the batch is committed.
pub(super) async fn lock_usable(
    conn: &mut PgConnection,
    now: i64,
    approved: &[(OrgId, ApprovalId)],
) -> Result<Uses, StoreError> {
    let rows: Vec<(String, String, String, i64)> = sqlx::query_as(LOCK_USABLE)
        .bind(approved.iter().map(|(org, _)| org.to_string()).collect::<Vec<_>>())
        .bind(approved.iter().map(|(_, id)| id.to_string()).collect::<Vec<_>>())
        .bind(now)
        .fetch_all(conn)
        .await?;
    let mut uses = Uses::default();
    for (org, id, digest, left) in rows {
        let org = parse(&org, "approvals.org_id")?;
        let id = parse(&id, "approvals.id")?;
        uses.add(org, id, digest, left);
    }
    Ok(uses)
}

pub(super) async fn take(
    conn: &mut PgConnection,
    uses: impl Iterator<Item = TakenUses>,
) -> Result<(), sqlx::Error> {
    for taken in uses {
        sqlx::query(TAKE)
            .bind(taken.count)
            .bind(taken.org.to_string())
            .bind(taken.id.to_string())
            .execute(&mut *conn)
            .await?;
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
