//! The sets that a simulation asks: the one in force, an earlier one, or a draft of either; as they
//! are loaded, and as a report names them.

use std::sync::Arc;

use portcullis_core::{
    clock::Timestamp,
    policy::{Changes, DraftBounds, DraftError, OrgView, PolicyError, PolicyFile, PolicySet},
    refusal::Violation,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::request::{Base, Draft};
use crate::policies::{reload::Ground, set_change::SetChange};

/// The sets of one simulation.
#[derive(Clone)]
pub(super) struct Sets {
    pub(super) live: Arc<PolicySet>,
    pub(super) candidate: Arc<PolicySet>,
    pub(super) baseline: Option<(Arc<PolicySet>, BaselineSource)>,
    /// The org that the report is for; `None` for the operator.
    pub(super) org: Option<Arc<OrgView>>,
}

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

/// Set that a draft may start from, read from its storage.
pub(crate) enum Origins {
    /// The set in force.
    Live,
    Empty,
    /// The files of an earlier set.
    Kept(Vec<PolicyFile>),
}

/// Path of the files that a request brings along.
const DRAFT: &str = "upsert/";

/// Makes the set that a draft changes, bound to the same tools as the set in force, from which it
/// takes what is the same. Gives every error of it; refuses what is beyond `bounds`.
pub(crate) fn based(
    live: &Arc<PolicySet>,
    origins: Origins,
    ground: Ground<'_>,
    bounds: &DraftBounds<'_>,
) -> Result<Arc<PolicySet>, DraftError> {
    match origins {
        Origins::Live => Ok(Arc::clone(live)),
        Origins::Empty => Ok(Arc::new(live.emptied(ground.now))),
        Origins::Kept(files) => kept_set(live, files, ground, bounds),
    }
}

/// Makes the set of a draft from its base. Gives every error of it; refuses what is beyond `bounds`.
/// Policies that can never concern the `org` are to it as if they were not there.
pub(crate) fn drafted(
    draft: &Draft,
    base: &Arc<PolicySet>,
    org: Option<&OrgView>,
    now: Timestamp,
    bounds: &DraftBounds<'_>,
) -> Result<Arc<PolicySet>, DraftError> {
    if draft.is_base() {
        return Ok(Arc::clone(base));
    }
    let named = draft.remove.iter().chain(draft.set_status.iter().map(|(id, _)| id));
    let hidden = named.filter(|id| org.is_some_and(|org| !base.can_concern(id, org)));
    let fresh = draft.upsert.iter().enumerate();
    let changes = Changes {
        upsert: fresh
            .map(|(at, text)| PolicyFile { path: format!("{DRAFT}{at}"), text: text.clone() })
            .collect(),
        remove: draft.remove.iter().cloned().collect(),
        statuses: draft.set_status.iter().cloned().collect(),
        hidden: hidden.cloned().collect(),
    };
    base.draft_within(&changes, now, bounds).map(Arc::new)
}

/// An earlier set, bound to the tools there are now.
pub(super) fn kept_set(
    live: &PolicySet,
    files: Vec<PolicyFile>,
    ground: Ground<'_>,
    bounds: &DraftBounds<'_>,
) -> Result<Arc<PolicySet>, DraftError> {
    let Ground { catalogue, detectors, now } = ground;
    live.reload_within(files, catalogue, detectors, now, bounds).map(Arc::new)
}

/// The most errors of a draft that are told.
const MAX_TOLD: usize = 100;

/// The errors of a draft, the first hundred, each at its place of the request.
pub(super) fn told_all(draft: &Draft, errors: &[PolicyError]) -> Vec<Violation> {
    errors.iter().take(MAX_TOLD).map(|error| to_violation(draft, error)).collect()
}

/// The same with line and column in members of their own.
pub(super) fn placed(draft: &Draft, mut errors: Vec<PolicyError>) -> Vec<PolicyError> {
    errors.truncate(MAX_TOLD);
    for error in &mut errors {
        if let Some(place) = place_of(draft, error) {
            error.path = place;
        }
    }
    errors
}

/// An error of the files of an earlier set.
fn misfit(error: &PolicyError) -> Violation {
    let PolicyError { path, line, column, message, .. } = error;
    let message = format!("{path}:{line}:{column}: {message}");
    let keyword = Some(error.code.to_owned());
    Violation { path: "/policies/base".to_owned(), keyword, message }
}

/// An error of a draft, at the place of the request it stands in.
fn to_violation(draft: &Draft, error: &PolicyError) -> Violation {
    let PolicyError { line, column, message, .. } = error;
    let Some(path) = place_of(draft, error) else { return misfit(error) };
    let message = if error.path.starts_with(DRAFT) {
        format!("line {line}, column {column}: {message}")
    } else {
        message.clone()
    };
    Violation { path, keyword: Some(error.code.to_owned()), message }
}

/// The place of the request that an error is about; `None` for one of an earlier set.
fn place_of(draft: &Draft, error: &PolicyError) -> Option<String> {
    let id = error.policy.as_deref().unwrap_or_default();
    match (error.path.strip_prefix(DRAFT), error.path.as_str()) {
        (Some(at), _) => Some(format!("/policies/upsert/{at}/source")),
        (None, "remove") => {
            let at = draft.remove.iter().position(|removed| removed == id).unwrap_or_default();
            Some(format!("/policies/remove/{at}"))
        }
        (None, "set_status") => {
            let token = id.replace('~', "~0").replace('/', "~1");
            Some(format!("/policies/set_status/{token}"))
        }
        (None, _) => None,
    }
}

impl Sets {
    pub(super) fn baseline(&self) -> Option<&PolicySet> {
        self.baseline.as_ref().map(|(set, _)| &**set)
    }

    /// The sets as the report names them.
    pub(super) fn reported(&self) -> SimulatedSets {
        let Self { live, candidate, baseline, org } = self;
        let org = org.as_deref();
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
        SimulatedSets {
            candidate: CandidateSet {
                version: candidate.version().to_owned(),
                policies: policies(candidate),
                added,
                changed,
                removed,
                warnings,
            },
            baseline: baseline.as_ref().map(|(set, source)| BaselineSet {
                version: set.version().to_owned(),
                policies: policies(set),
                source: *source,
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

impl Draft {
    /// The digest of the kept set that it begins with.
    pub(crate) fn kept_base(&self) -> Option<&str> {
        match &self.base {
            Base::Kept(version) => Some(version),
            Base::Live | Base::Empty => None,
        }
    }
}
