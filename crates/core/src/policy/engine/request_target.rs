//! Target of a request: an action and a resource, each with what it is in.

use std::collections::HashSet;

use cedar_policy::EntityUid;

/// An action and a resource that always come together.
#[derive(Debug, Clone)]
pub struct RequestTarget {
    pub action: Member,
    pub resource: Member,
}

/// An entity and everything it is in.
#[derive(Debug, Clone)]
pub struct Member {
    pub uid: EntityUid,
    /// Parent that it is in directly, if one of them is closer to it than the others.
    pub near: Option<EntityUid>,
    /// Every ancestor.
    pub within: HashSet<EntityUid>,
}

/// Closeness of a scope to a place; used only to choose the rule that is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Closeness {
    /// By nothing in particular, or by a group that many are in.
    Far,
    /// By the closest group.
    Near,
    Itself,
}

impl Member {
    /// Closeness of `uid` to this entity; `None` when the entity is not in it.
    pub(super) fn closeness(&self, uid: &EntityUid) -> Option<Closeness> {
        if *uid == self.uid {
            Some(Closeness::Itself)
        } else if self.near.as_ref() == Some(uid) {
            Some(Closeness::Near)
        } else {
            self.within.contains(uid).then_some(Closeness::Far)
        }
    }
}
