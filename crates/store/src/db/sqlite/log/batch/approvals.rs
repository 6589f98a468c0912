//! Approvals: changes of them, and their uses by intents.

use std::mem;

use rusqlite::{Connection, OptionalExtension, params_from_iter};

use crate::{
    db::{
        approvals::{TAKE, Uses},
        batch::Batch,
    },
    error::StoreError,
};

pub(super) fn change(open: &Connection, batch: &mut Batch<'_>) -> Result<(), StoreError> {
    for (row, event) in mem::take(&mut batch.changes) {
        let values = params_from_iter(&row.values);
        let made = open.prepare_cached(row.sql)?.execute(values)? == 1;
        batch.settle_change(event, made);
    }
    Ok(())
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
