//! Idempotency keys: which request a key stands for, and how that ended.
//!
//! A key of an export is made with the export, and names it. A key's row is made with the intent of its call and ended with the call's event, each in the
//! same transaction ([`crate::AuditWriter`]); here it is read and forgotten.

use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, RequestId},
};

use crate::{
    db::{Store, boxed, changed, find, read, record},
    error::StoreError,
};

/// End of a key, with the event of its call.
#[derive(Debug, Clone)]
pub enum KeyEnd {
    /// The call was dispatched: this is its answer, sealed.
    Answered(Vec<u8>),
    /// Nothing was dispatched: the key is free again.
    Released,
}

/// A key that stands for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownKey {
    /// The digest of the request.
    pub fingerprint: String,
    /// Product of the request: an event or an export.
    pub subject: String,
    pub request_id: RequestId,
    /// Its answer, sealed; `None` while it is under way.
    pub sealed: Option<Vec<u8>>,
}

record!(KnownKey in "idempotency_keys", |row| fingerprint, subject, request_id, sealed);

/// Rows forgotten at a time, so that no other transaction waits long for the writer.
const BATCH: i64 = 500;

impl Store {
    /// Request of the key with this digest; `None` if it is free.
    #[boxed]
    pub async fn find_idempotency_key(
        &self,
        org: OrgId,
        digest: &str,
        now: Timestamp,
    ) -> Result<Option<KnownKey>, StoreError> {
        Ok(read!(self, unqueued org, |conn| {
            find!(
                conn, "SELECT fingerprint, subject, request_id, sealed FROM idempotency_keys \
                 WHERE org_id = $1 AND digest = $2 AND expires_at > $3"
                => org, digest, now
            )
        }))
    }

    /// Forgets the keys of all orgs that have expired, with their answers. Gives how many.
    #[boxed]
    pub async fn forget_idempotency_keys(&self, now: Timestamp) -> Result<u64, StoreError> {
        let forget = "DELETE FROM idempotency_keys WHERE (org_id, digest) IN \
                      (SELECT org_id, digest FROM idempotency_keys WHERE expires_at <= $1 \
                      ORDER BY expires_at LIMIT $2)";
        let mut forgotten = 0;
        loop {
            let gone = changed!(self, installation, forget => now, BATCH);
            forgotten += gone;
            if gone < u64::try_from(BATCH).unwrap_or(0) {
                return Ok(forgotten);
            }
        }
    }
}
