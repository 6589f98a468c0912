//! Gives recorded events their place in the log and signs it, every 250 ms while any are waiting.
//!
//! The cost grows with the events committed since the last run. Orgs without such events are
//! examined only at the start and once a minute, for events that others left: a node that died, a
//! command of the operator.

use std::time::Duration;

use portcullis_core::id::OrgId;
use portcullis_store::StoreError;

use crate::{
    audit::{Audit, log::Pending},
    telemetry::counters,
};

pub(super) const EVERY: Duration = Duration::from_millis(250);
pub(super) const SWEEP: Duration = Duration::from_mins(1);
/// Logs that are written in one transaction, if they have few events; while it is open, nothing
/// else writes to SQLite.
const TOGETHER: usize = 64;

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
}
