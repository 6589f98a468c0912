//! Judges one call as invocation would, up to the point where it would be sent. The steps are those of
//! [`portcullis_core::call`], taken by a simulated call: nothing is sent, taken from a rate or recorded.

use std::{cell::Cell, net::IpAddr, sync::Arc};

use portcullis_core::{
    audit::{Capture, RecordedDecision},
    call::{
        Answer, Asker, CallResult, Cleared, Decider, Denial, Grounds, Payload, PinState, Premise,
        Ruling, Scanned, Simulated, Use,
    },
    capability::Capability,
    clock::Timestamp,
    dlp::{Direction, Engine, Findings, FingerprintKey, Subject},
    json::Document,
    policy::{
        Decision, Errored, Explain, Explanation, KnownContext, Obligation, OrgView, Phase,
        PolicySet, Principal, Question, Shadow,
    },
    refusal::Violation,
};
use serde_json::Value;
use tokio::runtime::Handle;

use super::decision::{SimulatedCause, SimulatedChange, SimulatedDecision, SimulatedDlpAction};
use crate::request::dlp::Dlp;

/// One call with everything looked up.
pub(crate) struct Case {
    pub(crate) principal: Arc<Principal>,
    pub(crate) tool: Arc<Capability>,
    pub(crate) pin: PinState,
    pub(crate) input: Document,
    pub(crate) phase: Phase,
    pub(crate) output: Option<Document>,
    pub(crate) time: Timestamp,
    pub(crate) ip: Option<IpAddr>,
    pub(crate) bytes: u64,
    pub(crate) dlp: Option<Vec<String>>,
    pub(crate) dlp_output: Option<Vec<String>>,
}

/// Result of one call, as it is shown.
#[derive(Debug, Clone)]
pub(crate) struct Judged {
    pub(crate) decision: Option<RecordedDecision>,
    pub(crate) cause: SimulatedCause,
    pub(crate) policy: Option<Arc<str>>,
    pub(crate) reason: Option<String>,
    pub(crate) determining: Vec<String>,
    pub(crate) obligations: Vec<Value>,
    pub(crate) found: Vec<String>,
    pub(crate) action: SimulatedDlpAction,
    pub(crate) shadow: Vec<Shadow>,
    pub(crate) errors: Vec<Errored>,
    pub(crate) violations: Vec<Violation>,
    /// Absent where no policy was asked.
    pub(crate) explanation: Option<Explanation>,
}

/// A call with the findings of DLP, which are the same for every set that is asked.
pub(crate) struct PreparedCase {
    call: Result<Use, Denial>,
    input: Result<Findings, Denial>,
    output: Result<Findings, Denial>,
}

/// DLP of a node with its external detector, asked from a thread that may block.
pub(crate) struct NodeDlp<'a> {
    pub(crate) dlp: &'a Dlp,
    pub(crate) runtime: Handle,
}

/// The engine and the key with which calls are scanned, the DLP of a node where there is one, and the
/// org that is told of the policies that can concern it; the operator is told of all.
pub(crate) struct Simulator<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) key: &'a FingerprintKey,
    pub(crate) node: Option<NodeDlp<'a>>,
    pub(crate) org: Option<&'a OrgView>,
}

impl Simulator<'_> {
    /// Prepares a case: scans it, as far as its findings are not given.
    pub(crate) fn prepare(&self, case: &Case) -> PreparedCase {
        let tool = Arc::clone(&case.tool);
        let input = case.input.clone();
        let call = Use::new(self.engine, tool, case.pin, input, case.bytes);
        let subject = Subject::of(self.key.clone()).calling(case.tool.id.as_str());
        let input = match (&case.dlp, &call, case.phase) {
            (Some(given), _, _) => Ok(self.engine.supposed(given)),
            (None, Ok(call), _) => {
                let scanned = call.clone().scan(self.engine, &subject);
                self.completed(scanned, Direction::Input, &subject)
            }
            (None, Err(_), Phase::Request) => Ok(Findings::default()),
            (None, Err(_), Phase::Response) => self
                .engine
                .scan_for(case.input.root(), &subject)
                .map_err(|error| Denial::unscannable(Direction::Input, &error)),
        };
        let output = match (&case.dlp_output, case.phase) {
            (_, Phase::Request) => Ok(Findings::default()),
            (Some(given), Phase::Response) => Ok(self.engine.supposed(given)),
            (None, Phase::Response) => {
                let scanned = answer(case).scan(self.engine, &subject);
                self.completed(scanned, Direction::Output, &subject)
            }
        };
        PreparedCase { call, input, output }
    }

    fn completed<T: Payload>(
        &self,
        scanned: Result<Scanned<T>, Denial>,
        direction: Direction,
        subject: &Subject,
    ) -> Result<Findings, Denial> {
        let scanned = match &self.node {
            Some(NodeDlp { dlp, runtime }) => {
                runtime.block_on(dlp.completed(scanned?, direction, subject))?
            }
            None => scanned?,
        };
        Ok(scanned.into_findings())
    }

    /// Judges one call by a set.
    pub(crate) fn judge(
        &self,
        set: &PolicySet,
        case: &Case,
        prepared: &PreparedCase,
        explain: Explain,
    ) -> Judged {
        let examiner = Examiner { set, explain, org: self.org, explanation: Cell::new(None) };
        let (ruled, found) = match case.phase {
            Phase::Request => {
                let cleared = self.request(&examiner, case, prepared);
                (cleared.map(|cleared| cleared.ruling().clone()), &prepared.input)
            }
            Phase::Response => {
                let cleared = self.response(&examiner, case, prepared);
                (cleared.map(|cleared| cleared.ruling().clone()), &prepared.output)
            }
        };
        let found = found.as_ref().map(Findings::detectors).unwrap_or_default();
        let found = found.into_iter().map(str::to_owned).collect();
        Judged { explanation: examiner.explanation.take(), ..Judged::of(&ruled, found) }
    }

    /// The call as far as it would be sent.
    pub(super) fn request(
        &self,
        decider: &dyn Decider,
        case: &Case,
        prepared: &PreparedCase,
    ) -> Result<Cleared<Use, Simulated>, Denial> {
        let call = prepared.call.clone()?;
        let scanned = call.supposing(prepared.input.clone()?);
        scanned.decide(decider, self.engine, case.asker())?.fulfil(self.engine)
    }

    /// The answer as far as it would be given. A call that would be denied is supposed to have been
    /// made, without obligations.
    pub(super) fn response(
        &self,
        decider: &dyn Decider,
        case: &Case,
        prepared: &PreparedCase,
    ) -> Result<Cleared<Answer, Simulated>, Denial> {
        let call = self.request(decider.set(), case, prepared);
        let premise = match &call {
            Ok(call) => Premise::from(call),
            Err(_) => Premise {
                tool: &case.tool,
                input: case.input.root(),
                findings: prepared.input.as_ref().map_err(Denial::clone)?,
                obligations: &[],
                bytes: case.bytes,
                capture: None,
            },
        };
        let scanned = answer(case).supposing(prepared.output.clone()?);
        let permitted = scanned.decide(premise, decider, self.engine, case.asker())?;
        permitted.fulfil(self.engine, &case.tool)
    }
}

impl Case {
    fn asker(&self) -> Asker<'_> {
        Asker {
            principal: &self.principal,
            time: self.time,
            source_ip: self.ip,
            capture: Capture::Off,
        }
    }
}

/// The answer of the tool, as a caller would see it.
fn answer(case: &Case) -> Answer {
    let structured = case.output.clone();
    Answer::structured(CallResult { structured, ..CallResult::default() })
}

/// A set that also explains its decision.
struct Examiner<'a> {
    set: &'a PolicySet,
    explain: Explain,
    org: Option<&'a OrgView>,
    explanation: Cell<Option<Explanation>>,
}

impl Decider for Examiner<'_> {
    fn set(&self) -> &PolicySet {
        self.set
    }

    fn decide(&self, question: &Question<'_>) -> Decision {
        let known = KnownContext::everything();
        let explanation = self.set.explain(question, &known, self.explain, self.org);
        let decision = explanation.decision.clone();
        self.explanation.set(Some(explanation));
        decision
    }
}

impl Judged {
    /// The ruling or the denial as it is shown; `found` are the detectors that found something.
    pub(crate) fn of(ruled: &Result<Ruling, Denial>, found: Vec<String>) -> Self {
        let (ruling, denial) = match ruled {
            Ok(ruling) => (Some(ruling), None),
            Err(denial) => (denial.ruling(), Some(denial)),
        };
        let policy = denial.map_or_else(|| ruling.map(|it| &*it.policy), Denial::policy);
        let action = match denial {
            None => ruling.map_or(SimulatedDlpAction::None, |ruling| {
                SimulatedDlpAction::passing(ruling.dlp_result)
            }),
            Some(denial) => SimulatedDlpAction::denying(denial.grounds(), !found.is_empty()),
        };
        let decided =
            if denial.is_some() { RecordedDecision::Deny } else { RecordedDecision::Allow };
        Self {
            decision: policy.map(|_| decided),
            cause: SimulatedCause::of(denial),
            policy: policy.map(Arc::from),
            reason: denial.filter(|_| policy.is_some()).map(|denial| denial.reason.clone()),
            determining: match (denial, ruling) {
                (Some(denial), _) => denial.determining(),
                (None, ruling) => ruling.map(|it| it.determining.clone()).unwrap_or_default(),
            },
            obligations: ruling
                .map(|it| it.obligations.iter().map(Obligation::to_json).collect())
                .unwrap_or_default(),
            found,
            action,
            shadow: ruling.map(|it| it.shadow.clone()).unwrap_or_default(),
            errors: ruling.map(|it| it.errors.clone()).unwrap_or_default(),
            violations: denial.map(|it| violations(it.grounds())).unwrap_or_default(),
            explanation: None,
        }
    }

    /// Returns true if the call, or its answer, passes.
    pub(crate) fn permits(&self) -> bool {
        self.decision == Some(RecordedDecision::Allow)
    }

    /// The decision in short.
    pub(crate) fn summarize(&self) -> SimulatedDecision {
        SimulatedDecision {
            decision: self.decision,
            cause: Some(self.cause),
            policy: self.policy.clone(),
            reason: self.reason.clone(),
        }
    }

    /// Change from what was judged `before`.
    pub(crate) fn change_since(&self, before: &Self) -> SimulatedChange {
        match (before.decision, self.decision) {
            (Some(RecordedDecision::Allow), Some(RecordedDecision::Deny)) => {
                SimulatedChange::NewlyDenied
            }
            (Some(RecordedDecision::Deny), Some(RecordedDecision::Allow)) => {
                SimulatedChange::NewlyAllowed
            }
            _ if before.policy != self.policy => SimulatedChange::PolicyChanged,
            _ if before.obligations != self.obligations => SimulatedChange::ObligationsChanged,
            _ => SimulatedChange::None,
        }
    }
}

fn violations(grounds: &Grounds) -> Vec<Violation> {
    if let Grounds::Schema { violations, .. } = grounds { violations.clone() } else { Vec::new() }
}
