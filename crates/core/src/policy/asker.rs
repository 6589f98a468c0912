//! The principal of a question as policies see it.

use std::collections::HashSet;

use cedar_policy::{Entity, EntityTypeName, EntityUid, RestrictedExpression};

use super::{
    names::{names, principal_type, principal_uid, uid},
    values::Unreadable,
};
use crate::principal::Caller;

/// Who asks, with the groups, role, scopes and org that policies can name.
pub(super) struct Asker {
    pub(super) uid: EntityUid,
    pub(super) kind: &'static EntityTypeName,
    /// The principal itself and everything it is in.
    pub(super) entities: HashSet<EntityUid>,
}

impl Asker {
    pub(super) fn new(caller: &Caller, groups: &[String]) -> Self {
        let names = names();
        let principal = principal_uid(caller.principal_id);
        let mut entities = HashSet::with_capacity(12);
        entities.insert(uid(&names.role, caller.role.name()));
        entities.insert(uid(&names.org, &caller.org_id.to_string()));
        entities.extend(caller.scopes.iter().map(|scope| uid(&names.scope, scope.as_str())));
        entities.extend(groups.iter().map(|group| uid(&names.group, group)));
        entities.insert(principal.clone());
        Self { uid: principal, kind: principal_type(caller.principal_id.kind()), entities }
    }

    /// The principal with its parents.
    pub(super) fn entity(&self) -> Result<Entity, Unreadable> {
        let id = RestrictedExpression::new_string(self.uid.id().unescaped().to_owned());
        let parents = self.entities.iter().filter(|entity| **entity != self.uid).cloned();
        let attributes = [("id".to_owned(), id)];
        Entity::new_with_tags(self.uid.clone(), attributes, parents, [])
            .map_err(|_| Unreadable::unbuildable("principal"))
    }
}
