//! Principals of the subjects of trusted issuers.

use portcullis_core::id::OrgId;

use crate::{
    Principal, Store,
    db::{Readable as _, change, read},
    error::StoreError,
    principals::{PrincipalRow, insert},
};

/// A subject as its issuer names it.
#[derive(Debug, Clone, Copy)]
pub struct Identity<'a> {
    /// The issuer, exactly as it names itself.
    pub issuer: &'a str,
    /// The claim that names the subject: `sub` and `email` are two name spaces.
    pub claim: &'a str,
    /// The subject, unique at the issuer.
    pub subject: &'a str,
}

impl Store {
    /// Principal of the issuer's subject in the org, if it exists.
    pub async fn find_by_identity(
        &self,
        org: OrgId,
        identity: Identity<'_>,
    ) -> Result<Option<Principal>, StoreError> {
        let row: Option<PrincipalRow> = read!(self, org, |conn| {
            sqlx::query_as(FIND)
                .bind(org.to_string())
                .bind(identity.issuer)
                .bind(identity.claim)
                .bind(identity.subject)
                .fetch_optional(&mut *conn)
                .await?
        });
        row.map(PrincipalRow::read).transpose()
    }

    /// Adds a principal for a subject that was not there before. Fails if another login was faster,
    /// and for a name that exists.
    pub async fn create_with_identity(
        &self,
        principal: &Principal,
        identity: Identity<'_>,
    ) -> Result<(), StoreError> {
        change!(self, principal.org_id, |tx| {
            insert!(tx, principal);
            sqlx::query(INSERT)
                .bind(principal.org_id.to_string())
                .bind(identity.issuer)
                .bind(identity.claim)
                .bind(identity.subject)
                .bind(principal.id.to_string())
                .bind(principal.created_at.as_micros())
                .execute(&mut *tx)
                .await?;
        });
        Ok(())
    }
}

const FIND: &str = "
SELECT p.* FROM identities i
JOIN principals p ON p.org_id = i.org_id AND p.id = i.principal_id
WHERE i.org_id = $1 AND i.issuer = $2 AND i.claim = $3 AND i.subject = $4";

const INSERT: &str = "
INSERT INTO identities (org_id, issuer, claim, subject, principal_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6)";
