//! Report of a simulation: the answer and its schema.

use std::sync::Arc;

use portcullis_core::{
    audit::RecordedDecision,
    policy::{Errored, Explanation, Shadow},
    refusal::Violation,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    decision::{SimulatedCause, SimulatedChange, SimulatedDecision, SimulatedDlpAction},
    replay::report::ReplayReport,
    sets::SimulatedSets,
};

/// The report of a simulation, of hypothetical calls or of recorded ones.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Simulation)]
pub enum SimulationReport {
    /// Of hypothetical calls.
    Requests(RequestReport),
    /// Of recorded ones.
    Replay(ReplayReport),
}

/// The report on hypothetical calls.
#[derive(Debug, Serialize, ToSchema)]
pub struct RequestReport {
    /// Always `requests`.
    #[schema(pattern = "^requests$")]
    pub mode: &'static str,
    /// Always `true`.
    pub simulated: bool,
    /// The sets that were asked.
    pub policy_set: SimulatedSets,
    /// In the order of the requests.
    pub results: Vec<SimulatedCall>,
    /// Number of calls by result.
    pub summary: SimulationCounts,
    /// False when the time was over before the last request.
    pub complete: bool,
    /// Time that judging them took.
    pub duration_ms: u64,
}

/// One hypothetical call.
#[derive(Debug, Serialize, ToSchema)]
pub struct SimulatedCall {
    /// The `id` of the request, if it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool's id.
    pub tool: String,
    /// `null` when no policy was asked, because the input does not fit the tool's schema.
    pub decision: Option<RecordedDecision>,
    /// Kind of reason for the decision.
    pub cause: SimulatedCause,
    /// The policy that decided.
    #[schema(value_type = Option<String>)]
    pub policy: Option<Arc<str>>,
    /// The reason of a denial.
    pub reason: Option<String>,
    /// Every policy that took part in the decision.
    pub determining_policies: Vec<String>,
    /// Obligations to fulfil: `type`, `policy` and `properties`.
    #[schema(value_type = Vec<Object>)]
    pub obligations: Vec<Value>,
    /// Findings of DLP.
    pub dlp: SimulatedDlp,
    /// Decisions that shadow policies would have made, if asked for: `policy`, `would` and `flips`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub shadow: Option<Vec<Shadow>>,
    /// Policies that could not be evaluated: `policy` and `why`.
    #[schema(value_type = Vec<Object>)]
    pub errors: Vec<Errored>,
    /// The places of the input that do not fit the tool's schema; absent when it fits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// Explanation of the decision, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<Explanation>,
    /// Decision of the baseline, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<SimulatedDecision>,
    /// Difference from the decision of the baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<SimulatedChange>,
    /// Expectation of the request, compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expectation: Option<SimulatedExpectation>,
    /// Time that judging it took.
    pub evaluated_us: u64,
}

/// Findings of DLP in a simulated call.
#[derive(Debug, Serialize, ToSchema)]
pub struct SimulatedDlp {
    /// Ids of the detectors that found something.
    pub findings: Vec<String>,
    /// Action of DLP.
    pub action: SimulatedDlpAction,
}

/// Expectation of a call, compared.
#[derive(Debug, Serialize, ToSchema)]
pub struct SimulatedExpectation {
    /// True if the result is as expected.
    pub met: bool,
    /// Differences, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<String>>)]
    pub unmet: Vec<String>,
}

/// Number of calls by result.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
pub struct SimulationCounts {
    /// All of them.
    pub total: usize,
    /// Allowed.
    pub allow: usize,
    /// Denied.
    pub deny: usize,
    /// Not decided, because the input does not fit the tool's schema.
    pub invalid: usize,
    /// Always 0: everything is known of a hypothetical call.
    pub indeterminate: usize,
    /// Decided otherwise than by the baseline.
    pub changed: usize,
    /// Not as expected.
    pub expectations_failed: usize,
}

impl SimulationCounts {
    pub(crate) fn count(&mut self, call: &SimulatedCall) {
        self.total += 1;
        match call.decision {
            Some(RecordedDecision::Allow) => self.allow += 1,
            Some(RecordedDecision::Deny) => self.deny += 1,
            None => self.invalid += 1,
        }
        let changed = call.change.is_some_and(|change| change != SimulatedChange::None);
        self.changed += usize::from(changed);
        let failed = call.expectation.as_ref().is_some_and(|expectation| !expectation.met);
        self.expectations_failed += usize::from(failed);
    }
}
