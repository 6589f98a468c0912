//! Revocation: a token, its grant, and all that came from any of them.

use portcullis_core::{
    clock::Timestamp,
    id::{GrantId, OrgId, TokenId},
};

use crate::{
    db::{Store, all, boxed, change, find, read},
    error::StoreError,
    revocation::revoke_roots,
};

impl Store {
    /// Revokes the token, its whole grant, and everything attenuated or delegated from any of
    /// them, and says how many *others* were live until now. Safe to run twice. `None` if the org
    /// has no such token.
    #[boxed]
    pub async fn revoke_token(
        &self,
        org: OrgId,
        id: TokenId,
        now: Timestamp,
    ) -> Result<Option<u64>, StoreError> {
        let id = id.to_string();
        let _: Vec<String> = change!(self, org, |tx| {
            // What is made from it at this moment is there, or will find it revoked.
            tx.lock_tokens(&org.to_string()).await?;
            let known: Option<i32> =
                find!(tx, scalar "SELECT 1 FROM tokens WHERE org_id = $1 AND id = $2" => org, &id);
            if known.is_none() {
                return Ok(None);
            }
            all!(tx, scalar revoke_roots("id = $2", "$3") => org, &id, now)
        });
        self.revoke_descendants(org, &[id], now).await.map(Some)
    }

    /// Revokes all tokens of a grant, and everything attenuated or delegated from any of them. Safe to run
    /// twice.
    #[boxed]
    pub async fn revoke_grant(
        &self,
        org: OrgId,
        grant: GrantId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let first: Option<TokenId> = read!(self, org, |conn| {
            find!(
                conn, scalar "SELECT id FROM tokens WHERE org_id = $1 AND grant_id = $2 LIMIT 1" =>
                org, grant
            )
        });
        if let Some(first) = first {
            self.revoke_token(org, first, now).await?;
        }
        Ok(())
    }
}
