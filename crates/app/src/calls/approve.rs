//! Approvals of a call: asked for once everything else permits it, and taken with its intent.

use std::slice;

use portcullis_core::{
    approval::{Approval, AskingPolicy, BoundCall, BoundTool, NewApproval, Requester, Status},
    audit::{Governance, RecordedDecision},
    call::{Aim, Cleared, Denial, RequiredApproval, Use},
    hidden::spelled,
    id::{ApprovalId, EventId},
    policy::PolicySet,
    refusal::{AskedApproval, Refusal},
};
use portcullis_store::ApprovalUse;

use super::{
    Answered, Calls, Stopped,
    event::{CallEvent, governance_of},
};
use crate::{
    approvals::Obtained,
    base::admission::HaltedCall,
    catalogue::Visible,
    policies::notices::Verdict,
    request::{Ctx, dlp::Dlp},
};

/// Largest input in bytes that approvers are shown; a call with a larger one cannot be approved.
const LARGEST_SHOWN: usize = 64 << 10;
/// Longest description of a tool that approvers are shown, in characters.
const LONGEST_DESCRIPTION: usize = 1_000;

/// The uses that an intent takes.
pub(super) fn uses(approvals: &[Approval]) -> Vec<ApprovalUse> {
    let used = |it: &Approval| ApprovalUse { id: it.id, digest: it.digest.clone() };
    approvals.iter().map(used).collect()
}

/// A call that all else permits, with those who decided.
pub(super) struct Governed<'a> {
    pub(super) call: &'a Cleared<Use>,
    pub(super) policies: &'a PolicySet,
    pub(super) dlp: &'a Dlp,
}

/// Governance of a call whose approvals were used up or ended while it was judged: a denial by
/// the policy that asked for the first of them.
fn deny_for_lost_approvals(governance: Governance, approvals: &[Approval]) -> Governance {
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
    /// The approvals that the call is made with, where policies ask for some. Refuses the call while one of
    /// them is missing.
    pub(super) async fn approve(
        &self,
        ctx: &Ctx,
        visible: &Visible,
        governed: &Governed<'_>,
        event: &mut CallEvent,
    ) -> Result<Vec<Approval>, Refusal> {
        let Governed { call, policies, .. } = governed;
        let version = policies.version();
        match self.approved(ctx, visible, governed, event).await {
            Ok(approvals) => {
                if let Some(unused) = self.unused(event, &approvals).await? {
                    self.policies.give_back(ctx, call.rates());
                    self.tally_outright(ctx, &unused.policy.id);
                    let governance = governance_of(call.ruling(), version, &[]);
                    event.set_governance(deny_for_lost_approvals(
                        governance,
                        slice::from_ref(&unused),
                    ));
                    return Err(self.awaited(&unused, Status::Expired));
                }
                self.follow_up(ctx, &visible.tool, call.ruling(), Verdict::Allowed);
                event.set_governance(governance_of(call.ruling(), version, &approvals));
                Ok(approvals)
            }
            Err(judged) => {
                self.policies.give_back(ctx, call.rates());
                match judged {
                    HaltedCall::Stopped(refusal) => Err(refusal),
                    HaltedCall::Denied(denial) => {
                        let ruling = denial.ruling().unwrap_or(call.ruling());
                        self.follow_up(ctx, &visible.tool, ruling, Verdict::Denied);
                        Err(event.deny(&denial, version))
                    }
                }
            }
        }
    }

    /// Refuses a call whose approvals were used up or ended while it was judged.
    pub(super) async fn lose_approvals(
        &self,
        mut event: Box<CallEvent>,
        approvals: &[Approval],
    ) -> Result<Answered, Box<Stopped>> {
        event.governance = event.governance.take().map(|it| deny_for_lost_approvals(it, approvals));
        let used = approvals.first().map(|it| self.awaited(it, Status::Consumed));
        self.refuse_call(event, used.unwrap_or(Refusal::Internal)).await
    }

    /// The approvals of a call. While some are missing, all of these are requested at once, and the
    /// denial names the first. The call of a task requests none.
    async fn approved(
        &self,
        ctx: &Ctx,
        visible: &Visible,
        governed: &Governed<'_>,
        event: &CallEvent,
    ) -> Result<Vec<Approval>, HaltedCall> {
        let task = event.task.as_ref().map(|(_, terms)| terms.approval);
        let call = governed.call;
        let mut approvals = Vec::new();
        let mut first = None;
        for required in call.required_approvals() {
            if *call.aim() != Aim::Use {
                return Err(required.unasked(call.ruling()).into());
            }
            let Some(new) =
                self.requested_approval(ctx, visible, governed, &required, event.call())
            else {
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
                    required.awaited(call.ruling(), self.describe(&approval))
                }
                Ok(Obtained::Crowded(retry_after_s)) => {
                    required.crowded(call.ruling(), retry_after_s)
                }
                Err(refusal) => return Err(HaltedCall::Stopped(refusal)),
            };
            first.get_or_insert(denial);
        }
        first.map_or(Ok(approvals), |denial: Denial| Err(denial.into()))
    }

    /// The approval that the call of a task waited for, if the call would be made without it: what people
    /// looked at is not what the policies ask about now.
    async fn unused(
        &self,
        event: &CallEvent,
        approvals: &[Approval],
    ) -> Result<Option<Approval>, Refusal> {
        let Some(id) = event.task.as_ref().map(|(_, terms)| terms.approval) else {
            return Ok(None);
        };
        if approvals.iter().any(|it| it.id == id) {
            return Ok(None);
        }
        let found = self.base.store.find_approval(event.org(), id).await?;
        let found = found.ok_or_else(|| Refusal::not_found("approval", &id.to_string()))?;
        Ok(Some(found.approval))
    }

    pub(super) fn describe(&self, approval: &Approval) -> AskedApproval {
        AskedApproval {
            id: approval.id,
            status: approval.status,
            expires_at: approval.expires_at,
            url: self.approvals.url(approval.id),
        }
    }

    /// The approval that the call needs for a policy. `None` if approvers cannot be shown the call.
    fn requested_approval(
        &self,
        ctx: &Ctx,
        visible: &Visible,
        governed: &Governed<'_>,
        required: &RequiredApproval<'_>,
        task: Option<EventId>,
    ) -> Option<NewApproval> {
        let Governed { call, dlp, .. } = governed;
        let caller = ctx.caller();
        let tool = call.tool();
        let subject = self.screening.subject(&ctx.session.tenant, tool);
        let shown = call.show(dlp.engine(), &subject)?;
        if shown.input.to_string().len() > LARGEST_SHOWN {
            return None;
        }
        let version = required.policy.version.as_deref().unwrap_or_default();
        let bound = BoundCall {
            org: caller.org_id,
            principal: caller.principal_id,
            via: caller.via,
            client: caller.foreign_client().map(|it| it.client.id.as_str()),
            tool: tool.id.as_str(),
            tool_version: &tool.version,
            connection: visible.connection.id,
            input: call.input(),
            responses: call.responses(),
            task,
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
