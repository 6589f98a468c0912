//! One recorded call, asked again, and what became of its decision.

use std::sync::Arc;

use portcullis_core::{
    audit::RecordedDecision,
    call::{DecisionInputs, Ruling},
    capability::Capability,
    clock::Timestamp,
    json::Document,
    policy::{
        DlpFacts, Explain, Indeterminate, KnownContext, Obligation, OrgView, Phase, PolicySet,
        Principal, Question, TOKEN_SCOPES, Verdict,
    },
};
use portcullis_store::EventRecord;
use serde_json::Value;

use super::recorded::{Core, Detached, Facts, Inputs};
use crate::simulation::{
    decision::{SimulatedChange, SimulatedDecision},
    judge::Judged,
    sets::Sets,
};

/// Result of the comparison for one event.
pub(super) struct Comparison {
    pub(super) change: SimulatedChange,
    pub(super) before: SimulatedDecision,
    pub(super) after: SimulatedDecision,
    pub(super) missing: Vec<String>,
    /// Policies of the candidate that would have asked for an approval of the call.
    pub(super) approvals: Vec<Arc<str>>,
}

impl Comparison {
    /// The decision stays as it was recorded.
    pub(super) fn unchanged(recorded: SimulatedDecision) -> Self {
        let before = recorded.clone();
        let after = recorded;
        let change = SimulatedChange::None;
        Self { change, before, after, missing: Vec::new(), approvals: Vec::new() }
    }

    /// Indeterminate, because `missing` is not known.
    pub(super) fn untellable(before: SimulatedDecision, missing: &str) -> Self {
        let after = SimulatedDecision { decision: None, cause: None, policy: None, reason: None };
        let change = SimulatedChange::Indeterminate;
        let missing = vec![missing.to_owned()];
        Self { change, before, after, missing, approvals: Vec::new() }
    }
}

/// Decision of a set, and the unknown parts of the call that could reverse it.
#[derive(Clone)]
pub(super) struct SetDecision {
    pub(super) judged: Judged,
    pub(super) unknown: Option<Indeterminate>,
    /// Policies that ask for an approval of the call.
    approvals: Vec<Arc<str>>,
}

/// Decision to compare with.
pub(super) enum Before {
    /// Decision of the other set.
    Asked(Box<SetDecision>),
    Recorded(SimulatedDecision),
}

/// One recorded call, ready to be decided again.
pub(super) struct Call<'a> {
    principal: &'a Principal,
    tool: &'a Capability,
    time: Timestamp,
    detached: &'a Detached<'a>,
    inputs: &'a Inputs<'a>,
    pub(super) known: KnownContext,
    /// True if the tool answered, so that response policies were evaluated.
    answered: bool,
}

impl<'a> Call<'a> {
    /// The call of an event.
    pub(super) fn new(
        event: &EventRecord,
        core: &Core<'_>,
        (detached, inputs): (&'a Detached<'a>, &'a Inputs<'a>),
        principal: &'a Principal,
        tool: &'a Capability,
    ) -> Self {
        Self {
            principal,
            tool,
            time: event.occurred_at,
            detached,
            inputs,
            known: inputs.context(),
            // Neither a call that goes on as a task nor a request about one has an answer of its tool.
            answered: core.outcome.executed == "yes"
                && core.outcome.status != "task"
                && core.call.is_none(),
        }
    }

    /// Decides the call under `set`, in both phases. The answer of the tool decides only if it is withheld.
    pub(super) fn decide(&self, set: &PolicySet) -> SetDecision {
        let (mut judged, answer) = self.judge(set, Explain::Decision, None);
        let approvals = approvals(&judged);
        let take_unknown = |judged: &mut Judged| judged.explanation.take()?.indeterminate;
        let mut unknown = take_unknown(&mut judged);
        match answer {
            Some(mut answer) if !answer.permits() => {
                unknown = take_unknown(&mut answer);
                judged = answer;
            }
            Some(mut answer) => {
                unknown = unknown.or_else(|| take_unknown(&mut answer));
                judged.obligations.append(&mut answer.obligations);
            }
            None => {}
        }
        SetDecision { judged, unknown, approvals }
    }

    /// Judges the call under `set` and, if it passes and was answered, its answer.
    pub(super) fn judge(
        &self,
        set: &PolicySet,
        explain: Explain,
        org: Option<&OrgView>,
    ) -> (Judged, Option<Judged>) {
        let judge = |phase| {
            let judge = |question: &Question<'_>| set.explain(question, &self.known, explain, org);
            let explanation = self.ask(phase, judge);
            let ruled = Ruling::of(explanation.decision.clone(), DecisionInputs::default());
            Judged { explanation: Some(explanation), ..Judged::of(&ruled, Vec::new()) }
        };
        let call = judge(Phase::Request);
        let answer = (self.answered && call.permits()).then(|| judge(Phase::Response));
        (call, answer)
    }

    /// Puts the call, or its answer, as a question to policies.
    pub(super) fn ask<T>(&self, phase: Phase, judge: impl FnOnce(&Question<'_>) -> T) -> T {
        let Self { principal, tool, inputs, .. } = *self;
        let nothing = Value::Object(serde_json::Map::new());
        let empty_input = Document::of(&nothing);
        let empty = Facts::default();
        let output = inputs.dlp_output.as_ref().unwrap_or(&empty);
        let [input_found, output_found]: [Vec<&str>; 2] =
            [&inputs.dlp, output].map(|it| it.findings.iter().map(String::as_str).collect());
        let question = Question {
            principal,
            tool,
            input: inputs.input.as_ref().unwrap_or(&empty_input).root(),
            // Never computed anew: not all that they are made of is kept.
            facts: Some(inputs.facts.as_ref().unwrap_or(&nothing)),
            phase,
            dlp: facts(&inputs.dlp, &input_found),
            output: inputs.output.as_ref().filter(|_| phase == Phase::Response).map(Document::root),
            dlp_output: (phase == Phase::Response).then(|| facts(output, &output_found)),
            time: self.time,
            source_ip: self.detached.source_ip,
            bytes: inputs.request.bytes,
            mfa: inputs.request.mfa,
        };
        judge(&question)
    }
}

/// Policies that ask for an approval.
fn approvals(judged: &Judged) -> Vec<Arc<str>> {
    let decision = judged.explanation.as_ref().map(|explanation| &explanation.decision.verdict);
    let Some(Verdict::Allow { obligations, .. }) = decision else { return Vec::new() };
    let asking = obligations.iter().filter_map(|obligation| match obligation {
        Obligation::RequireApproval { policy, .. } => Some(Arc::clone(&policy.id)),
        Obligation::RateLimit { .. } | Obligation::Redact { .. } => None,
    });
    asking.collect()
}

fn facts<'a>(facts: &Facts, detectors: &'a [&'a str]) -> DlpFacts<'a> {
    let Facts { count, max_severity, media, .. } = *facts;
    DlpFacts { detectors, count, max_severity, media }
}

/// The decision that was recorded, if policies made one.
pub(super) fn recorded(core: &Core<'_>) -> Option<SimulatedDecision> {
    let decision = Some(core.decision()?);
    let policy = core.governance.as_ref()?.policy.as_deref()?;
    (policy != TOKEN_SCOPES).then(|| SimulatedDecision {
        decision,
        cause: None,
        policy: Some(policy.into()),
        reason: None,
    })
}

pub(super) fn compare(sets: &Sets, before: Before, after: SetDecision) -> Comparison {
    let (change, before, unknown_before) = match before {
        Before::Asked(said) => {
            let SetDecision { judged, unknown, .. } = *said;
            (after.judged.change_since(&judged), judged.summarize(), unknown)
        }
        Before::Recorded(recorded) => (since(&recorded, &after.judged), recorded, None),
    };
    let turned = |unknown: Option<&Indeterminate>| unknown.is_some_and(|it| could_differ(sets, it));
    let change = match (turned(after.unknown.as_ref()), turned(unknown_before.as_ref())) {
        (false, false) => change,
        (true, false) if before.decision == Some(RecordedDecision::Allow) => {
            SimulatedChange::MaybeDenied
        }
        (true, false) => SimulatedChange::MaybeAllowed,
        (_, true) => SimulatedChange::Indeterminate,
    };
    let missing = after.unknown.or(unknown_before).map(|unknown| unknown.missing);
    let missing = missing.unwrap_or_default();
    let (after, approvals) = (after.judged.summarize(), after.approvals);
    Comparison { change, before, after, missing, approvals }
}

/// Returns true if an undetermined policy differs between the two sets. One that is the same in
/// both has the same effect in both, whichever that is.
fn could_differ(sets: &Sets, unknown: &Indeterminate) -> bool {
    let version =
        |set: &PolicySet, id: &str| set.find(id).and_then(|record| record.version.clone());
    let Some(baseline) = sets.baseline() else { return true };
    unknown.policies.iter().any(|id| version(baseline, id) != version(&sets.candidate, id))
}

/// Change of a recorded decision, of which the obligations are not known.
fn since(recorded: &SimulatedDecision, after: &Judged) -> SimulatedChange {
    match (recorded.decision, after.decision) {
        (Some(RecordedDecision::Allow), Some(RecordedDecision::Deny)) => {
            SimulatedChange::NewlyDenied
        }
        (Some(RecordedDecision::Deny), Some(RecordedDecision::Allow)) => {
            SimulatedChange::NewlyAllowed
        }
        _ if recorded.policy != after.policy => SimulatedChange::PolicyChanged,
        _ => SimulatedChange::None,
    }
}
