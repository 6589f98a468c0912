//! An explained event: the answer and its schema.

use portcullis_core::policy::{Considered, NearMiss};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{audit::events::EventView, simulation::decision::SimulatedDecision};

/// An audit event and, if asked for, the explanation of its decision.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExplainedEvent {
    /// The event.
    #[serde(flatten)]
    pub event: EventView,
    /// With `explain`: the answer of the policies in force about the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<EventExplanation>,
}

/// Answer of the policies in force about a recorded call, as far as its event keeps it.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct EventExplanation {
    /// The decision and what helps, in sentences.
    pub summary: Vec<String>,
    /// The sets that decided then and that is asked now.
    pub policy_set: ExplainedSet,
    /// Decision of the policies in force; `null` if they cannot be asked.
    pub decision: Option<SimulatedDecision>,
    /// Obligations that such a call has to fulfil: `type`, `policy` and `properties`.
    #[schema(value_type = Vec<Object>)]
    pub obligations: Vec<Value>,
    /// Number of policies whose head matches.
    pub considered: usize,
    /// At most a hundred of them, those that are true first: `policy`, `effect`, `status`, `outcome`, and
    /// each of its `clauses` with its `outcome` and the `values` that it reads.
    #[schema(value_type = Vec<Object>)]
    pub policies: Vec<Considered>,
    /// On `default-deny`, the permits that nearly applied, as a simulation tells them.
    #[schema(value_type = Vec<Object>)]
    pub near_misses: Vec<NearMiss>,
    /// Parts of the call that are not known and could turn the decision.
    pub missing: Vec<String>,
    /// True if a permit is all that the call lacks.
    pub permit_helps: bool,
    /// A policy that permits this call and, as far as the event keeps its input, no other.
    pub suggested_permit: Option<String>,
}

/// The set that decided a call, and the one that explains it.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct ExplainedSet {
    /// SHA-256 of the set in force, which is asked.
    pub in_force: String,
    /// SHA-256 of the set that decided; `null` if none did.
    pub recorded: Option<String>,
}

impl ExplainedSet {
    /// Returns true if another set decided.
    pub(super) fn is_another(&self) -> bool {
        self.recorded.as_ref().is_some_and(|recorded| *recorded != self.in_force)
    }
}
