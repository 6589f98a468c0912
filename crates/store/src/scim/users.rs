//! People whom an identity provider keeps.

use std::sync::LazyLock;

use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId},
    scim::UserAttributes,
    trust::JoinKey,
};
use serde_json::json;

use super::{Conditions, ScimPage, ScimWritten, key};
use crate::{
    db::{Found, FromRow, NewEvent, Store, all, boxed, change, read, record, run, scalar},
    error::StoreError,
    principals::{
        Changed, LastAdmin, Principal, PrincipalChange,
        changes::{END_LOGINS, change_within},
        insert,
    },
    revocation::revoke_roots,
    search::index_words,
};

/// A person whom an identity provider keeps, and the principal that the person is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScimUser {
    pub principal: Principal,
    /// Service account that pushed the person.
    pub pushed_by: PrincipalId,
    pub attributes: UserAttributes,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
    /// When the provider ended the access, if it did.
    pub deactivated_at: Option<Timestamp>,
    /// When the provider deleted it, if it did.
    pub deleted_at: Option<Timestamp>,
    pub revision: i64,
}

/// Filter of a list; what is absent does not matter.
#[derive(Debug, Clone, Default)]
pub struct ScimUserFilter {
    pub id: Option<PrincipalId>,
    pub user_name: Option<String>,
    pub external_id: Option<String>,
    pub display_name: Option<String>,
    pub active: Option<bool>,
}

/// A person before and after a change.
#[derive(Debug, Clone, Copy)]
pub struct ScimUserChange<'a> {
    /// The principal as it was read; `None` if the change makes it.
    pub principal: Option<&'a Principal>,
    /// The person as it was read; `None` if no provider kept it before.
    pub before: Option<&'a ScimUser>,
    pub after: &'a ScimUser,
    /// When every token, browser session, code and link of it ends, if they do.
    pub access_ends_at: Option<Timestamp>,
}

record!(ScimUser in "scim_users", |row| pushed_by, changed_at, deactivated_at, deleted_at, revision,
    principal = Principal::from_row(row)?, attributes = row.json("scim_users.attributes")?,
    created_at = row.get("scim_users.scim_created_at")?);

impl ScimUserFilter {
    fn conditions(&self) -> Conditions {
        let live = Conditions::default().with(" AND u.deleted_at IS NULL");
        let named = live
            .equal("u.principal_id", self.id.map(|id| id.to_string()))
            .equal("u.user_key", self.user_name.as_deref().map(key))
            .equal("u.external_id", self.external_id.clone())
            .equal("u.display_key", self.display_name.as_deref().map(key));
        match self.active {
            None => named,
            Some(true) => named.with(" AND p.disabled_at IS NULL"),
            Some(false) => named.with(" AND p.disabled_at IS NOT NULL"),
        }
    }
}

impl Store {
    /// A page of the people whom a provider keeps, by id, from `offset` on.
    #[boxed]
    pub async fn page_scim_users(
        &self,
        org: OrgId,
        filter: &ScimUserFilter,
        offset: u32,
        count: u32,
    ) -> Result<ScimPage<ScimUser>, StoreError> {
        let conditions = filter.conditions();
        let total = format!("SELECT COUNT(*){FROM}{}", conditions.sql);
        let page = conditions.page(&format!("{SELECT}{FROM}"), "u.principal_id", offset, count);
        let (rows, total): (Vec<Found<ScimUser>>, u64) = read!(self, org, |conn| {
            let values = || conditions.bound(org);
            let rows = conn.all(FromRow::from_row, page, values()).await?;
            (rows, conn.one(scalar, total, values()).await?)
        });
        Ok(ScimPage { items: self.records(rows), total })
    }

    /// The person of this id, unless the provider deleted it.
    #[boxed]
    pub async fn find_scim_user(
        &self,
        org: OrgId,
        id: PrincipalId,
    ) -> Result<Option<ScimUser>, StoreError> {
        let filter = ScimUserFilter { id: Some(id), ..ScimUserFilter::default() };
        Ok(self.page_scim_users(org, &filter, 0, 1).await?.items.pop())
    }

    /// The person who has this value, unless the provider deleted it.
    #[boxed]
    pub async fn find_scim_user_by(
        &self,
        org: OrgId,
        join: JoinKey,
        value: &str,
    ) -> Result<Option<ScimUser>, StoreError> {
        let value = Some(value.to_owned());
        let filter = match join {
            JoinKey::ExternalId => {
                ScimUserFilter { external_id: value, ..ScimUserFilter::default() }
            }
            JoinKey::UserName => ScimUserFilter { user_name: value, ..ScimUserFilter::default() },
        };
        Ok(self.page_scim_users(org, &filter, 0, 1).await?.items.pop())
    }

    /// The person whom the provider deleted last and who had the same id of the provider; the same name, where
    /// the provider tells no id.
    #[boxed]
    pub async fn find_deleted_scim_user(
        &self,
        org: OrgId,
        attributes: &UserAttributes,
    ) -> Result<Option<ScimUser>, StoreError> {
        let same = match &attributes.external_id {
            Some(id) => Conditions::default().equal("u.external_id", Some(id.clone())),
            None => Conditions::default()
                .with(" AND u.external_id IS NULL")
                .equal("u.user_key", Some(key(&attributes.user_name))),
        };
        let deleted = same.with(" AND u.deleted_at IS NOT NULL");
        let find = deleted.page(&format!("{SELECT}{FROM}"), "u.deleted_at DESC", 0, 1);
        let found = read!(self, org, |conn| {
            conn.all(FromRow::from_row, find, deleted.bound(org)).await?
        });
        Ok(self.records(found).pop())
    }

    /// Makes or changes a person and its principal. With `access_ends_at` everything ends by which it could come in;
    /// one that is deleted leaves its groups. Fails if another one has the name or the id.
    #[boxed]
    pub async fn change_scim_user(
        &self,
        change: &ScimUserChange<'_>,
        event: &NewEvent,
    ) -> Result<ScimWritten, StoreError> {
        let ScimUserChange { principal, before, after, access_ends_at } = *change;
        let org = after.principal.org_id.to_string();
        let id = after.principal.id.to_string();
        let ended = access_ends_at.map(Timestamp::as_micros);
        let roots: Vec<String> = change!(self, after.principal.org_id, |tx| {
            // Also keeps others from making tokens of what ends here.
            tx.lock_tokens(&org).await?;
            let made = match principal {
                None => {
                    insert(&mut tx, &after.principal).await?;
                    Changed::Done
                }
                Some(before) => {
                    let last_admin = LastAdmin::Kept;
                    let after = &after.principal;
                    change_within(&mut tx, &PrincipalChange { before, after, last_admin }).await?
                }
            };
            match made {
                Changed::Done => {}
                Changed::Stale => return Ok(ScimWritten::Stale),
                Changed::LastAdmin => return Ok(ScimWritten::LastAdmin),
            }
            let ScimUser { attributes, .. } = after;
            let written = run!(tx, if before.is_some() { UPDATE } else { INSERT } => &org, &id,
                key(&attributes.user_name), &attributes.external_id,
                attributes.display_name.as_deref().map(key), json!(attributes).to_string(),
                after.created_at, after.changed_at, after.deactivated_at, after.deleted_at,
                after.revision, before.map_or(-1, |before| before.revision), after.pushed_by);
            if written == 0 {
                return Ok(ScimWritten::Stale);
            }
            index_words(&mut tx, after.principal.org_id, "scim", &id, &texts(after)).await?;
            let left: &[&str] = if after.deleted_at.is_some() { &LEAVE } else { &[] };
            for leave in left {
                run!(tx, *leave => &org, &id);
            }
            let mut roots = Vec::new();
            if let Some(ended) = ended {
                roots = all!(tx, scalar REVOKE.as_str() => &org, &id, ended);
                for end in [END_LINKS].into_iter().chain(END_LOGINS) {
                    run!(tx, end => &org, &id, ended);
                }
            }
            tx.record_event(&self.row_key, event).await?;
            roots
        });
        if let Some(ended) = access_ends_at {
            self.revoke_descendants(after.principal.org_id, &roots, ended).await?;
        }
        Ok(ScimWritten::Done)
    }
}

/// Names and addresses by which a person is found; none of one that is deleted.
fn texts(user: &ScimUser) -> Vec<&str> {
    let UserAttributes { user_name, display_name, name, emails, external_id: _ } = &user.attributes;
    if user.deleted_at.is_some() {
        return Vec::new();
    }
    let names = [display_name, &name.formatted, &name.given_name, &name.family_name];
    let names = names.into_iter().flatten().chain([user_name]);
    names.chain(emails.iter().map(|email| &email.value)).map(String::as_str).collect()
}

const SELECT: &str = "SELECT p.*, u.pushed_by, u.attributes, u.scim_created_at, u.changed_at, u.deactivated_at, \
                      u.deleted_at, u.revision";

const FROM: &str = " FROM scim_users u JOIN principals p ON p.org_id = u.org_id \
                    AND p.id = u.principal_id WHERE u.org_id = $1";

const INSERT: &str = "
INSERT INTO scim_users (org_id, principal_id, user_key, external_id, display_key, attributes,
    scim_created_at, changed_at, deactivated_at, deleted_at, revision, pushed_by)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $13 WHERE $12 < 0";

const UPDATE: &str = "
UPDATE scim_users SET user_key = $3, external_id = $4, display_key = $5, attributes = $6,
    scim_created_at = $7, changed_at = $8, deactivated_at = $9, deleted_at = $10, revision = $11,
    pushed_by = $13
WHERE org_id = $1 AND principal_id = $2 AND revision = $12";

const LEAVE: [&str; 2] = [
    "DELETE FROM scim_members WHERE org_id = $1 AND principal_id = $2",
    "UPDATE principals SET provisioned_groups = '[]' WHERE org_id = $1 AND id = $2",
];

/// Links to log in with that are not used yet.
const END_LINKS: &str = "
UPDATE login_links SET expires_at = $3
WHERE org_id = $1 AND principal_id = $2 AND expires_at > $3";

/// Of each grant of a principal, and of each by which it acts for others, one token, which ends the others.
static REVOKE: LazyLock<String> = LazyLock::new(|| {
    revoke_roots(
        "id IN (
    SELECT MIN(id) FROM tokens WHERE org_id = $1 AND principal_id = $2
        AND revoked_at IS NULL AND expires_at > $3 GROUP BY grant_id
    UNION ALL SELECT MIN(id) FROM tokens WHERE org_id = $1 AND via = $2
        AND revoked_at IS NULL AND expires_at > $3 GROUP BY grant_id
)",
        "$3",
    )
});
