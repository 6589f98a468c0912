//! The decision about a call before anything is sent: DLP, policy, obligations.

use portcullis_core::{
    call::{Cleared, Denial, ToolCall},
    policy::PolicySet,
    refusal::Refusal,
};

use super::{Calls, event::CallEvent};
use crate::{
    base::admission::{Admission, HaltedCall},
    catalogue::Visible,
    policies::{limits::uncounted, notices::Went},
    request::{Ctx, dlp::Dlp},
    telemetry::stages::Stage,
};

impl Calls {
    /// Scans the call, decides by policy, and fulfils the obligations of the decision.
    pub(super) async fn judge(
        &self,
        ctx: &Ctx,
        call: Result<ToolCall, Denial>,
        policies: &PolicySet,
        dlp: &Dlp,
        admission: &mut Admission,
    ) -> Result<Cleared<ToolCall>, HaltedCall> {
        let call = call?;
        let subject = self.screening.subject(&ctx.session.tenant, call.tool());
        self.enter_stage(ctx, Stage::DlpInput);
        let scanned = dlp.scan_call(call, &subject, admission).await?;
        self.enter_stage(ctx, Stage::PolicyInput);
        let permitted = scanned.decide(policies, dlp.engine(), ctx.asker(self.capture))?;
        let limiter = self.policies.limiter(ctx, permitted.rates()).await;
        let limiter = limiter.map_err(|_| HaltedCall::Stopped(uncounted()))?;
        Ok(permitted.fulfil(dlp.engine(), &limiter)?)
    }

    /// The refusal of a call that the decision does not let pass, with its event.
    pub(super) fn deny(
        &self,
        ctx: &Ctx,
        event: &mut CallEvent,
        judged: HaltedCall,
        visible: &Visible,
        policies: &PolicySet,
    ) -> Refusal {
        let denial = match judged {
            HaltedCall::Denied(denial) => denial,
            HaltedCall::Stopped(refusal) => return refusal,
        };
        if let Some(ruling) = denial.ruling() {
            self.follow_up(ctx, &visible.tool, ruling, Went::Denied);
            event.add_inputs(self, &ruling.inputs);
            event.capture_input(self, ruling);
        } else if let Some(policy) = denial.policy() {
            self.tally_outright(ctx, policy);
        }
        event.deny(&denial, policies.version())
    }
}
