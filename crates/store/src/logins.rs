//! Claims of logins, kept beside their grants.

use async_recursion::async_recursion as boxed;
use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId},
    trust::Login,
};

use crate::{
    Store,
    db::{read, row},
    error::StoreError,
};

/// Claims of a login, and its moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginRecord {
    /// The claims.
    pub said: Login,
    /// The moment of the login.
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

impl Store {
    /// Claims of the last login of the org's principal.
    #[boxed]
    pub async fn last_login(
        &self,
        org: OrgId,
        principal: PrincipalId,
    ) -> Result<Option<LoginRecord>, StoreError> {
        let row: Option<LoginRow> = read!(self, org, |conn| {
            sqlx::query_as(LAST)
                .bind(org.to_string())
                .bind(principal.to_string())
                .fetch_optional(&mut *conn)
                .await?
        });
        row.map_or(Ok(None), |row| LoginRecord::read(Some(row.said), Some(row.said_at)))
    }
}

const LAST: &str = "
SELECT said, said_at FROM logins WHERE org_id = $1 AND principal_id = $2
ORDER BY said_at DESC LIMIT 1";
