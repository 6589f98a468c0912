//! The story of a governed call, step by step and in its order.
//!
//! The HTTP layer has authenticated the caller and charged the `requests` limit. Then:
//!
//! 1. admission: a place to be judged in;
//! 2. parse: scope, key, body, visible tool;
//! 3. admit: `invocations` limit (a replay costs none) and idempotency key;
//! 4. a tool list younger than a minute, quarantine, schema;
//! 5. judge: DLP, policy, obligations;
//! 6. a connection with credentials;
//! 7. approve: approvals of people;
//! 8. bracket: the intent is durable, and takes key and approvals;
//! 9. effect: the upstream is called, DLP and policy decide about the answer;
//! 10. bracket: the outcome is durable, then the answer leaves.
//!
//! A tool that asks something instead ends its leg of the call in the same way
//! ([`interaction`](super::interaction)).

use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc};

use futures_util::FutureExt;
use portcullis_core::{
    call::Use,
    mcp::Method,
    refusal::{Executed, Refusal},
};
use portcullis_lanes::offload;

use super::{
    Answered, Calls, Invocation, Stopped,
    approve::{self, Governed},
    bracket::Bracketed,
    dispatch::Dispatch,
    event::{CallEvent, governance_of},
    reject::Rejection,
    steps::ParsedCall,
    uninterrupted::Uninterrupted,
};
use crate::{
    base::admission::{Admission, overloaded},
    policies::notices::Verdict,
    request::Ctx,
};

impl Calls {
    /// Refuses a call while there is no place for it and none to wait for: to refuse it costs less
    /// before its request is read.
    pub fn room_for_a_call(&self) -> Result<(), Refusal> {
        if self.admissions.are_full() { Err(overloaded()) } else { Ok(()) }
    }

    /// Invokes a tool. Every call of this function that finds room leaves exactly one
    /// `mcp.invocation` event, or one `mcp.replayed` if the request was made before under the same
    /// idempotency key, and it is durable before the answer is given.
    ///
    /// `request` reads the request, in a body of so many bytes, once there is a place for the call: to
    /// reject one costs little.
    pub async fn invoke(
        self: &Arc<Self>,
        ctx: Ctx,
        bytes: usize,
        request: impl FnOnce() -> Invocation + Send + 'static,
    ) -> Result<Answered, Box<Stopped>> {
        // Until it is dispatched, so that calls which wait for their tools hold up no others.
        let Some(admission) = self.admissions.admit(&ctx.session.tenant, bytes).await else {
            return Err(Stopped::uncounted(overloaded()));
        };
        let org = ctx.caller().org_id;
        let governed = Box::pin(Arc::clone(self).governed(ctx, request, admission));
        let call = Uninterrupted::new(governed, org, &self.base.workers, &self.base.tasks);
        AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|_| Err(crashed()))
    }

    /// The whole call. A caller who hangs up stops nothing.
    async fn governed(
        self: Arc<Self>,
        ctx: Ctx,
        request: impl FnOnce() -> Invocation + Send,
        mut admission: Admission,
    ) -> Result<Answered, Box<Stopped>> {
        if admission.is_large() {
            offload().await;
        }
        let mut event = CallEvent::open(&self, &ctx);
        let dispatch = match self.clear(&ctx, request(), &mut event, &mut admission).await {
            Ok(dispatch) => dispatch,
            Err(rejection) => return Box::pin(self.reject(&ctx, event, rejection)).await,
        };
        let claim = dispatch.claim.as_ref();
        let uses = approve::uses(&dispatch.approvals);
        let bracketed = {
            let effect = pin!(async {
                drop(admission);
                self.perform(&dispatch).await
            });
            self.bracket(event, claim, uses, effect).await
        };
        if !matches!(bracketed, Bracketed::Ended(_)) {
            self.policies.give_back(&ctx, dispatch.call.rates());
        }
        match bracketed {
            Bracketed::Ended(mut end) => {
                if let Ok(Answered::Invoked(invoked)) = &mut end {
                    invoked.notes = dispatch.call.tool().misspelt(dispatch.call.input());
                }
                end
            }
            Bracketed::KeyTaken(event) => Box::pin(self.lose_key_race(event, claim)).await,
            Bracketed::NotApproved(event) => {
                Box::pin(self.lose_approvals(event, &dispatch.approvals)).await
            }
        }
    }

    /// Everything that is decided before anything is sent.
    async fn clear(
        &self,
        ctx: &Ctx,
        invocation: Invocation,
        event: &mut CallEvent,
        admission: &mut Admission,
    ) -> Result<Dispatch, Rejection> {
        let parsed = self.parse(ctx, invocation, event);
        let parsed = self.admit_call(ctx, parsed).await?;
        self.clear_parsed(ctx, parsed, event, admission).await
    }

    /// The same of a call that is counted already.
    pub(super) async fn clear_parsed(
        &self,
        ctx: &Ctx,
        parsed: ParsedCall,
        event: &mut CallEvent,
        admission: &mut Admission,
    ) -> Result<Dispatch, Rejection> {
        let ParsedCall { mut visible, view, claim, input, aim, bytes, conversation, about } =
            parsed;
        let refreshed = self.refresh_tool(ctx, &visible, input.root(), &aim, admission).await?;
        if let Some(refreshed) = refreshed {
            event.set_target(refreshed.target());
            visible = refreshed;
        }
        let policies = self.policies.current_of(ctx.caller().org_id);
        let dlp = self.screening.dlp();
        let tool = Arc::clone(&visible.tool);
        let pin = self.tools.pins.state(ctx.caller().org_id, &tool);
        let (leg, mut round, responses) = self.leg(ctx, &visible, conversation, about.is_some())?;
        let waits = leg.waits_for_tasks() || event.task.is_some();
        round.capabilities.tasks =
            waits || (about.is_none() && self.may_be_task(ctx, &visible, &round, bytes).await?);
        // It was counted, and people were asked, when the call was made.
        let goes_on = about.is_some_and(|method| method != Method::UpdateTask);
        let (engine, used) = (dlp.engine(), Arc::clone(&tool));
        let original = (round.capabilities.tasks && !waits).then(|| input.clone());
        let call = Use::aimed(engine, used, pin, input, aim, bytes);
        let call = call.map(|call| call.at_round(round, responses));
        let judged = self.judge(ctx, call, &policies, &dlp, admission, goes_on).await;
        let call = judged.map_err(|judged| self.deny(ctx, event, judged, &visible, &policies))?;
        let asks = event.task.is_some() || call.required_approvals().next().is_some();
        let asks = asks && !goes_on;
        if !asks && !goes_on {
            self.follow_up(ctx, &tool, call.ruling(), Verdict::Allowed);
        }
        event.add_inputs(self, &call.ruling().inputs);
        event.capture_input(self, call.ruling());
        event.set_governance(governance_of(call.ruling(), policies.version(), &[]));
        leg.continues(&call)?;
        self.connect(ctx, &visible, admission, goes_on).await?;
        let approvals = if asks {
            let governed = Governed { call: &call, policies: &policies, dlp: &dlp };
            Box::pin(self.approve(ctx, &visible, &governed, event)).await?
        } else {
            Vec::new()
        };
        let (event, ctx) = (event.id, ctx.clone());
        Ok(Dispatch {
            waits,
            event,
            ctx,
            call,
            original,
            visible,
            policies,
            dlp,
            view,
            leg,
            approvals,
            claim,
        })
    }
}

/// The answer to a bug. If the call was dispatched, its intent is closed as `unknown` later.
pub(super) fn crashed() -> Box<Stopped> {
    let refusal = Refusal::Internal;
    let executed = Executed::Unknown;
    Box::new(Stopped { refusal, executed, governance: None, outcome: None })
}
