//! What was ruled on a call or an answer, and by which policy.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use crate::{
    audit::{Capture, DlpFinding, DlpResult},
    clock::Timestamp,
    dlp::{Action, Direction, Engine, Finding, Findings, Mask, Unscannable},
    policy::{Decision, Named, Notice, Obligation, Principal, Shadow},
    refusal::Refusal,
};

/// Name of the built-in policy behind the configured DLP defaults.
const DLP_DEFAULT: &str = "dlp-default";

/// The most findings of one side that are told and recorded; the worst action counts them all.
const MAX_RECORDED: usize = 20;

/// Who asks, when and from where: what policies may look at besides the call.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// The caller as policies see it.
    pub principal: &'a Principal,
    /// When the request arrived.
    pub time: Timestamp,
    /// Where it came from.
    pub source_ip: Option<IpAddr>,
    /// How much of the payload the event keeps where no policy says so.
    pub capture: Capture,
}

/// The outcome of policy and DLP on one side of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Ruling {
    /// The policy that decided.
    pub policy: String,
    /// Its digest; `None` for built-ins.
    pub policy_version: Option<String>,
    /// Every policy that took part.
    pub determining: Vec<String>,
    /// Shadow policies that would have changed the decision.
    pub shadow: Vec<String>,
    /// Policies that could not be evaluated.
    pub errors: Vec<String>,
    /// What DLP found and what was done about it.
    pub findings: Vec<DlpFinding>,
    /// The worst of it.
    pub dlp_result: DlpResult,
    /// What the decision looked at, as events keep it.
    pub inputs: Box<Map<String, Value>>,
    /// Whom to tell.
    pub notices: Vec<Notice>,
    /// How much of the payload the event keeps, if a policy says so.
    pub capture: Option<Capture>,
    /// The payload as it is to be kept, if it is.
    pub captured: Option<Box<Value>>,
}

/// A call or an answer that must not pass, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Denial {
    /// The ruling that names the policy.
    pub ruling: Ruling,
    /// The policy's reason.
    pub reason: String,
    dlp: Option<Direction>,
    more: Box<Map<String, Value>>,
}

impl Ruling {
    /// Begins a ruling with what policy decided.
    pub(super) fn new(decided: &Named, decision: &Decision, inputs: Map<String, Value>) -> Self {
        Self {
            policy: decided.id.to_string(),
            policy_version: decided.version.as_deref().map(str::to_owned),
            determining: decision.determining.iter().map(ToString::to_string).collect(),
            shadow: decision.shadow.iter().filter(|s| s.flips).map(shadow_name).collect(),
            errors: decision.errors.iter().map(|error| error.policy.to_string()).collect(),
            findings: Vec::new(),
            dlp_result: DlpResult::Passed,
            inputs: Box::new(inputs),
            notices: decision.notices.clone(),
            capture: decision.capture,
            captured: None,
        }
    }

    /// Keeps of a payload what the policies ask for, or `default` if they say nothing.
    pub(super) fn capturing(
        mut self,
        default: Capture,
        engine: &Engine,
        payload: &Value,
        findings: &Findings,
    ) -> Self {
        let captured = match self.capture.unwrap_or(default) {
            Capture::Off | Capture::Commit => None,
            Capture::Redacted => Some(all_masked(engine, payload.clone(), findings)),
            Capture::Full => Some(payload.clone()),
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
            shadow: Vec::new(),
            errors: Vec::new(),
            findings: Vec::new(),
            dlp_result: DlpResult::Blocked,
            inputs: Box::default(),
            notices: Vec::new(),
            capture: None,
            captured: None,
        }
    }

    /// Writes down what DLP found, each finding with what is done about it.
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

    /// The built-in DLP policy took the decision over.
    pub(super) fn decided_by_default(&mut self) {
        self.decided_by(DLP_DEFAULT, None);
    }

    /// The policy whose obligation cannot be fulfilled took the decision over.
    pub(super) fn decided_by_obligation(&mut self, obligation: &Obligation) {
        let Named { id, version } = obligation.policy();
        self.decided_by(id, version.as_deref().map(str::to_owned));
    }

    fn decided_by(&mut self, policy: &str, version: Option<String>) {
        policy.clone_into(&mut self.policy);
        self.policy_version = version;
        self.determining = vec![policy.to_owned()];
    }
}

fn shadow_name(shadow: &Shadow) -> String {
    shadow.policy.to_string()
}

impl Denial {
    pub(super) fn new(ruling: Ruling, reason: String) -> Self {
        Self { ruling, reason, dlp: None, more: Box::default() }
    }

    /// Tells the caller more than the policy and the reason.
    pub(super) fn telling(mut self, more: Map<String, Value>) -> Self {
        *self.more = more;
        self
    }

    /// Nobody could look through what was to pass in this direction.
    #[must_use]
    pub fn unscannable(direction: Direction, why: &Unscannable) -> Self {
        let what = match direction {
            Direction::Input => "input",
            Direction::Output => "result",
        };
        let reason = format!("the {what} could not be scanned: {why}");
        Self::new(Ruling::unscannable(), reason).because_of_dlp(direction)
    }

    /// Makes it a denial because of what DLP found.
    pub(super) fn because_of_dlp(mut self, direction: Direction) -> Self {
        self.ruling.dlp_result = DlpResult::Blocked;
        self.dlp = Some(direction);
        self
    }

    /// The answer the caller gets.
    #[must_use]
    pub fn refusal(&self) -> Refusal {
        let dlp = self.dlp.map(|direction| {
            let shown = self.ruling.findings.iter().filter(|f| f.stage == stage(direction));
            let findings: Vec<Value> = shown
                .map(|f| {
                    json!({
                        "detector": f.detector, "path": f.path, "count": f.count, "action": f.action,
                    })
                })
                .collect();
            json!({ "stage": stage(direction), "findings": findings })
        });
        Refusal::PolicyDenied {
            policy: self.ruling.policy.clone(),
            reason: self.reason.clone(),
            dlp,
            more: (*self.more).clone(),
        }
    }
}

/// What is to be done about a finding: the strictest of the configured default and of every
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

/// How a finding is masked, if it is: as the first obligation that names its detector says, or
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
pub(super) fn all_masked(engine: &Engine, payload: Value, findings: &Findings) -> Value {
    engine.redact(payload, findings, None, |finding| Some(engine.default_mask(finding)))
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

const fn stage(direction: Direction) -> &'static str {
    match direction {
        Direction::Input => "input",
        Direction::Output => "output",
    }
}
