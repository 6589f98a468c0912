//! Users and service accounts.

pub(crate) mod changes;
mod pages;

pub use self::{
    changes::{Changed, LastAdmin, PrincipalChange},
    pages::PrincipalPage,
};

use async_recursion::async_recursion as boxed;
use std::collections::{BTreeMap, BTreeSet};

use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId},
    principal::{Role, ScopeSet},
};
use serde_json::json;

use crate::{
    Store,
    authorization::END_CODES,
    db::{Db, Found, Readable, all, change, find, parse, read, row, run, text_list},
    error::StoreError,
};

/// The SQL for those of some principals that an org has.
macro_rules! among {
    ($dialect:ident) => {
        concat!(
            "SELECT id, name FROM principals WHERE org_id = $1 AND id IN ",
            text_list!($dialect, "$2")
        )
    };
}

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

row!(pub(crate) PrincipalRow {
    id: String,
    org_id: String,
    name: String,
    role: String,
    scopes: String,
    groups: String,
    provisioned_groups: String,
    created_at: i64,
    disabled_at: Option<i64>,
});

impl Readable for PrincipalRow {
    const TABLE: &'static str = "principals";
    type Record = Principal;

    fn read(self) -> Result<Principal, StoreError> {
        Ok(Principal {
            id: parse(&self.id, "principals.id")?,
            org_id: parse(&self.org_id, "principals.org_id")?,
            role: role_of(&self.role, &self.scopes)?,
            groups: groups_of(&self.groups)?,
            provisioned_groups: groups_of(&self.provisioned_groups)?,
            name: self.name,
            created_at: Timestamp::from_micros(self.created_at),
            disabled_at: self.disabled_at.map(Timestamp::from_micros),
        })
    }
}

/// Reads back a role from its two columns.
pub(crate) fn role_of(name: &str, scopes: &str) -> Result<Role, StoreError> {
    let listed = parse(scopes, "principals.scopes")?;
    Role::from_parts(name, listed).ok_or(StoreError::Corrupt("principals.role"))
}

/// Reads back the groups of a principal.
pub(crate) fn groups_of(groups: &str) -> Result<BTreeSet<String>, StoreError> {
    serde_json::from_str(groups).map_err(|_| StoreError::Corrupt("principals.groups"))
}

/// Scopes of a role that its name does not imply.
pub(crate) fn listed(role: Role) -> ScopeSet {
    match role {
        Role::Member | Role::Auditor | Role::Admin => ScopeSet::EMPTY,
        Role::Service(listed) => listed,
    }
}

/// Inserts a principal within a transaction of either database.
macro_rules! insert {
    ($tx:ident, $principal:expr) => {{
        let principal: &$crate::Principal = $principal;
        $crate::db::run!($tx, $crate::principals::INSERT => principal.id, principal.org_id,
            &principal.name, principal.role.name(),
            $crate::principals::listed(principal.role).to_string(),
            serde_json::json!(principal.groups).to_string(), principal.created_at,
            principal.disabled_at);
        $crate::search::index_words!($tx, principal.org_id, "name", principal.id,
            [principal.name.as_str()]);
    }};
}

pub(crate) use self::changes::change_within;
pub(crate) use insert;

impl Store {
    /// Adds a principal. Fails if its id or name exists, or its org does not.
    #[boxed]
    pub async fn create_principal(&self, principal: &Principal) -> Result<(), StoreError> {
        change!(self, principal.org_id, |tx| {
            insert!(tx, principal);
        });
        Ok(())
    }

    /// The org's principal with this id.
    #[boxed]
    pub async fn find_principal(
        &self,
        org: OrgId,
        id: PrincipalId,
    ) -> Result<Option<Principal>, StoreError> {
        let row: Option<PrincipalRow> = read!(self, unqueued org, |conn| {
            find!(conn, "SELECT * FROM principals WHERE org_id = $1 AND id = $2" => org, id)
        });
        row.map(PrincipalRow::read).transpose()
    }

    /// The org's principal with this name.
    #[boxed]
    pub async fn find_principal_by_name(
        &self,
        org: OrgId,
        name: &str,
    ) -> Result<Option<Principal>, StoreError> {
        let row: Option<PrincipalRow> = read!(self, org, |conn| {
            find!(conn, "SELECT * FROM principals WHERE org_id = $1 AND name = $2" => org, name)
        });
        row.map(PrincipalRow::read).transpose()
    }

    /// Every principal of the org, by id.
    #[boxed]
    pub async fn list_principals(&self, org: OrgId) -> Result<Vec<Principal>, StoreError> {
        let rows: Vec<Found<PrincipalRow>> = read!(self, org, |conn| {
            all!(conn, "SELECT * FROM principals WHERE org_id = $1 ORDER BY id" => org)
        });
        Ok(self.readable(rows))
    }

    /// Names of those among these principals that the org has.
    #[boxed]
    pub async fn principals_among(
        &self,
        org: OrgId,
        ids: &BTreeSet<PrincipalId>,
    ) -> Result<BTreeMap<PrincipalId, String>, StoreError> {
        let find = match &self.db {
            Db::Sqlite { .. } => among!(sqlite),
            Db::Postgres(_) => among!(postgres),
        };
        let ids = json!(ids).to_string();
        let found: Vec<(String, String)> = read!(self, org, |conn| all!(conn, find => org, &ids));
        let named = found.into_iter();
        named.map(|(id, name)| parse(&id, "principals.id").map(|id| (id, name))).collect()
    }

    /// Gives the principal another role. `false` if the org has no such principal.
    #[boxed]
    pub async fn set_role(
        &self,
        org: OrgId,
        id: PrincipalId,
        role: Role,
    ) -> Result<bool, StoreError> {
        let changed = change!(self, org, |tx| {
            run!(
                tx, "UPDATE principals SET role = $3, scopes = $4 WHERE org_id = $1 AND id = $2" =>
                org, id, role.name(), listed(role).to_string()
            )
        });
        Ok(changed > 0)
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
        let groups = json!(groups).to_string();
        let changed = change!(self, org, |tx| {
            run!(tx, "UPDATE principals SET groups = $3 WHERE org_id = $1 AND id = $2" => org, id,
                &groups)
        });
        Ok(changed > 0)
    }

    /// The principal's tokens are accepted again, those that have not ended meanwhile. `false` if
    /// the org has no such principal.
    #[boxed]
    pub async fn enable_principal(&self, org: OrgId, id: PrincipalId) -> Result<bool, StoreError> {
        let changed = change!(self, org, |tx| {
            run!(tx, "UPDATE principals SET disabled_at = NULL WHERE org_id = $1 AND id = $2" =>
                org, id)
        });
        Ok(changed > 0)
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

pub(crate) const INSERT: &str = "
INSERT INTO principals (id, org_id, name, role, scopes, groups, created_at, disabled_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
