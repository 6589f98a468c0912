//! Descent of tokens from one another.

use portcullis_core::id::{OrgId, TokenId};

use crate::{
    db::{Store, boxed, find, read},
    error::StoreError,
    revocation::above,
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
        let descends = concat!(
            above!("$1", "$2"),
            "SELECT 1 FROM above
            WHERE grant_id = (SELECT grant_id FROM tokens WHERE org_id = $1 AND id = $3) LIMIT 1"
        );
        let found: Option<i32> =
            read!(self, org, |conn| find!(conn, scalar descends => org, id, ancestor));
        Ok(found.is_some())
    }
}
