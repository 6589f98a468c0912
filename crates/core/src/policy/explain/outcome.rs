//! Why a decision is as it is: which policies were looked at, what each clause said, and what could
//! not be known.

use std::sync::Arc;

use serde::Serialize;

use crate::policy::{
    decide::decision::Decision,
    terms::{Effect, Status},
};

/// Extent of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Explain {
    /// Nothing beyond the decision.
    #[default]
    Determining,
    /// Every policy whose scope matched, and what it said.
    Candidates,
    /// Each of them clause by clause.
    Full,
}

/// Answer of a policy, or of one clause of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It holds.
    True,
    /// It does not.
    False,
    /// It could not be evaluated: why, in fixed words that hold no value of the call.
    Error(&'static str),
    /// It depends on something that is not known.
    Unknown,
}

/// A decision with its explanation.
#[derive(Debug, Clone, PartialEq)]
pub struct Examined {
    /// The decision. Policies whose outcome is unknown are taken as not true.
    pub decision: Decision,
    /// Set when policies whose outcome is unknown could turn the decision.
    pub indeterminate: Option<Indeterminate>,
    /// Number of policies whose scope matches, shadow policies included.
    pub considered: usize,
    /// Answer of each of them, by name; empty unless asked for.
    pub candidates: Vec<Considered>,
    /// On `default-deny`: the permits whose scope matched, and the clause that failed.
    pub near_misses: Vec<NearMiss>,
}

/// Unknown parts of a call that could change the decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Indeterminate {
    /// The paths that are read and not known, such as `context.input.country`.
    pub missing: Vec<String>,
    /// The policies that read them and could turn the decision.
    pub policies: Vec<Arc<str>>,
}

/// A policy whose scope matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Considered {
    /// Its name.
    pub policy: Arc<str>,
    /// Permit or forbid.
    pub effect: Effect,
    /// Active or shadow.
    pub status: Status,
    /// The answer.
    pub outcome: Outcome,
    /// Each of its clauses, with [`Explain::Full`]: the first that does not hold is what counts;
    /// those after it are shown for what they would say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<Clause>,
}

/// One condition among those that all have to hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Clause {
    /// As it stands in the policy; for `unless` with the `!` it means.
    pub clause: String,
    /// The answer.
    pub outcome: Outcome,
}

/// A permit that nearly applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NearMiss {
    /// Its name.
    pub policy: Arc<str>,
    /// The first clause that did not hold.
    pub clause: String,
    /// The answer: false, an error, or unknown.
    pub outcome: Outcome,
}
