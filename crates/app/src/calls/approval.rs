//! Approvals of a call: asked for once everything else permits it, and taken with its intent.

use portcullis_core::{
    approval::{Approval, AskingPolicy, BoundCall, BoundTool, NewApproval, Requester, Status},
    audit::{Governance, RecordedDecision, UsedApproval},
    call::{Cleared, Denial, RequiredApproval, ToolCall},
    hidden::spelled,
    id::ApprovalId,
    refusal::{AskedApproval, Refusal},
};
use portcullis_store::ApprovalUse;

use super::{Calls, admission::Judged, recorded::Draft};
use crate::{approvals::Obtained, ctx::Ctx, dlp::Dlp, tools::catalogue::Visible};

/// Largest input in bytes that approvers are shown; a call with a larger one cannot be approved.
const LARGEST_SHOWN: usize = 64 << 10;
/// Longest description of a tool that approvers are shown, in characters.
const LONGEST_DESCRIPTION: usize = 1_000;

/// The uses that an intent takes.
pub(super) fn uses(approvals: &[Approval]) -> Vec<ApprovalUse> {
    let used = |it: &Approval| ApprovalUse { id: it.id, digest: it.digest.clone() };
    approvals.iter().map(used).collect()
}

/// Governance of a call that was made with these approvals, as it is recorded.
pub(super) fn named(mut governance: Governance, approvals: &[Approval]) -> Governance {
    let used = |it: &Approval| UsedApproval { approvers: it.approver_ids(), id: it.id };
    governance.approvals = approvals.iter().map(used).collect();
    governance
}

/// Governance of a call whose approvals were used up or ended while it was judged: a denial by
/// the policy that asked for the first of them.
pub(super) fn lost(governance: Governance, approvals: &[Approval]) -> Governance {
    let Some(AskingPolicy { id, reason, version }) = approvals.first().map(|it| &it.policy) else {
        return governance;
    };
    Governance {
        approvals: Vec::new(),
        decision: Some(RecordedDecision::Deny),
        determining_policies: vec![id.clone()],
        policy: Some(id.clone()),
        policy_version: Some(version.clone()),
        reason: Some(reason.clone()),
        ..governance
    }
}

impl Calls {
    /// The approvals that the call is made with. Says no while one of them is missing: all that are
    /// missing are asked for at once, and the first is told. The call of a task asks for none.
    pub(super) async fn approved(
        &self,
        ctx: &Ctx,
        visible: &Visible,
        call: &Cleared<ToolCall>,
        (dlp, task): (&Dlp, Option<ApprovalId>),
    ) -> Result<Vec<Approval>, Judged> {
        let (mut approvals, mut first) = (Vec::new(), None);
        for required in call.required_approvals() {
            let Some(new) = self.asked_approval(ctx, visible, call, (&required, dlp)) else {
                return Err(required.unshowable(call.ruling()).into());
            };
            let obtained = match task {
                None => self.approvals.obtain(ctx, &new).await,
                Some(id) => self.approvals.granted(&new, id).await,
            };
            let denial = match obtained {
                Ok(Obtained::Approved(approval)) => {
                    approvals.push(*approval);
                    continue;
                }
                Ok(Obtained::Awaited(approval)) => {
                    required.awaited(call.ruling(), self.told(&approval))
                }
                Ok(Obtained::Crowded(retry_after_s)) => {
                    required.crowded(call.ruling(), retry_after_s)
                }
                Err(refusal) => return Err(Judged::Stopped(refusal)),
            };
            first.get_or_insert(denial);
        }
        first.map_or(Ok(approvals), |denial: Denial| Err(denial.into()))
    }

    /// The approval that the call of a task waited for, if the call would be made without it: what people
    /// looked at is not what the policies ask about now.
    pub(super) async fn unused(
        &self,
        draft: &Draft,
        approvals: &[Approval],
    ) -> Result<Option<Approval>, Refusal> {
        let Some(id) = draft.task.as_ref().map(|(_, terms)| terms.approval) else {
            return Ok(None);
        };
        if approvals.iter().any(|it| it.id == id) {
            return Ok(None);
        }
        let found = self.base.store.find_approval(draft.org(), id).await?;
        let found = found.ok_or_else(|| Refusal::not_found("approval", &id.to_string()))?;
        Ok(Some(found.approval))
    }

    /// The refusal of a call whose approval was used up or ended while the call was judged.
    pub(super) fn outdated(&self, approvals: &[Approval]) -> Refusal {
        let used = approvals.first().map(|it| self.awaited(it, Status::Consumed));
        used.unwrap_or(Refusal::Internal)
    }

    pub(super) fn told(&self, approval: &Approval) -> AskedApproval {
        AskedApproval {
            id: approval.id,
            status: approval.status,
            expires_at: approval.expires_at,
            url: self.providers.connecting.approval_url(approval.id),
        }
    }

    /// The approval that the call needs for a policy. `None` if it cannot be shown to anybody.
    fn asked_approval(
        &self,
        ctx: &Ctx,
        visible: &Visible,
        call: &Cleared<ToolCall>,
        (required, dlp): (&RequiredApproval<'_>, &Dlp),
    ) -> Option<NewApproval> {
        let (caller, tool) = (ctx.caller(), call.tool());
        let subject = self.screening.subject(&ctx.session.tenant, tool);
        let shown = call.shown(dlp.engine(), &subject)?;
        if shown.input.to_string().len() > LARGEST_SHOWN {
            return None;
        }
        let version = required.policy.version.as_deref().unwrap_or_default();
        let bound = BoundCall {
            org: caller.org_id,
            principal: caller.principal_id,
            via: caller.via,
            tool: tool.id.as_str(),
            tool_version: &tool.version,
            connection: visible.connection.id,
            input: call.input(),
            responses: call.responses(),
            policy: &required.policy.id,
            policy_version: version,
        };
        let cut = |text: &String| text.chars().take(LONGEST_DESCRIPTION).collect();
        Some(NewApproval {
            id: ApprovalId::new(self.base.ids()),
            org_id: caller.org_id,
            digest: bound.digest(),
            requester: Requester {
                actors: caller.via.into_iter().chain(caller.lineage.actors().to_vec()).collect(),
                principal_id: caller.principal_id,
                principal_name: spelled(&caller.principal_name).into_owned(),
            },
            policy: AskingPolicy {
                id: required.policy.id.to_string(),
                reason: required.reason.to_owned(),
                version: version.to_owned(),
            },
            tool: BoundTool {
                description: tool.definition.description.as_ref().map(cut),
                id: tool.id.to_string(),
                title: tool.definition.title.clone(),
                version: tool.version.clone(),
            },
            connection: visible.connection.id,
            terms: required.terms.clone(),
            input: shown.input,
            findings: shown.findings,
        })
    }
}
