//! Principals of an org, page by page.

use std::sync::LazyLock;

use portcullis_core::id::{OrgId, PrincipalId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Principal;
use crate::{
    db::{Store, boxed, list},
    error::StoreError,
    filters,
    search::{beginning, people},
};

portcullis_core::words! {
    /// Role of a principal.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    #[schema(as = Role)]
    pub enum RoleName {
        Member = "member",
        Auditor = "auditor",
        Admin = "admin",
        /// Of service accounts: exactly the scopes that are listed.
        Service = "service",
    }
}

filters::filter! {
    /// Filter of a list of principals, and place in it.
    PrincipalQuery {
        #[serde(deserialize_with = "filters::search")]
        q: Option<String> = "only those of whose name, user name or addresses a word begins so, in any case", max_length = 64, pattern = "[^, ]";
        role: Option<RoleName> as Option<String> = "only those with this role", pattern = "^(member|auditor|admin|service)$";
        disabled: Option<bool> = "only those that are disabled, or that are not";
    } at { after: Option<PrincipalId>, limit: usize }
}

impl Store {
    /// A page of the org's principals, by id.
    #[boxed]
    pub async fn page_principals(
        &self,
        org: OrgId,
        page: &PrincipalQuery,
    ) -> Result<Vec<Principal>, StoreError> {
        let after = page.after.map(|id| id.to_string()).unwrap_or_default();
        let list = if page.q.is_some() { SEARCH.as_str() } else { PAGE };
        let beginning = beginning(page.q.as_deref());
        Ok(list!(self, org, list => org, &after, page.role.map_or("", RoleName::as_str),
            page.disabled.map_or(-1, i64::from), page.limit, beginning))
    }
}

const PAGE: &str = "
SELECT * FROM principals WHERE org_id = $1 AND id > $2 AND ($3 = '' OR role = $3)
    AND ($4 < 0 OR ($4 = 0) = (disabled_at IS NULL)) AND $6 = ''
ORDER BY id LIMIT $5";

static SEARCH: LazyLock<String> = LazyLock::new(|| {
    let people = people("$6");
    format!(
        "SELECT p.* FROM {people} CROSS JOIN principals p
WHERE p.org_id = $1 AND p.id = people.id AND p.id > $2 AND ($3 = '' OR p.role = $3)
    AND ($4 < 0 OR ($4 = 0) = (p.disabled_at IS NULL))
ORDER BY p.id LIMIT $5"
    )
});
