//! Consents of people to what clients asked for.

use std::sync::LazyLock;

use portcullis_core::{
    authorization::{ClientRef, Face},
    clock::Timestamp,
    id::{ConsentId, OrgId, PrincipalId},
    principal::ScopeSet,
};

use crate::{
    db::{Store, all, boxed, change, columns, find, list, one, read, record, run},
    error::StoreError,
    filters,
    revocation::revoke_roots,
    search::{FORGET, beginning, begins, index_words, records},
};

/// Consent of a person to a client at one face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    pub id: ConsentId,
    pub org_id: OrgId,
    pub principal_id: PrincipalId,
    pub client: ClientRef,
    pub face: Face,
    pub scopes: ScopeSet,
    /// Address to which its browser went.
    pub returns_to: String,
    /// True if the person is not asked again for the same.
    pub remembered: bool,
    pub created_at: Timestamp,
    /// When the person last said yes.
    pub renewed_at: Timestamp,
}

filters::filter! {
    /// Page of the consents of an org, by id.
    ConsentQuery {
        #[serde(deserialize_with = "filters::search")]
        q: Option<String> = "only those of which a word begins so, in any case: of name or addresses of the client, or of names and addresses of the person", max_length = 64, pattern = "[^, ]";
        principal: Option<PrincipalId> as Option<String> = "those of one principal";
    } at { after: Option<ConsentId>, limit: usize }
}

record!(Consent in "consents", |row| id, org_id, principal_id, scopes, returns_to, remembered,
    created_at, renewed_at, face, client = row.json("consents.client")?);

columns!(Face => String: |path| Self::at(&path););

impl Store {
    /// Remembers a consent in place of an earlier one of the same person to the same client and face, whose id
    /// it takes. Gives the id.
    #[boxed]
    pub async fn keep_consent(&self, consent: &Consent) -> Result<ConsentId, StoreError> {
        let client = serde_json::json!(consent.client).to_string();
        let texts = [&consent.client.name, &consent.client.id, &consent.returns_to];
        Ok(change!(self, consent.org_id, |tx| {
            let id: ConsentId = one!(tx, scalar KEEP => consent.org_id, consent.id,
                consent.principal_id, &consent.client.id, consent.face.path(), &client,
                consent.scopes, &consent.returns_to, consent.remembered, consent.created_at,
                consent.renewed_at);
            let texts = texts.map(String::as_str);
            index_words(&mut tx, consent.org_id, "consent", &id.to_string(), &texts).await?;
            id
        }))
    }

    /// The consent of a person to a client at a face.
    #[boxed]
    pub async fn find_consent_to(
        &self,
        org: OrgId,
        principal: PrincipalId,
        client: &ClientRef,
        face: &Face,
    ) -> Result<Option<Consent>, StoreError> {
        Ok(read!(self, org, |conn| {
            find!(conn, FIND_OF_CLIENT => org, principal, &client.id, face.path())
        }))
    }

    /// The org of one of the first consents to the client with this id, if a person consented to it.
    #[boxed]
    pub async fn find_consenting_org(&self, client_id: &str) -> Result<Option<OrgId>, StoreError> {
        Ok(read!(self, installation, |conn| find!(conn, scalar CONSENTING_ORG => client_id)))
    }

    /// Returns true if a person let the client with this id return to this address, for any face.
    #[boxed]
    pub async fn has_consented(
        &self,
        org: OrgId,
        principal: PrincipalId,
        client_id: &str,
        returns_to: &str,
    ) -> Result<bool, StoreError> {
        let found: i64 = read!(self, org, |conn| {
            one!(conn, scalar COUNT_TO_ADDRESS => org, principal, client_id, returns_to)
        });
        Ok(found > 0)
    }

    /// The org's consent with this id.
    #[boxed]
    pub async fn find_consent(
        &self,
        org: OrgId,
        id: ConsentId,
    ) -> Result<Option<Consent>, StoreError> {
        Ok(read!(self, org, |conn| {
            find!(conn, "SELECT * FROM consents WHERE org_id = $1 AND id = $2" => org, id)
        }))
    }

    /// A page of the org's consents, by id.
    pub async fn list_consents(
        &self,
        org: OrgId,
        page: &ConsentQuery,
    ) -> Result<Vec<Consent>, StoreError> {
        let after = page.after.map(|id| id.to_string()).unwrap_or_default();
        let principal = page.principal.map(|id| id.to_string()).unwrap_or_default();
        let list = match (page.q.as_ref(), page.principal) {
            (Some(_), None) => search(),
            (Some(_), Some(_)) => of_principal(&format!(
                "({} OR {})",
                begins("$3", "$5"),
                begins("consents.id", "$5")
            )),
            (None, Some(_)) => of_principal("$5 = ''"),
            (None, None) => LIST.to_owned(),
        };
        let beginning = beginning(page.q.as_deref());
        Ok(list!(self, org, list => org, after, principal, page.limit, beginning))
    }

    /// Removes a consent and revokes all tokens that came of it. Gives the number of those that were live.
    /// Codes that were given for it are worth nothing from then on. Safe to run twice.
    #[boxed]
    pub async fn withdraw_consent(
        &self,
        org: OrgId,
        id: ConsentId,
        now: Timestamp,
    ) -> Result<usize, StoreError> {
        let roots: Vec<String> = change!(self, org, |tx| {
            tx.lock_tokens(&org.to_string()).await?;
            run!(tx, "DELETE FROM consents WHERE org_id = $1 AND id = $2" => org, id);
            run!(tx, FORGET => org, "consent", id);
            all!(tx, scalar REVOKE.as_str() => org, id, now)
        });
        let below = self.revoke_descendants(org, &roots, now).await?;
        Ok(roots.len().saturating_add(usize::try_from(below).unwrap_or(usize::MAX)))
    }
}

const KEEP: &str = "
INSERT INTO consents (org_id, id, principal_id, client_id, face, client, scopes, returns_to,
    remembered, created_at, renewed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (org_id, principal_id, client_id, face) DO UPDATE SET client = excluded.client,
    scopes = excluded.scopes, returns_to = excluded.returns_to,
    remembered = excluded.remembered, renewed_at = excluded.renewed_at
RETURNING id";

const FIND_OF_CLIENT: &str = "
SELECT * FROM consents WHERE org_id = $1 AND principal_id = $2 AND client_id = $3 AND face = $4";

/// A popular client has very many consents. An org that joins them late is not to speak for it.
const CONSENTING_ORG: &str = "SELECT org_id FROM
(SELECT org_id, id FROM consents WHERE client_id = $1 LIMIT 100) AS first_ones ORDER BY id LIMIT 1";

const COUNT_TO_ADDRESS: &str = "SELECT COUNT(*) FROM consents
WHERE org_id = $1 AND principal_id = $2 AND client_id = $3 AND returns_to = $4";

const LIST: &str = "
SELECT * FROM consents WHERE org_id = $1 AND id > $2 AND $3 = '' AND $5 = '' ORDER BY id LIMIT $4";

/// The SQL for a page of the consents of a principal. They are found by it and then sorted: in the order of the index
/// of ids, those of all would be read.
fn of_principal(search: &str) -> String {
    format!(
        "SELECT * FROM consents WHERE org_id = $1 AND principal_id = $3 AND id || '' > $2 \
         AND {search} ORDER BY id || '' LIMIT $4"
    )
}

fn search() -> String {
    let found = records("consents", "consent", "$5");
    format!(
        "SELECT c.* FROM {found} CROSS JOIN consents c
WHERE c.org_id = $1 AND c.id = found.id AND c.id > $2 AND $3 = ''
ORDER BY c.id LIMIT $4"
    )
}

/// Of each grant one token, which ends the others. `DISTINCT` has them found before tokens are looked up by them.
static REVOKE: LazyLock<String> = LazyLock::new(|| {
    revoke_roots(
        "id IN (SELECT DISTINCT (
    SELECT t.id FROM tokens t WHERE t.org_id = $1 AND t.grant_id = g.grant_id
        AND t.revoked_at IS NULL AND t.expires_at > $3 LIMIT 1
) FROM client_grants g WHERE g.org_id = $1 AND g.consent_id = $2)",
        "$3",
    )
});
