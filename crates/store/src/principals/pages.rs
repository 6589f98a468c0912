//! Principals of an org, page by page.

use std::sync::LazyLock;

use portcullis_core::id::{OrgId, PrincipalId};

use super::Principal;
use crate::{
    db::{Store, boxed, list},
    error::StoreError,
    search::{beginning, people},
};

/// Filter of a list of principals, and place in it.
#[derive(Debug, Clone, Default)]
pub struct PrincipalQuery {
    /// Only those with the role of this name.
    pub role: Option<String>,
    /// Only those that are disabled, or that are not.
    pub disabled: Option<bool>,
    /// Only those of whose names or addresses a word begins so.
    pub search: Option<String>,
    /// Only beyond this one.
    pub after: Option<PrincipalId>,
    pub limit: usize,
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
        let list = if page.search.is_some() { SEARCH.as_str() } else { PAGE };
        let beginning = beginning(page.search.as_deref());
        Ok(list!(self, org, list => org, &after, page.role.as_deref().unwrap_or_default(),
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
