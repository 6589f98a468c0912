//! Authorization codes, and what clients were granted. Consents are in [`consents`].

mod consents;

use portcullis_core::{
    authorization::{ClientGrant, CodeChallenge, RedirectUri},
    clock::Timestamp,
    id::{GrantId, OrgId, PrincipalId},
    lineage::Lineage,
    principal::{AuthMethod, ScopeSet},
    trust::{Login, Thumbprint},
};
use serde::{Deserialize, Serialize};

pub use self::consents::{Consent, ConsentQuery};
use crate::{
    db::{FromRow, Row, Store, boxed, change, changed, find, read, run},
    error::{DriverError, StoreError},
    logins::LoginRecord,
};

/// A code, by its hash, and all that a token request is checked against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationCode {
    pub hash: [u8; 32],
    pub org_id: OrgId,
    pub principal_id: PrincipalId,
    pub grant_id: GrantId,
    pub granted: ClientGrant,
    pub redirect_uri: RedirectUri,
    pub challenge: CodeChallenge,
    /// The key that it is bound to, if it is.
    pub dpop_jkt: Option<Thumbprint>,
    pub scopes: ScopeSet,
    /// Method by which the person logged in.
    pub method: AuthMethod,
    pub lineage: Lineage,
    pub login: Option<LoginRecord>,
    pub expires_at: Timestamp,
    /// When it was used, if it was.
    pub spent_at: Option<Timestamp>,
}

/// The columns of a code that no statement reads.
#[derive(Serialize, Deserialize)]
struct CodeTerms {
    granted: ClientGrant,
    redirect_uri: RedirectUri,
    challenge: [u8; 32],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dpop_jkt: Option<Thumbprint>,
    scopes: String,
    /// The trust rule of the login; absent after a login by the operator's link.
    trust: Option<String>,
    lineage: Lineage,
    login: Option<(Login, i64)>,
}

impl FromRow for AuthorizationCode {
    fn from_row(row: Row<'_>) -> Result<Self, DriverError> {
        const ASKED: DriverError = DriverError::Corrupt("authorization_codes.asked");
        let asked: CodeTerms = row.json("authorization_codes.asked")?;
        let hash: Vec<u8> = row.get("authorization_codes.hash")?;
        let hash = hash.try_into();
        let login = |(said, at)| LoginRecord { said, said_at: Timestamp::from_micros(at) };
        Ok(Self {
            hash: hash.map_err(|_| DriverError::Corrupt("authorization_codes.hash"))?,
            org_id: row.get("authorization_codes.org_id")?,
            principal_id: row.get("authorization_codes.principal_id")?,
            grant_id: row.get("authorization_codes.grant_id")?,
            granted: asked.granted,
            redirect_uri: asked.redirect_uri,
            challenge: CodeChallenge::from_stored(asked.challenge),
            dpop_jkt: asked.dpop_jkt,
            scopes: asked.scopes.parse().map_err(|_| ASKED)?,
            method: asked.trust.map_or(AuthMethod::Operator, |trust| AuthMethod::Oidc { trust }),
            lineage: asked.lineage,
            login: asked.login.map(login),
            expires_at: row.get("authorization_codes.expires_at")?,
            spent_at: row.get("authorization_codes.spent_at")?,
        })
    }
}

impl Store {
    /// Remembers a new code, unless the access of its person ended meanwhile: then it is worth nothing.
    #[boxed]
    pub async fn insert_code(&self, code: &AuthorizationCode) -> Result<(), StoreError> {
        let trust = match &code.method {
            AuthMethod::Oidc { trust } => Some(trust.clone()),
            AuthMethod::Operator | AuthMethod::Key { .. } | AuthMethod::Token => None,
        };
        let login = code.login.as_ref();
        let asked = CodeTerms {
            granted: code.granted.clone(),
            redirect_uri: code.redirect_uri.clone(),
            challenge: *code.challenge.as_bytes(),
            dpop_jkt: code.dpop_jkt,
            scopes: code.scopes.to_string(),
            trust,
            lineage: code.lineage.clone(),
            login: login.map(|login| (login.said.clone(), login.said_at.as_micros())),
        };
        let asked = serde_json::json!(asked).to_string();
        change!(self, code.org_id, |tx| {
            // What ends all codes of the person later finds this one.
            tx.lock_tokens(&code.org_id.to_string()).await?;
            run!(tx, INSERT => code.hash.as_slice(), code.org_id, code.principal_id,
                code.grant_id, &asked, code.expires_at);
        });
        Ok(())
    }

    /// The code with this hash, used or not, in whatever org.
    #[boxed]
    pub async fn find_code(
        &self,
        hash: &[u8; 32],
    ) -> Result<Option<AuthorizationCode>, StoreError> {
        Ok(read!(self, installation, |conn| {
            find!(conn, "SELECT * FROM authorization_codes WHERE hash = $1" => hash.as_slice())
        }))
    }

    /// Ends the codes of a principal that were not used.
    #[boxed]
    pub async fn end_codes(
        &self,
        org: OrgId,
        principal: PrincipalId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        changed!(self, org, END_CODES => org, principal, now);
        Ok(())
    }

    /// Deletes codes that ended before this moment.
    #[boxed]
    pub async fn forget_codes(&self, before: Timestamp) -> Result<u64, StoreError> {
        let forget = "DELETE FROM authorization_codes WHERE expires_at < $1";
        Ok(changed!(self, installation, forget => before))
    }
}

/// The codes of a principal that were not used are worth nothing from a moment on.
pub(crate) const END_CODES: &str = "
UPDATE authorization_codes SET expires_at = $3
WHERE org_id = $1 AND principal_id = $2 AND expires_at > $3";

const INSERT: &str = "
INSERT INTO authorization_codes (hash, org_id, principal_id, grant_id, asked, expires_at)
SELECT $1, $2, $3, $4, $5, $6
WHERE EXISTS (SELECT 1 FROM principals WHERE org_id = $2 AND id = $3 AND disabled_at IS NULL)";

/// The grant in the column of a row.
pub(crate) fn granted_of(row: Row<'_>) -> Result<Option<ClientGrant>, DriverError> {
    let text: Option<String> = row.get("client_grants.granted")?;
    let granted = text.map(|text| serde_json::from_str(&text)).transpose();
    granted.map_err(|_| DriverError::Corrupt("client_grants.granted"))
}
