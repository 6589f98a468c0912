//! Claims of logins, kept beside their grants.

use std::collections::BTreeSet;

use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId},
    trust::Login,
};

use crate::{
    db::{Db, Row, Store, boxed, find, one, read, record},
    error::{DriverError, StoreError},
};

/// Claims of a login, and its moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginRecord {
    pub said: Login,
    pub said_at: Timestamp,
}

impl LoginRecord {
    /// From the columns of a row; `None` when there was no login.
    pub(crate) fn of_row(row: Row<'_>, moment: &'static str) -> Result<Option<Self>, DriverError> {
        let said: Option<String> = row.get("logins.said")?;
        let Some((said, said_at)) = said.zip(row.get(moment)?) else { return Ok(None) };
        let said = serde_json::from_str(&said).map_err(|_| DriverError::Corrupt("logins.said"))?;
        Ok(Some(Self { said, said_at }))
    }

    /// The claims, as stored.
    pub(crate) fn text(&self) -> String {
        serde_json::json!(self.said).to_string()
    }
}

record!(LoginRecord in "logins", |row| said = row.json("logins.said")?, said_at);

/// The SQL for whether a login named a group, or the operator or an identity provider put a principal into it. Most texts
/// do not hold its name and are not read as JSON.
fn named_sql(db: &Db) -> String {
    let [said, groups] = db.pick(
        [
            "instr(said, $3) > 0 AND EXISTS (\
             SELECT 1 FROM json_each(said, '$.groups') AS named WHERE named.value = $2)",
            "instr(groups, $3) > 0 AND EXISTS (\
             SELECT 1 FROM json_each(groups) AS named WHERE named.value = $2)",
        ],
        [
            "strpos(said, $3) > 0 AND jsonb_exists(said::jsonb -> 'groups', $2)",
            "strpos(groups, $3) > 0 AND jsonb_exists(groups::jsonb, $2)",
        ],
    );
    format!(
        "SELECT EXISTS (SELECT 1 FROM logins WHERE org_id = $1 AND {said}) \
         OR EXISTS (SELECT 1 FROM principals WHERE org_id = $1 AND {groups}) \
         OR EXISTS (SELECT 1 FROM scim_groups g JOIN scim_members m ON m.org_id = g.org_id \
         AND m.group_id = g.id WHERE g.org_id = $1 AND g.display_name = $2)"
    )
}

impl Store {
    /// Claims of the last login of the org's principal.
    #[boxed]
    pub async fn last_login(
        &self,
        org: OrgId,
        principal: PrincipalId,
    ) -> Result<Option<LoginRecord>, StoreError> {
        Ok(read!(self, org, |conn| find!(conn, LAST => org, principal)))
    }

    /// Groups among these that no login of the org named which is still kept, and that neither the operator
    /// nor an identity provider put a principal of the org into.
    #[boxed]
    pub async fn unnamed_groups(
        &self,
        org: OrgId,
        groups: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, StoreError> {
        let named_sql = named_sql(&self.db);
        let mut unnamed = BTreeSet::new();
        read!(self, org, |conn| {
            for group in groups {
                let named: bool = one!(conn, scalar named_sql.clone() => org, group,
                    serde_json::json!(group).to_string());
                if !named {
                    unnamed.insert(group.clone());
                }
            }
        });
        Ok(unnamed)
    }
}

const LAST: &str = "
SELECT said, said_at FROM logins WHERE org_id = $1 AND principal_id = $2
ORDER BY said_at DESC LIMIT 1";
