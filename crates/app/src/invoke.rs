//! The story of a governed call (contract §5.3), step by step and in its order.
//!
//! authenticate and `requests` limit (the HTTP layer) → scope → body → visible → `invocations`
//! limit (a replay costs none) → idempotency key → quarantine → schema → DLP → policy →
//! obligations → connection → intent durable → upstream → DLP and policy on the answer → outcome
//! durable → answer.

use std::sync::Arc;

use portcullis_core::{
    audit::{Governance, OutcomeStatus, Target},
    call::{Answer, Cleared, Denial, Ruling, ToolCall},
    idempotency::IdempotencyKey,
    limits::Resource,
    policy::PolicySet,
    principal::Scope,
    refusal::{Executed, Refusal, TOKEN_SCOPES},
    tool::{Tool, ToolId},
};
use portcullis_upstream::{CallAnswer, CallError, Trace};
use serde_json::Value;

pub use crate::answers::GovernanceView;
use crate::{
    App, Ctx, Dlp,
    answers::{add_answer, allowed, denied, outcome_of, unscoped, withhold},
    idempotency::{Claim, Known, Replayed},
    notices::Went,
    pins::{quarantine, quarantined},
    recorded::{Done, Draft},
    tools::Visible,
};

/// In which form the caller wants the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum View {
    /// Structured content stands for itself.
    #[default]
    Structured,
    /// Always the MCP form.
    Mcp,
}

/// One request to invoke. What the HTTP layer could not read arrives as its refusal, because the
/// token's scope is judged before the body is.
#[derive(Debug)]
pub struct Invocation {
    /// The tool id as the path gave it, decoded once.
    pub tool: String,
    /// The form of the result, or what is wrong with the query or the headers.
    pub view: Result<View, Refusal>,
    /// The idempotency key, if there is one, or what is wrong with it.
    pub key: Result<Option<IdempotencyKey>, Refusal>,
    /// The `input` member and the size of the whole body in bytes.
    pub body: Result<(Value, u64), Refusal>,
}

/// A call that was answered by its tool.
#[derive(Debug)]
pub struct Invoked {
    /// What the tool gave, as far as it may leave.
    pub result: Value,
    /// How it was governed.
    pub governance: GovernanceView,
    /// `success` or `tool_error`.
    pub outcome: OutcomeStatus,
}

/// What is answered to a call that was not refused.
#[derive(Debug)]
pub enum Answered {
    /// The tool was called.
    Invoked(Invoked),
    /// The same request was made before, and this was its answer.
    Replayed(Box<Replayed>),
}

/// A call that was refused or failed.
#[derive(Debug)]
pub struct Stopped {
    /// What to answer.
    pub refusal: Refusal,
    /// Whether the upstream effect happened.
    pub executed: Executed,
    /// How it was governed, if a decision was reached.
    pub governance: Option<GovernanceView>,
    /// In one word; absent when nothing could be recorded.
    pub outcome: Option<OutcomeStatus>,
}

/// A call that may be dispatched: all that the part after the intent needs.
pub(crate) struct Ready {
    ctx: Ctx,
    call: Cleared<ToolCall>,
    visible: Visible,
    policies: Arc<PolicySet>,
    dlp: Arc<Dlp>,
    view: View,
    /// The idempotency key that it has to take before anything is sent.
    pub(crate) claim: Option<Claim>,
}

/// Why a call goes no further.
enum Early {
    /// It is refused.
    Refused(Refusal),
    /// It was made before.
    Replayed(Box<Replayed>),
}

impl From<Refusal> for Early {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl App {
    /// Invokes a tool. Every call of this function leaves exactly one `mcp.invocation` event, or
    /// one `mcp.replayed` if the request was made before under the same idempotency key, and it is
    /// durable before the answer is given.
    pub async fn invoke(
        self: &Arc<Self>,
        ctx: Ctx,
        invocation: Invocation,
    ) -> Result<Answered, Box<Stopped>> {
        let app = Arc::clone(self);
        let task = self.tasks.spawn(async move { app.governed(ctx, invocation).await });
        task.await.unwrap_or_else(|_| Err(crashed()))
    }

    /// The whole call, on a task of its own: a caller who hangs up stops nothing.
    async fn governed(
        self: Arc<Self>,
        ctx: Ctx,
        invocation: Invocation,
    ) -> Result<Answered, Box<Stopped>> {
        let mut draft = Draft::open(&self, &ctx);
        match self.clear(&ctx, invocation, &mut draft).await {
            Ok(ready) => self.recorded(draft, ready).await,
            Err(Early::Replayed(replayed)) => self.replay(&ctx, replayed).await,
            Err(Early::Refused(refusal)) => {
                let outcome = outcome_of(&refusal, Executed::No);
                Err(self.refused(draft, refusal, outcome).await)
            }
        }
    }

    /// Steps 4 to 12: everything that is judged before anything is sent.
    async fn clear(
        self: &Arc<Self>,
        ctx: &Ctx,
        invocation: Invocation,
        draft: &mut Draft,
    ) -> Result<Ready, Early> {
        draft.target(self.named(&invocation.tool));
        ctx.require(Scope::McpsInvoke).inspect_err(|refusal| {
            let reason = refusal.details().get("reason").and_then(Value::as_str).map(str::to_owned);
            draft.governance(unscoped(reason.unwrap_or_else(|| TOKEN_SCOPES.to_owned())));
        })?;
        let key = invocation.key?;
        draft.protected(key.is_some());
        let view = invocation.view?;
        let (input, bytes) = invocation.body?;
        draft.input(self, &input);
        let visible = self.visible(ctx, &invocation.tool)?;
        draft.target(visible.target());
        let claim = key.map(|key| Claim::of_call(ctx, &key, &visible.tool.id, view, &input));
        self.admit_call(ctx, claim.as_ref()).await?;
        if self.pins.hold(ctx.caller().org_id, &visible.tool.id) {
            draft.governance(quarantine());
            return Err(quarantined().into());
        }
        let call = ToolCall::new(Arc::clone(&visible.tool), input, bytes)?;
        let (policies, dlp) = (self.policies.current(), self.dlp());
        let tool = Arc::clone(&visible.tool);
        let call = self.judge(ctx, call, &policies, &dlp).await.map_err(|denial| {
            self.ruled(ctx, &tool, &denial.ruling, Went::Denied);
            draft.looked_at(self, &denial.ruling.inputs);
            draft.capture_input(self, &denial.ruling);
            draft.governance(denied(&denial, policies.version()));
            denial.refusal()
        })?;
        self.ruled(ctx, &tool, call.ruling(), Went::Allowed);
        draft.looked_at(self, &call.ruling().inputs);
        draft.capture_input(self, call.ruling());
        draft.governance(allowed(call.ruling(), policies.version()));
        self.made_usable(&visible.connection).await?;
        let provider = &visible.connection.provider;
        let resting = visible.connection.server().check(&tool.definition.name);
        resting.map_err(|error| provider.refusal(&error, &visible.connection))?;
        Ok(Ready { ctx: ctx.clone(), call, visible, policies, dlp, view, claim })
    }

    /// Steps 7 and 8: the `invocations` limit and the idempotency key. A request that was answered
    /// before is given that answer, also beyond the limit.
    async fn admit_call(&self, ctx: &Ctx, claim: Option<&Claim>) -> Result<(), Early> {
        let known = match claim {
            None => Known::Free,
            Some(claim) => self.known(ctx.caller().org_id, claim).await?,
        };
        if let Known::Answered(replayed) = known {
            return Err(Early::Replayed(replayed));
        }
        self.take(ctx, Resource::Invocations)?;
        Ok(known.free()?)
    }

    /// The target of a call as far as its path names one. What is no tool id is not recorded, nor
    /// what is unknown and holds something that DLP knows: it may be a secret in the wrong place.
    fn named(&self, tool: &str) -> Target {
        let id = tool.parse::<ToolId>().ok().map(|id| id.to_string());
        let id = id.filter(|id| self.tools.load().contains_key(id) || self.is_clean(id));
        Target { credential: None, id, provider_id: None, kind: "mcp", version: None }
    }

    /// Steps 10 and 11: DLP, policy, obligations.
    async fn judge(
        &self,
        ctx: &Ctx,
        call: ToolCall,
        policies: &PolicySet,
        dlp: &Dlp,
    ) -> Result<Cleared<ToolCall>, Denial> {
        let subject = self.subject(ctx.caller().org_id, call.tool());
        let scanned = dlp.scan_call(call, &subject).await?;
        let permitted = scanned.decide(policies, dlp.engine(), ctx.asker(self.capture))?;
        permitted.fulfil(dlp.engine(), &self.rates.at(ctx.origin.arrived))
    }

    /// Steps 14 and 15, on a task of its own: call the upstream, judge what came back.
    pub(crate) async fn perform(self: &Arc<Self>, ready: Ready) -> Done {
        let mut governance = allowed(ready.call.ruling(), ready.policies.version());
        let origin = &ready.ctx.origin;
        let trace = Trace {
            traceparent: origin.traceparent.as_deref(),
            // It goes to the server, and nobody has looked through it.
            tracestate: origin.tracestate.as_deref().filter(|text| self.is_clean(text)),
        };
        let connection = &ready.visible.connection;
        let answered = self.call_through(connection, &ready.call, trace).await;
        match answered {
            Err(error) => {
                connection.provider.fails();
                failed(&ready, governance, &error)
            }
            Ok(answer) => match self.judge_answer(&ready, answer).await {
                Ok(answer) => {
                    self.ruled(&ready.ctx, &ready.visible.tool, answer.ruling(), Went::Allowed);
                    add_answer(&mut governance, answer.ruling());
                    let (result, is_error, ruling) = answer.into_parts();
                    let done = Done::answered(governance, result, is_error);
                    done.captured(ruling.capture, ruling.captured).looked_at(ruling.inputs)
                }
                Err(denial) => {
                    self.ruled(&ready.ctx, &ready.visible.tool, &denial.ruling, Went::Denied);
                    withhold(&mut governance, &denial);
                    let done = Done::stopped(governance, denial.refusal(), Executed::Yes);
                    done.looked_at(denial.ruling.inputs)
                }
            },
        }
    }

    /// What follows from a ruling besides the answer: it is counted, and whoever wants is told.
    fn ruled(&self, ctx: &Ctx, tool: &Tool, ruling: &Ruling, went: Went) {
        self.policies.tallies.count(ruling, ctx.origin.arrived);
        self.give_notices(ctx, tool.id.as_str(), ruling, went);
    }

    async fn judge_answer(
        &self,
        ready: &Ready,
        answer: CallAnswer,
    ) -> Result<Cleared<Answer>, Denial> {
        let CallAnswer { content, structured, is_error, more } = answer;
        let content = Value::Array(content);
        let answer = match ready.view {
            View::Structured => Answer::structured(content, structured, is_error),
            View::Mcp => Answer::mcp(content, structured, is_error, more),
        };
        let asker = ready.ctx.asker(self.capture);
        let subject = self.subject(ready.ctx.caller().org_id, ready.call.tool());
        let scanned = ready.dlp.scan_answer(answer, &subject).await?;
        let engine = ready.dlp.engine();
        let permitted = scanned.decide(&ready.call, &ready.policies, engine, asker)?;
        permitted.fulfil(engine, &ready.call)
    }
}

fn failed(ready: &Ready, governance: Governance, error: &CallError) -> Done {
    let connection = &ready.visible.connection;
    let refusal = connection.provider.refusal(error, connection);
    Done::stopped(governance, refusal, error.executed)
}

/// The answer to a bug. If the call was dispatched, its intent is closed as `unknown` later.
fn crashed() -> Box<Stopped> {
    let (refusal, executed) = (Refusal::Internal, Executed::Unknown);
    Box::new(Stopped { refusal, executed, governance: None, outcome: None })
}
