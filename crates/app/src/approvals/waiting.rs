//! Callers who wait for a decision.

use std::{sync::Arc, time::Duration};

use portcullis_core::{
    approval::Status,
    id::{ApprovalId, OrgId},
    refusal::Refusal,
};
use portcullis_lanes::Shares;
use tokio::{sync::Notify, time::Instant};

use super::Approvals;

/// Callers of a node, and of an org at it, that may wait at once. Others are told at once that the call is
/// pending.
const AT_ONCE: usize = 512;
const PER_ORG: usize = 128;
/// Time between two looks at the store: another node may have been told the decision.
const LOOK: Duration = Duration::from_secs(1);

/// Callers who wait, and what wakes them.
#[derive(Debug)]
pub(super) struct Waiting {
    places: Arc<Shares<OrgId>>,
    changed: Notify,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { places: Arc::new(Shares::new(AT_ONCE, PER_ORG)), changed: Notify::new() }
    }
}

impl Waiting {
    pub(super) fn wake(&self) {
        self.changed.notify_waiters();
    }
}

impl Approvals {
    /// Waits until the approval is not pending any more, or until `end`. `false` if nothing was
    /// decided by then, or too many wait already.
    pub async fn decided(&self, org: OrgId, id: ApprovalId, end: Instant) -> Result<bool, Refusal> {
        let Some(_place) = self.waiting.places.take(org) else { return Ok(false) };
        loop {
            let changed = self.waiting.changed.notified();
            let found = self.base.store.find_approval(org, id).await?;
            let status = found.map(|it| it.approval.status_at(self.base.now()));
            if status != Some(Status::Pending) {
                return Ok(true);
            }
            let look = (Instant::now() + LOOK).min(end);
            let _ = tokio::time::timeout_at(look, changed).await;
            if Instant::now() >= end {
                return Ok(false);
            }
        }
    }
}
