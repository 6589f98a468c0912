//! An explanation in sentences: the decision, and what helps.

use portcullis_core::{
    audit::RecordedDecision,
    capability::Capability,
    policy::{DEFAULT_DENY, DLP_DEFAULT, Effect, Outcome, Status, TOKEN_SCOPES, TOOL_PINNING},
};
use serde_json::Value;

use super::{super::recorded::Core, EventExplanation};
use crate::simulation::decision::{SimulatedCause, SimulatedDecision};

/// The decision as its event tells it.
pub(super) struct RecordedSummary<'a> {
    decision: Option<RecordedDecision>,
    policy: &'a str,
    reason: Option<&'a str>,
    pub(super) policy_set: Option<&'a str>,
    pub(super) tool: &'a str,
    version: Option<&'a str>,
    status: &'a str,
}

impl<'a> RecordedSummary<'a> {
    pub(super) fn of(core: &'a Core<'_>) -> Self {
        let governance = core.governance.as_ref();
        Self {
            decision: core.decision(),
            policy: governance.and_then(|it| it.policy.as_deref()).unwrap_or_default(),
            reason: governance.and_then(|it| it.reason.as_deref()),
            policy_set: governance.and_then(|it| it.policy_set.as_deref()),
            tool: core.tool(),
            version: core.target.as_ref().and_then(|it| it.version.as_deref()),
            status: &core.outcome.status,
        }
    }

    /// Returns true if a policy or a built-in decided the call.
    pub(super) const fn is_decided(&self) -> bool {
        self.decision.is_some()
    }

    /// The built-in outside the policy files that denied the call.
    fn denied_outside(&self) -> Option<&'a str> {
        let outside = [TOKEN_SCOPES, TOOL_PINNING, DLP_DEFAULT];
        let denied = self.decision == Some(RecordedDecision::Deny);
        Some(self.policy).filter(|policy| denied && outside.contains(policy))
    }

    /// Returns true if a permit is what the call lacks, by `now`, the decision of the set in force, or
    /// by the recorded one where that set cannot be asked.
    pub(super) fn lacks_a_permit(&self, now: Option<&SimulatedDecision>) -> bool {
        let cause = now.and_then(|now| now.cause);
        self.denied_outside().is_none()
            && cause.map_or(self.policy == DEFAULT_DENY, |it| it == SimulatedCause::DefaultDeny)
    }

    /// Writes the summary, and the parts of the call without which policies cannot be asked.
    pub(super) fn conclude(&self, tool: Option<&Capability>, explanation: &mut EventExplanation) {
        explanation.summary.push(self.describe_decision());
        if self.decision.is_none() || matches!(self.policy, TOKEN_SCOPES | TOOL_PINNING) {
            return;
        }
        if explanation.decision.is_none() {
            let missing = if tool.is_some() { "decision_inputs" } else { self.tool };
            explanation.missing.push(missing.to_owned());
        }
        let sentences = [
            self.told_now(explanation),
            self.told_changes(tool, explanation),
            told_missing(explanation),
            told_help(explanation),
        ];
        explanation.summary.extend(sentences.into_iter().flatten());
    }

    fn describe_decision(&self) -> String {
        let Self { policy, status, tool, .. } = self;
        let reason =
            self.reason.map(|reason| format!(": {}", sentence(reason))).unwrap_or_default();
        match (self.decision, self.denied_outside()) {
            (None, _) => format!("No policy was asked about this call: it ended as `{status}`."),
            (Some(RecordedDecision::Allow), _) => format!("It was permitted by `{policy}`."),
            (Some(RecordedDecision::Deny), None) => format!("It was denied by `{policy}`{reason}."),
            (Some(RecordedDecision::Deny), Some(TOKEN_SCOPES)) => format!(
                "It was denied by `{policy}`{reason}. A permit does not help: the call needs a token with \
                 that scope."
            ),
            (Some(RecordedDecision::Deny), Some(TOOL_PINNING)) => format!(
                "It was denied by `{policy}`{reason}. A permit does not help: look at the change with \
                 `portcullis tool diff {tool}`, and accept it with `portcullis tool accept {tool}`."
            ),
            (Some(RecordedDecision::Deny), Some(_)) => format!(
                "It was denied by `{policy}`{reason}. A permit does not help: \
                 `governance.dlp_findings` tells what was found and where."
            ),
        }
    }

    /// The decision of the set in force.
    fn told_now(&self, explanation: &EventExplanation) -> Option<String> {
        let Some(now) = &explanation.decision else {
            return Some("The policies in force cannot be asked about it.".to_owned());
        };
        let policy = now.policy.as_deref().unwrap_or_default();
        let reason = sentence(now.reason.as_deref().unwrap_or_default());
        let is_owed = explanation.obligations.iter().any(|obligation| {
            obligation.get("policy").and_then(Value::as_str) == Some(self.policy)
        });
        Some(match now.cause? {
            SimulatedCause::Permit if is_owed => format!(
                "`{policy}` permits it, and `{}` asks for an obligation that was not fulfilled: another \
                 permit does not help.",
                self.policy
            ),
            SimulatedCause::Permit if self.denied_outside().is_some() => {
                format!("The policies permit it, by `{policy}`.")
            }
            SimulatedCause::Permit => {
                format!("`{policy}` permits it: nothing has to be added.")
            }
            SimulatedCause::DefaultDeny => "No permit is true for it.".to_owned(),
            SimulatedCause::PolicyError => {
                format!("`{policy}` denies it: {reason}. A permit does not help.")
            }
            SimulatedCause::ExplicitDeny
            | SimulatedCause::Dlp
            | SimulatedCause::InvalidInput
            | SimulatedCause::Obligation => format!(
                "The forbid `{policy}` is true{}, and a permit does not help: {reason}.",
                on_values(explanation, policy)
            ),
        })
    }

    fn told_changes(
        &self,
        tool: Option<&Capability>,
        explanation: &EventExplanation,
    ) -> Option<String> {
        let is_other_tool = tool.zip(self.version).is_some_and(|(tool, was)| tool.version != was);
        let changed = match (explanation.policy_set.is_another(), is_other_tool) {
            (false, false) => return None,
            (true, false) => "another policy set",
            (false, true) => "another definition of the tool",
            (true, true) => "another policy set and another definition of the tool",
        };
        Some(format!(
            "It was decided under {changed}; this explains it under what is in force now."
        ))
    }
}

/// A reason without its full stop.
fn sentence(reason: &str) -> &str {
    reason.trim_end_matches('.')
}

/// The values that the clauses of a policy read.
fn on_values(explanation: &EventExplanation, policy: &str) -> String {
    let named = explanation.policies.iter().find(|one| &*one.policy == policy);
    let clauses = named.into_iter().flat_map(|one| &one.clauses);
    let values = clauses.flat_map(|clause| &clause.values);
    let mut told: Vec<String> = Vec::new();
    for read in values {
        let value = read.value.as_ref().map(|value| format!("`{} = {value}`", read.path));
        told.extend(value.filter(|value| !told.contains(value)));
    }
    if told.is_empty() { String::new() } else { format!(" on {}", told.join(", ")) }
}

fn told_missing(explanation: &EventExplanation) -> Option<String> {
    let missing = explanation.missing.join("`, `");
    (!missing.is_empty())
        .then(|| format!("Not known, because it was not kept or is there no more: `{missing}`."))
}

fn told_help(explanation: &EventExplanation) -> Option<String> {
    if !explanation.permit_helps {
        return None;
    }
    if explanation.suggested_permit.is_none() {
        let told = "No permit can be suggested: the call cannot be written down as one.";
        return Some(told.to_owned());
    }
    let unknown = forbids(explanation, Outcome::Unknown);
    let owing = forbids(explanation, Outcome::True);
    let unless = match (&explanation.decision, unknown.is_empty()) {
        (None, _) => ", unless a forbid is true".to_owned(),
        (Some(_), true) => String::new(),
        (Some(_), false) => format!(", unless `{unknown}` is true, which is not known"),
    };
    // Without an obligation it would have decided.
    let then = if owing.is_empty() {
        String::new()
    } else {
        format!(" Then the obligation of `{owing}` has to be fulfilled.")
    };
    Some(format!("The suggested permit would allow this call{unless}.{then}"))
}

/// The names of the active forbids with this outcome.
fn forbids(explanation: &EventExplanation, outcome: Outcome) -> String {
    let policies = explanation.policies.iter().filter(|policy| {
        policy.effect == Effect::Forbid
            && policy.status == Status::Active
            && policy.outcome == outcome
    });
    policies.map(|policy| &*policy.policy).collect::<Vec<_>>().join("`, `")
}
