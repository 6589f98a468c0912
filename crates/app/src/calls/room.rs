//! The rooms that a call goes through.

use std::sync::Arc;

use portcullis_core::{audit::Capture, call::StateKey, clock::Timestamp, idempotency::AnswerKey};

use crate::{
    approvals::Approvals,
    audit::Audit,
    base::{
        Base,
        admission::{Admissions, Judging},
    },
    catalogue::Capabilities,
    policies::{Policies, limits::Quotas},
    providers::{Providers, tools::Tools},
    request::{Ctx, screening::Screening},
    telemetry::stages::Stage,
};

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

/// Governed calls of a node.
#[derive(Debug)]
pub struct Calls {
    pub(super) base: Arc<Base>,
    pub(super) screening: Arc<Screening>,
    pub(super) audit: Arc<Audit>,
    pub(super) quotas: Arc<Quotas>,
    pub(super) policies: Arc<Policies>,
    pub(super) catalogue: Arc<Capabilities>,
    pub(super) tools: Arc<Tools>,
    pub(super) providers: Arc<Providers>,
    pub(super) approvals: Arc<Approvals>,
    /// Calls until they are dispatched.
    pub(super) admissions: Arc<Admissions>,
    pub(super) capture: Capture,
    pub(super) answer_key: AnswerKey,
    pub(super) state_key: StateKey,
}

impl Calls {
    pub(crate) fn new(
        policies: &Arc<Policies>,
        tools: &Arc<Tools>,
        providers: &Arc<Providers>,
        approvals: &Arc<Approvals>,
        parts: CallParts,
    ) -> Self {
        let Policies { base, screening, audit, quotas, catalogue, .. } = &**policies;
        let judging = Judging::new(parts.max_calls, base.workers.threads());
        Self {
            admissions: Arc::new(Admissions::new(judging, audit.writer.clone())),
            base: Arc::clone(base),
            screening: Arc::clone(screening),
            audit: Arc::clone(audit),
            quotas: Arc::clone(quotas),
            policies: Arc::clone(policies),
            catalogue: Arc::clone(catalogue),
            tools: Arc::clone(tools),
            providers: Arc::clone(providers),
            approvals: Arc::clone(approvals),
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
