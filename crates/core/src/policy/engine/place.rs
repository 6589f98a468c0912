//! Where a request goes: an action and a resource, each with what it is in.

use std::collections::HashSet;

use cedar_policy::EntityUid;

/// An action and a resource that always come together.
#[derive(Debug, Clone)]
pub struct Place {
    /// The action.
    pub action: Member,
    /// The resource.
    pub resource: Member,
}

/// An entity and everything it is in.
#[derive(Debug, Clone)]
pub struct Member {
    /// The entity itself.
    pub uid: EntityUid,
    /// What it is in directly, if one of its parents is closer to it than the others.
    pub near: Option<EntityUid>,
    /// Every ancestor.
    pub within: HashSet<EntityUid>,
}

/// How closely a scope names a place; only for choosing which rule is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Closeness {
    /// By nothing in particular, or by a group that many are in.
    Far,
    /// By the closest group.
    Near,
    /// By itself.
    Itself,
}

impl Member {
    /// How closely naming `uid` names this entity; `None` when it is not in it.
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
