//! The event of a call under way, filled by each step, and the outcome that ends it.

use std::sync::Arc;

use portcullis_core::{
    approval::Approval,
    audit::{
        Actor, Capture, Detached, Durations, EventParts, EventType, Governance, Outcome,
        OutcomeStatus, Request, Target, UsedApproval,
    },
    call::{DecisionInputs, Denial, Ruling},
    id::{EventId, OrgId},
    json::{Document, Node},
    mcp::Method,
    refusal::{Executed, Refusal},
};
use portcullis_store::{NewEvent, NewIntent};
use portcullis_upstream::FormTally;
use serde_json::{Map, Value, json};

use super::{Calls, GovernanceView, Stopped, TaskTerms, remarks::Remark};
use crate::{
    audit::{events::row_of_parts, outcome::outcome_of},
    base::claim::Claim,
    request::Ctx,
};

/// The event of a call while it is being written.
pub(crate) struct CallEvent {
    pub(super) id: EventId,
    kind: EventType,
    /// The call that it is about, if it is none itself.
    call: Option<EventId>,
    pub(super) ctx: Ctx,
    actor: Actor,
    request: Request,
    target: Option<Target>,
    pub(super) governance: Option<Governance>,
    /// Durations of the stages in front of the outcome, once there is one.
    durations: Option<Durations>,
    inputs: Arc<DecisionInputs>,
    detached: Detached,
    /// True if nothing is kept of the input, not even a commitment.
    input_off: bool,
    /// The task whose call it is, with the key that stands for it.
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
pub(crate) struct CallOutcome {
    pub(super) governance: Option<Governance>,
    inputs: Arc<DecisionInputs>,
    capture: Option<Capture>,
    captured: Option<Box<Value>>,
    forms: Option<FormTally>,
    remarks: Vec<Remark>,
    pub(super) end: Result<(Document, OutcomeStatus), (Refusal, Executed)>,
}

impl CallOutcome {
    pub(crate) fn of_result(governance: Governance, result: Document, is_error: bool) -> Self {
        let status = if is_error { OutcomeStatus::ToolError } else { OutcomeStatus::Success };
        Self::new(Some(governance), Ok((result, status)))
    }

    pub(crate) fn of_questions(governance: Governance, result: Document) -> Self {
        Self::new(Some(governance), Ok((result, OutcomeStatus::InputRequired)))
    }

    /// A call that goes on as a task with these members.
    pub(crate) fn of_task(governance: Governance, members: &Map<String, Value>) -> Self {
        let told = Document::of(&json!({ "task": members }));
        Self::new(Some(governance), Ok((told, OutcomeStatus::Task)))
    }

    pub(crate) fn of_refusal(governance: Governance, refusal: Refusal, executed: Executed) -> Self {
        Self::new(Some(governance), Err((refusal, executed)))
    }

    pub(super) fn new(
        governance: Option<Governance>,
        end: Result<(Document, OutcomeStatus), (Refusal, Executed)>,
    ) -> Self {
        Self {
            governance,
            inputs: Arc::default(),
            capture: None,
            captured: None,
            forms: None,
            remarks: Vec::new(),
            end,
        }
    }

    /// Sets what the event keeps of the result by the ruling about it, and the inputs of that ruling.
    pub(crate) fn with_ruling(self, ruling: Ruling) -> Self {
        let Ruling { capture, captured, inputs, .. } = ruling;
        Self { inputs, capture, captured, ..self }
    }

    /// Sets the forms that the server presented during the call, if forms are answered.
    pub(crate) fn with_forms(self, forms: Option<FormTally>) -> Self {
        Self { forms, ..self }
    }

    /// Sets the oddities of the tool and its answer.
    pub(crate) fn with_remarks(self, remarks: Vec<Remark>) -> Self {
        Self { remarks, ..self }
    }

    pub(super) fn recorded(&self) -> Outcome {
        match &self.end {
            Ok((_, status)) => Outcome { status: *status, ..Outcome::success(Executed::Yes) },
            Err((refusal, executed)) => outcome_of(refusal, *executed),
        }
    }
}

/// Governance of a call under this ruling of a set, made with these approvals, as it is recorded.
pub(super) fn governance_of(ruling: &Ruling, set: &str, approvals: &[Approval]) -> Governance {
    let used = |it: &Approval| UsedApproval { approvers: it.approver_ids(), id: it.id };
    Governance { approvals: approvals.iter().map(used).collect(), ..ruling.governance(set) }
}

impl CallEvent {
    /// Opens the event of a request, which every step passes on. Nothing is durable yet.
    pub(crate) fn open(calls: &Calls, ctx: &Ctx) -> Box<Self> {
        Box::new(Self {
            id: EventId::new(calls.base.ids()),
            kind: EventType::McpInvocation,
            call: None,
            ctx: ctx.clone(),
            actor: Actor::of(ctx.caller()),
            request: ctx.recorded_request(),
            target: None,
            governance: None,
            durations: None,
            inputs: Arc::default(),
            detached: ctx.detached(&calls.screening),
            input_off: false,
            task: None,
        })
    }

    /// Makes it one about a call that went on as a task.
    pub(super) fn set_about(&mut self, kind: EventType, call: EventId) {
        self.kind = kind;
        self.call = Some(call);
    }

    /// The call that it is about, if it is none itself.
    pub(super) const fn call(&self) -> Option<EventId> {
        self.call
    }

    /// Org of the caller.
    pub(crate) fn org(&self) -> OrgId {
        self.ctx.caller().org_id
    }

    /// Notes whether the request came with an idempotency key.
    pub(crate) fn set_idempotent(&mut self, idempotent: bool) {
        self.request.idempotent = idempotent;
    }

    /// Sets the target of the call, as far as it is known by now.
    pub(crate) fn set_target(&mut self, target: Target) {
        self.target = Some(target);
    }

    /// Sets the governance of the call, as far as it is decided by now.
    pub(crate) fn set_governance(&mut self, governance: Governance) {
        self.governance = Some(governance);
    }

    /// Notes a denial, which decides the call: the refusal to answer with.
    pub(crate) fn deny(&mut self, denial: &Denial, policy_set: &str) -> Refusal {
        if let Some(governance) = denial.governance(policy_set) {
            self.governance = Some(governance);
        }
        denial.refusal()
    }

    /// Adds the inputs of a decision to those that are known already.
    pub(crate) fn add_inputs(&mut self, calls: &Calls, inputs: &Arc<DecisionInputs>) {
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

    /// Commits to the input as the caller sent it, unless nothing is kept.
    pub(crate) fn commit_input(&mut self, calls: &Calls, input: Node<'_>) {
        self.detached.commit("input", input, &*calls.base.random);
        self.input_off = calls.capture == Capture::Off;
    }

    /// Keeps the input as far as the decision of the policies permits.
    pub(crate) fn capture_input(&mut self, calls: &Calls, ruling: &Ruling) {
        self.input_off = ruling.capture.unwrap_or(calls.capture) == Capture::Off;
        if let Some(captured) = &ruling.captured {
            self.detached.keep_payload("input", &**captured, &*calls.base.random);
        }
    }

    /// Takes over all that the outcome says, once the effect has ended. The end itself stays with it.
    pub(super) fn take(&mut self, calls: &Calls, outcome: &mut CallOutcome) {
        self.add_inputs(calls, &outcome.inputs);
        if let Some(forms) = &outcome.forms {
            self.note_forms(calls, forms);
        }
        self.note_remarks(calls, &outcome.remarks);
        self.governance = outcome.governance.take();
        let captured = outcome.captured.take();
        if let Ok((result, _)) = &outcome.end {
            self.capture_output(calls, result.root(), outcome.capture, captured);
        }
    }

    /// Keeps the given result as far as the decision of the policies permits.
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

    /// Notes how many forms the server presented, and nothing of their content.
    fn note_forms(&mut self, calls: &Calls, forms: &FormTally) {
        let accepted = forms.accepted();
        let refused = forms.refused();
        if accepted + refused > 0 {
            let counts = json!({"accepted": accepted, "refused": refused});
            self.detached.set("forms", &counts, &*calls.base.random);
        }
    }

    /// Notes what is asked, if it is no plain use.
    pub(super) fn note_method(&mut self, calls: &Calls, method: Method) {
        let method = json!(method.as_str());
        self.detached.set("method", &method, &*calls.base.random);
    }

    /// Notes the oddities of the tool and its answer.
    fn note_remarks(&mut self, calls: &Calls, remarks: &[Remark]) {
        if !remarks.is_empty() {
            let words: Vec<_> = remarks.iter().map(|remark| remark.as_str()).collect();
            self.detached.set("remarks", &json!(words), &*calls.base.random);
        }
    }

    fn parts<'a>(&'a self, outcome: &'a Outcome) -> EventParts<'a> {
        EventParts {
            id: self.id,
            org_id: self.org(),
            kind: self.kind,
            call: self.call,
            occurred_at: self.ctx.origin.arrived,
            count: None,
            durations: self.durations.as_ref(),
            actor: &self.actor,
            request: Some(&self.request),
            target: self.target.as_ref(),
            governance: self.governance.as_ref(),
            outcome,
            detached: &self.detached,
        }
    }

    pub(super) fn intent(&mut self, calls: &Calls) -> NewIntent {
        self.forget_input();
        calls.audit.intent_of(&self.parts(&DIED))
    }

    pub(super) fn row(&mut self, outcome: &Outcome) -> NewEvent {
        self.forget_input();
        self.durations = Some(self.ctx.origin.stages.durations());
        row_of_parts(&self.parts(outcome))
    }

    /// Removes the commitment to the input if nothing is kept of it.
    fn forget_input(&mut self) {
        if self.input_off {
            self.detached.forget("input");
        }
    }

    /// The answer to a call that ended with this refusal.
    pub(super) fn stopped(
        &self,
        refusal: Refusal,
        executed: Executed,
        outcome: OutcomeStatus,
    ) -> Box<Stopped> {
        let governance = GovernanceView::of(self.governance.as_ref(), self.id);
        Box::new(Stopped { refusal, executed, governance, outcome: Some(outcome) })
    }
}
