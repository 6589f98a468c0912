//! The story of a governed call, step by step and in its order.
//!
//! authenticate and `requests` limit (the HTTP layer) → scope → body → visible → `invocations`
//! limit (a replay costs none) → idempotency key → definition younger than a minute → quarantine →
//! schema → DLP → policy → obligations → connection → approvals → intent durable → upstream → DLP and
//! policy on the answer → outcome durable → answer. A tool that asks something instead ends its leg of the call in
//! the same way; [`interaction`](super::interaction) holds what is particular to that.

use std::{panic::AssertUnwindSafe, pin::pin, slice, sync::Arc};

use futures_util::FutureExt;
use portcullis_core::{
    approval::{Approval, Status},
    audit::{Governance, Target},
    call::{Answer, CallResult, Cleared, Denial, Ruling, ToolCall},
    json::Document,
    limits::Resource,
    policy::PolicySet,
    principal::Scope,
    refusal::{Executed, Refusal, UpstreamReason},
    tool::{Tool, ToolId},
};
use portcullis_lanes::offload;
use portcullis_store::Cost;
use portcullis_upstream::{CallAnswer, Said, Trace};

use super::{
    Answered, Calls, Invocation, Stopped, View,
    admission::{Admission, Judged, overloaded},
    approval,
    claim::Claim,
    conversation::Conversation,
    idempotency::{Known, Replayed},
    interaction::Leg,
    recorded::{Done, Draft},
    remarks::Remark,
    uninterrupted::Uninterrupted,
};
use crate::{
    access::limits::uncounted, attendance::Attendance, ctx::Ctx, dlp::Dlp, policies::notices::Went,
    providers::provider::Misfits, telemetry::stages::Stage, tools::catalogue::Visible,
};

/// A call that may be dispatched: all that the part after the intent needs.
pub(crate) struct Ready {
    pub(super) ctx: Ctx,
    pub(super) call: Cleared<ToolCall>,
    pub(super) visible: Visible,
    pub(super) policies: Arc<PolicySet>,
    pub(super) dlp: Arc<Dlp>,
    view: View,
    pub(super) leg: Leg,
    /// Approvals that it is made with.
    pub(super) approvals: Vec<Approval>,
    /// The idempotency key that it has to take before anything is sent.
    pub(crate) claim: Option<Claim>,
}

/// A call of a tool that the caller sees, as it was asked for.
struct Asked {
    visible: Visible,
    view: View,
    claim: Option<Claim>,
    input: Document,
    bytes: u64,
    conversation: Conversation,
}

/// Why a call goes no further.
enum Early {
    /// It is refused.
    Refused(Refusal),
    /// It is none: the plan allows no further request, or nobody can tell.
    Uncounted(Refusal),
    /// It was made before.
    Replayed(Box<Replayed>),
}

impl Early {
    /// Beyond the invocations it is a refused invocation; before that it is none.
    fn of_limit(refusal: Refusal) -> Self {
        if let Refusal::RateLimited { resource: Resource::Invocations, .. } = refusal {
            Self::Refused(refusal)
        } else {
            Self::Uncounted(refusal)
        }
    }
}

impl From<Refusal> for Early {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Calls {
    /// Says no while there is no room for a call and nobody may wait for it: to say so costs less
    /// before what is asked for was read.
    pub fn room_for_a_call(&self) -> Result<(), Refusal> {
        if self.admissions.are_full() { Err(overloaded()) } else { Ok(()) }
    }

    /// Invokes a tool. Every call of this function that finds room leaves exactly one
    /// `mcp.invocation` event, or one `mcp.replayed` if the request was made before under the same
    /// idempotency key, and it is durable before the answer is given.
    ///
    /// The request, in a body of so many bytes, is looked at once there is capacity for it: to
    /// reject a call costs little.
    pub async fn invoke(
        self: &Arc<Self>,
        ctx: Ctx,
        bytes: usize,
        asked: impl FnOnce() -> Invocation + Send + 'static,
    ) -> Result<Answered, Box<Stopped>> {
        // Until it is dispatched, so that calls which wait for their tools hold up no others.
        let Some(admission) = self.admissions.admit(&ctx.session.tenant, bytes).await else {
            return Err(Stopped::uncounted(overloaded()));
        };
        let org = ctx.caller().org_id;
        let governed = Box::pin(Arc::clone(self).governed(ctx, asked, admission));
        let call = Uninterrupted::new(governed, org, &self.base.workers, &self.base.tasks);
        AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|_| Err(crashed()))
    }

    /// The whole call. A caller who hangs up stops nothing.
    async fn governed(
        self: Arc<Self>,
        ctx: Ctx,
        asked: impl FnOnce() -> Invocation + Send,
        mut admission: Admission,
    ) -> Result<Answered, Box<Stopped>> {
        if admission.is_large() {
            offload().await;
        }
        let mut draft = Draft::open(&self, &ctx);
        match self.clear(&ctx, asked(), &mut draft, &mut admission).await {
            Ok(ready) => self.recorded(draft, ready, admission).await,
            Err(Early::Replayed(replayed)) => Box::pin(self.replay(&ctx, replayed)).await,
            Err(Early::Uncounted(refusal)) => {
                self.quotas.note_throttled(&ctx, &refusal);
                Err(Stopped::uncounted(refusal))
            }
            Err(Early::Refused(refusal)) => Box::pin(self.turned_down(draft, refusal)).await,
        }
    }

    /// Steps 4 to 6: what is asked for, by somebody who may invoke.
    fn call_asked_for(
        &self,
        ctx: &Ctx,
        invocation: Invocation,
        draft: &mut Draft,
    ) -> Result<Asked, Refusal> {
        self.enter_stage(ctx, Stage::Validate);
        draft.target(self.named(invocation.tool.as_ref().ok()));
        ctx.require(Scope::McpsInvoke).map_err(|_| {
            let denial = Denial::unscoped(Scope::McpsInvoke);
            refused(draft, &denial, self.policies.current().version())
        })?;
        let key = invocation.key?;
        draft.protected(key.is_some() || invocation.task.is_some());
        if let (Some(terms), Ok(tool)) = (invocation.task, &invocation.tool) {
            let claim = Claim::of_task(ctx.caller(), tool, (terms.approval, terms.ends_at));
            draft.task = Some((claim, terms));
        }
        let view = invocation.view?;
        let (input, bytes) = invocation.body?;
        draft.input(self, input.root());
        let visible = self.catalogue.visible(ctx, &invocation.tool?)?;
        draft.target(visible.target());
        ctx.trace_tool(&visible.tool);
        let conversation = invocation.conversation;
        let of_key = key.map(|key| {
            let (id, view) = (&visible.tool.id, view.as_str());
            Claim::of_call(ctx.caller(), &key, id, view, input.root(), &conversation)
        });
        let claim = draft.task.as_ref().map(|(claim, _)| claim.clone()).or(of_key);
        Ok(Asked { visible, view, claim, input, bytes, conversation })
    }

    /// Steps 4 to 12: everything that is judged before anything is sent.
    async fn clear(
        self: &Arc<Self>,
        ctx: &Ctx,
        invocation: Invocation,
        draft: &mut Draft,
        admission: &mut Admission,
    ) -> Result<Ready, Early> {
        let asked = self.call_asked_for(ctx, invocation, draft);
        self.enter_stage(ctx, Stage::Limits);
        let asked = self.admit_call(ctx, asked).await?;
        self.enter_stage(ctx, Stage::Validate);
        let Asked { mut visible, view, claim, input, bytes, conversation } = asked;
        if let Some(looked_at) = self.providers.looked_anew(&visible, admission).await? {
            draft.target(looked_at.target());
            visible = looked_at;
        }
        let (policies, dlp) = (self.policies.current(), self.screening.dlp());
        let (tool, pin) =
            (Arc::clone(&visible.tool), self.tools.pins.state(ctx.caller().org_id, &visible.tool));
        let (leg, turn, responses) = self.leg(ctx, &visible, conversation)?;
        let call = ToolCall::new(dlp.engine(), Arc::clone(&tool), pin, input, bytes)
            .map(|call| call.at_turn(turn, responses));
        let judged = self.judge(ctx, call, (&policies, &dlp), admission).await;
        let call = judged.map_err(|judged| {
            let denial = match judged {
                Judged::Denied(denial) => denial,
                Judged::Stopped(refusal) => return refusal,
            };
            if let Some(ruling) = denial.ruling() {
                self.ruled(ctx, &tool, ruling, Went::Denied);
                draft.looked_at(self, &ruling.inputs);
                draft.capture_input(self, ruling);
            }
            refused(draft, &denial, policies.version())
        })?;
        let asks = draft.task.is_some() || call.required_approvals().next().is_some();
        if !asks {
            self.ruled(ctx, &tool, call.ruling(), Went::Allowed);
        }
        draft.looked_at(self, &call.ruling().inputs);
        draft.capture_input(self, call.ruling());
        draft.governance(call.ruling().governance(policies.version()));
        leg.continues(&call)?;
        self.enter_stage(ctx, Stage::Connection);
        self.providers.made_usable(&visible.connection, admission).await?;
        let provider = &visible.connection.provider;
        let (connection, name) = (&visible.connection, &tool.definition.name);
        let resting = connection.server().check(connection.org, name);
        resting.map_err(|error| provider.refusal(&error, &visible.connection))?;
        let approvals = if asks {
            let governed = (&call, &*policies, &*dlp);
            self.approvals_of(ctx, &visible, governed, draft).await?
        } else {
            Vec::new()
        };
        Ok(Ready { ctx: ctx.clone(), call, visible, policies, dlp, view, leg, approvals, claim })
    }

    /// The last step before a call may be dispatched, where policies ask that people approve it.
    async fn approvals_of(
        &self,
        ctx: &Ctx,
        visible: &Visible,
        (call, policies, dlp): (&Cleared<ToolCall>, &PolicySet, &Dlp),
        draft: &mut Draft,
    ) -> Result<Vec<Approval>, Refusal> {
        let task = draft.task.as_ref().map(|(_, terms)| terms.approval);
        match self.approved(ctx, visible, call, (dlp, task)).await {
            Ok(approvals) => {
                let governance = call.ruling().governance(policies.version());
                if let Some(unused) = self.unused(draft, &approvals).await? {
                    self.policies.give_back(ctx, call.rates());
                    draft.governance(approval::lost(governance, slice::from_ref(&unused)));
                    return Err(self.awaited(&unused, Status::Expired));
                }
                self.ruled(ctx, &visible.tool, call.ruling(), Went::Allowed);
                draft.governance(approval::named(governance, &approvals));
                Ok(approvals)
            }
            Err(judged) => {
                self.policies.give_back(ctx, call.rates());
                match judged {
                    Judged::Stopped(refusal) => Err(refusal),
                    Judged::Denied(denial) => {
                        self.ruled(ctx, &visible.tool, call.ruling(), Went::Denied);
                        Err(refused(draft, &denial, policies.version()))
                    }
                }
            }
        }
    }

    /// Steps 7 and 8: the limits and the idempotency key. What is refused already costs a request,
    /// as does a request that was answered before: it is given that answer, also when there are no
    /// invocations left.
    async fn admit_call(&self, ctx: &Ctx, asked: Result<Asked, Refusal>) -> Result<Asked, Early> {
        let known = match &asked {
            Ok(Asked { claim: Some(claim), .. }) => self.known(ctx.caller().org_id, claim).await,
            Ok(Asked { claim: None, .. }) | Err(_) => Ok(Known::Free),
        };
        let cost = match (&asked, &known) {
            (Err(_), _) | (_, Err(_) | Ok(Known::Answered(_))) => Cost::Request,
            (Ok(_), Ok(Known::Free | Known::UnderWay(_) | Known::Reused(_))) => Cost::Call,
        };
        self.quotas.charge_invoker(ctx, cost).await.map_err(Early::of_limit)?;
        let asked = asked?;
        match known? {
            Known::Answered(replayed) => Err(Early::Replayed(replayed)),
            known @ (Known::Free | Known::UnderWay(_) | Known::Reused(_)) => {
                known.free()?;
                Ok(asked)
            }
        }
    }

    /// The target of a call as far as its path names one. What is no tool id is not recorded, nor
    /// what is unknown and holds something that DLP knows: it may be a secret in the wrong place.
    fn named(&self, tool: Option<&ToolId>) -> Target {
        let id = tool.map(ToString::to_string);
        let id = id.filter(|id| {
            self.catalogue.tools.load().contains_key(id) || self.screening.is_clean(id)
        });
        Target { credential: None, id, provider_id: None, kind: "mcp", version: None }
    }

    /// Steps 10 and 11: DLP, policy, obligations.
    async fn judge(
        &self,
        ctx: &Ctx,
        call: Result<ToolCall, Denial>,
        (policies, dlp): (&PolicySet, &Dlp),
        admission: &mut Admission,
    ) -> Result<Cleared<ToolCall>, Judged> {
        let call = call?;
        let subject = self.screening.subject(&ctx.session.tenant, call.tool());
        self.enter_stage(ctx, Stage::DlpInput);
        let scanned = dlp.scan_call(call, &subject, admission).await?;
        self.enter_stage(ctx, Stage::PolicyInput);
        let permitted = scanned.decide(policies, dlp.engine(), ctx.asker(self.capture))?;
        let limiter = self.policies.limiter(ctx, permitted.rates()).await;
        let limiter = limiter.map_err(|_| Judged::Stopped(uncounted()))?;
        Ok(permitted.fulfil(dlp.engine(), &limiter)?)
    }

    /// Steps 14 and 15, on a task of its own: call the upstream, judge what came back.
    pub(crate) async fn perform(self: &Arc<Self>, ready: Ready) -> Done {
        let governance = ready.call.ruling().governance(ready.policies.version());
        let mut governance = approval::named(governance, &ready.approvals);
        let (origin, connection) = (&ready.ctx.origin, &ready.visible.connection);
        let begun = self.enter_stage(&ready.ctx, Stage::Upstream);
        ready.ctx.trace_call(&ready.visible.tool, connection.server().network());
        let forms = connection.server().forms();
        let said = Said::default();
        let trace = Trace {
            traceparent: origin.stages.parent().or(origin.traceparent),
            // It goes to the server, and nobody has looked through it.
            tracestate: origin.tracestate.as_deref().filter(|text| self.screening.is_clean(text)),
            live: ready.ctx.attendance.as_ref().map(Attendance::live),
            forms: forms.as_ref(),
            said: Some(&said),
        };
        let call = pin!(self.providers.call_through(connection, &ready.call, trace));
        let (answered, told) = self.attended(&ready, call).await;
        for ruling in &told {
            ruling.add_to(&mut governance);
        }
        connection.provider.called(&answered, begun, self.base.clock.now());
        ready.ctx.trace_answer(&answered);
        let fits = self.fits(&ready, answered.as_ref()).await;
        let remarks = Remark::of(&ready.visible.tool, answered.as_ref(), fits);
        let declared = &connection.provider.declared;
        let done = match answered {
            Err(error) => {
                connection.provider.fails();
                self.failed(&ready, governance, &error, &said).await
            }
            Ok(CallAnswer::Asked(interaction)) => {
                self.asked(&ready, governance, *interaction).await
            }
            Ok(CallAnswer::Result(_)) if !fits && declared.misfits == Misfits::Deny => {
                let slug = declared.slug.clone();
                let refusal = Refusal::upstream(slug, UpstreamReason::OutputMismatch);
                Done::stopped(governance, refusal, Executed::Yes)
            }
            Ok(CallAnswer::Result(result)) => {
                match self.judge_answer(&ready, answer_of(&ready, result)).await {
                    Ok(answer) => {
                        self.ruled(&ready.ctx, &ready.visible.tool, answer.ruling(), Went::Allowed);
                        answer.ruling().add_to(&mut governance);
                        let (result, is_error, ruling) = answer.into_parts();
                        let done = Done::answered(governance, result, is_error);
                        done.captured(ruling.capture, ruling.captured).looked_at(ruling.inputs)
                    }
                    Err(denial) => self.withheld(&ready, governance, denial),
                }
            }
        };
        done.shown(forms.clone()).remarked(remarks)
    }

    /// The end of a call whose answer, or questions, must not leave.
    pub(super) fn withheld(
        &self,
        ready: &Ready,
        mut governance: Governance,
        denial: Denial,
    ) -> Done {
        denial.withhold(&mut governance);
        let done = Done::stopped(governance, denial.refusal(), Executed::Yes);
        let Some(ruling) = denial.into_ruling() else { return done };
        self.ruled(&ready.ctx, &ready.visible.tool, &ruling, Went::Denied);
        done.looked_at(ruling.inputs)
    }

    /// Follow-up of a ruling besides the answer: it is counted, and its notices are sent.
    pub(super) fn ruled(&self, ctx: &Ctx, tool: &Tool, ruling: &Ruling, went: Went) {
        let set = || self.policies.current();
        ctx.session.tenant.tallies.count(ruling, set, ctx.origin.arrived);
        self.policies.give_notices(ctx, tool.id.as_str(), ruling, went);
    }

    pub(super) async fn judge_answer(
        &self,
        ready: &Ready,
        answer: Answer,
    ) -> Result<Cleared<Answer>, Denial> {
        let asker = ready.ctx.asker(self.capture);
        let subject = self.screening.subject(&ready.ctx.session.tenant, ready.call.tool());
        self.enter_stage(&ready.ctx, Stage::DlpOutput);
        let scanned = ready.dlp.scan_answer(answer, &subject).await?;
        let engine = ready.dlp.engine();
        self.enter_stage(&ready.ctx, Stage::PolicyOutput);
        let permitted = scanned.decide(&ready.call, &*ready.policies, engine, asker)?;
        permitted.fulfil(engine, ready.call.tool())
    }
}

/// The answer of a tool in the form that the caller wants.
fn answer_of(ready: &Ready, result: CallResult) -> Answer {
    match ready.view {
        View::Structured => Answer::structured(result),
        View::Mcp => Answer::mcp(result),
    }
}

/// The answer to a denial, which the event records.
fn refused(draft: &mut Draft, denial: &Denial, policy_set: &str) -> Refusal {
    if let Some(governance) = denial.governance(policy_set) {
        draft.governance(governance);
    }
    denial.refusal()
}

/// The answer to a bug. If the call was dispatched, its intent is closed as `unknown` later.
fn crashed() -> Box<Stopped> {
    let (refusal, executed) = (Refusal::Internal, Executed::Unknown);
    Box::new(Stopped { refusal, executed, governance: None, outcome: None })
}
