//! Principals that a policy gives by their names. No caller is such an entity: principals are their ids.

use cedar_policy::EntityUid;

use super::entity_types::{principal_kind, principal_uid};
use crate::id::{PrincipalId, PrincipalKind};

/// A principal that a policy gives by something else than the id of a principal of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misnamed {
    entity: EntityUid,
    kind: PrincipalKind,
}

impl Misnamed {
    /// `None` for the id of a principal, and for entities of other types.
    pub(in crate::policy) fn of(entity: &EntityUid) -> Option<Self> {
        let kind = principal_kind(entity.type_name())?;
        let id: Option<PrincipalId> = entity.id().unescaped().parse().ok();
        let is_id = id.is_some_and(|id| id.kind() == kind);
        (!is_id).then(|| Self { entity: entity.clone(), kind })
    }

    /// The text in the place of the id.
    #[must_use]
    pub fn name(&self) -> &str {
        self.entity.id().unescaped()
    }

    /// Says that no caller matches it.
    #[must_use]
    pub fn warning(&self) -> String {
        let Self { entity, kind } = self;
        let prefix = kind.prefix();
        format!("`{entity}` is nobody's: a principal is named by its id, such as `{prefix}_…`")
    }

    /// Says what to write for the principal of this id.
    #[must_use]
    pub fn advice(&self, id: PrincipalId) -> String {
        format!("write `{}` in place of `{}`", principal_uid(id), self.entity)
    }
}
