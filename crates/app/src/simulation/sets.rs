//! The sets that a simulation asks: the one in force, an earlier one, or a draft of either.

use std::sync::Arc;

use portcullis_core::{
    clock::Timestamp,
    policy::{Changes, DraftBounds, DraftError, OrgView, PolicyError, PolicyFile, PolicySet},
    refusal::Violation,
};

use super::request::{Base, Draft};
use crate::policies::reload::Ground;

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

/// The errors of a draft, the first hundred, each at its place of the request.
pub(super) fn told_all(draft: &Draft, errors: &[PolicyError]) -> Vec<Violation> {
    errors.iter().take(100).map(|error| told(draft, error)).collect()
}

/// An error of the files of an earlier set.
fn misfit(error: &PolicyError) -> Violation {
    let PolicyError { path, line, column, message, .. } = error;
    let message = format!("{path}:{line}:{column}: {message}");
    let keyword = Some(error.code.to_owned());
    Violation { path: "/policies/base".to_owned(), keyword, message }
}

/// An error of a draft, at the place of the request it stands in.
fn told(draft: &Draft, error: &PolicyError) -> Violation {
    let PolicyError { path, line, column, message, .. } = error;
    let id = error.policy.as_deref().unwrap_or_default();
    let keyword = Some(error.code.to_owned());
    let (path, message) = match (path.strip_prefix(DRAFT), path.as_str()) {
        (Some(at), _) => {
            let message = format!("line {line}, column {column}: {message}");
            (format!("/policies/upsert/{at}/source"), message)
        }
        (None, "remove") => {
            let at = draft.remove.iter().position(|removed| removed == id).unwrap_or_default();
            (format!("/policies/remove/{at}"), message.clone())
        }
        (None, "set_status") => {
            let token = id.replace('~', "~0").replace('/', "~1");
            (format!("/policies/set_status/{token}"), message.clone())
        }
        (None, _) => return misfit(error),
    };
    Violation { path, keyword, message }
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
