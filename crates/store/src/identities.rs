//! Principals of the subjects of trusted issuers.

use portcullis_core::{clock::Timestamp, id::OrgId};

use crate::{
    db::{NewEvent, Store, change, find, read, run},
    error::StoreError,
    principals::{Principal, insert},
    scim::ScimUser,
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
        Ok(read!(self, org, |conn| {
            find!(conn, FIND => org, identity.issuer, identity.claim, identity.subject)
        }))
    }

    /// Adds a principal for a subject that was not there before. Fails if another login was faster,
    /// and for a name that exists.
    pub async fn create_with_identity(
        &self,
        principal: &Principal,
        identity: Identity<'_>,
    ) -> Result<(), StoreError> {
        change!(self, principal.org_id, |tx| {
            insert(&mut tx, principal).await?;
            run!(tx, INSERT => principal.org_id, identity.issuer, identity.claim,
                identity.subject, principal.id, principal.created_at);
        });
        Ok(())
    }

    /// Makes a subject that was not there before known as a person whom a provider keeps; the event is committed
    /// with it. `false` if any subject of any issuer is known as this person already, the provider changed the
    /// person meanwhile, or another login was faster.
    pub async fn link_identity(
        &self,
        person: &ScimUser,
        identity: Identity<'_>,
        now: Timestamp,
        event: &NewEvent,
    ) -> Result<bool, StoreError> {
        let principal = &person.principal;
        let org = principal.org_id.to_string();
        change!(self, principal.org_id, |tx| {
            // Two subjects do not both become this principal.
            tx.lock_tokens(&org).await?;
            let linked = run!(tx, LINK => &org, identity.issuer, identity.claim, identity.subject,
                principal.id, now, person.revision);
            if linked == 0 {
                return Ok(false);
            }
            tx.record_event(&self.row_key, event).await?;
        });
        Ok(true)
    }
}

const FIND: &str = "
SELECT p.* FROM identities i
JOIN principals p ON p.org_id = i.org_id AND p.id = i.principal_id
WHERE i.org_id = $1 AND i.issuer = $2 AND i.claim = $3 AND i.subject = $4";

const INSERT: &str = "
INSERT INTO identities (org_id, issuer, claim, subject, principal_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6)";

const LINK: &str = "
INSERT INTO identities (org_id, issuer, claim, subject, principal_id, created_at)
SELECT $1, $2, $3, $4, $5, $6
WHERE EXISTS (
    SELECT 1 FROM scim_users
    WHERE org_id = $1 AND principal_id = $5 AND revision = $7 AND deleted_at IS NULL
) AND NOT EXISTS (
    SELECT 1 FROM identities WHERE org_id = $1 AND principal_id = $5
) AND NOT EXISTS (
    SELECT 1 FROM identities WHERE org_id = $1 AND issuer = $2 AND claim = $3 AND subject = $4
)";
