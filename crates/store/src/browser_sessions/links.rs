//! Links of the operator that log a person in once.

use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId},
};

use crate::{
    db::{Store, boxed, change, changed, find, read, record},
    error::StoreError,
};

/// A link that logs a person in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginLink {
    pub org_id: OrgId,
    pub principal_id: PrincipalId,
    pub expires_at: Timestamp,
}

record!(LoginLink in "login_links", |row| org_id, principal_id, expires_at);

impl Store {
    /// Remembers a link by the hash of its secret.
    #[boxed]
    pub async fn insert_login_link(
        &self,
        link: LoginLink,
        hash: &[u8; 32],
    ) -> Result<(), StoreError> {
        let LoginLink { org_id, principal_id, expires_at } = link;
        changed!(self, org_id, INSERT => org_id, hash.as_slice(), principal_id, expires_at);
        Ok(())
    }

    /// The link whose secret has this hash, unless it was used or its time is over. The secret alone
    /// identifies the org.
    #[boxed]
    pub async fn find_login_link(
        &self,
        hash: &[u8; 32],
        now: Timestamp,
    ) -> Result<Option<LoginLink>, StoreError> {
        let find = "SELECT * FROM login_links WHERE hash = $1 AND expires_at > $2";
        Ok(read!(self, installation, |conn| find!(conn, find => hash.as_slice(), now)))
    }

    /// Takes the link whose secret has this hash: of any number of browsers one gets it.
    #[boxed]
    pub async fn take_login_link(
        &self,
        hash: &[u8; 32],
        now: Timestamp,
    ) -> Result<Option<LoginLink>, StoreError> {
        let take = "DELETE FROM login_links WHERE hash = $1 AND expires_at > $2 RETURNING *";
        Ok(change!(self, installation, |tx| find!(tx, take => hash.as_slice(), now)))
    }

    /// Forgets the links of all tenants whose time is over.
    #[boxed]
    pub async fn forget_login_links(&self, now: Timestamp) -> Result<u64, StoreError> {
        Ok(changed!(self, installation, "DELETE FROM login_links WHERE expires_at <= $1" => now))
    }
}

const INSERT: &str = "
INSERT INTO login_links (org_id, hash, principal_id, expires_at) VALUES ($1, $2, $3, $4)";
