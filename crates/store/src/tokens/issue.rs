//! New tokens.

use std::{collections::BTreeSet, sync::LazyLock};

use portcullis_core::{
    authorization::ClientGrant, clock::Timestamp, json::hex, principal::AuthMethod,
    token::TokenHash,
};
use serde_json::json;

use super::TokenRecord;
use crate::{
    db::{Session, Store, all, boxed, change, changed, find, one, run},
    error::{DriverError, StoreError},
    logins::LoginRecord,
    revocation::{above, revoked_among},
    search::index_words,
};

/// A token to be remembered: all that is known of it, and its hash.
#[derive(Debug, Clone, Copy)]
pub struct NewToken<'a> {
    /// All but its text.
    pub record: &'a TokenRecord,
    /// The SHA-256 of its text.
    pub hash: &'a TokenHash,
}

/// The first refresh token of a grant.
#[derive(Debug, Clone, Copy)]
pub struct NewRefresh<'a> {
    pub token: NewToken<'a>,
    /// When the grant ends, however often it is refreshed.
    pub grant_ends_at: Timestamp,
    /// Lifetime of the access tokens that it buys.
    pub access_seconds: i64,
}

/// A JWT that may be exchanged once.
#[derive(Debug, Clone, Copy)]
pub struct Assertion {
    pub digest: [u8; 32],
    /// Until when it would be accepted, and so has to be remembered.
    pub expires_at: Timestamp,
}

/// Rows of an exchange.
#[derive(Debug, Clone, Copy)]
pub struct Issue<'a> {
    pub access: NewToken<'a>,
    pub refresh: Option<NewRefresh<'a>>,
    /// Claims of the login that the tokens come from.
    pub login: Option<&'a LoginRecord>,
    /// Grant of a client by them.
    pub client: Option<&'a ClientGrant>,
    /// Hash of the authorization code that they are given for.
    pub code: Option<&'a [u8; 32]>,
    /// JWTs that must not have been exchanged before.
    pub assertions: &'a [Assertion],
}

/// Result of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Issued {
    Done,
    /// Nothing was made: the JWT was exchanged, or the code used, before.
    Replayed,
    /// Nothing was made: what the token comes from was revoked meanwhile.
    ParentRevoked,
    /// Nothing was made: the access of whom it is for, or of who acts, ended meanwhile, or the key that buys it is
    /// gone.
    PrincipalEnded,
    /// Nothing was made: it would be further than [`MAX_ANCESTORS`] from its first token.
    TooManyAncestors,
    /// Nothing was made: [`MAX_LIVE_CHILDREN`] tokens made from the same one are live.
    TooManyChildren,
}

/// Tokens that a token was made from at most, so that they can be looked at whenever it is used.
pub const MAX_ANCESTORS: u32 = 64;
/// Live tokens made from one token at most, and live tokens by which its holder acts for one other principal: whoever
/// is served by an agent that others share takes nothing from them.
pub const MAX_LIVE_CHILDREN: u32 = 10_000;

/// Inserts a token within a transaction.
pub(super) async fn insert(tx: &mut Session, new: NewToken<'_>) -> Result<(), DriverError> {
    let NewToken { record, hash } = new;
    let trust = match &record.method {
        AuthMethod::Oidc { trust } => Some(trust.as_str()),
        AuthMethod::Key { thumbprint } => Some(thumbprint.as_str()),
        AuthMethod::Operator | AuthMethod::Token => None,
    };
    run!(tx, INSERT => record.id, record.kind.as_str(), hash.as_bytes().as_slice(), record.org_id,
        record.principal_id, record.via, record.grant_id, record.parent_id, record.via_token_id,
        record.scopes, record.label.as_deref(), record.method.name(), trust, record.issued_at,
        record.expires_at, record.revoked_at, record.last_used_at,
        record.allowed_cidrs.as_ref().map(ToString::to_string), record.exchange_only,
        json!(record.lineage).to_string(), record.dpop_jkt);
    if let Some(label) = record.label.as_deref() {
        index_words(tx, record.org_id, "token", &record.id.to_string(), &[label]).await?;
    }
    Ok(())
}

/// Inserts a refresh token within a transaction.
pub(super) async fn insert_refresh(
    tx: &mut Session,
    new: NewRefresh<'_>,
) -> Result<(), DriverError> {
    let NewRefresh { token, grant_ends_at, access_seconds } = new;
    insert(tx, token).await?;
    run!(tx, INSERT_REFRESH => token.record.id, token.record.org_id, token.record.grant_id,
        grant_ends_at, access_seconds);
    Ok(())
}

/// Finds out within a transaction, which has locked the tokens of the org, whether access ended of whom a token is for
/// or who acts, or the key is gone that buys it. What ends later finds the token.
async fn has_ended(tx: &mut Session, record: &TokenRecord) -> Result<bool, DriverError> {
    for principal in [Some(record.principal_id), record.via].into_iter().flatten() {
        let enabled: Option<i32> = find!(tx, scalar IS_ENABLED => record.org_id, principal);
        if enabled.is_none() {
            return Ok(true);
        }
    }
    let AuthMethod::Key { thumbprint } = &record.method else { return Ok(false) };
    let known: Option<i32> = find!(tx, scalar HAS_KEY => record.org_id, record.principal_id,
        thumbprint);
    Ok(known.is_none())
}

/// Remembers within a transaction what a client is granted; `false` if the consent is gone.
async fn insert_granted(
    tx: &mut Session,
    record: &TokenRecord,
    granted: &ClientGrant,
) -> Result<bool, DriverError> {
    let given: Option<i32> = match granted.consent {
        None => Some(1),
        Some(consent) => find!(tx, scalar IS_GIVEN => record.org_id, consent),
    };
    run!(tx, INSERT_GRANTED => record.org_id, record.grant_id, granted.consent,
        json!(granted).to_string());
    Ok(given.is_some())
}

impl Store {
    /// Remembers a new token by its hash. Fails if its id or hash exists, or if its principal,
    /// `via` or parent is not of the same org.
    #[boxed]
    pub async fn insert_token(
        &self,
        record: &TokenRecord,
        hash: &TokenHash,
    ) -> Result<(), StoreError> {
        change!(self, record.org_id, |tx| insert(&mut tx, NewToken { record, hash }).await?);
        Ok(())
    }

    /// Remembers what an exchange gave, all of it or nothing. From here on a revocation of what
    /// the token comes from takes the token as well; of what ended before, nothing is made.
    pub async fn issue_tokens(&self, issue: Issue<'_>) -> Result<Issued, StoreError> {
        let record = issue.access.record;
        change!(self, record.org_id, |tx| {
            tx.lock_tokens(&record.org_id.to_string()).await?;
            for parent in [record.parent_id, record.via_token_id].into_iter().flatten() {
                let (above, revoked_at): (i64, Option<i64>) =
                    one!(tx, ANCESTORS.as_str() => record.org_id, parent);
                if above == 0 || revoked_at.is_some() {
                    return Ok(Issued::ParentRevoked);
                }
                if above > i64::from(MAX_ANCESTORS) {
                    return Ok(Issued::TooManyAncestors);
                }
            }
            if let Some(parent) = record.parent_id {
                let live: i64 = one!(tx, scalar count_live("parent_id = $2") => record.org_id,
                    parent, record.issued_at, MAX_LIVE_CHILDREN);
                if live >= i64::from(MAX_LIVE_CHILDREN) {
                    return Ok(Issued::TooManyChildren);
                }
            }
            if let Some(actor) = record.via_token_id {
                let acting = count_live("via_token_id = $2 AND principal_id = $5");
                let live: i64 = one!(tx, scalar acting => record.org_id, actor,
                    record.issued_at, MAX_LIVE_CHILDREN, record.principal_id);
                if live >= i64::from(MAX_LIVE_CHILDREN) {
                    return Ok(Issued::TooManyChildren);
                }
            }
            for assertion in issue.assertions {
                let first = run!(tx, REMEMBER => assertion.digest.as_slice(), assertion.expires_at);
                if first == 0 {
                    return Ok(Issued::Replayed);
                }
            }
            if let Some(code) = issue.code
                && run!(tx, SPEND_CODE => code.as_slice(), record.issued_at) == 0
            {
                return Ok(Issued::Replayed);
            }
            if let Some(granted) = issue.client
                && !insert_granted(&mut tx, record, granted).await?
            {
                return Ok(Issued::ParentRevoked);
            }
            if has_ended(&mut tx, record).await? {
                return Ok(Issued::PrincipalEnded);
            }
            insert(&mut tx, issue.access).await?;
            if let Some(login) = issue.login {
                run!(tx, INSERT_LOGIN => record.org_id, record.grant_id, record.principal_id,
                    login.text(), login.said_at);
            }
            if let Some(refresh) = issue.refresh {
                insert_refresh(&mut tx, refresh).await?;
            }
        });
        Ok(Issued::Done)
    }

    /// Remembers a JWT that may be used once. `false` if it was used before.
    #[boxed]
    pub async fn use_assertion(&self, assertion: Assertion) -> Result<bool, StoreError> {
        let Assertion { digest, expires_at } = assertion;
        Ok(changed!(self, installation, REMEMBER => digest, expires_at) > 0)
    }

    /// Remembers JWTs that may be used once, all of them in one statement. Tells of each whether this was
    /// its first use; of those that come twice in the list, one is first.
    #[boxed]
    pub async fn use_assertions(&self, assertions: &[Assertion]) -> Result<Vec<bool>, StoreError> {
        let remember = self.db.pick(REMEMBER_ALL_SQLITE, REMEMBER_ALL_POSTGRES);
        let hex_of = |it: &Assertion| String::from_utf8_lossy(&hex(&it.digest)).into_owned();
        let mut rows: Vec<(String, i64)> =
            assertions.iter().map(|it| (hex_of(it), it.expires_at.as_micros())).collect();
        // All nodes lock them in one order.
        rows.sort_unstable();
        let rows = json!(rows).to_string();
        let first: Vec<Vec<u8>> =
            change!(self, installation, |tx| all!(tx, scalar remember => &rows));
        let mut first: BTreeSet<Vec<u8>> = first.into_iter().collect();
        Ok(assertions.iter().map(|it| first.remove(it.digest.as_slice())).collect())
    }

    /// Deletes the JWTs that have expired.
    #[boxed]
    pub async fn forget_assertions(&self, now: Timestamp) -> Result<u64, StoreError> {
        let forget = "DELETE FROM used_assertions WHERE expires_at < $1";
        Ok(changed!(self, installation, forget => now))
    }
}

const INSERT: &str = "
INSERT INTO tokens (id, kind, hash, org_id, principal_id, via, grant_id, parent_id, via_token_id,
    scopes, label, method, trust, issued_at, expires_at, revoked_at, last_used_at, allowed_cidrs,
    exchange_only, lineage, dpop_jkt)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
    $21)";

const INSERT_REFRESH: &str = "
INSERT INTO refreshes (token_id, org_id, grant_id, grant_ends_at, access_seconds)
VALUES ($1, $2, $3, $4, $5)";

const INSERT_LOGIN: &str = "
INSERT INTO logins (org_id, grant_id, principal_id, said, said_at) VALUES ($1, $2, $3, $4, $5)";

const INSERT_GRANTED: &str = "
INSERT INTO client_grants (org_id, grant_id, consent_id, granted) VALUES ($1, $2, $3, $4)";

const SPEND_CODE: &str = "
UPDATE authorization_codes SET spent_at = $2
WHERE hash = $1 AND spent_at IS NULL AND expires_at > $2";

pub(crate) const IS_ENABLED: &str =
    "SELECT 1 FROM principals WHERE org_id = $1 AND id = $2 AND disabled_at IS NULL";

const HAS_KEY: &str = "
SELECT 1 FROM principal_keys WHERE org_id = $1 AND principal_id = $2 AND thumbprint = $3";

const IS_GIVEN: &str = "SELECT 1 FROM consents WHERE org_id = $1 AND id = $2";

static ANCESTORS: LazyLock<String> = LazyLock::new(|| {
    format!("{}SELECT COUNT(*), {} FROM above", above!("$1", "$2"), revoked_among("$1"))
});

/// The SQL for the number of live tokens that were made from the token `$2`, as far as the bound.
fn count_live(made: &str) -> String {
    format!(
        "SELECT COUNT(*) FROM (SELECT 1 FROM tokens WHERE org_id = $1 AND {made} \
         AND revoked_at IS NULL AND expires_at > $3 LIMIT $4) AS live"
    )
}

const REMEMBER_ALL_SQLITE: &str = "
INSERT INTO used_assertions (digest, expires_at)
SELECT unhex(value ->> 0), value ->> 1 FROM json_each($1) WHERE true
ON CONFLICT (digest) DO NOTHING RETURNING digest";

const REMEMBER_ALL_POSTGRES: &str = "
INSERT INTO used_assertions (digest, expires_at)
SELECT decode(value ->> 0, 'hex'), (value ->> 1)::bigint FROM jsonb_array_elements($1::jsonb)
ON CONFLICT (digest) DO NOTHING RETURNING digest";

pub(crate) const REMEMBER: &str = "
INSERT INTO used_assertions (digest, expires_at) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING";
