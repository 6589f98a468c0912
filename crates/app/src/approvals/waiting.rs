//! Callers who wait for a decision.

use std::{sync::Arc, time::Duration};

use portcullis_core::{
    approval::Status,
    id::{ApprovalId, OrgId},
    refusal::Refusal,
};
use tokio::{
    sync::{Notify, Semaphore},
    time::Instant,
};

use super::Approvals;

/// Callers of a node that may wait at once. Others are told at once that the call is pending.
const AT_ONCE: usize = 512;
/// Time between two looks at the store: another node may have been told the decision.
const LOOK: Duration = Duration::from_secs(1);

/// Callers who wait, and what wakes them.
#[derive(Debug)]
pub(super) struct Waiting {
    permits: Arc<Semaphore>,
    changed: Notify,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { permits: Arc::new(Semaphore::new(AT_ONCE)), changed: Notify::new() }
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
        let Ok(_permit) = self.waiting.permits.try_acquire() else { return Ok(false) };
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
