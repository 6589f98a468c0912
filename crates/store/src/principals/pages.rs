//! Principals of an org, page by page.

use async_recursion::async_recursion as boxed;
use portcullis_core::id::{OrgId, PrincipalId};

use super::{Principal, PrincipalRow};
use crate::{
    Store,
    db::{Found, all, read},
    error::StoreError,
};

/// Page of the principals of an org, by id.
#[derive(Debug, Clone, Default)]
pub struct PrincipalPage {
    /// Only those with the role of this name.
    pub role: Option<String>,
    /// Only those that are disabled, or that are not.
    pub disabled: Option<bool>,
    pub after: Option<PrincipalId>,
    pub limit: u32,
}

impl Store {
    /// A page of the org's principals, by id.
    #[boxed]
    pub async fn page_principals(
        &self,
        org: OrgId,
        page: &PrincipalPage,
    ) -> Result<Vec<Principal>, StoreError> {
        let after = page.after.map(|id| id.to_string()).unwrap_or_default();
        let rows: Vec<Found<PrincipalRow>> = read!(self, org, |conn| {
            all!(conn, PAGE => org, &after, page.role.as_deref().unwrap_or_default(),
                page.disabled.map_or(-1, i64::from), page.limit)
        });
        Ok(self.readable(rows))
    }
}

const PAGE: &str = "
SELECT * FROM principals WHERE org_id = $1 AND id > $2 AND ($3 = '' OR role = $3)
    AND ($4 < 0 OR ($4 = 0) = (disabled_at IS NULL))
ORDER BY id LIMIT $5";
