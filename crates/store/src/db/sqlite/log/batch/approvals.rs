//! Approvals: changes of them, and their uses by intents.

use std::mem;

use portcullis_core::approval::MAX_PENDING;
use rusqlite::{Connection, OptionalExtension};

use crate::{
    db::{
        approvals::{ApprovalRow, INSERT, TAKE, UPDATE, Uses},
        batch::Batch,
    },
    error::StoreError,
};

pub(super) fn change(open: &Connection, batch: &mut Batch<'_>) -> Result<(), StoreError> {
    for (row, event) in mem::take(&mut batch.changes) {
        let made = write(open, row)?;
        batch.settle_change(event, made);
    }
    Ok(())
}

fn write(open: &Connection, row: &ApprovalRow) -> Result<bool, rusqlite::Error> {
    let ApprovalRow { org_id, id, digest, principal_id, status, .. } = row;
    let ApprovalRow { uses_left, created_at, expires_at, state, replaces, .. } = row;
    let ApprovalRow { tool_id, audience, size, input, .. } = row;
    let written = match replaces {
        None => open.prepare_cached(INSERT)?.execute((
            org_id,
            id,
            digest,
            principal_id,
            status,
            uses_left,
            created_at,
            expires_at,
            state,
            tool_id,
            audience,
            size,
            input,
            i64::from(MAX_PENDING),
        )),
        Some(revision) => open.prepare_cached(UPDATE)?.execute((
            status, uses_left, expires_at, state, tool_id, audience, size, input, org_id, id,
            digest, revision,
        )),
    };
    Ok(written? == 1)
}

pub(super) fn take_uses(
    open: &Connection,
    now: i64,
    batch: &mut Batch<'_>,
) -> Result<(), StoreError> {
    let mut find = open.prepare_cached(USABLE)?;
    let mut uses = Uses::default();
    for (org, approval) in &batch.approved {
        let place = (org.to_string(), approval.to_string(), now);
        let found = find.query_row(place, |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        if let Some((digest, left)) = found {
            uses.add(*org, *approval, digest, left);
        }
    }
    for taken in batch.use_approvals(uses) {
        let place = (taken.count, taken.org.to_string(), taken.id.to_string());
        open.prepare_cached(TAKE)?.execute(place)?;
    }
    Ok(())
}

const USABLE: &str = "
SELECT digest, uses_left FROM approvals
WHERE org_id = ? AND id = ? AND status = 'approved' AND uses_left > 0 AND expires_at > ?";
