//! Gives recorded events their place in the log and signs it, every 250 ms while any are waiting.
//!
//! The cost grows with the events committed since the last run. Orgs without such events are
//! examined only at the start and once a minute, for events that others left: a node that died, a
//! command of the operator.

use std::time::Duration;

use portcullis_core::id::OrgId;
use portcullis_store::StoreError;

use crate::{
    audit::{
        Audit,
        log::{Pending, shown},
    },
    telemetry::counters,
};

pub(super) const EVERY: Duration = Duration::from_millis(250);
pub(super) const SWEEP: Duration = Duration::from_mins(1);
/// Logs that are written in one transaction, if they have few events; while it is open, nothing
/// else writes to SQLite.
const TOGETHER: usize = 64;

/// Rows at positions that were not given out of which the node's log tells.
const MAX_BEYOND: i64 = 20;

pub(super) async fn seal_all(audit: &Audit) {
    counters::audit(audit.writer.progress());
    let mut pending = audit.log.pending.lock().await;
    if let Err(error) = look(audit, &mut pending).await {
        error.log();
    }
    let orgs: Vec<OrgId> = std::mem::take(&mut pending.orgs).into_iter().collect();
    for orgs in orgs.chunks(TOGETHER) {
        for (org, sealed) in audit.seal_each(orgs).await {
            if let Err(error) = sealed {
                error.log();
                pending.orgs.insert(org);
            }
        }
    }
}

/// Adds the orgs in whose log something was committed since the last look.
async fn look(audit: &Audit, pending: &mut Pending) -> Result<(), StoreError> {
    let Some(known) = pending.known else {
        let known = audit.base.store.horizon().await?;
        everything(audit, pending).await?;
        pending.known = Some(known);
        return Ok(());
    };
    let (orgs, known) = audit.base.store.committed_since(known).await?;
    pending.orgs.extend(orgs);
    pending.known = Some(known);
    Ok(())
}

async fn everything(audit: &Audit, pending: &mut Pending) -> Result<(), StoreError> {
    pending.orgs.extend(audit.base.store.orgs_with_unsealed().await?);
    pending.orgs.extend(audit.base.store.orgs_with_unsigned().await?);
    Ok(())
}

/// Looks at every org.
pub(super) async fn sweep(audit: &Audit) {
    let mut pending = audit.log.pending.lock().await;
    if let Err(error) = everything(audit, &mut pending).await {
        error.log();
    }
    if let Err(error) = tell_of_rows_beyond(audit, &mut pending).await {
        error.log();
    }
}

/// Tells once of each row at a position that the gateway has not given out: it is passed over.
async fn tell_of_rows_beyond(audit: &Audit, pending: &mut Pending) -> Result<(), StoreError> {
    let rows = audit.base.store.rows_beyond(MAX_BEYOND).await?;
    let added: Vec<_> = rows.iter().filter(|row| !pending.beyond.contains(row)).collect();
    counters::rows_refused(added.len());
    for row in added {
        tracing::error!(
            org = shown(&row.org_id),
            event = shown(&row.id),
            position = row.position,
            "a row of the log stands at a position that was not given out: it was added in the database, \
             and gets no place in the log"
        );
    }
    pending.beyond = rows;
    Ok(())
}
