//! Commands on users and service accounts.

use portcullis_core::{
    audit::EventType,
    id::{OrgId, PrincipalId},
};
use portcullis_store::{
    Changed, LastAdmin, Principal, PrincipalChange, PrincipalQuery, StoreError,
};

use super::{Shell, ShellError};
use crate::{
    audit::events::row_of,
    identity::directory::people::{NewPrincipal, PrincipalPatch},
    request::target_of,
};

impl Shell {
    /// Makes a user or a service account.
    pub async fn create_principal(
        &self,
        org: OrgId,
        new: NewPrincipal,
    ) -> Result<Principal, ShellError> {
        let principal = new.into_principal(org, self.ids(), self.clock.now())?;
        let event =
            self.event(EventType::PrincipalChanged, org, target_of("principal", principal.id));
        let made = self.store.record_new_principal(&principal, &row_of(&event)).await;
        made.map_err(|error| refuse_taken(error, &principal.name))?;
        Ok(principal)
    }

    /// Everybody in an org; only those whom `search` finds, if it is given.
    pub async fn principals(
        &self,
        org: OrgId,
        search: Option<&str>,
    ) -> Result<Vec<Principal>, ShellError> {
        let Some(search) = search.map(str::to_owned) else {
            return Ok(self.store.list_principals(org).await?);
        };
        let limit = 500;
        let mut page = PrincipalQuery { search: Some(search), limit, ..PrincipalQuery::default() };
        let mut all = Vec::new();
        loop {
            let found = self.store.page_principals(org, &page).await?;
            let Some(last) = found.last() else { return Ok(all) };
            page.after = Some(last.id);
            all.extend(found);
        }
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

    /// Changes a principal, whose tokens follow on running nodes within 5 seconds. The operator may
    /// take an org's last admin away.
    pub async fn change_principal(
        &self,
        id: PrincipalId,
        patch: PrincipalPatch,
    ) -> Result<Principal, ShellError> {
        let before = self.principal(id).await?;
        let after = patch.applied(&before, self.clock.now())?;
        let event =
            self.event(EventType::PrincipalChanged, before.org_id, target_of("principal", id));
        let change =
            PrincipalChange { before: &before, after: &after, last_admin: LastAdmin::Dispensable };
        let changed = self.store.change_principal(&change, &row_of(&event)).await;
        match changed.map_err(|error| refuse_taken(error, &after.name))? {
            Changed::Done => Ok(after),
            Changed::Stale | Changed::LastAdmin => {
                Err(ShellError::PrincipalChanged(id.to_string()))
            }
        }
    }
}

/// A name that another principal has.
fn refuse_taken(error: StoreError, name: &str) -> ShellError {
    if let StoreError::Conflict(_) = error {
        return ShellError::NameTaken(name.to_owned());
    }
    error.into()
}
