//! Readers of an approval: what decides who may see it, without the rest of it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Approval, Decider};
use crate::id::{PrincipalId, PrincipalKind};

/// The part of an approval that says who may see it: requesters, and those who may decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audience {
    /// Everybody who acts for the principal whose call it is.
    pub actors: Vec<PrincipalId>,
    /// Groups of which an approver has to be in one.
    pub approvers: BTreeSet<String>,
}

impl Audience {
    /// The audience of an approval.
    #[must_use]
    pub fn of(approval: &Approval) -> Self {
        Self {
            actors: approval.requester.actors.clone(),
            approvers: approval.terms.approvers.clone(),
        }
    }

    /// Returns true if the decider may be one of it: a second factor is not asked for to look.
    #[must_use]
    pub fn may_include(&self, decider: &Decider) -> bool {
        let Decider::Principal(person) = decider else { return true };
        let is_user = match person.id.kind() {
            PrincipalKind::Service => false,
            PrincipalKind::User => true,
        };
        let approver = person.admin || !self.approvers.is_disjoint(&person.groups);
        self.actors.contains(&person.id) || (is_user && !person.delegated && approver)
    }
}
