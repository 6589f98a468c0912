//! Users and service accounts.

pub(crate) mod changes;
mod pages;

pub use self::{
    changes::{Changed, LastAdmin, PrincipalChange},
    pages::{PrincipalQuery, RoleName},
};

use std::collections::{BTreeMap, BTreeSet};

use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId},
    principal::{Role, ScopeSet},
};
use serde_json::json;

use crate::{
    authorization::END_CODES,
    db::{Row, Session, Store, all, boxed, change, changed, find, list, read, record, run},
    error::{DriverError, StoreError},
    search::index_words,
};

/// A user or a service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Its id, which also tells its kind.
    pub id: PrincipalId,
    pub org_id: OrgId,
    /// Its name for people; unique in the org.
    pub name: String,
    pub role: Role,
    /// The groups that the operator put it into, besides those that its logins name.
    pub groups: BTreeSet<String>,
    /// The groups that an identity provider put it into over SCIM. Kept in step by the functions of `scim`; no
    /// other writes it.
    pub provisioned_groups: BTreeSet<String>,
    pub created_at: Timestamp,
    /// Since when none of its tokens is accepted, if so.
    pub disabled_at: Option<Timestamp>,
}

impl Principal {
    /// A principal in no group.
    #[must_use]
    pub const fn new(
        id: PrincipalId,
        org_id: OrgId,
        name: String,
        role: Role,
        created_at: Timestamp,
    ) -> Self {
        let groups = BTreeSet::new();
        let provisioned_groups = BTreeSet::new();
        let disabled_at = None;
        Self { id, org_id, name, role, groups, provisioned_groups, created_at, disabled_at }
    }

    /// The groups that the operator and an identity provider put it into, besides those of its logins.
    #[must_use]
    pub fn all_groups(&self) -> BTreeSet<String> {
        self.groups.union(&self.provisioned_groups).cloned().collect()
    }
}

record!(Principal in "principals", |row| id, org_id, name, created_at, disabled_at,
    role = role_of(row, ["principals.role", "principals.scopes"])?,
    groups = row.json("principals.groups")?,
    provisioned_groups = row.json("principals.provisioned_groups")?);

/// Reads back a role from its two columns.
pub(crate) fn role_of(row: Row<'_>, columns: [&'static str; 2]) -> Result<Role, DriverError> {
    let [name, scopes] = columns;
    let name: String = row.get(name)?;
    Role::from_parts(&name, row.get(scopes)?).ok_or(DriverError::Corrupt("principals.role"))
}

/// Scopes of a role that its name does not imply.
pub(crate) fn listed(role: Role) -> ScopeSet {
    match role {
        Role::Member | Role::Auditor | Role::Admin => ScopeSet::EMPTY,
        Role::Service(listed) => listed,
    }
}

/// Inserts a principal within a transaction.
pub(crate) async fn insert(tx: &mut Session, principal: &Principal) -> Result<(), DriverError> {
    let Principal { id, org_id, name, role, groups, created_at, disabled_at, .. } = principal;
    run!(tx, INSERT => id, org_id, name, role.name(), listed(*role), json!(groups).to_string(),
        created_at, disabled_at);
    index_words(tx, *org_id, "name", &id.to_string(), &[name]).await
}

impl Store {
    /// Adds a principal. Fails if its id or name exists, or its org does not.
    #[boxed]
    pub async fn create_principal(&self, principal: &Principal) -> Result<(), StoreError> {
        change!(self, principal.org_id, |tx| insert(&mut tx, principal).await?);
        Ok(())
    }

    /// The org's principal with this id.
    #[boxed]
    pub async fn find_principal(
        &self,
        org: OrgId,
        id: PrincipalId,
    ) -> Result<Option<Principal>, StoreError> {
        Ok(read!(self, unqueued org, |conn| {
            find!(conn, "SELECT * FROM principals WHERE org_id = $1 AND id = $2" => org, id)
        }))
    }

    /// The org's principal with this name.
    #[boxed]
    pub async fn find_principal_by_name(
        &self,
        org: OrgId,
        name: &str,
    ) -> Result<Option<Principal>, StoreError> {
        Ok(read!(self, org, |conn| {
            find!(conn, "SELECT * FROM principals WHERE org_id = $1 AND name = $2" => org, name)
        }))
    }

    /// Every principal of the org, by id.
    #[boxed]
    pub async fn list_principals(&self, org: OrgId) -> Result<Vec<Principal>, StoreError> {
        Ok(list!(self, org, "SELECT * FROM principals WHERE org_id = $1 ORDER BY id" => org))
    }

    /// Names of those among these principals that the org has.
    #[boxed]
    pub async fn principals_among(
        &self,
        org: OrgId,
        ids: &BTreeSet<PrincipalId>,
    ) -> Result<BTreeMap<PrincipalId, String>, StoreError> {
        let find = "SELECT id, name FROM principals WHERE org_id = $1 AND id IN ";
        let find = find.to_owned() + &self.db.texts("$2");
        let ids = json!(ids).to_string();
        let found: Vec<(PrincipalId, String)> =
            read!(self, org, |conn| all!(conn, find => org, &ids));
        Ok(found.into_iter().collect())
    }

    /// Gives the principal another role. `false` if the org has no such principal.
    #[boxed]
    pub async fn set_role(
        &self,
        org: OrgId,
        id: PrincipalId,
        role: Role,
    ) -> Result<bool, StoreError> {
        let set = "UPDATE principals SET role = $3, scopes = $4 WHERE org_id = $1 AND id = $2";
        Ok(changed!(self, org, set => org, id, role.name(), listed(role)) > 0)
    }

    /// Puts the principal into these groups and takes it out of all others that an operator put it
    /// into. `false` if the org has no such principal.
    #[boxed]
    pub async fn set_groups(
        &self,
        org: OrgId,
        id: PrincipalId,
        groups: &BTreeSet<String>,
    ) -> Result<bool, StoreError> {
        let set = "UPDATE principals SET groups = $3 WHERE org_id = $1 AND id = $2";
        Ok(changed!(self, org, set => org, id, json!(groups).to_string()) > 0)
    }

    /// The principal's tokens are accepted again, those that have not ended meanwhile. `false` if
    /// the org has no such principal.
    #[boxed]
    pub async fn enable_principal(&self, org: OrgId, id: PrincipalId) -> Result<bool, StoreError> {
        let enable = "UPDATE principals SET disabled_at = NULL WHERE org_id = $1 AND id = $2";
        Ok(changed!(self, org, enable => org, id) > 0)
    }

    /// From now on none of the principal's tokens is accepted. Keeps the moment of an earlier
    /// call. `false` if the org has no such principal.
    #[boxed]
    pub async fn disable_principal(
        &self,
        org: OrgId,
        id: PrincipalId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let changed = change!(self, org, |tx| {
            let changed = run!(
                tx, "UPDATE principals SET disabled_at = COALESCE(disabled_at, $3) \
                 WHERE org_id = $1 AND id = $2"
                => org, id, now
            );
            run!(tx, END_CODES => org, id, now);
            changed
        });
        Ok(changed > 0)
    }
}

const INSERT: &str = "
INSERT INTO principals (id, org_id, name, role, scopes, groups, created_at, disabled_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
