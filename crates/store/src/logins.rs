//! Claims of logins, kept beside their grants.

use std::collections::BTreeSet;

use async_recursion::async_recursion as boxed;
use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId},
    trust::Login,
};

use crate::{
    db::{Db, Store, find, one, read, row},
    error::StoreError,
};

/// Claims of a login, and its moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginRecord {
    pub said: Login,
    pub said_at: Timestamp,
}

impl LoginRecord {
    /// From the columns of a row; `None` when there was no login.
    pub(crate) fn read(
        said: Option<String>,
        said_at: Option<i64>,
    ) -> Result<Option<Self>, StoreError> {
        let (Some(said), Some(said_at)) = (said, said_at) else { return Ok(None) };
        let said = serde_json::from_str(&said).map_err(|_| StoreError::Corrupt("logins.said"))?;
        Ok(Some(Self { said, said_at: Timestamp::from_micros(said_at) }))
    }

    /// The claims, as stored.
    pub(crate) fn text(&self) -> String {
        serde_json::json!(self.said).to_string()
    }
}

row!(LoginRow { said: String, said_at: i64 });

/// True if a login named a group, or the operator or an identity provider put a principal into it. Most texts do not hold
/// its name and are not read as JSON.
macro_rules! named_sql {
    (sqlite) => {
        "SELECT EXISTS (SELECT 1 FROM logins WHERE org_id = $1 AND instr(said, $3) > 0 AND EXISTS (\
         SELECT 1 FROM json_each(said, '$.groups') AS named WHERE named.value = $2)) \
         OR EXISTS (SELECT 1 FROM principals WHERE org_id = $1 AND instr(groups, $3) > 0 AND EXISTS (\
         SELECT 1 FROM json_each(groups) AS named WHERE named.value = $2)) \
         OR EXISTS (SELECT 1 FROM scim_groups g JOIN scim_members m ON m.org_id = g.org_id \
         AND m.group_id = g.id WHERE g.org_id = $1 AND g.display_name = $2)"
    };
    (postgres) => {
        "SELECT EXISTS (SELECT 1 FROM logins WHERE org_id = $1 AND strpos(said, $3) > 0 \
         AND jsonb_exists(said::jsonb -> 'groups', $2)) \
         OR EXISTS (SELECT 1 FROM principals WHERE org_id = $1 AND strpos(groups, $3) > 0 \
         AND jsonb_exists(groups::jsonb, $2)) \
         OR EXISTS (SELECT 1 FROM scim_groups g JOIN scim_members m ON m.org_id = g.org_id \
         AND m.group_id = g.id WHERE g.org_id = $1 AND g.display_name = $2)"
    };
}

impl Store {
    /// Claims of the last login of the org's principal.
    #[boxed]
    pub async fn last_login(
        &self,
        org: OrgId,
        principal: PrincipalId,
    ) -> Result<Option<LoginRecord>, StoreError> {
        let row: Option<LoginRow> = read!(self, org, |conn| find!(conn, LAST => org, principal));
        row.map_or(Ok(None), |row| LoginRecord::read(Some(row.said), Some(row.said_at)))
    }

    /// Groups among these that no login of the org named which is still kept, and that neither the operator
    /// nor an identity provider put a principal of the org into.
    #[boxed]
    pub async fn unnamed_groups(
        &self,
        org: OrgId,
        groups: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, StoreError> {
        let named = match &self.db {
            Db::Sqlite { .. } => named_sql!(sqlite),
            Db::Postgres(_) => named_sql!(postgres),
        };
        let found: BTreeSet<String> = read!(self, org, |conn| {
            let mut unnamed = BTreeSet::new();
            for group in groups {
                let named: bool = one!(conn, scalar named => org, group,
                    serde_json::json!(group).to_string());
                if !named {
                    unnamed.insert(group.clone());
                }
            }
            unnamed
        });
        Ok(found)
    }
}

const LAST: &str = "
SELECT said, said_at FROM logins WHERE org_id = $1 AND principal_id = $2
ORDER BY said_at DESC LIMIT 1";
