//! What an invocation answers, and what is recorded of each ending.

use portcullis_core::{
    audit::{DlpResult, Governance, RecordedDecision},
    call::{Denial, Ruling},
    id::EventId,
    refusal::TOKEN_SCOPES,
};
use serde::{Deserialize, Serialize};

/// The `governance` member of an answer (contract §2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GovernanceView {
    /// `allow` or `deny`.
    pub decision: RecordedDecision,
    /// The policy that decided.
    pub policy: String,
    /// Worst DLP outcome over input and output.
    pub dlp_result: DlpResult,
    /// The recorded event.
    pub audit_event_id: EventId,
}

impl GovernanceView {
    /// Present exactly when a decision was reached.
    pub(crate) fn of(governance: Option<&Governance>, event: EventId) -> Option<Self> {
        let governance = governance?;
        Some(Self {
            decision: governance.decision?,
            policy: governance.policy.clone()?,
            dlp_result: governance.dlp_result,
            audit_event_id: event,
        })
    }
}

/// The recorded governance of a permitted call.
pub(crate) fn allowed(ruling: &Ruling, policy_set: &str) -> Governance {
    recorded(RecordedDecision::Allow, ruling, policy_set, None)
}

/// The recorded governance of a denied call.
pub(crate) fn denied(denial: &Denial, policy_set: &str) -> Governance {
    let reason = Some(denial.reason.clone());
    recorded(RecordedDecision::Deny, &denial.ruling, policy_set, reason)
}

/// The recorded governance of a call whose token lacks the scope: decided before DLP and policy.
pub(crate) fn unscoped(reason: String) -> Governance {
    Governance {
        decision: Some(RecordedDecision::Deny),
        determining_policies: vec![TOKEN_SCOPES.to_owned()],
        dlp_findings: Vec::new(),
        dlp_result: DlpResult::Skipped,
        policy: Some(TOKEN_SCOPES.to_owned()),
        policy_set: None,
        policy_version: None,
        reason: Some(reason),
        shadow: Vec::new(),
    }
}

fn recorded(
    decision: RecordedDecision,
    ruling: &Ruling,
    policy_set: &str,
    reason: Option<String>,
) -> Governance {
    Governance {
        decision: Some(decision),
        determining_policies: ruling.determining.clone(),
        dlp_findings: ruling.findings.clone(),
        dlp_result: ruling.dlp_result,
        policy: Some(ruling.policy.clone()),
        policy_set: Some(policy_set.to_owned()),
        policy_version: ruling.policy_version.clone(),
        reason,
        shadow: ruling.shadow.clone(),
    }
}

/// Adds what was ruled on the answer to what was ruled on the call: the call's policy stays the
/// one that decided, the DLP outcome is the worse of both.
pub(crate) fn add_answer(governance: &mut Governance, answer: &Ruling) {
    governance.dlp_findings.extend(answer.findings.iter().cloned());
    governance.dlp_result = governance.dlp_result.max(answer.dlp_result);
    for policy in &answer.shadow {
        if !governance.shadow.contains(policy) {
            governance.shadow.push(policy.clone());
        }
    }
}

/// Turns a permitted call into a denied one, because its answer must not leave.
pub(crate) fn withhold(governance: &mut Governance, denial: &Denial) {
    add_answer(governance, &denial.ruling);
    governance.decision = Some(RecordedDecision::Deny);
    governance.policy = Some(denial.ruling.policy.clone());
    governance.policy_version.clone_from(&denial.ruling.policy_version);
    governance.determining_policies.clone_from(&denial.ruling.determining);
    governance.reason = Some(denial.reason.clone());
}
