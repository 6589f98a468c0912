//! Governed calls: [`invoke`] tells the story of an invocation, [`bracket`] makes sure that nothing
//! happens unrecorded.

mod admit;
pub(crate) mod answers;
mod approve;
mod attended;
mod bracket;
pub(crate) mod conversation;
mod dispatch;
mod effect;
pub(crate) mod event;
mod failed;
pub(crate) mod idempotency;
pub(crate) mod interaction;
pub(crate) mod invoke;
mod parse;
mod reject;
pub(crate) mod remarks;
mod spans;
pub(crate) mod task;
mod uninterrupted;

use std::sync::Arc;

use portcullis_core::{
    audit::{Capture, OutcomeStatus},
    call::StateKey,
    clock::Timestamp,
    idempotency::{AnswerKey, IdempotencyKey},
    json::Document,
    refusal::{Executed, Refusal},
    tool::ToolId,
};

use self::{
    answers::GovernanceView, conversation::Conversation, idempotency::Replayed, task::TaskTerms,
};
use crate::{
    access::limits::Quotas,
    admission::{Admissions, Judging},
    approvals::Approvals,
    audit::Audit,
    base::Base,
    ctx::Ctx,
    policies::Policies,
    providers::Providers,
    screening::Screening,
    telemetry::stages::Stage,
    tools::{Tools, catalogue::ToolCatalogue},
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

impl View {
    /// `structured` or `mcp`.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Structured => "structured",
            Self::Mcp => "mcp",
        }
    }
}

/// One request to invoke. What the HTTP layer could not read arrives as its refusal, because the
/// token's scope is judged before the body is.
#[derive(Debug)]
pub struct Invocation {
    /// The tool, or that what was named can be none.
    pub tool: Result<ToolId, Refusal>,
    /// The form of the result, or what is wrong with the query or the headers.
    pub view: Result<View, Refusal>,
    /// The idempotency key, if there is one, or what is wrong with it.
    pub key: Result<Option<IdempotencyKey>, Refusal>,
    /// The `input` member and the size of the whole body in bytes.
    pub body: Result<(Document, u64), Refusal>,
    /// Questions of the tool that the caller answers, and answers to earlier ones.
    pub conversation: Conversation,
    /// The task whose call it is, if it is one.
    pub task: Option<TaskTerms>,
}

/// A call that was answered by its tool.
#[derive(Debug)]
pub struct Invoked {
    /// Result of the tool, as far as it may leave the gateway.
    pub result: Document,
    /// Governance of the call.
    pub governance: GovernanceView,
    /// `success`, `tool_error` or `input_required`.
    pub outcome: OutcomeStatus,
    /// It is so large that a worker writes it.
    pub large: bool,
}

/// Answer to a call that was not refused.
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
    /// The refusal to answer with.
    pub refusal: Refusal,
    /// State of the upstream effect.
    pub executed: Executed,
    /// Governance of the call, if a decision was reached.
    pub governance: Option<GovernanceView>,
    /// In one word; absent when nothing could be recorded.
    pub outcome: Option<OutcomeStatus>,
}

impl Stopped {
    /// Before it was an invocation: there is no event of it.
    pub(crate) fn uncounted(refusal: Refusal) -> Box<Self> {
        let (executed, governance, outcome) = (Executed::No, None, None);
        Box::new(Self { refusal, executed, governance, outcome })
    }
}

/// Settings of calls.
#[derive(Debug)]
pub struct CallParts {
    /// Seals the answers that are kept for idempotency keys.
    pub answer_key: AnswerKey,
    /// Seals the states of calls whose tools ask something.
    pub state_key: StateKey,
    /// The part of payloads that events keep where no policy says so.
    pub capture: Capture,
    /// Limit on calls under way to their tools: judged, recorded, or waiting to be.
    pub max_calls: usize,
}

/// Rooms that calls go through.
pub(crate) struct CallHandles {
    pub(crate) base: Arc<Base>,
    pub(crate) screening: Arc<Screening>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) quotas: Arc<Quotas>,
    pub(crate) policies: Arc<Policies>,
    pub(crate) catalogue: Arc<ToolCatalogue>,
    pub(crate) tools: Arc<Tools>,
    pub(crate) providers: Arc<Providers>,
    pub(crate) approvals: Arc<Approvals>,
}

/// Governed calls of a node.
#[derive(Debug)]
pub struct Calls {
    base: Arc<Base>,
    screening: Arc<Screening>,
    audit: Arc<Audit>,
    quotas: Arc<Quotas>,
    policies: Arc<Policies>,
    catalogue: Arc<ToolCatalogue>,
    tools: Arc<Tools>,
    providers: Arc<Providers>,
    approvals: Arc<Approvals>,
    /// Calls until they are dispatched.
    admissions: Arc<Admissions>,
    capture: Capture,
    answer_key: AnswerKey,
    state_key: StateKey,
}

impl Calls {
    pub(crate) fn new(handles: CallHandles, parts: CallParts) -> Self {
        let CallHandles {
            base,
            screening,
            audit,
            quotas,
            policies,
            catalogue,
            tools,
            providers,
            approvals,
        } = handles;
        let judging = Judging::new(parts.max_calls, base.workers.threads());
        Self {
            admissions: Arc::new(Admissions::new(judging, audit.writer.clone())),
            base,
            screening,
            audit,
            quotas,
            policies,
            catalogue,
            tools,
            providers,
            approvals,
            capture: parts.capture,
            answer_key: parts.answer_key,
            state_key: parts.state_key,
        }
    }

    /// The request goes on to this stage, now.
    pub(crate) fn enter_stage(&self, ctx: &Ctx, stage: Stage) -> Timestamp {
        let now = self.base.clock.now();
        ctx.origin.stages.enter(stage, now);
        now
    }

    /// The request is in no stage any more.
    pub(crate) fn leave_stages(&self, ctx: &Ctx) {
        ctx.origin.stages.leave(self.base.clock.now());
    }
}
