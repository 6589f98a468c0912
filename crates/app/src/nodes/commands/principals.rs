//! Commands on users and service accounts.

use std::collections::BTreeSet;

use portcullis_core::{
    audit::EventType,
    id::{OrgId, PrincipalId, PrincipalKind},
    principal::Role,
};
use portcullis_store::{Principal, StoreError};

use super::{MAX_GROUPS, Shell, ShellError, named};

impl Shell {
    /// Makes a user or a service account.
    pub async fn create_principal(
        &self,
        org: OrgId,
        name: &str,
        kind: PrincipalKind,
        role: Role,
    ) -> Result<Principal, ShellError> {
        named(name)?;
        fits(kind, role)?;
        let principal = Principal {
            id: PrincipalId::new(kind, self.ids()),
            org_id: org,
            name: name.to_owned(),
            role,
            groups: BTreeSet::new(),
            created_at: self.clock.now(),
            disabled_at: None,
        };
        match self.store.create_principal(&principal).await {
            Ok(()) => {}
            Err(StoreError::Conflict(_)) => return Err(ShellError::NameTaken(principal.name)),
            Err(error) => return Err(error.into()),
        }
        self.tell(EventType::PrincipalChanged, org, "principal", principal.id).await?;
        Ok(principal)
    }

    /// Everybody in an org.
    pub async fn principals(&self, org: OrgId) -> Result<Vec<Principal>, ShellError> {
        Ok(self.store.list_principals(org).await?)
    }

    /// Finds a principal by its id in whichever org it is.
    pub async fn principal(&self, id: PrincipalId) -> Result<Principal, ShellError> {
        for org in self.store.list_orgs().await? {
            if let Some(found) = self.store.find_principal(org.id, id).await? {
                return Ok(found);
            }
        }
        Err(ShellError::NoPrincipal(id.to_string()))
    }

    /// Finds a principal by its id, or by its name in the org that is named or in whichever there
    /// is one of that name.
    pub async fn principal_of(
        &self,
        org: Option<&str>,
        id_or_name: &str,
    ) -> Result<Principal, ShellError> {
        let orgs = match org {
            Some(named) => vec![self.org(named).await?],
            None => self.store.list_orgs().await?,
        };
        let id: Option<PrincipalId> = id_or_name.parse().ok();
        let mut found = Vec::new();
        let mut told = Vec::new();
        for org in orgs {
            let of_org = match id {
                Some(id) => self.store.find_principal(org.id, id).await?,
                None => self.store.find_principal_by_name(org.id, id_or_name).await?,
            };
            told.extend(of_org.iter().map(|it| format!("{} of `{}`", it.id, org.name)));
            found.extend(of_org);
        }
        let name = id_or_name.to_owned();
        match (found.pop(), found.is_empty()) {
            (Some(only), true) => Ok(only),
            (Some(_), false) => Err(ShellError::SeveralPrincipals { name, found: told }),
            (None, _) => Err(ShellError::NoPrincipal(name)),
        }
    }

    /// Gives a principal another role; running nodes follow within 5 seconds.
    pub async fn set_role(&self, id: PrincipalId, role: Role) -> Result<Principal, ShellError> {
        fits(id.kind(), role)?;
        let principal = self.principal(id).await?;
        self.tell(EventType::PrincipalChanged, principal.org_id, "principal", id).await?;
        self.store.set_role(principal.org_id, id, role).await?;
        Ok(Principal { role, ..principal })
    }

    /// Puts a principal into these groups, besides those that its logins name, and takes it out of
    /// others that it was put into before; running nodes follow within 5 seconds.
    pub async fn set_groups(
        &self,
        id: PrincipalId,
        groups: BTreeSet<String>,
    ) -> Result<Principal, ShellError> {
        if groups.len() > MAX_GROUPS {
            return Err(ShellError::TooManyGroups);
        }
        groups.iter().try_for_each(|group| named(group))?;
        let principal = self.principal(id).await?;
        self.tell(EventType::PrincipalChanged, principal.org_id, "principal", id).await?;
        self.store.set_groups(principal.org_id, id, &groups).await?;
        Ok(Principal { groups, ..principal })
    }

    /// From now on none of the principal's tokens is accepted, nor any that it acts through;
    /// running nodes follow within 5 seconds.
    pub async fn disable_principal(&self, id: PrincipalId) -> Result<Principal, ShellError> {
        let principal = self.principal(id).await?;
        self.tell(EventType::PrincipalChanged, principal.org_id, "principal", id).await?;
        self.store.disable_principal(principal.org_id, id, self.clock.now()).await?;
        self.principal(id).await
    }

    /// The principal's tokens are accepted again, those that have not ended meanwhile.
    pub async fn enable_principal(&self, id: PrincipalId) -> Result<Principal, ShellError> {
        let principal = self.principal(id).await?;
        self.tell(EventType::PrincipalChanged, principal.org_id, "principal", id).await?;
        self.store.enable_principal(principal.org_id, id).await?;
        self.principal(id).await
    }
}

/// Rejects a role that is not for this kind of principal.
const fn fits(kind: PrincipalKind, role: Role) -> Result<(), ShellError> {
    match (kind, role) {
        (PrincipalKind::Service, Role::Service(_))
        | (PrincipalKind::User, Role::Member | Role::Auditor | Role::Admin) => Ok(()),
        (PrincipalKind::Service, Role::Member | Role::Auditor | Role::Admin)
        | (PrincipalKind::User, Role::Service(_)) => Err(ShellError::RoleMismatch),
    }
}
