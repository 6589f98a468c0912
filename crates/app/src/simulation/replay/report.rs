//! Report of a replay: the answer and its schema.

use std::sync::Arc;

use portcullis_core::{
    clock::Timestamp,
    id::{EventId, PrincipalKind},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::approvals::ApprovalsReport;
use crate::simulation::{
    decision::{SimulatedChange, SimulatedDecision},
    sets::SimulatedSets,
};

/// The report on recorded calls.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReplayReport {
    /// Always `replay`.
    #[schema(pattern = "^replay$")]
    pub mode: &'static str,
    /// Always `true`.
    pub simulated: bool,
    /// The sets that were asked.
    pub policy_set: SimulatedSets,
    /// Number of calls by change.
    pub summary: ReplaySummary,
    /// Approvals that the candidate would have asked for.
    pub approvals: ApprovalsReport,
    /// Changes that each policy brings.
    pub by_policy: Vec<ChangedByPolicy>,
    /// The most frequent first.
    pub changes: Vec<ReplayChange>,
    /// Number of changes that are not listed.
    pub changes_left_off: usize,
    /// Pass it as `replay.cursor` to go on; `null` at the end.
    pub next_cursor: Option<String>,
    /// Time that judging them took.
    pub duration_ms: u64,
}

/// Number of recorded calls by change.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct ReplaySummary {
    /// Events that were read.
    pub scanned: usize,
    /// Calls that were decided again.
    pub evaluated: usize,
    /// Calls that no policy had decided.
    pub undecided: usize,
    /// The decision stays.
    pub unchanged: usize,
    /// The decision, its policy or its obligations change.
    pub changed: usize,
    /// Allowed before, denied now.
    pub newly_denied: usize,
    /// Denied before, allowed now.
    pub newly_allowed: usize,
    /// The same decision by another policy.
    pub policy_changed: usize,
    /// The same decision with other obligations.
    pub obligations_changed: usize,
    /// Allowed before; what the event does not tell could deny it.
    pub maybe_denied: usize,
    /// Denied before; what the event does not tell could allow it.
    pub maybe_allowed: usize,
    /// Not known from what the event tells.
    pub indeterminate: usize,
    /// Calls that the baseline now decides otherwise than was recorded.
    pub drift: usize,
    /// Events that could not be read.
    pub errors: usize,
    /// Time of the first event; `null` when there was none.
    pub oldest: Option<Timestamp>,
    /// Time of the last one.
    pub newest: Option<Timestamp>,
    /// False when there are more events: go on with `next_cursor`.
    pub complete: bool,
}

/// Changes that a policy brings.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChangedByPolicy {
    /// The policy.
    #[schema(value_type = String)]
    pub policy: Arc<str>,
    /// Number of calls that it denies now.
    pub newly_denied: usize,
    /// Number of calls that it allows now.
    pub newly_allowed: usize,
}

/// Recorded calls that change in the same way.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReplayChange {
    /// The difference.
    pub change: SimulatedChange,
    /// Number of these calls.
    pub count: usize,
    /// Time of the first of them.
    pub first_at: Timestamp,
    /// Time of the last of them.
    pub last_at: Timestamp,
    /// The caller.
    pub principal: ReplayedPrincipal,
    /// The tool's id.
    pub tool: String,
    /// The decision before.
    pub baseline: SimulatedDecision,
    /// The decision now.
    pub candidate: SimulatedDecision,
    /// Facts that the events do not hold.
    pub missing: Vec<String>,
    /// Some of the events.
    pub example_event_ids: Vec<EventId>,
}

/// Caller of recorded calls.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReplayedPrincipal {
    /// A user or a service account.
    #[serde(rename = "type")]
    pub kind: PrincipalKind,
    /// As it was recorded; empty where there was none.
    pub id: String,
}

impl ReplayedPrincipal {
    pub(super) fn recorded(id: String) -> Self {
        let kind = if id.starts_with("sa_") { PrincipalKind::Service } else { PrincipalKind::User };
        Self { kind, id }
    }
}
