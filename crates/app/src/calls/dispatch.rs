//! A cleared call, and the decisions about whatever comes back from its tool.

use std::sync::Arc;

use portcullis_core::{
    approval::Approval,
    audit::Governance,
    call::{Answer, CallResult, Cleared, Denial, Ruling, Use},
    capability::Capability,
    id::EventId,
    json::Document,
    policy::PolicySet,
    refusal::Executed,
};

use super::{
    Calls, View,
    event::{CallOutcome, governance_of},
    leg::Leg,
};
use crate::{
    base::claim::Claim,
    catalogue::Visible,
    policies::notices::Verdict,
    request::{Ctx, dlp::Dlp},
    telemetry::stages::Stage,
};

/// A call that may be dispatched, with all that its effect needs.
pub(crate) struct Dispatch {
    /// True if the gateway waits for the end of a task, and the caller asks for none.
    pub(super) waits: bool,
    /// Its event.
    pub(super) event: EventId,
    pub(super) ctx: Ctx,
    pub(super) call: Cleared<Use>,
    /// The input as the caller sent it, of a call that may become a task.
    pub(super) original: Option<Document>,
    pub(super) visible: Visible,
    pub(super) policies: Arc<PolicySet>,
    pub(super) dlp: Arc<Dlp>,
    pub(super) view: View,
    pub(super) leg: Leg,
    pub(super) approvals: Vec<Approval>,
    /// The idempotency key that it takes before anything is sent.
    pub(super) claim: Option<Claim>,
}

impl Dispatch {
    /// Governance of the call before its tool answers.
    pub(super) fn governance(&self) -> Governance {
        governance_of(self.call.ruling(), self.policies.version(), &self.approvals)
    }

    /// The answer of the tool in the form that the caller wants.
    pub(super) fn answer(&self, result: CallResult) -> Answer {
        match self.view {
            View::Structured => Answer::structured(result),
            View::Mcp => Answer::mcp(result),
        }
    }
}

impl Calls {
    /// Decides about an answer of the tool: DLP, policy, obligations.
    pub(super) async fn judge_answer(
        &self,
        dispatch: &Dispatch,
        answer: Answer,
    ) -> Result<Cleared<Answer>, Denial> {
        let asker = dispatch.ctx.asker(self.capture);
        let subject = self.screening.subject(&dispatch.ctx.session.tenant, dispatch.call.tool());
        self.enter_stage(&dispatch.ctx, Stage::DlpOutput);
        let scanned = dispatch.dlp.scan_answer(answer, &subject).await?;
        let engine = dispatch.dlp.engine();
        self.enter_stage(&dispatch.ctx, Stage::PolicyOutput);
        let permitted = scanned.decide(&dispatch.call, &*dispatch.policies, engine, asker)?;
        permitted.fulfil(engine, dispatch.call.tool())
    }

    /// The outcome of a call whose answer, or questions, must not leave.
    pub(super) fn withhold(
        &self,
        dispatch: &Dispatch,
        mut governance: Governance,
        denial: Denial,
    ) -> CallOutcome {
        denial.withhold(&mut governance);
        let outcome = CallOutcome::of_refusal(governance, denial.refusal(), Executed::Yes);
        let Some(ruling) = denial.into_ruling() else { return outcome };
        self.follow_up(&dispatch.ctx, &dispatch.visible.tool, &ruling, Verdict::Denied);
        dispatch.ctx.session.tenant.tallies.replaced(&dispatch.call.ruling().policy);
        outcome.with_ruling(ruling)
    }

    /// Counts a ruling that decides a call, and sends its notices.
    pub(super) fn follow_up(
        &self,
        ctx: &Ctx,
        tool: &Capability,
        ruling: &Ruling,
        verdict: Verdict,
    ) {
        self.tally(ctx, ruling, Some(&ruling.policy));
        self.policies.give_notices(ctx, tool.id.as_str(), ruling, verdict);
    }

    /// The same of an answer that passes: the policy that permitted the call decided it.
    pub(super) fn follow_answer(&self, ctx: &Ctx, tool: &Capability, ruling: &Ruling) {
        self.tally(ctx, ruling, None);
        self.policies.give_notices(ctx, tool.id.as_str(), ruling, Verdict::Allowed);
    }

    fn tally(&self, ctx: &Ctx, ruling: &Ruling, decided: Option<&str>) {
        let set = || self.policies.current_of(ctx.caller().org_id);
        ctx.session.tenant.tallies.count(ruling, decided, set, ctx.origin.arrived);
    }

    /// Counts a denial by a policy beside which no other was asked.
    pub(super) fn tally_outright(&self, ctx: &Ctx, policy: &str) {
        let set = || self.policies.current_of(ctx.caller().org_id);
        ctx.session.tenant.tallies.count_outright(policy, set, ctx.origin.arrived);
    }
}
