//! Denials: every no to a call or an answer that is a decision, with the words for the caller.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    decision_inputs::DecisionInputs,
    ruling::{Ruling, stage},
};
use crate::{
    audit::{DlpResult, Governance, RecordedDecision},
    dlp::{Direction, Unscannable},
    policy::{Cause, Decision, TOKEN_SCOPES, TOOL_PINNING, Verdict},
    principal::Scope,
    refusal::{AskedApproval, Refusal, Violation, lacks},
    tool::ToolId,
};

/// Reason that a quarantined tool is not called.
const CHANGED: &str = "the tool's definition changed after it was accepted and waits for review";

/// A call or an answer that must not pass, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Denial {
    grounds: Grounds,
    /// The reason, for the caller and for events.
    pub reason: String,
    /// Absent where neither policy nor DLP was asked.
    ruling: Option<Box<Ruling>>,
    dlp: Option<Direction>,
}

/// The rule that a denial rests on.
#[derive(Debug, Clone, PartialEq)]
pub enum Grounds {
    /// The token lacks this scope.
    Scope(Scope),
    /// The tool's definition changed and waits for review.
    Quarantine,
    /// The input breaks the schema of the tool. No policy is asked, so nothing is decided.
    Schema { tool: ToolId, violations: Vec<Violation> },
    /// A policy forbids, none permits, or one could not be evaluated.
    Policy(Cause),
    /// DLP blocks, or could not scan.
    Dlp,
    /// A rate is used up; the members tell the caller which, and when there is room.
    Limit(Map<String, Value>),
    /// People have to approve the call first, or denied it.
    Approval(AskedApproval),
    /// Masked as it has to be, the input no longer fits the tool's schema.
    Masking,
}

impl Denial {
    /// A token that lacks a scope.
    #[must_use]
    pub fn unscoped(required: Scope) -> Self {
        Self::outright(Grounds::Scope(required), lacks(required))
    }

    pub(super) fn quarantined() -> Self {
        Self::outright(Grounds::Quarantine, CHANGED.to_owned())
    }

    pub(super) fn unfit(tool: ToolId, violations: Vec<Violation>) -> Self {
        let grounds = Grounds::Schema { tool, violations };
        Self::outright(grounds, "the input does not match the tool's schema".to_owned())
    }

    /// Denies before policy and DLP are asked.
    const fn outright(grounds: Grounds, reason: String) -> Self {
        Self { grounds, reason, ruling: None, dlp: None }
    }

    pub(super) fn ruled(grounds: Grounds, ruling: Ruling, reason: String) -> Self {
        Self { grounds, reason, ruling: Some(Box::new(ruling)), dlp: None }
    }

    /// Denial because the content in this direction could not be scanned.
    #[must_use]
    pub fn unscannable(direction: Direction, why: &Unscannable) -> Self {
        let what = match direction {
            Direction::Input => "input",
            Direction::Output => "result",
        };
        let reason = format!("the {what} could not be scanned: {why}");
        Self::ruled(Grounds::Dlp, Ruling::unscannable(), reason).because_of_dlp(direction)
    }

    /// Makes it a denial because of what DLP found.
    pub(super) fn because_of_dlp(mut self, direction: Direction) -> Self {
        if let Some(ruling) = &mut self.ruling {
            ruling.dlp_result = DlpResult::Blocked;
        }
        self.dlp = Some(direction);
        self
    }

    pub(super) fn map_ruling(mut self, change: impl FnOnce(Ruling) -> Ruling) -> Self {
        self.ruling = self.ruling.map(|ruling| Box::new(change(*ruling)));
        self
    }

    /// The rule that it rests on.
    #[must_use]
    pub const fn grounds(&self) -> &Grounds {
        &self.grounds
    }

    /// Ruling of policy and DLP, if they were asked.
    #[must_use]
    pub fn ruling(&self) -> Option<&Ruling> {
        self.ruling.as_deref()
    }

    /// Ruling of policy and DLP, without the rest.
    #[must_use]
    pub fn into_ruling(self) -> Option<Ruling> {
        self.ruling.map(|ruling| *ruling)
    }

    /// The policy that denies; none where nothing was decided.
    #[must_use]
    pub fn policy(&self) -> Option<&str> {
        match (&self.grounds, &self.ruling) {
            (_, Some(ruling)) => Some(&ruling.policy),
            (Grounds::Scope(_), None) => Some(TOKEN_SCOPES),
            (Grounds::Quarantine, None) => Some(TOOL_PINNING),
            (
                Grounds::Schema { .. }
                | Grounds::Policy(_)
                | Grounds::Dlp
                | Grounds::Limit(_)
                | Grounds::Approval(_)
                | Grounds::Masking,
                None,
            ) => None,
        }
    }

    /// Every policy that took part in the denial.
    #[must_use]
    pub fn determining(&self) -> Vec<String> {
        match &self.ruling {
            Some(ruling) => ruling.determining.clone(),
            None => self.policy().map(str::to_owned).into_iter().collect(),
        }
    }

    /// As it is recorded of a call; none where nothing was decided.
    #[must_use]
    pub fn governance(&self, policy_set: &str) -> Option<Governance> {
        let mut governance = match &self.ruling {
            Some(ruling) => ruling.governance(policy_set),
            None => Governance {
                approvals: Vec::new(),
                decision: None,
                determining_policies: self.determining(),
                dlp_findings: Vec::new(),
                dlp_result: DlpResult::Skipped,
                policy: Some(self.policy()?.to_owned()),
                policy_set: None,
                policy_version: None,
                reason: None,
                shadow: Vec::new(),
            },
        };
        governance.decision = Some(RecordedDecision::Deny);
        governance.reason = Some(self.reason.clone());
        Some(governance)
    }

    /// Turns what is recorded of a permitted call into a denial, because its answer must not leave.
    pub fn withhold(&self, governance: &mut Arc<Governance>) {
        let Some(ruling) = &self.ruling else { return };
        ruling.add_to(governance);
        let governance = Arc::make_mut(governance);
        governance.decision = Some(RecordedDecision::Deny);
        governance.policy = Some(ruling.policy.clone());
        governance.policy_version.clone_from(&ruling.policy_version);
        governance.determining_policies.clone_from(&ruling.determining);
        governance.reason = Some(self.reason.clone());
    }

    /// The answer to the caller.
    #[must_use]
    pub fn refusal(&self) -> Refusal {
        let more = match &self.grounds {
            Grounds::Scope(required) => return Refusal::InsufficientScope { required: *required },
            Grounds::Schema { tool, violations } => {
                return Refusal::InvalidInput {
                    tool: tool.clone(),
                    violations: violations.clone(),
                };
            }
            Grounds::Approval(approval) => {
                return Refusal::AwaitsApproval {
                    policy: self.policy().unwrap_or_default().to_owned(),
                    reason: self.reason.clone(),
                    approval: approval.clone(),
                };
            }
            Grounds::Limit(more) => more.clone(),
            Grounds::Quarantine | Grounds::Policy(_) | Grounds::Dlp | Grounds::Masking => {
                Map::new()
            }
        };
        Refusal::PolicyDenied {
            policy: self.policy().unwrap_or_default().to_owned(),
            reason: self.reason.clone(),
            dlp: self.dlp.map(|direction| self.findings_of(stage(direction))),
            more,
        }
    }

    /// Findings of one stage, as the caller is told.
    fn findings_of(&self, stage: &str) -> Value {
        let all = self.ruling.iter().flat_map(|ruling| &ruling.findings);
        let findings: Vec<Value> = all
            .filter(|finding| finding.stage == stage)
            .map(|finding| {
                json!({
                    "detector": finding.detector, "path": finding.path, "count": finding.count,
                    "action": finding.action,
                })
            })
            .collect();
        json!({ "stage": stage, "findings": findings })
    }
}

impl Ruling {
    /// Begins a ruling with the decision of policy, or a denial by it. `inputs` are what the
    /// decision looked at.
    pub fn of(decision: Decision, inputs: DecisionInputs) -> Result<Self, Denial> {
        let Decision { verdict, determining, notices, capture, shadow, errors } = decision;
        let (decided, obligations, denied) = match verdict {
            Verdict::Allow { policy, obligations } => (policy, obligations, None),
            Verdict::Deny { policy, reason, cause, .. } => {
                (policy, Vec::new(), Some((Grounds::Policy(cause), reason)))
            }
        };
        let ruling = Self {
            policy: decided.id.to_string(),
            policy_version: decided.version.as_deref().map(str::to_owned),
            determining: determining.iter().map(ToString::to_string).collect(),
            obligations,
            shadow,
            errors,
            findings: Vec::new(),
            dlp_result: DlpResult::Passed,
            inputs: Arc::new(inputs),
            notices,
            capture,
            captured: None,
        };
        match denied {
            None => Ok(ruling),
            Some((grounds, reason)) => Err(Denial::ruled(grounds, ruling, reason)),
        }
    }
}
