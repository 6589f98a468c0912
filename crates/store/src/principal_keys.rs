//! Public keys of service accounts.

use std::sync::LazyLock;

use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId},
    trust::PublicKey,
};

use crate::{
    db::{Store, all, boxed, change, find, list, read, record, run},
    error::{DriverError, StoreError},
    principals::Principal,
    revocation::revoke_roots,
};

/// Keys of one principal at most.
pub const MAX_PRINCIPAL_KEYS: usize = 8;

/// A public key of a service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrincipalKey {
    pub org_id: OrgId,
    pub principal_id: PrincipalId,
    pub key: PublicKey,
    pub created_at: Timestamp,
    /// When it last bought a token that is still known.
    pub last_used_at: Option<Timestamp>,
}

/// Result of adding a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAdded {
    Done,
    /// The principal has this key already.
    Known,
    /// The principal has as many keys as it may have.
    Full,
}

record!(PrincipalKey in "principal_keys", |row| org_id, principal_id, created_at, last_used_at,
    key = PublicKey::parse(&row.get::<String>("principal_keys.jwk")?)
        .map_err(|_| DriverError::Corrupt("principal_keys.jwk"))?);

impl Store {
    /// Adds a key, unless its principal has it or has as many as it may have. Fails if the org has
    /// no such principal.
    #[boxed]
    pub async fn add_principal_key(&self, new: &PrincipalKey) -> Result<KeyAdded, StoreError> {
        let org = new.org_id.to_string();
        let principal = new.principal_id.to_string();
        change!(self, new.org_id, |tx| {
            // No other request adds a key between the count and the insertion.
            tx.lock_tokens(&org).await?;
            let known: Vec<String> = all!(tx, scalar THUMBPRINTS => &org, &principal);
            if known.iter().any(|it| it == new.key.thumbprint()) {
                return Ok(KeyAdded::Known);
            }
            if known.len() >= MAX_PRINCIPAL_KEYS {
                return Ok(KeyAdded::Full);
            }
            run!(tx, ADD => &org, &principal, new.key.thumbprint(), new.key.jwk().to_string(),
                new.created_at);
        });
        Ok(KeyAdded::Done)
    }

    /// The keys of the org's principal, the oldest first.
    #[boxed]
    pub async fn list_principal_keys(
        &self,
        org: OrgId,
        principal: PrincipalId,
    ) -> Result<Vec<PrincipalKey>, StoreError> {
        Ok(list!(self, org, LIST => org, principal))
    }

    /// Removes a key and revokes what it bought, with all that came of it. Gives the number of
    /// tokens that were live until now; `None` if the principal has no such key.
    #[boxed]
    pub async fn remove_principal_key(
        &self,
        org: OrgId,
        principal: PrincipalId,
        thumbprint: &str,
        now: Timestamp,
    ) -> Result<Option<u64>, StoreError> {
        let roots: Vec<String> = change!(self, org, |tx| {
            tx.lock_tokens(&org.to_string()).await?;
            let removed = run!(tx, REMOVE => org, principal, thumbprint);
            if removed == 0 {
                return Ok(None);
            }
            all!(tx, scalar REVOKE.as_str() => org, principal, thumbprint, now)
        });
        let below = self.revoke_descendants(org, &roots, now).await?;
        Ok(Some(below.saturating_add(u64::try_from(roots.len()).unwrap_or(u64::MAX))))
    }

    /// The principal of this id in whichever org it is: who presents a key's signature says it
    /// alone.
    #[boxed]
    pub async fn find_key_owner(&self, id: PrincipalId) -> Result<Option<Principal>, StoreError> {
        Ok(read!(self, installation, |conn| {
            find!(conn, "SELECT * FROM principals WHERE id = $1" => id)
        }))
    }
}

const THUMBPRINTS: &str =
    "SELECT thumbprint FROM principal_keys WHERE org_id = $1 AND principal_id = $2";

const ADD: &str = "
INSERT INTO principal_keys (org_id, principal_id, thumbprint, jwk, created_at)
VALUES ($1, $2, $3, $4, $5)";

const LIST: &str = "
SELECT k.*, (
    SELECT MAX(t.issued_at) FROM tokens t
    WHERE t.org_id = k.org_id AND t.principal_id = k.principal_id
        AND t.method = 'key' AND t.trust = k.thumbprint
) AS last_used_at
FROM principal_keys k
WHERE k.org_id = $1 AND k.principal_id = $2
ORDER BY k.created_at, k.thumbprint";

const REMOVE: &str = "
DELETE FROM principal_keys WHERE org_id = $1 AND principal_id = $2 AND thumbprint = $3";

/// From the tokens that the key bought.
static REVOKE: LazyLock<String> = LazyLock::new(|| {
    revoke_roots("principal_id = $2 AND method = 'key' AND trust = $3 AND expires_at > $4", "$4")
});
