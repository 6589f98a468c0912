//! Asking for an approval: the same call finds the same approval.

use portcullis_core::{
    approval::{Approval, MAX_PENDING, NewApproval, Status},
    audit::{Event, EventType, Outcome, OutcomeStatus},
    clock::Timestamp,
    id::ApprovalId,
    refusal::{Executed, Refusal},
};

use super::{Approvals, counting, target};
use crate::request::Ctx;

/// Looks for an approval that others change at the same time.
const TRIES: u32 = 5;
/// Seconds after which a caller with too many pending requests may ask again.
const CROWDED_S: u32 = 60;

/// Approval of a call, as it stands.
#[derive(Debug)]
pub(crate) enum Obtained {
    /// The call may run with it.
    Approved(Box<Approval>),
    /// Approvers have to decide, or denied it.
    Awaited(Box<Approval>),
    /// Too many requests of this principal are pending; seconds to wait.
    Crowded(u32),
}

impl Approvals {
    /// The approval of a call: the one that there is, or a new request.
    pub(crate) async fn obtain(&self, ctx: &Ctx, new: &NewApproval) -> Result<Obtained, Refusal> {
        let store = &self.base.store;
        for _ in 0..TRIES {
            let now = self.base.now();
            // Also one over its time that has not been ended yet.
            let any_time = Timestamp::default();
            let found = store.find_approval_of_call(new.org_id, &new.digest, any_time).await?;
            if let Some(found) = found {
                let approval = found.approval;
                match approval.status_at(now) {
                    Status::Approved => return Ok(Obtained::Approved(Box::new(approval))),
                    Status::Pending => return Ok(Obtained::Awaited(Box::new(approval))),
                    Status::Denied if now < approval.expires_at => {
                        return Ok(Obtained::Awaited(Box::new(approval)));
                    }
                    Status::Expired => {
                        self.end(&approval.ended(), found.revision).await?;
                    }
                    Status::Denied | Status::Consumed => {}
                }
            }
            let principal = ctx.caller().principal_id;
            if store.count_pending_approvals(new.org_id, principal, now).await? >= MAX_PENDING {
                return Ok(Obtained::Crowded(CROWDED_S));
            }
            let approval = Approval::request(new.clone(), now);
            let event = self.event_of(ctx, EventType::ApprovalRequested, &approval);
            if self.change(approval.clone(), None, event).await? {
                return Ok(Obtained::Awaited(Box::new(approval)));
            }
        }
        tracing::warn!(digest = %new.digest, "an approval changed at every try to ask for it");
        Err(Refusal::Internal)
    }

    /// The approval of the call of a task; no new one is requested. Without one that can be used it
    /// is the one that the task waited for, as it ended.
    pub(crate) async fn granted(
        &self,
        new: &NewApproval,
        waited_for: ApprovalId,
    ) -> Result<Obtained, Refusal> {
        let store = &self.base.store;
        let now = self.base.now();
        let found = store.find_approval_of_call(new.org_id, &new.digest, now).await?;
        match found.map(|it| it.approval) {
            Some(approval) if approval.status_at(now) == Status::Approved => {
                return Ok(Obtained::Approved(Box::new(approval)));
            }
            Some(approval) if approval.status_at(now) == Status::Pending => {
                return Ok(Obtained::Awaited(Box::new(approval)));
            }
            Some(_) | None => {}
        }
        let Some(found) = store.find_approval(new.org_id, waited_for).await? else {
            return Err(Refusal::not_found("approval", &waited_for.to_string()));
        };
        let status = found.approval.status_at(now);
        // It is open and not of this call: what it was bound to has changed.
        let status = if status.is_open() { Status::Expired } else { status };
        Ok(Obtained::Awaited(Box::new(Approval { status, ..found.approval })))
    }

    /// Records that calls began with these approvals. Their uses were taken with the intent already,
    /// and the event of the call names them, so a crash here loses nothing that is not told there.
    pub(crate) async fn consumed(&self, ctx: &Ctx, approvals: &[Approval]) {
        for approval in approvals {
            let used = approval.used(self.base.now()).unwrap_or_else(|| approval.clone());
            counting::count(EventType::ApprovalConsumed, &used, self.base.now());
            let event = self.event_of(ctx, EventType::ApprovalConsumed, &used);
            if let Err(refusal) = self.audit.record(event).await {
                tracing::warn!(approval = %approval.id, %refusal, "a use is told by its call only");
            }
        }
    }

    /// An event about an approval in a request of a caller.
    pub(super) fn event_of(&self, ctx: &Ctx, kind: EventType, approval: &Approval) -> Event {
        let pending =
            Outcome { status: OutcomeStatus::ApprovalPending, ..Outcome::success(Executed::No) };
        let is_request = kind == EventType::ApprovalRequested;
        let event = Event {
            org_id: approval.org_id,
            occurred_at: self.base.now(),
            outcome: if is_request { pending } else { Outcome::success(Executed::No) },
            ..ctx.event(&self.screening, kind, target(approval))
        };
        self.telling(event, approval)
    }
}
