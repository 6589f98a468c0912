//! The sets that a report is about.

use std::sync::Arc;

use portcullis_core::policy::{OrgView, PolicySet};
use serde::Serialize;
use utoipa::ToSchema;

use crate::policies::reload::SetChange;

/// The sets that were asked. An org is told of the policies that can concern it.
#[derive(Debug, Serialize, ToSchema)]
pub struct SimulatedSets {
    /// The set that was asked.
    pub candidate: CandidateSet,
    /// The set that it was compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BaselineSet>,
}

/// The set that was asked.
#[derive(Debug, Serialize, ToSchema)]
pub struct CandidateSet {
    /// SHA-256 of the whole set.
    pub version: String,
    /// Number of its policies.
    pub policies: usize,
    /// Policies that the set in force does not have.
    #[schema(value_type = Vec<String>)]
    pub added: Vec<Arc<str>>,
    /// Policies that the set in force has in another version.
    #[schema(value_type = Vec<String>)]
    pub changed: Vec<Arc<str>>,
    /// Policies that only the set in force has.
    #[schema(value_type = Vec<String>)]
    pub removed: Vec<Arc<str>>,
    /// Warnings about the policies that were added or changed.
    pub warnings: Vec<PolicyWarnings>,
}

/// The set that it was compared with.
#[derive(Debug, Serialize, ToSchema)]
pub struct BaselineSet {
    /// SHA-256 of the whole set.
    pub version: String,
    /// Number of its policies.
    pub policies: usize,
    /// Origin of the set.
    pub source: BaselineSource,
}

/// Origin of the set that another is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BaselineSource {
    /// The set in force.
    Live,
    /// A set that was in force once.
    Kept,
}

/// Warnings about a policy.
#[derive(Debug, Serialize, ToSchema)]
pub struct PolicyWarnings {
    /// The policy.
    #[schema(value_type = String)]
    pub policy: Arc<str>,
    /// In words.
    pub warnings: Vec<String>,
}

impl SimulatedSets {
    pub(crate) fn of(
        candidate: &PolicySet,
        live: &PolicySet,
        baseline: Option<(&PolicySet, BaselineSource)>,
        org: Option<&OrgView>,
    ) -> Self {
        let policies = |set: &PolicySet| {
            let concerns = |id: &Arc<str>| org.is_none_or(|org| set.can_concern(id, org));
            set.records().iter().filter(|it| !it.builtin && concerns(&it.id)).count()
        };
        let shown = |id: &Arc<str>| {
            org.is_none_or(|org| live.can_concern(id, org) || candidate.can_concern(id, org))
        };
        let change = SetChange::between(live, candidate).only(shown);
        let warnings = warnings(candidate, &change);
        let SetChange { mut added, changed, removed } = change;
        // Who takes the name of a policy of others has added one.
        let is_known = |id: &Arc<str>| org.is_none_or(|org| live.can_concern(id, org));
        let (changed, others): (Vec<_>, Vec<_>) = changed.into_iter().partition(is_known);
        if !others.is_empty() {
            added.extend(others);
            added.sort_unstable();
        }
        Self {
            candidate: CandidateSet {
                version: candidate.version().to_owned(),
                policies: policies(candidate),
                added,
                changed,
                removed,
                warnings,
            },
            baseline: baseline.map(|(set, source)| BaselineSet {
                version: set.version().to_owned(),
                policies: policies(set),
                source,
            }),
        }
    }
}

fn warnings(candidate: &PolicySet, change: &SetChange) -> Vec<PolicyWarnings> {
    let is_new = |id: &Arc<str>| change.added.contains(id) || change.changed.contains(id);
    let records = candidate.records().iter().filter(|record| is_new(&record.id));
    let warned = records.filter(|record| !record.validation.warnings.is_empty());
    let warnings = warned.map(|record| PolicyWarnings {
        policy: Arc::clone(&record.id),
        warnings: record.validation.warnings.clone(),
    });
    warnings.collect()
}
