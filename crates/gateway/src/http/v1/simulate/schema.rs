//! Schemas of simulations. The app reads the request and puts the report together.

#![expect(unused_qualifications, reason = "utoipa writes paths of types out in full")]

use portcullis_core::{audit::RecordedDecision, clock::Timestamp, id::EventId, refusal::Violation};
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{Ref, RefOr, Schema, schema::OneOfBuilder},
};

/// The body of a simulation: `requests`, or one call with `tool`, or `replay`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the body is parsed strictly by the app")]
pub(crate) struct SimulateRequest {
    /// Hypothetical calls: `{id?, principal?, agent?, tool, input, phase?, output?, context?, dlp?,
    /// expect?}`; at most 1,000.
    #[schema(value_type = Option<Vec<Object>>)]
    requests: Option<Value>,
    /// One call instead of `requests`: the tool's id.
    tool: Option<String>,
    /// One call instead of `requests`: its arguments.
    #[schema(value_type = Option<Object>)]
    input: Option<Value>,
    /// One call instead of `requests`: who calls; asking as somebody else needs `admin`.
    #[schema(value_type = Option<Object>)]
    principal: Option<Value>,
    /// Recorded calls: `{from?, to?, filter?, event_ids?, sample?, limit?, cursor?}`.
    #[schema(value_type = Option<Object>)]
    replay: Option<Value>,
    /// The policies to ask: `{base?, upsert?, remove?, set_status?}`; those in force by default.
    #[schema(value_type = Option<Object>)]
    policies: Option<Value>,
    /// The baseline: `live`, `sha256:…` or, of a replay, `recorded`.
    baseline: Option<String>,
    /// `{explain?, include_shadow?, changed_only?, group?, max_changes?, timeout_ms?}`.
    #[schema(value_type = Option<Object>)]
    options: Option<Value>,
}

/// The report of a simulation, of hypothetical calls or of recorded ones.
pub(crate) struct Simulation;

impl PartialSchema for Simulation {
    fn schema() -> RefOr<Schema> {
        OneOfBuilder::new()
            .item(Ref::from_schema_name(RequestReport::name()))
            .item(Ref::from_schema_name(ReplayReport::name()))
            .into()
    }
}

impl ToSchema for Simulation {
    fn schemas(found: &mut Vec<(String, RefOr<Schema>)>) {
        found.push((RequestReport::name().into_owned(), RequestReport::schema()));
        RequestReport::schemas(found);
        found.push((ReplayReport::name().into_owned(), ReplayReport::schema()));
        ReplayReport::schemas(found);
    }
}

/// The report on hypothetical calls.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the app puts the report together")]
pub(crate) struct RequestReport {
    #[schema(pattern = "^requests$")]
    mode: String,
    /// Always `true`.
    simulated: bool,
    policy_set: SimulatedSets,
    /// In the order of the requests.
    results: Vec<SimulatedCall>,
    summary: SimulationCounts,
    /// False when the time was over before the last request.
    complete: bool,
    duration_ms: u64,
}

/// The report on recorded calls.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the app puts the report together")]
pub(crate) struct ReplayReport {
    #[schema(pattern = "^replay$")]
    mode: String,
    /// Always `true`.
    simulated: bool,
    policy_set: SimulatedSets,
    /// Number of calls by change.
    #[schema(value_type = Object)]
    summary: Value,
    by_policy: Vec<ChangedByPolicy>,
    /// The most frequent first.
    changes: Vec<ReplayChange>,
    /// Number of changes that are not listed.
    changes_left_off: usize,
    /// Pass it as `replay.cursor` to go on; `null` at the end.
    next_cursor: Option<String>,
    duration_ms: u64,
}

/// The sets that were asked.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the app puts the report together")]
pub(crate) struct SimulatedSets {
    candidate: CandidateSet,
    baseline: Option<BaselineSet>,
}

/// The set that was asked.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the app puts the report together")]
pub(crate) struct CandidateSet {
    version: String,
    /// Number of its policies.
    policies: usize,
    added: Vec<String>,
    changed: Vec<String>,
    removed: Vec<String>,
    warnings: Vec<PolicyWarnings>,
}

/// The set that it was compared with.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the app puts the report together")]
pub(crate) struct BaselineSet {
    version: String,
    /// Number of its policies.
    policies: usize,
    source: String,
}

/// Warnings about a policy.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the app puts the report together")]
pub(crate) struct PolicyWarnings {
    policy: String,
    warnings: Vec<String>,
}

/// One hypothetical call.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the app puts the report together")]
pub(crate) struct SimulatedCall {
    /// The `id` of the request, if it had one.
    id: Option<String>,
    tool: String,
    /// `null` when no policy was asked, because the input does not fit the tool's schema.
    decision: Option<RecordedDecision>,
    cause: SimulatedCause,
    policy: Option<String>,
    reason: Option<String>,
    determining_policies: Vec<String>,
    #[schema(value_type = Vec<Object>)]
    obligations: Vec<Value>,
    /// `findings` and `action`.
    #[schema(value_type = Object)]
    dlp: Value,
    #[schema(value_type = Option<Vec<Object>>)]
    shadow: Option<Vec<Value>>,
    #[schema(value_type = Vec<Object>)]
    errors: Vec<Value>,
    violations: Option<Vec<Violation>>,
    #[schema(value_type = Option<Object>)]
    explain: Option<Value>,
    baseline: Option<SimulatedDecision>,
    change: Option<SimulatedChange>,
    expectation: Option<SimulatedExpectation>,
    evaluated_us: u64,
}

/// A decision in short.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the app puts the report together")]
pub(crate) struct SimulatedDecision {
    decision: Option<RecordedDecision>,
    cause: Option<SimulatedCause>,
    policy: Option<String>,
    reason: Option<String>,
}

/// Expectation of a call, compared.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the app puts the report together")]
pub(crate) struct SimulatedExpectation {
    met: bool,
    /// Differences, in words.
    unmet: Option<Vec<String>>,
}

/// Kind of reason for a decision.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "the app puts the report together")]
pub(crate) enum SimulatedCause {
    Permit,
    ExplicitDeny,
    DefaultDeny,
    Obligation,
    PolicyError,
    Dlp,
    InvalidInput,
}

/// Difference of a decision under other policies.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "the app puts the report together")]
pub(crate) enum SimulatedChange {
    None,
    NewlyDenied,
    NewlyAllowed,
    PolicyChanged,
    ObligationsChanged,
    MaybeDenied,
    MaybeAllowed,
    Indeterminate,
}

/// Number of calls by result.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the app puts the report together")]
pub(crate) struct SimulationCounts {
    total: usize,
    allow: usize,
    deny: usize,
    invalid: usize,
    indeterminate: usize,
    changed: usize,
    expectations_failed: usize,
}

/// Changes that a policy brings.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the app puts the report together")]
pub(crate) struct ChangedByPolicy {
    policy: String,
    newly_denied: usize,
    newly_allowed: usize,
}

/// Recorded calls that change in the same way.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the app puts the report together")]
pub(crate) struct ReplayChange {
    change: SimulatedChange,
    count: usize,
    first_at: Timestamp,
    last_at: Timestamp,
    /// `type` and `id`.
    #[schema(value_type = Object)]
    principal: Value,
    tool: String,
    baseline: SimulatedDecision,
    candidate: SimulatedDecision,
    /// Facts that the events do not hold.
    missing: Vec<String>,
    example_event_ids: Vec<EventId>,
}
