//! Ruling on a call or an answer: the policy that decided, and the findings with what is done about
//! them.

use std::{net::IpAddr, sync::Arc};

use serde_json::Value;

use super::decision_inputs::DecisionInputs;
use crate::{
    audit::{Capture, DlpFinding, DlpResult, Governance, RecordedDecision},
    clock::Timestamp,
    dlp::{Action, Direction, Engine, Finding, Findings, Mask},
    json::Document,
    policy::{DLP_DEFAULT, Errored, Notice, Obligation, PolicyRef, Principal, Shadow},
};

/// The most findings of one side that are told and recorded; the worst action counts them all.
const MAX_RECORDED: usize = 20;

/// Caller, time and origin of a call, as policies see them.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// The caller as policies see it.
    pub principal: &'a Principal,
    /// When the request arrived.
    pub time: Timestamp,
    pub source_ip: Option<IpAddr>,
    /// Payload capture where no policy says otherwise.
    pub capture: Capture,
}

/// The outcome of policy and DLP on one side of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Ruling {
    pub policy: String,
    /// Its digest; `None` for built-ins.
    pub policy_version: Option<String>,
    /// Every policy that took part.
    pub determining: Vec<String>,
    pub obligations: Vec<Obligation>,
    /// Shadow policies, each with what it would have done.
    pub shadow: Vec<Shadow>,
    /// Policies that could not be evaluated.
    pub errors: Vec<Errored>,
    /// Findings of DLP, each with what was done about it.
    pub findings: Vec<DlpFinding>,
    /// The worst of it.
    pub dlp_result: DlpResult,
    /// Inputs of the decision, as events keep them.
    pub inputs: Arc<DecisionInputs>,
    pub notices: Vec<Notice>,
    /// Payload capture that a policy asks for.
    pub capture: Option<Capture>,
    /// The payload as it is to be kept, if it is.
    pub captured: Option<Box<Value>>,
}

impl Ruling {
    /// Keeps of a payload what the policies ask for, or `default` if they say nothing.
    pub(super) fn capturing(
        mut self,
        default: Capture,
        engine: &Engine,
        payload: &Document,
        findings: &Findings,
    ) -> Self {
        let captured = match self.capture.unwrap_or(default) {
            Capture::Off | Capture::Commit => None,
            Capture::Redacted => Some(all_masked(engine, payload, findings)),
            Capture::Full => Some(payload.root().to_value()),
        };
        self.captured = captured.map(Box::new);
        self
    }

    /// A ruling of the built-in DLP policy on something that could not be looked through.
    pub(super) fn unscannable() -> Self {
        Self {
            policy: DLP_DEFAULT.to_owned(),
            policy_version: None,
            determining: vec![DLP_DEFAULT.to_owned()],
            obligations: Vec::new(),
            shadow: Vec::new(),
            errors: Vec::new(),
            findings: Vec::new(),
            dlp_result: DlpResult::Blocked,
            inputs: Arc::default(),
            notices: Vec::new(),
            capture: None,
            captured: None,
        }
    }

    /// The ruling with the findings [noted](Self::note).
    pub(super) fn noting(
        mut self,
        findings: &Findings,
        direction: Direction,
        action: impl Fn(&Finding) -> Action,
    ) -> Self {
        self.note(findings, direction, action);
        self
    }

    /// Writes down the findings, each with what is done about it.
    pub(super) fn note(
        &mut self,
        findings: &Findings,
        direction: Direction,
        action: impl Fn(&Finding) -> Action,
    ) {
        for finding in findings {
            let action = action(finding);
            self.dlp_result = self.dlp_result.max(match action {
                Action::Flag => DlpResult::Flagged,
                Action::Redact => DlpResult::Redacted,
                Action::Block => DlpResult::Blocked,
            });
            if self.findings.len() == MAX_RECORDED {
                continue;
            }
            self.findings.push(DlpFinding {
                action: action.as_str(),
                count: finding.count(),
                detector: finding.detector().to_owned(),
                fingerprints: finding
                    .fingerprints()
                    .iter()
                    .take(4)
                    .map(ToString::to_string)
                    .collect(),
                path: finding.pointer().chars().take(200).collect(),
                stage: stage(direction),
            });
        }
    }

    /// Shadow policies that would have changed the decision.
    pub fn flipped_by(&self) -> impl Iterator<Item = &str> {
        self.shadow.iter().filter(|shadow| shadow.flips).map(|shadow| &*shadow.policy)
    }

    /// As it is recorded of a call that passed under the policy set of this digest.
    #[must_use]
    pub fn governance(&self, policy_set: &str) -> Governance {
        Governance {
            approvals: Vec::new(),
            decision: Some(RecordedDecision::Allow),
            determining_policies: self.determining.clone(),
            dlp_findings: self.findings.clone(),
            dlp_result: self.dlp_result,
            policy: Some(self.policy.clone()),
            policy_set: Some(policy_set.to_owned()),
            policy_version: self.policy_version.clone(),
            reason: None,
            shadow: self.flipped_by().map(str::to_owned).collect(),
        }
    }

    /// Adds the ruling on an answer to what is recorded of its call: the policy of the call stays
    /// the one that decided, the DLP result is the worse of both.
    pub fn add_to(&self, governance: &mut Arc<Governance>) {
        let adds = !self.findings.is_empty()
            || self.dlp_result > governance.dlp_result
            || self.flipped_by().next().is_some();
        if !adds {
            return;
        }
        let governance = Arc::make_mut(governance);
        governance.dlp_findings.extend(self.findings.iter().cloned());
        governance.dlp_result = governance.dlp_result.max(self.dlp_result);
        for policy in self.flipped_by() {
            if !governance.shadow.iter().any(|known| known == policy) {
                governance.shadow.push(policy.to_owned());
            }
        }
    }

    /// The built-in DLP policy took the decision over.
    pub(super) fn decided_by_default(&mut self) {
        self.decided_by(DLP_DEFAULT, None);
    }

    /// The policy whose obligation cannot be fulfilled took the decision over.
    pub(super) fn decided_by_obligation(&mut self, obligation: &Obligation) {
        let PolicyRef { id, version } = obligation.policy();
        self.decided_by(id, version.as_deref().map(str::to_owned));
    }

    fn decided_by(&mut self, policy: &str, version: Option<String>) {
        policy.clone_into(&mut self.policy);
        self.policy_version = version;
        self.determining = vec![policy.to_owned()];
    }
}

/// Action on a finding: the strictest of the configured default and of every
/// obligation that names its detector.
pub(super) fn action(
    engine: &Engine,
    finding: &Finding,
    direction: Direction,
    obligations: &[Obligation],
) -> Action {
    let default = engine.default_action(finding, direction);
    if obligations.iter().any(|obligation| obligation.redacts(direction, finding)) {
        default.max(Action::Redact)
    } else {
        default
    }
}

/// Mask of a finding, if it is masked: as the first obligation that names its detector says, or
/// as the settings do.
pub(super) fn masked(
    engine: &Engine,
    finding: &Finding,
    direction: Direction,
    obligations: &[Obligation],
) -> Option<Mask> {
    if action(engine, finding, direction, obligations) != Action::Redact {
        return None;
    }
    let asked = obligations.iter().find_map(|obligation| obligation.mask(direction, finding));
    Some(asked.unwrap_or_else(|| engine.default_mask(finding)))
}

/// A payload with all masked that was found in it, whatever is done about it otherwise.
pub(super) fn all_masked(engine: &Engine, payload: &Document, findings: &Findings) -> Value {
    let mask = |finding: &Finding| Some(engine.default_mask(finding));
    engine.redact(payload, findings, None, mask).root().to_value()
}

/// The reason of a block by `dlp-default`: the kinds that were found, never the values.
pub(super) fn block_reason(
    findings: &Findings,
    direction: Direction,
    action: impl Fn(&Finding) -> Action,
) -> String {
    let blocked = findings.iter().filter(|finding| action(finding) == Action::Block);
    let mut kinds: Vec<&str> = blocked.map(Finding::detector).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let what = match direction {
        Direction::Input => "the input",
        Direction::Output => "the result",
    };
    format!("{what} contained {}", kinds.join(", "))
}

pub(super) const fn stage(direction: Direction) -> &'static str {
    match direction {
        Direction::Input => "input",
        Direction::Output => "output",
    }
}
