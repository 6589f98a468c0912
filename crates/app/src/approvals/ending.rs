//! Approvals that end without being used up: their time is over, or what they are bound to is gone.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use portcullis_core::{
    approval::{Approval, AskingPolicy},
    audit::EventType,
    id::{OrgId, PrincipalId},
    refusal::Refusal,
};

use portcullis_store::{ApprovalParts, StoredApproval};

use super::Approvals;
use crate::{request::Ctx, telemetry::counters};

/// Time between two rounds that end approvals.
pub(crate) const EVERY: Duration = Duration::from_secs(5);
/// Approvals looked at in one round, those that end first before others.
const PER_ROUND: u32 = 500;
impl Approvals {
    /// One round: ends what is due, and what no call can use any more. Of several nodes one writes it.
    pub(crate) async fn end_round(self: &Arc<Self>) {
        if let Err(refusal) = self.round().await {
            tracing::warn!(%refusal, "approvals could not be looked through");
        }
    }

    async fn round(&self) -> Result<(), Refusal> {
        let now = self.base.now();
        counters::approvals_pending(self.base.store.pending_approvals(now).await?, now);
        for due in self.base.store.open_approvals(Some(now), PER_ROUND).await? {
            if due.approval.expired(now).is_some() {
                self.end_whole(&due).await?;
            }
        }
        let mut known = BTreeMap::new();
        for open in self.base.store.open_approvals(None, PER_ROUND).await? {
            if !self.is_bound(&open.approval, &mut known).await? {
                self.end_whole(&open).await?;
            }
        }
        Ok(())
    }

    /// Reads all of an approval and ends it, unless it was changed meanwhile.
    async fn end_whole(&self, seen: &StoredApproval) -> Result<(), Refusal> {
        let org = seen.approval.org_id;
        let id = seen.approval.id;
        let whole = self.base.store.approvals_among(org, &[id], ApprovalParts::All).await?;
        for found in whole.iter().filter(|found| found.revision == seen.revision) {
            self.end(&found.approval.ended(), found.revision).await?;
        }
        Ok(())
    }

    /// Writes that an approval ended. If another writer changed it meanwhile, that change stands.
    pub(super) async fn end(&self, ended: &Approval, revision: i64) -> Result<(), Refusal> {
        let event = self.system_event(ended, EventType::ApprovalExpired);
        self.change(ended.clone(), Some(revision), event).await.map(drop)
    }

    /// Ends an approval whose requester gives the call up, if it can still change. `false` if it was
    /// changed meanwhile.
    pub(crate) async fn withdrawn(
        &self,
        ctx: &Ctx,
        found: StoredApproval,
    ) -> Result<bool, Refusal> {
        let Some(ended) = found.approval.withdraw(self.base.now()) else { return Ok(true) };
        let event = self.event_of(ctx, EventType::ApprovalExpired, &ended);
        self.change(ended, Some(found.revision), event).await
    }

    /// Returns true while the policy, the tool's version and the principal are those that it is bound to: else
    /// no call can use it. The operator's process has no policies in force, so there the policy has to be that of the
    /// set that last came into force; a node that serves finds out the rest.
    pub(super) async fn is_usable(&self, ctx: &Ctx, approval: &Approval) -> Result<bool, Refusal> {
        if !ctx.caller().is_operator {
            return self.is_bound(approval, &mut BTreeMap::new()).await;
        }
        let AskingPolicy { id, version, .. } = &approval.policy;
        let last = self.base.store.last_policy_set().await?;
        Ok(last.is_none_or(|set| set.members.iter().any(|(of, its)| of == id && its == version)))
    }

    /// The same of one among many, with the principals that are known already.
    async fn is_bound(
        &self,
        approval: &Approval,
        known: &mut BTreeMap<(OrgId, PrincipalId), bool>,
    ) -> Result<bool, Refusal> {
        let set = self.policies.current_of(approval.org_id);
        let policy = set.find(&approval.policy.id);
        let same = |version: &str| version == approval.policy.version;
        if !policy.is_some_and(|policy| policy.version.as_deref().is_some_and(same)) {
            return Ok(false);
        }
        // A tool that is not listed just now may come back; another version is another call.
        let tools = self.catalogue.tools.load();
        let listed = tools.get(&approval.tool.id);
        if listed.is_some_and(|(tool, _)| tool.version != approval.tool.version) {
            return Ok(false);
        }
        let org = approval.org_id;
        let who = approval.requester.principal_id;
        if let Some(active) = known.get(&(org, who)) {
            return Ok(*active);
        }
        let found = self.base.store.find_principal(org, who).await?;
        let active = found.is_some_and(|principal| principal.disabled_at.is_none());
        known.insert((org, who), active);
        Ok(active)
    }
}
