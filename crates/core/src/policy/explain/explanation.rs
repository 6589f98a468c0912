//! Explanation of a decision: which policies were looked at, what each clause said, and what could
//! not be known.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::policy::{
    decide::decision::Decision,
    terms::{Effect, Status},
};

/// Extent of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Explain {
    /// Nothing beyond the decision and what could turn it.
    Decision,
    /// Permits that nearly applied.
    Determining,
    /// Every policy whose scope matched as well, and what it said.
    Candidates,
    /// Each of them clause by clause.
    Full,
    /// The same with the values that each clause reads.
    Values,
}

impl Explain {
    /// Returns true if every clause is evaluated.
    pub(super) fn is_by_clause(self) -> bool {
        self >= Self::Full
    }
}

/// Answer of a policy, or of one clause of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    True,
    False,
    /// Evaluation failed: the reason, in fixed words that hold no value of the call.
    Error(&'static str),
    /// The answer depends on something that is not known.
    Unknown,
}

/// Explanation of a decision, as far as it was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = SimulatedExplanation)]
pub struct Explanation {
    /// The decision. Policies whose outcome is unknown are taken as not true.
    #[serde(skip)]
    pub decision: Decision,
    /// Set when policies whose outcome is unknown could turn the decision.
    #[serde(skip)]
    pub indeterminate: Option<Indeterminate>,
    /// On `default-deny`, permits that nearly applied, by their heads: `differs` (`condition`,
    /// `principal` or `action`), the head (`principal`, `action`, `resource`), `permits` (`policy`, and the
    /// `clause` that failed with its `outcome`) and how many `more` have that head.
    #[schema(value_type = Vec<Object>)]
    pub near_misses: Vec<NearMiss>,
    /// Number of policies whose scope matches; with `candidates` or `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub considered: Option<usize>,
    /// Answer of each of them; with `candidates` or `full`: `policy`, `effect`, `status`,
    /// `outcome` and `clauses`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub candidates: Option<Vec<Considered>>,
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
    pub policy: Arc<str>,
    pub effect: Effect,
    pub status: Status,
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
    pub outcome: Outcome,
    /// Known parts of the call that it reads, with [`Explain::Values`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ReadValue>,
}

/// Part of a call that a clause reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadValue {
    /// Its path, such as `context.input.amount`.
    pub path: String,
    /// The value; `None` if the call has none, or if it is longer than 1,000 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// Permits with the same head that nearly applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NearMiss {
    pub differs: MissedPart,
    /// Their constraint on the principal, as policies write it.
    pub principal: String,
    /// Their constraint on the action.
    pub action: String,
    /// Their constraint on the resource.
    pub resource: String,
    /// At most five of them, the nearest first.
    pub permits: Vec<MissedPermit>,
    /// Number of those that are left out.
    pub more: usize,
}

/// Part of a permit that did not match a call. In the order of nearness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MissedPart {
    /// The head matched and a condition did not hold.
    Condition,
    /// The permit is for other principals.
    Principal,
    /// The permit is for other actions or resources.
    Action,
}

/// A permit that nearly applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissedPermit {
    pub policy: Arc<str>,
    /// The first clause that did not hold, if the head matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clause: Option<String>,
    /// Answer of that clause: false, an error, or unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}
