//! New users and service accounts, and changes to them.

use std::collections::BTreeSet;

use portcullis_core::{
    clock::Timestamp,
    id::{Ids, OrgId, PrincipalId, PrincipalKind},
    principal::Role,
};
use portcullis_store::Principal;

use super::{DirectoryError, MAX_GROUPS, check_name};

/// A user or service account to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPrincipal {
    pub name: String,
    pub kind: PrincipalKind,
    pub role: Role,
    pub groups: BTreeSet<String>,
}

impl NewPrincipal {
    /// The principal with a new id. Fails if a name is none, or the role is not for its kind.
    pub(crate) fn into_principal(
        self,
        org_id: OrgId,
        ids: Ids<'_>,
        created_at: Timestamp,
    ) -> Result<Principal, DirectoryError> {
        let Self { name, kind, role, groups } = self;
        check_name(&name)?;
        fits(kind, role)?;
        check_groups(&groups)?;
        let id = PrincipalId::new(kind, ids);
        let provisioned_groups = BTreeSet::new();
        let disabled_at = None;
        Ok(Principal {
            id,
            org_id,
            name,
            role,
            groups,
            provisioned_groups,
            created_at,
            disabled_at,
        })
    }
}

/// Changes to a principal; what is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrincipalPatch {
    pub name: Option<String>,
    pub role: Option<Role>,
    pub disabled: Option<bool>,
    /// All groups that it is in from now on, besides those that its logins name.
    pub groups: Option<BTreeSet<String>>,
}

impl PrincipalPatch {
    /// The principal after the changes. Disabling one that is disabled keeps the moment. Fails if a
    /// name is none, or the role is not for its kind.
    pub(crate) fn applied(
        self,
        principal: &Principal,
        now: Timestamp,
    ) -> Result<Principal, DirectoryError> {
        let mut changed = principal.clone();
        if let Some(name) = self.name {
            check_name(&name)?;
            changed.name = name;
        }
        if let Some(role) = self.role {
            fits(principal.id.kind(), role)?;
            changed.role = role;
        }
        match self.disabled {
            Some(true) => changed.disabled_at = principal.disabled_at.or(Some(now)),
            Some(false) => changed.disabled_at = None,
            None => {}
        }
        if let Some(groups) = self.groups {
            check_groups(&groups)?;
            changed.groups = groups;
        }
        Ok(changed)
    }
}

/// Members of a principal that a change gave another value.
pub(crate) fn changed_members(before: &Principal, after: &Principal) -> Vec<&'static str> {
    let differs = [
        ("name", before.name != after.name),
        ("role", before.role != after.role),
        ("disabled", before.disabled_at != after.disabled_at),
        ("groups", before.groups != after.groups),
    ];
    differs.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
}

fn check_groups(groups: &BTreeSet<String>) -> Result<(), DirectoryError> {
    if groups.len() > MAX_GROUPS {
        return Err(DirectoryError::TooManyGroups);
    }
    groups.iter().try_for_each(|group| check_name(group))
}

/// Rejects a role that is not for this kind of principal.
const fn fits(kind: PrincipalKind, role: Role) -> Result<(), DirectoryError> {
    match (kind, role) {
        (PrincipalKind::Service, Role::Service(_))
        | (PrincipalKind::User, Role::Member | Role::Auditor | Role::Admin) => Ok(()),
        (PrincipalKind::Service, Role::Member | Role::Auditor | Role::Admin)
        | (PrincipalKind::User, Role::Service(_)) => Err(DirectoryError::RoleMismatch),
    }
}

#[cfg(test)]
mod tests {
    use portcullis_core::principal::ScopeSet;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_795_000_000_000_000);

    fn ana() -> Principal {
        let id = "usr_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap();
        let org = "org_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap();
        Principal::new(id, org, "ana".to_owned(), Role::Member, NOW)
    }

    #[test]
    fn a_patch_changes_what_it_names_and_nothing_else() {
        let before = ana();
        let patch = PrincipalPatch { role: Some(Role::Admin), ..PrincipalPatch::default() };

        let after = patch.applied(&before, NOW).unwrap();

        assert_eq!(after, Principal { role: Role::Admin, ..before.clone() });
        assert_eq!(changed_members(&before, &after), ["role"]);
        assert_eq!(PrincipalPatch::default().applied(&before, NOW).unwrap(), before);
    }

    #[test]
    fn disabling_again_keeps_the_moment() {
        let disable = PrincipalPatch { disabled: Some(true), ..PrincipalPatch::default() };
        let enable = PrincipalPatch { disabled: Some(false), ..PrincipalPatch::default() };

        let first = disable.clone().applied(&ana(), NOW).unwrap();
        let second = disable.applied(&first, NOW.plus_seconds(9)).unwrap();

        assert_eq!(first.disabled_at, Some(NOW));
        assert_eq!(second, first);
        assert_eq!(enable.applied(&second, NOW).unwrap().disabled_at, None);
    }

    #[test]
    fn what_breaks_a_rule_is_refused() {
        let service = Role::Service(ScopeSet::ALL);
        let many: BTreeSet<String> = (0..=MAX_GROUPS).map(|n| n.to_string()).collect();
        let none = PrincipalPatch::default;
        for (patch, wanted) in [
            (PrincipalPatch { role: Some(service), ..none() }, DirectoryError::RoleMismatch),
            (PrincipalPatch { name: Some(String::new()), ..none() }, DirectoryError::Name),
            (PrincipalPatch { groups: Some(many), ..none() }, DirectoryError::TooManyGroups),
            (
                PrincipalPatch { groups: Some(BTreeSet::from(["a\tb".to_owned()])), ..none() },
                DirectoryError::Name,
            ),
        ] {
            assert_eq!(patch.applied(&ana(), NOW), Err(wanted));
        }
    }
}
