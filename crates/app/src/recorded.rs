//! The bracket around every effect: intent durable, work on its own task, outcome durable, then
//! the answer. A caller who hangs up stops neither the work nor its record.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use portcullis_core::{
    audit::{Actor, Detached, Event, EventType, Governance, Outcome, OutcomeStatus, Target},
    id::EventId,
    refusal::{Executed, Refusal, Unavailable},
};
use serde_json::{Map, Value};

use crate::{
    App, Ctx,
    answers::{GovernanceView, outcome_of},
    audit::{patience, row_of},
    counting,
    invoke::{Invoked, Ready, Stopped},
};

/// The event of a call while it is being written.
pub(crate) struct Draft {
    id: EventId,
    ctx: Ctx,
    target: Option<Target>,
    governance: Option<Governance>,
    inputs: Map<String, Value>,
    detached: Detached,
}

/// What the event says should the node die between intent and outcome.
const DIED: Outcome = Outcome {
    error_code: None,
    executed: Executed::Unknown,
    http_status: 0,
    status: OutcomeStatus::Unknown,
};

/// How the work between intent and outcome ended.
pub(crate) struct Done {
    governance: Option<Governance>,
    inputs: Box<Map<String, Value>>,
    end: Result<(Value, OutcomeStatus), (Refusal, Executed)>,
}

impl Done {
    pub(crate) fn answered(governance: Governance, result: Value, is_error: bool) -> Self {
        let status = if is_error { OutcomeStatus::ToolError } else { OutcomeStatus::Success };
        Self { governance: Some(governance), inputs: Box::default(), end: Ok((result, status)) }
    }

    pub(crate) fn stopped(governance: Governance, refusal: Refusal, executed: Executed) -> Self {
        Self { governance: Some(governance), inputs: Box::default(), end: Err((refusal, executed)) }
    }

    /// Adds what the decision about the answer looked at.
    pub(crate) fn looked_at(mut self, inputs: Box<Map<String, Value>>) -> Self {
        self.inputs = inputs;
        self
    }

    fn outcome(&self) -> Outcome {
        match &self.end {
            Ok((_, status)) => Outcome { status: *status, ..Outcome::success(Executed::Yes) },
            Err((refusal, executed)) => outcome_of(refusal, *executed),
        }
    }
}

impl Draft {
    /// Opens the event of a request. Nothing is durable yet.
    pub(crate) fn open(app: &App, ctx: &Ctx) -> Self {
        let id = EventId::new(app.ids());
        let detached = ctx.detached(&*app.random);
        let inputs = Map::new();
        Self { id, ctx: ctx.clone(), target: None, governance: None, inputs, detached }
    }

    /// What the call is aimed at, as far as is known by now.
    pub(crate) fn target(&mut self, target: Target) {
        self.target = Some(target);
    }

    /// What was decided, as far as is known by now.
    pub(crate) fn governance(&mut self, governance: Governance) {
        self.governance = Some(governance);
    }

    /// What a decision looked at, to be kept beside what is known already.
    pub(crate) fn looked_at(&mut self, app: &App, inputs: &Map<String, Value>) {
        if inputs.is_empty() {
            return;
        }
        self.inputs.extend(inputs.iter().map(|(name, value)| (name.clone(), value.clone())));
        let kept = Value::Object(self.inputs.clone());
        let detached = std::mem::take(&mut self.detached);
        self.detached = detached.keep("decision_inputs", Some(kept), &*app.random);
    }

    /// The input as the caller sent it, to be committed to.
    pub(crate) fn input(&mut self, app: &App, input: &Value) {
        self.detached.commit("input", Some(input), &*app.random);
    }

    fn event(&self, outcome: Outcome) -> Event {
        Event {
            id: self.id,
            org_id: self.ctx.caller().org_id,
            kind: EventType::McpInvocation,
            occurred_at: self.ctx.origin.arrived,
            count: None,
            actor: Actor::of(self.ctx.caller()),
            request: Some(self.ctx.recorded_request()),
            target: self.target.clone(),
            governance: self.governance.clone(),
            outcome,
            detached: self.detached.clone(),
        }
    }

    fn stopped(
        &self,
        refusal: Refusal,
        executed: Executed,
        outcome: OutcomeStatus,
    ) -> Box<Stopped> {
        let governance = GovernanceView::of(self.governance.as_ref(), self.id);
        Box::new(Stopped { refusal, executed, governance, outcome: Some(outcome) })
    }
}

impl App {
    /// The answer when the log cannot be written: nothing of the decision is told, for no event
    /// stands behind it yet. The event that says so is recorded as soon as the log takes it.
    fn unrecorded(&self, draft: &Draft, executed: Executed) -> Box<Stopped> {
        let refusal = Refusal::Unavailable { reason: Unavailable::Audit };
        let outcome = outcome_of(&refusal, executed);
        counting::invocation(&outcome);
        let event = draft.event(outcome);
        self.late_events.keep(row_of(&event));
        Box::new(Stopped { refusal, executed, governance: None, outcome: None })
    }

    /// Records a call that ended before anything was sent, then refuses it.
    pub(crate) async fn refused(
        &self,
        draft: Draft,
        refusal: Refusal,
        outcome: Outcome,
    ) -> Box<Stopped> {
        let event = draft.event(outcome);
        match self.writer.append(row_of(&event), patience()).await {
            Ok(()) => {
                counting::invocation(&outcome);
                draft.stopped(refusal, outcome.executed, outcome.status)
            }
            Err(error) => {
                tracing::error!(%error, event = %draft.id, "a refusal could not be recorded");
                self.unrecorded(&draft, outcome.executed)
            }
        }
    }

    /// Performs a call between a durable intent and a durable outcome.
    ///
    /// A crash after the intent leaves an open intent, which the next start closes as `unknown`;
    /// a crash after the outcome loses nothing.
    pub(crate) async fn recorded(
        &self,
        mut draft: Draft,
        ready: Ready,
    ) -> Result<Invoked, Box<Stopped>> {
        let unfinished = draft.event(DIED);
        if let Err(error) = self.writer.intent(self.intent_of(&unfinished), patience()).await {
            tracing::error!(%error, event = %draft.id, "an intent could not be recorded");
            return Err(self.unrecorded(&draft, Executed::No));
        }
        // A panic ends the call, not its record.
        let done = AssertUnwindSafe(self.perform(ready)).catch_unwind().await;
        let done = done.unwrap_or_else(|_| {
            let governance = unfinished.governance.clone();
            Done {
                governance,
                inputs: Box::default(),
                end: Err((Refusal::Internal, Executed::Unknown)),
            }
        });
        let outcome = done.outcome();
        draft.looked_at(self, &done.inputs);
        draft.governance = done.governance;
        let output = done.end.as_ref().ok().map(|(result, _)| result);
        draft.detached.commit("output", output, &*self.random);
        let event = draft.event(outcome);
        if let Err(error) = self.writer.finish(row_of(&event), patience()).await {
            tracing::error!(%error, event = %draft.id, "an outcome could not be recorded");
            return Err(self.unrecorded(&draft, outcome.executed));
        }
        counting::invocation(&outcome);
        match done.end {
            Err((refusal, executed)) => Err(draft.stopped(refusal, executed, outcome.status)),
            Ok((result, status)) => match GovernanceView::of(draft.governance.as_ref(), draft.id) {
                Some(governance) => Ok(Invoked { result, governance, outcome: status }),
                None => Err(self.unrecorded(&draft, outcome.executed)),
            },
        }
    }
}
