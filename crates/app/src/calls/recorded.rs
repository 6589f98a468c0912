//! The bracket around every effect: intent durable, work on its own task, outcome durable, then
//! the answer. A caller who hangs up stops neither the work nor its record.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use portcullis_core::{
    audit::{
        Actor, Capture, Detached, EventParts, EventType, Governance, Outcome, OutcomeStatus,
        RecordFrame, Request, Target,
    },
    call::{DecisionInputs, Ruling},
    id::{EventId, OrgId},
    json::{Document, Node},
    refusal::{Executed, Refusal, Unavailable},
};
use portcullis_lanes::is_offloaded;
use portcullis_store::{Began, KeyEnd, NewEvent, NewIntent, StoreError};
use portcullis_upstream::FormTally;
use serde_json::{Value, json};

use super::{
    Answered, Calls, Invoked, Stopped,
    admission::Admission,
    answers::GovernanceView,
    approval,
    claim::Claim,
    idempotency::{Kept, Known},
    invoke::Ready,
    remarks::Remark,
    task::TaskTerms,
};
use crate::{
    audit::{
        events::{patience, row_of_parts},
        outcome::outcome_of,
    },
    ctx::Ctx,
    telemetry::{counters, stages::Stage},
};

/// The event of a call while it is being written.
pub(crate) struct Draft {
    id: EventId,
    ctx: Ctx,
    actor: Actor,
    request: Request,
    target: Option<Target>,
    governance: Option<Governance>,
    inputs: Arc<DecisionInputs>,
    detached: Detached,
    /// The part of the record that stays as it is from the intent on.
    frame: Option<RecordFrame>,
    /// Nothing is to be kept of the input, not even a commitment.
    input_off: bool,
    /// The task whose call it is.
    pub(super) task: Option<(Claim, TaskTerms)>,
}

/// Outcome in the event should the node die between intent and outcome.
pub(crate) const DIED: Outcome = Outcome {
    error_code: None,
    executed: Executed::Unknown,
    http_status: 0,
    status: OutcomeStatus::Unknown,
};

/// Result of the work between intent and outcome.
pub(crate) struct Done {
    governance: Option<Governance>,
    inputs: Arc<DecisionInputs>,
    capture: Option<Capture>,
    captured: Option<Box<Value>>,
    forms: Option<FormTally>,
    remarks: Vec<Remark>,
    end: Result<(Document, OutcomeStatus), (Refusal, Executed)>,
}

impl Done {
    pub(crate) fn answered(governance: Governance, result: Document, is_error: bool) -> Self {
        let status = if is_error { OutcomeStatus::ToolError } else { OutcomeStatus::Success };
        Self::new(Some(governance), Ok((result, status)))
    }

    pub(crate) fn asked(governance: Governance, result: Document) -> Self {
        Self::new(Some(governance), Ok((result, OutcomeStatus::InputRequired)))
    }

    pub(crate) fn stopped(governance: Governance, refusal: Refusal, executed: Executed) -> Self {
        Self::new(Some(governance), Err((refusal, executed)))
    }

    fn new(
        governance: Option<Governance>,
        end: Result<(Document, OutcomeStatus), (Refusal, Executed)>,
    ) -> Self {
        let (capture, captured, forms, remarks) = (None, None, None, Vec::new());
        Self { governance, inputs: Arc::default(), capture, captured, forms, remarks, end }
    }

    /// Adds how much of the result is kept, if policies say so, and what.
    pub(crate) fn captured(self, capture: Option<Capture>, captured: Option<Box<Value>>) -> Self {
        Self { capture, captured, ..self }
    }

    /// Adds the forms that the server presented meanwhile, if they are answered.
    pub(crate) fn shown(self, forms: Option<FormTally>) -> Self {
        Self { forms, ..self }
    }

    /// Adds what was odd.
    pub(crate) fn remarked(self, remarks: Vec<Remark>) -> Self {
        Self { remarks, ..self }
    }

    /// Adds what the decision about the answer looked at.
    pub(crate) fn looked_at(mut self, inputs: Arc<DecisionInputs>) -> Self {
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
    pub(crate) fn open(calls: &Calls, ctx: &Ctx) -> Self {
        Self {
            id: EventId::new(calls.base.ids()),
            ctx: ctx.clone(),
            actor: Actor::of(ctx.caller()),
            request: ctx.recorded_request(),
            target: None,
            governance: None,
            inputs: Arc::default(),
            detached: ctx.detached(&calls.screening),
            frame: None,
            input_off: false,
            task: None,
        }
    }

    /// Org of the caller.
    pub(crate) fn org(&self) -> OrgId {
        self.ctx.caller().org_id
    }

    /// True if the request came with an idempotency key.
    pub(crate) fn protected(&mut self, protected: bool) {
        self.request.idempotent = protected;
    }

    /// Sets the target of the call, as far as it is known by now.
    pub(crate) fn target(&mut self, target: Target) {
        self.target = Some(target);
    }

    /// Sets the governance of the call, as far as it is decided by now.
    pub(crate) fn governance(&mut self, governance: Governance) {
        self.governance = Some(governance);
    }

    /// Adds the inputs of a decision to those that are known already.
    pub(crate) fn looked_at(&mut self, calls: &Calls, inputs: &Arc<DecisionInputs>) {
        if inputs.is_empty() {
            return;
        }
        if self.inputs.is_empty() {
            self.inputs = Arc::clone(inputs);
        } else {
            Arc::make_mut(&mut self.inputs).extend(inputs);
        }
        let write = |out: &mut String| self.inputs.write(out);
        self.detached.set_written("decision_inputs", write, &*calls.base.random);
    }

    /// The input as the caller sent it, to be committed to unless nothing is to be kept.
    pub(crate) fn input(&mut self, calls: &Calls, input: Node<'_>) {
        self.detached.commit("input", input, &*calls.base.random);
        self.input_off = calls.capture == Capture::Off;
    }

    /// Keeps of the input what the event may hold, now that policies have spoken.
    pub(crate) fn capture_input(&mut self, calls: &Calls, ruling: &Ruling) {
        self.input_off = ruling.capture.unwrap_or(calls.capture) == Capture::Off;
        if let Some(captured) = &ruling.captured {
            self.detached.keep_payload("input", &**captured, &*calls.base.random);
        }
    }

    /// Keeps of the given result what the event may hold.
    fn capture_output(
        &mut self,
        calls: &Calls,
        result: Node<'_>,
        capture: Option<Capture>,
        masked: Option<Box<Value>>,
    ) {
        match (capture.unwrap_or(calls.capture), masked) {
            (Capture::Off, _) => {}
            (Capture::Commit | Capture::Redacted, None) => {
                self.detached.commit("output", result, &*calls.base.random);
            }
            (Capture::Full, None) => {
                self.detached.keep_payload("output", result, &*calls.base.random);
            }
            (Capture::Commit | Capture::Redacted | Capture::Full, Some(masked)) => {
                self.detached.keep_payload("output", &*masked, &*calls.base.random);
            }
        }
    }

    /// Notes the forms that the server presented: how many, and nothing of what stood in them.
    fn shown(&mut self, calls: &Calls, forms: &FormTally) {
        let (accepted, refused) = (forms.accepted(), forms.refused());
        if accepted + refused > 0 {
            let told = json!({"accepted": accepted, "refused": refused});
            self.detached.set("forms", &told, &*calls.base.random);
        }
    }

    /// Notes what was odd.
    fn remark(&mut self, calls: &Calls, remarks: &[Remark]) {
        if !remarks.is_empty() {
            let told: Vec<_> = remarks.iter().map(|remark| remark.as_str()).collect();
            self.detached.set("remarks", &json!(told), &*calls.base.random);
        }
    }

    fn parts<'a>(&'a self, outcome: &'a Outcome) -> EventParts<'a> {
        EventParts {
            id: self.id,
            org_id: self.org(),
            kind: EventType::McpInvocation,
            occurred_at: self.ctx.origin.arrived,
            count: None,
            actor: &self.actor,
            request: Some(&self.request),
            target: self.target.as_ref(),
            governance: self.governance.as_ref(),
            outcome,
            detached: &self.detached,
        }
    }

    /// The intent of the call. Neither its target nor its request change from now on.
    fn intent(&mut self, calls: &Calls) -> NewIntent {
        self.forget_input();
        let event = self.parts(&DIED);
        let frame = RecordFrame::of(&event);
        let intent = calls.audit.intent_of(&event, &frame);
        self.frame = Some(frame);
        intent
    }

    /// The row of the event.
    fn row(&mut self, outcome: &Outcome) -> NewEvent {
        self.forget_input();
        row_of_parts(&self.parts(outcome), self.frame.as_ref())
    }

    /// Leaves nothing of the input if nothing is to be kept: what is recorded is decided by now.
    fn forget_input(&mut self) {
        if self.input_off {
            self.detached.forget("input");
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

impl Calls {
    /// The answer when the log cannot be written: nothing of the decision is told, for no event
    /// stands behind it yet. The event that says so is recorded as soon as the log takes it.
    /// The key of a call, if it has one, ends with that event.
    fn unrecorded(
        &self,
        draft: &mut Draft,
        executed: Executed,
        key: Option<&Claim>,
    ) -> Box<Stopped> {
        let refusal = Refusal::Unavailable { reason: Unavailable::Audit };
        let outcome = outcome_of(&refusal, executed);
        counters::invocation(&outcome);
        let kept = Kept::new(draft.id, Err(&refusal), None, &outcome);
        let end = key.map(|_| self.key_end(draft.org(), &kept, false));
        self.audit.late_events.keep(draft.row(&outcome), end);
        Box::new(Stopped { refusal, executed, governance: None, outcome: None })
    }

    /// Records a call that ended before anything was sent, then refuses it.
    pub(crate) async fn refused(
        &self,
        mut draft: Draft,
        refusal: Refusal,
        outcome: Outcome,
    ) -> Box<Stopped> {
        self.enter_stage(&draft.ctx, Stage::Outcome);
        match self.audit.writer.append(draft.row(&outcome), patience()).await {
            Ok(()) => {
                self.leave_stages(&draft.ctx);
                counters::invocation(&outcome);
                draft.stopped(refusal, outcome.executed, outcome.status)
            }
            Err(error) => {
                tracing::error!(%error, event = %draft.id, "a refusal could not be recorded");
                self.unrecorded(&mut draft, outcome.executed, None)
            }
        }
    }

    /// Refuses a call before anything was sent. If that is the answer of its task, it holds for every
    /// later attempt, as the task's key then stands for it.
    pub(crate) async fn turned_down(
        &self,
        mut draft: Draft,
        refusal: Refusal,
    ) -> Result<Answered, Box<Stopped>> {
        let ending = draft.task.take().filter(|(_, terms)| terms.end_with(&refusal));
        let Some((claim, _)) = ending else {
            let outcome = outcome_of(&refusal, Executed::No);
            return Err(self.refused(draft, refusal, outcome).await);
        };
        let mut intent = draft.intent(self);
        intent.key = Some(claim.row(draft.ctx.origin.request_id, self.base.now()));
        match self.audit.writer.intent(intent, patience()).await {
            Ok(Began::Begun) => {
                let done = Done::new(draft.governance.clone(), Err((refusal, Executed::No)));
                self.end(draft, done, Some(&claim)).await
            }
            Ok(Began::KeyTaken) => self.outrun(draft, &claim).await,
            Ok(Began::NotApproved) => Err(self.unrecorded(&mut draft, Executed::No, None)),
            Err(error) => {
                tracing::error!(%error, event = %draft.id, "a refusal could not be recorded");
                Err(self.unrecorded(&mut draft, Executed::No, Some(&claim)))
            }
        }
    }

    /// Performs a call between a durable intent and a durable outcome.
    ///
    /// A crash after the intent leaves an open intent, which the next start closes as `unknown`;
    /// a crash after the outcome loses nothing.
    pub(crate) async fn recorded(
        self: &Arc<Self>,
        mut draft: Draft,
        mut ready: Ready,
        admission: Admission,
    ) -> Result<Answered, Box<Stopped>> {
        self.enter_stage(&draft.ctx, Stage::Intent);
        let claim = ready.claim.take();
        let mut intent = draft.intent(self);
        intent.key =
            claim.as_ref().map(|claim| claim.row(draft.ctx.origin.request_id, self.base.now()));
        intent.approvals = approval::uses(&ready.approvals);
        let began = self.audit.writer.intent(intent, patience()).await;
        if let Ok(Began::KeyTaken | Began::NotApproved) = began {
            self.policies.give_back(&draft.ctx, ready.call.rates());
        }
        match (began, &claim) {
            (Ok(Began::Begun), _) => {}
            (Ok(Began::KeyTaken), Some(claim)) => return Box::pin(self.outrun(draft, claim)).await,
            (Ok(Began::NotApproved), _) => {
                draft.governance =
                    draft.governance.take().map(|it| approval::lost(it, &ready.approvals));
                let refusal = self.outdated(&ready.approvals);
                return self.turned_down(draft, refusal).await;
            }
            (Ok(Began::KeyTaken), None) => {
                return Err(self.unrecorded(&mut draft, Executed::No, None));
            }
            (Err(error), claim) => {
                tracing::error!(%error, event = %draft.id, "an intent could not be recorded");
                return Err(self.unrecorded(&mut draft, Executed::No, claim.as_ref()));
            }
        }
        drop(admission);
        if !ready.approvals.is_empty() {
            self.approvals.consumed(&draft.ctx, &ready.approvals).await;
        }
        // A panic ends the call, not its record.
        let done = AssertUnwindSafe(self.perform(ready)).catch_unwind().await;
        let done = done.unwrap_or_else(|_| {
            Done::new(draft.governance.clone(), Err((Refusal::Internal, Executed::Unknown)))
        });
        self.end(draft, done, claim.as_ref()).await
    }

    /// The durable outcome of a call, then its answer.
    async fn end(
        &self,
        mut draft: Draft,
        done: Done,
        claim: Option<&Claim>,
    ) -> Result<Answered, Box<Stopped>> {
        self.enter_stage(&draft.ctx, Stage::Outcome);
        let _at_work = self.audit.writer.at_work();
        let outcome = done.outcome();
        draft.looked_at(self, &done.inputs);
        if let Some(forms) = &done.forms {
            draft.shown(self, forms);
        }
        draft.remark(self, &done.remarks);
        draft.governance = done.governance;
        if let Ok((result, _)) = &done.end {
            draft.capture_output(self, result.root(), done.capture, done.captured);
        }
        let governance = GovernanceView::of(draft.governance.as_ref(), draft.id);
        let key = claim.map(|claim| {
            let end = done.end.as_ref().map(|(result, _)| result).map_err(|(refusal, _)| refusal);
            let kept = Kept::new(draft.id, end, governance.clone(), &outcome);
            self.key_end(draft.org(), &kept, claim.keeps_every_end())
        });
        if let Err(error) = self.finish(draft.row(&outcome), key).await {
            tracing::error!(%error, event = %draft.id, "an outcome could not be recorded");
            return Err(self.unrecorded(&mut draft, outcome.executed, claim));
        }
        self.leave_stages(&draft.ctx);
        counters::invocation(&outcome);
        let large = is_offloaded();
        if large {
            counters::offloaded();
        }
        match (done.end, governance) {
            (Err((refusal, executed)), _) => Err(draft.stopped(refusal, executed, outcome.status)),
            (Ok((result, outcome)), Some(governance)) => {
                Ok(Answered::Invoked(Invoked { result, governance, outcome, large }))
            }
            (Ok(_), None) => Err(self.unrecorded(&mut draft, outcome.executed, None)),
        }
    }

    async fn finish(&self, event: NewEvent, key: Option<KeyEnd>) -> Result<(), StoreError> {
        match key {
            None => self.audit.writer.finish(event, patience()).await,
            Some(end) => self.audit.writer.finish_keyed(event, end, patience()).await,
        }
    }

    /// A call whose key was taken while it was judged: another with the same key was faster.
    async fn outrun(&self, draft: Draft, claim: &Claim) -> Result<Answered, Box<Stopped>> {
        let refusal = match self.known(draft.ctx.caller().org_id, claim).await {
            Ok(Known::Answered(replayed)) => return self.replay(&draft.ctx, replayed).await,
            // Its holder has let go of it since: asked again, this call can begin.
            Ok(Known::Free) => {
                Refusal::IdempotencyInProgress { first: draft.ctx.origin.request_id }
            }
            Ok(Known::UnderWay(first)) => Refusal::IdempotencyInProgress { first },
            Ok(Known::Reused(first)) => Refusal::IdempotencyKeyReused { first },
            Err(refusal) => refusal,
        };
        let outcome = outcome_of(&refusal, Executed::No);
        Err(self.refused(draft, refusal, outcome).await)
    }
}
