//! Descent of tokens from one another.

use async_recursion::async_recursion as boxed;
use portcullis_core::id::{OrgId, TokenId};

use crate::{
    Store,
    db::{find, read},
    error::StoreError,
};

impl Store {
    /// Returns true if the org's token `id` is of the grant of `ancestor`, or was narrowed or
    /// delegated from a token of that grant, however many steps lie between.
    #[boxed]
    pub async fn descends(
        &self,
        org: OrgId,
        id: TokenId,
        ancestor: TokenId,
    ) -> Result<bool, StoreError> {
        let found: Option<i32> =
            read!(self, org, |conn| find!(conn, scalar DESCENDS => org, id, ancestor));
        Ok(found.is_some())
    }
}

/// Up from the token: what it was made from, what that was made from, and so on.
const DESCENDS: &str = "
WITH RECURSIVE above (id, grant_id, parent_id, via_token_id) AS (
    SELECT id, grant_id, parent_id, via_token_id FROM tokens WHERE org_id = $1 AND id = $2
    UNION
    SELECT t.id, t.grant_id, t.parent_id, t.via_token_id FROM tokens t
    JOIN above a ON t.id = a.parent_id OR t.id = a.via_token_id
    WHERE t.org_id = $1
)
SELECT 1 FROM above
WHERE grant_id = (SELECT grant_id FROM tokens WHERE org_id = $1 AND id = $3) LIMIT 1";
