//! Links of the operator that log a person in once.

use async_recursion::async_recursion as boxed;
use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId},
};

use crate::{
    db::{Store, change, find, parse, read, row, run},
    error::StoreError,
};

/// A link that logs a person in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginLink {
    pub org_id: OrgId,
    pub principal_id: PrincipalId,
    pub expires_at: Timestamp,
}

row!(LinkRow { org_id: String, principal_id: String, expires_at: i64 });

impl LinkRow {
    fn read(self) -> Result<LoginLink, StoreError> {
        Ok(LoginLink {
            org_id: parse(&self.org_id, "login_links.org_id")?,
            principal_id: parse(&self.principal_id, "login_links.principal_id")?,
            expires_at: Timestamp::from_micros(self.expires_at),
        })
    }
}

impl Store {
    /// Remembers a link by the hash of its secret.
    #[boxed]
    pub async fn insert_login_link(
        &self,
        link: LoginLink,
        hash: &[u8; 32],
    ) -> Result<(), StoreError> {
        change!(self, link.org_id, |tx| {
            run!(tx, INSERT => link.org_id, hash.as_slice(), link.principal_id, link.expires_at);
        });
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
        let row: Option<LinkRow> = read!(self, installation, |conn| {
            find!(conn, "SELECT * FROM login_links WHERE hash = $1 AND expires_at > $2" =>
                hash.as_slice(), now)
        });
        row.map(LinkRow::read).transpose()
    }

    /// Takes the link whose secret has this hash: of any number of browsers one gets it.
    #[boxed]
    pub async fn take_login_link(
        &self,
        hash: &[u8; 32],
        now: Timestamp,
    ) -> Result<Option<LoginLink>, StoreError> {
        let row: Option<LinkRow> = change!(self, installation, |tx| {
            find!(tx, "DELETE FROM login_links WHERE hash = $1 AND expires_at > $2 RETURNING *" =>
                hash.as_slice(), now)
        });
        row.map(LinkRow::read).transpose()
    }

    /// Forgets the links of all tenants whose time is over.
    #[boxed]
    pub async fn forget_login_links(&self, now: Timestamp) -> Result<u64, StoreError> {
        let forgotten = change!(self, installation, |tx| {
            run!(tx, "DELETE FROM login_links WHERE expires_at <= $1" => now)
        });
        Ok(forgotten)
    }
}

const INSERT: &str = "
INSERT INTO login_links (org_id, hash, principal_id, expires_at) VALUES ($1, $2, $3, $4)";
