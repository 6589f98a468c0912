//! What policies and DLP would say to one call. Nothing is sent, spent or recorded.

use std::{net::IpAddr, sync::Arc};

use portcullis_core::{
    audit::RecordedDecision,
    clock::Timestamp,
    dlp::{
        Action, Category, Detector, Direction, Engine, Finding, Findings, FingerprintKey, Subject,
    },
    policy::{
        Cause, DLP_DEFAULT, Decision, DlpFacts, Errored, Examined, Explain, Known, Obligation,
        Phase, PolicySet, Principal, Question, Shadow, TOOL_PINNING, Verdict,
    },
    refusal::Violation,
    tool::Tool,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::tools::pins::REASON;

/// One call with everything looked up.
pub(crate) struct Case {
    pub(crate) principal: Arc<Principal>,
    pub(crate) tool: Arc<Tool>,
    pub(crate) input: Value,
    pub(crate) phase: Phase,
    pub(crate) output: Option<Value>,
    pub(crate) time: Timestamp,
    pub(crate) ip: Option<IpAddr>,
    pub(crate) bytes: u64,
    pub(crate) mfa: bool,
    pub(crate) dlp: Option<Vec<String>>,
    pub(crate) dlp_output: Option<Vec<String>>,
    /// Whether the tool is in quarantine.
    pub(crate) held: bool,
}

/// Why it was decided so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Because {
    /// A permit is true, and no forbid.
    Permit,
    /// A forbid is true.
    ExplicitDeny,
    /// No permit is true.
    DefaultDeny,
    /// An obligation cannot be fulfilled.
    Obligation,
    /// A policy could not be evaluated.
    PolicyError,
    /// DLP blocks what no policy blocks.
    Dlp,
    /// The arguments do not fit the tool's schema: no policy is asked.
    InvalidInput,
}

impl Because {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Permit => "permit",
            Self::ExplicitDeny => "explicit_deny",
            Self::DefaultDeny => "default_deny",
            Self::Obligation => "obligation",
            Self::PolicyError => "policy_error",
            Self::Dlp => "dlp",
            Self::InvalidInput => "invalid_input",
        }
    }
}

/// What one call comes to.
#[derive(Debug, Clone)]
pub(crate) struct Judged {
    pub(crate) decision: Option<RecordedDecision>,
    pub(crate) cause: Because,
    pub(crate) policy: Option<Arc<str>>,
    pub(crate) reason: Option<String>,
    pub(crate) determining: Vec<Arc<str>>,
    pub(crate) obligations: Vec<Value>,
    pub(crate) found: Vec<String>,
    pub(crate) action: &'static str,
    pub(crate) shadow: Vec<Shadow>,
    pub(crate) errors: Vec<Errored>,
    pub(crate) violations: Vec<Violation>,
    pub(crate) explained: Option<Value>,
}

/// What DLP says, whoever said it.
struct Looked {
    detectors: Vec<String>,
    count: i64,
    max_severity: i64,
    /// Image and audio blocks.
    media: i64,
    /// The findings, when it was the engine that looked.
    findings: Option<Findings>,
}

/// The engine and the key with which calls are looked through.
pub(crate) struct Court<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) key: &'a FingerprintKey,
}

impl Court<'_> {
    /// Judges one call as the gateway would, up to the point where it would be sent.
    pub(crate) fn judge(&self, set: &PolicySet, case: &Case, explain: Option<Explain>) -> Judged {
        if case.held && case.phase == Phase::Request {
            return quarantined();
        }
        let mut violations = match case.phase {
            Phase::Request => case.tool.violations(&case.input),
            Phase::Response => Vec::new(),
        };
        if !violations.is_empty() {
            self.engine.clear_violations(&mut violations);
            return invalid(violations);
        }
        let (input, output) = match self.look(case) {
            Ok(looked) => looked,
            Err(what) => return unscannable(what),
        };
        let names = Names { input: refs(&input), output: output.as_ref().map(refs) };
        let question = question(case, &input, output.as_ref(), &names);
        let examined = set.examine(&question, &Known::everything(), depth(explain));
        let explained = explain.map(|explain| explained(&examined, explain));
        let decision = examined.decision;
        let (direction, looked) = match (case.phase, output) {
            (Phase::Request, _) => (Direction::Input, input),
            (Phase::Response, output) => (Direction::Output, output.unwrap_or_else(nothing)),
        };
        Judged { explained, ..self.weigh(case, decision, direction, &looked) }
    }

    fn look(&self, case: &Case) -> Result<(Looked, Option<Looked>), String> {
        let input = self.found(case, case.dlp.as_deref(), Some(&case.input), "the input")?;
        let output = match case.phase {
            Phase::Request => None,
            Phase::Response => {
                let given = case.dlp_output.as_deref();
                Some(self.found(case, given, case.output.as_ref(), "the result")?)
            }
        };
        Ok((input, output))
    }

    fn subject(&self, case: &Case) -> Subject {
        Subject::of(self.key.clone()).calling(case.tool.id.as_str())
    }

    fn found(
        &self,
        case: &Case,
        given: Option<&[String]>,
        value: Option<&Value>,
        what: &str,
    ) -> Result<Looked, String> {
        match (given, value) {
            (Some(names), _) => Ok(told(names)),
            (None, None) => Ok(nothing()),
            (None, Some(value)) => match self.engine.scan_for(value, &self.subject(case)) {
                Ok(findings) => Ok(Looked {
                    detectors: findings.detectors().into_iter().map(str::to_owned).collect(),
                    count: i64::try_from(findings.count()).unwrap_or(i64::MAX),
                    max_severity: findings.max_severity(),
                    media: findings.media().into(),
                    findings: Some(findings),
                }),
                Err(error) => Err(format!("{what} could not be scanned: {error}")),
            },
        }
    }

    /// From what the policies say and what DLP does about its findings to what happens.
    fn weigh(
        &self,
        case: &Case,
        decision: Decision,
        direction: Direction,
        looked: &Looked,
    ) -> Judged {
        let (mut judged, verdict) = heard(decision, &looked.detectors);
        let Verdict::Allow { obligations, .. } = verdict else { return judged };
        let Some(findings) = &looked.findings else { return judged };
        let chosen = |finding: &Finding| {
            let default = self.engine.default_action(finding, direction);
            let owed = obligations.iter().any(|owed| owed.redacts(direction, finding));
            if owed { default.max(Action::Redact) } else { default }
        };
        let worst = findings.iter().map(chosen).max();
        judged.action = worst.map_or("allow", action_name);
        match worst {
            Some(Action::Block) => blocked(&mut judged, findings, chosen),
            Some(Action::Redact) if case.phase == Phase::Request => {
                let mask = |finding: &Finding| {
                    let asked = obligations.iter().find_map(|owed| owed.mask(direction, finding));
                    let mask = asked.unwrap_or_else(|| self.engine.default_mask(finding));
                    (chosen(finding) == Action::Redact).then_some(mask)
                };
                let schema = Some(&case.tool.definition.input_schema);
                let input = self.engine.redact(case.input.clone(), findings, schema, mask);
                if !case.tool.violations(&input).is_empty() {
                    let owed = obligations
                        .iter()
                        .find(|owed| findings.iter().any(|found| owed.redacts(direction, found)));
                    no_longer_fits(&mut judged, owed);
                }
            }
            Some(Action::Redact | Action::Flag) | None => {}
        }
        judged
    }
}

/// How deep to look: permits that nearly applied are only found by looking at each.
const fn depth(explain: Option<Explain>) -> Explain {
    match explain {
        None => Explain::Determining,
        Some(Explain::Determining | Explain::Candidates) => Explain::Candidates,
        Some(Explain::Full) => Explain::Full,
    }
}

/// Why it is so: the permits that nearly applied and, as far as asked, what each policy said.
fn explained(examined: &Examined, explain: Explain) -> Value {
    let near_misses = &examined.near_misses;
    match explain {
        Explain::Determining => json!({ "near_misses": near_misses }),
        Explain::Candidates | Explain::Full => json!({
            "near_misses": near_misses,
            "considered": examined.considered,
            "candidates": examined.candidates,
        }),
    }
}

struct Names<'a> {
    input: Vec<&'a str>,
    output: Option<Vec<&'a str>>,
}

fn refs(looked: &Looked) -> Vec<&str> {
    looked.detectors.iter().map(String::as_str).collect()
}

fn question<'a>(
    case: &'a Case,
    input: &Looked,
    output: Option<&Looked>,
    names: &'a Names<'a>,
) -> Question<'a> {
    let facts = |looked: &Looked, detectors: &'a [&'a str]| DlpFacts {
        detectors,
        count: looked.count,
        max_severity: looked.max_severity,
        media: looked.media,
    };
    Question {
        principal: &case.principal,
        tool: &case.tool,
        input: &case.input,
        facts: None,
        phase: case.phase,
        dlp: facts(input, &names.input),
        output: case.output.as_ref(),
        dlp_output: output.zip(names.output.as_deref()).map(|(it, names)| facts(it, names)),
        time: case.time,
        source_ip: case.ip,
        bytes: case.bytes,
        mfa: case.mfa,
    }
}

fn nothing() -> Looked {
    Looked { detectors: Vec::new(), count: 0, max_severity: 0, media: 0, findings: None }
}

/// Findings that the asker imagines, as grave as their detectors.
fn told(names: &[String]) -> Looked {
    let grave = |name: &String| {
        Engine::known_detectors()
            .find(|detector| detector.name() == name)
            .map_or(1, |detector: &Detector| Category::severity(detector.category()))
    };
    Looked {
        detectors: names.to_vec(),
        count: i64::try_from(names.len()).unwrap_or(i64::MAX),
        max_severity: names.iter().map(grave).max().unwrap_or(0),
        media: 0,
        findings: None,
    }
}

/// What a decision comes to before DLP has its say, and the verdict itself.
pub(super) fn heard(decision: Decision, found: &[String]) -> (Judged, Verdict) {
    let Decision { verdict, determining, shadow, errors, .. } = decision;
    let (decided, cause, policy, reason) = match &verdict {
        Verdict::Allow { policy, .. } => (RecordedDecision::Allow, Because::Permit, policy, None),
        Verdict::Deny { policy, reason, cause, .. } => {
            let cause = match cause {
                Cause::ExplicitDeny => Because::ExplicitDeny,
                Cause::DefaultDeny => Because::DefaultDeny,
                Cause::PolicyError => Because::PolicyError,
            };
            (RecordedDecision::Deny, cause, policy, Some(reason.clone()))
        }
    };
    let obligations = match &verdict {
        Verdict::Allow { obligations, .. } => obligations.iter().map(Obligation::to_json).collect(),
        Verdict::Deny { .. } => Vec::new(),
    };
    let judged = Judged {
        decision: Some(decided),
        cause,
        policy: Some(Arc::clone(&policy.id)),
        reason,
        determining,
        obligations,
        found: found.to_vec(),
        action: if decided == RecordedDecision::Deny && !found.is_empty() {
            "none"
        } else {
            "allow"
        },
        shadow,
        errors,
        violations: Vec::new(),
        explained: None,
    };
    (judged, verdict)
}

const fn action_name(action: Action) -> &'static str {
    match action {
        Action::Flag => "flag",
        Action::Redact => "redact",
        Action::Block => "block",
    }
}

fn denied(judged: &mut Judged, cause: Because, policy: &str, reason: String) {
    judged.decision = Some(RecordedDecision::Deny);
    judged.cause = cause;
    judged.policy = Some(policy.into());
    judged.reason = Some(reason);
    judged.determining = vec![policy.into()];
}

fn blocked(judged: &mut Judged, findings: &Findings, chosen: impl Fn(&Finding) -> Action) {
    let blocking = findings.iter().filter(|finding| chosen(finding) == Action::Block);
    let mut kinds: Vec<&str> = blocking.map(Finding::detector).collect();
    kinds.sort_unstable();
    kinds.dedup();
    denied(judged, Because::Dlp, DLP_DEFAULT, format!("it contains {}", kinds.join(", ")));
}

fn no_longer_fits(judged: &mut Judged, owed: Option<&Obligation>) {
    let policy = owed.map_or(DLP_DEFAULT, |owed| &*owed.policy().id);
    let reason = "once redacted, the input no longer fits the tool's schema".to_owned();
    denied(judged, Because::Obligation, policy, reason);
}

fn unscannable(reason: String) -> Judged {
    let mut judged = invalid(Vec::new());
    denied(&mut judged, Because::Dlp, DLP_DEFAULT, reason);
    judged
}

fn quarantined() -> Judged {
    let mut judged = invalid(Vec::new());
    denied(&mut judged, Because::ExplicitDeny, TOOL_PINNING, REASON.to_owned());
    judged
}

fn invalid(violations: Vec<Violation>) -> Judged {
    Judged {
        decision: None,
        cause: Because::InvalidInput,
        policy: None,
        reason: None,
        determining: Vec::new(),
        obligations: Vec::new(),
        found: Vec::new(),
        action: "none",
        shadow: Vec::new(),
        errors: Vec::new(),
        violations,
        explained: None,
    }
}
