//! Connects that have begun and are not confirmed yet.

use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId, ProviderId},
};

use super::ProviderOwner;
use crate::{
    db::{Store, boxed, change, changed, find, list, record, run},
    error::StoreError,
    secrets::{SealedSecret, drop_secrets, put_secret},
};

/// Kind under which secrets of attempts are stored.
pub const ATTEMPT: &str = "attempt";

/// A connect that is about to begin.
#[derive(Debug, Clone)]
pub struct NewAttempt {
    pub id: String,
    pub org_id: OrgId,
    /// The connection that it will make or renew.
    pub provider_id: ProviderId,
    pub slug: String,
    pub owner: ProviderOwner,
    /// The principal that began it, and alone may complete it.
    pub principal_id: PrincipalId,
    /// SHA-256 of the `state` that the browser carries.
    pub state_hash: [u8; 32],
    pub expires_at: Timestamp,
    /// Sealed state for completing it.
    pub secret: SealedSecret,
}

/// A connect that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub id: String,
    pub org_id: OrgId,
    /// The connection that it will make or renew.
    pub provider_id: ProviderId,
    pub slug: String,
    pub owner: ProviderOwner,
    /// The principal that began it, and alone may complete it.
    pub principal_id: PrincipalId,
    pub expires_at: Timestamp,
    /// SHA-256 of the code that confirms it, once there is one.
    pub confirm_hash: Option<Vec<u8>>,
    /// Number of wrong codes.
    pub tries: u32,
}

record!(Attempt in "connect_attempts", |row| id, org_id, provider_id, slug, owner, principal_id,
    expires_at, confirm_hash, tries);

impl Store {
    /// Remembers an attempt.
    #[boxed]
    pub async fn begin_attempt(&self, attempt: &NewAttempt) -> Result<(), StoreError> {
        change!(self, attempt.org_id, |tx| {
            run!(tx, BEGIN => &attempt.id, attempt.org_id, attempt.provider_id, &attempt.slug,
                attempt.owner.to_text(), attempt.principal_id, attempt.state_hash.as_slice(),
                attempt.expires_at);
            put_secret(&mut tx, &attempt.secret).await?;
        });
        Ok(())
    }

    /// The attempt whose `state` a browser brings, once: of any number of browsers one is let in.
    /// The state alone identifies the owner.
    #[boxed]
    pub async fn call_attempt_back(
        &self,
        state_hash: &[u8; 32],
        now: Timestamp,
    ) -> Result<Option<Attempt>, StoreError> {
        Ok(change!(self, installation, |tx| find!(tx, CALL_BACK => state_hash.as_slice(), now)))
    }

    /// Keeps what the provider granted until the attempt is confirmed. `false` if it has ended.
    #[boxed]
    pub async fn grant_attempt(
        &self,
        attempt: &Attempt,
        confirm_hash: &[u8; 32],
        secret: &SealedSecret,
    ) -> Result<bool, StoreError> {
        let granted = change!(self, attempt.org_id, |tx| {
            let granted = run!(
                tx, "UPDATE connect_attempts SET confirm_hash = $3 WHERE org_id = $1 AND id = $2 \
                 AND confirm_hash IS NULL"
                => attempt.org_id, &attempt.id, confirm_hash.as_slice()
            );
            if granted > 0 {
                put_secret(&mut tx, secret).await?;
            }
            granted
        });
        Ok(granted > 0)
    }

    /// The attempts of a principal for a provider and an owner, the newest first.
    #[boxed]
    pub async fn attempts_of(
        &self,
        org: OrgId,
        principal: PrincipalId,
        slug: &str,
        owner: ProviderOwner,
    ) -> Result<Vec<Attempt>, StoreError> {
        let list = "SELECT * FROM connect_attempts WHERE org_id = $1 AND principal_id = $2 \
                    AND slug = $3 AND owner = $4 ORDER BY expires_at DESC, id DESC";
        Ok(list!(self, org, list => org, principal, slug, owner.to_text()))
    }

    /// The attempts that would renew or make a connection.
    #[boxed]
    pub async fn attempts_for(
        &self,
        org: OrgId,
        provider: ProviderId,
    ) -> Result<Vec<Attempt>, StoreError> {
        let list = "SELECT * FROM connect_attempts WHERE org_id = $1 AND provider_id = $2";
        Ok(list!(self, org, list => org, provider))
    }

    /// Counts a wrong code; gives how many there were with this one, 0 if the attempt has ended.
    #[boxed]
    pub async fn count_wrong_code(&self, attempt: &Attempt) -> Result<u32, StoreError> {
        let tries: Option<i64> = change!(self, attempt.org_id, |tx| {
            find!(
                tx, scalar "UPDATE connect_attempts SET tries = tries + 1 WHERE org_id = $1 AND id = $2 \
                 RETURNING tries"
                => attempt.org_id, &attempt.id
            )
        });
        Ok(u32::try_from(tries.unwrap_or(0)).unwrap_or(u32::MAX))
    }

    /// Ends an attempt and forgets its secrets. Returns true to one of any number of callers.
    #[boxed]
    pub async fn end_attempt(&self, attempt: &Attempt) -> Result<bool, StoreError> {
        let org = attempt.org_id.to_string();
        let ended = change!(self, attempt.org_id, |tx| {
            drop_secrets(&mut tx, &org, ATTEMPT, &attempt.id).await?;
            run!(tx, "DELETE FROM connect_attempts WHERE org_id = $1 AND id = $2" => &org,
                &attempt.id)
        });
        Ok(ended > 0)
    }

    /// Some attempts of all tenants whose time is over.
    #[boxed]
    pub async fn expired_attempts(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Attempt>, StoreError> {
        let list =
            "SELECT * FROM connect_attempts WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2";
        Ok(list!(self, installation, list => now, limit))
    }

    /// Removes a connection that was begun, was never connected and has no attempt any more.
    #[boxed]
    pub async fn forget_pending_provider(
        &self,
        org: OrgId,
        id: ProviderId,
    ) -> Result<bool, StoreError> {
        Ok(changed!(self, org, FORGET_PENDING => org, id) > 0)
    }
}

const BEGIN: &str = "
INSERT INTO connect_attempts (id, org_id, provider_id, slug, owner, principal_id, state_hash,
    expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

const CALL_BACK: &str = "
UPDATE connect_attempts SET called_at = $2
WHERE state_hash = $1 AND called_at IS NULL AND expires_at > $2
RETURNING *";

const FORGET_PENDING: &str = "
DELETE FROM providers
WHERE org_id = $1 AND id = $2 AND status = 'pending'
    AND NOT EXISTS (SELECT 1 FROM connect_attempts a WHERE a.org_id = $1 AND a.provider_id = $2)";
