//! Commands on approvals: list them, show one, and decide as the operator.

use portcullis_core::{
    approval::{AskingPolicy, Decider, Status, Vote},
    audit::Outcome,
    id::{ApprovalId, OrgId},
    refusal::Executed,
};
use portcullis_store::{ApprovalChange, ApprovalFilter, StoredApproval};

use super::{Shell, ShellError};
use crate::{
    approvals::{ApprovalView, approval_details, kind_of, target},
    audit::{
        events::{patience, row_of},
        holds::reason,
    },
    request::target_of,
};

/// Approvals that are read at once.
const PAGE: u32 = 500;
/// Writes of a decision that others overtake before it is given up.
const TRIES: u32 = 5;

impl Shell {
    /// The org's approvals, the newest first; only those of this status, if one is named.
    pub async fn approvals(
        &self,
        org: OrgId,
        status: Option<Status>,
    ) -> Result<Vec<ApprovalView>, ShellError> {
        let now = self.clock.now();
        let filter = ApprovalFilter { status, requester: None, now };
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let page = self.store.list_approvals(org, &filter, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(found) };
            after = Some(last.approval.id);
            found.extend(page.into_iter().map(|it| ApprovalView::new(it.approval, now)));
        }
    }

    /// One approval of the org.
    pub async fn approval(&self, org: OrgId, id: ApprovalId) -> Result<ApprovalView, ShellError> {
        let found = self.stored_approval(org, id).await?;
        Ok(ApprovalView::new(found.approval, self.clock.now()))
    }

    /// Decides about an approval as the operator. A running node lets the call go on within a second. Refuses
    /// one whose policy changed: no call could use it.
    pub async fn decide(
        &self,
        org: OrgId,
        id: ApprovalId,
        vote: Vote,
        given: Option<&str>,
    ) -> Result<ApprovalView, ShellError> {
        let comment = given.map(reason).transpose()?;
        for _ in 0..TRIES {
            let StoredApproval { approval, revision } = self.stored_approval(org, id).await?;
            let now = self.clock.now();
            let comment = comment.map(str::to_owned);
            let next = approval.decided(&Decider::Operator, vote, comment, now)?;
            if !self.is_in_force(&approval.policy).await? {
                return Err(ShellError::PolicyChanged(approval.policy.id));
            }
            let mut event = self.event(kind_of(vote), org, target_of("approval", id));
            event.target = Some(target(&next));
            event.outcome = Outcome::success(Executed::No);
            event.detached =
                event.detached.keep("approval", Some(approval_details(&next)), &*self.random);
            let change = ApprovalChange { approval: next.clone(), from: Some(revision) };
            if self.writer.change_approval(change, row_of(&event), patience()).await? {
                return Ok(ApprovalView::new(next, now));
            }
        }
        Err(ShellError::Overtaken(id.to_string()))
    }

    /// Returns true while the set that last came into force has the policy as the call met it. A running
    /// node ends approvals of other versions.
    async fn is_in_force(&self, policy: &AskingPolicy) -> Result<bool, ShellError> {
        let Some(last) = self.store.last_policy_set().await? else { return Ok(true) };
        let same =
            |(id, version): &(String, String)| *id == policy.id && *version == policy.version;
        Ok(last.members.iter().any(same))
    }

    async fn stored_approval(
        &self,
        org: OrgId,
        id: ApprovalId,
    ) -> Result<StoredApproval, ShellError> {
        let found = self.store.find_approval(org, id).await?;
        found.ok_or_else(|| ShellError::NoApproval(id.to_string()))
    }
}
