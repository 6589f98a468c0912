//! New tokens.

use std::{collections::BTreeSet, fmt::Write as _};

use async_recursion::async_recursion as boxed;
use portcullis_core::{authorization::ClientGrant, clock::Timestamp, token::TokenHash};

use super::TokenRecord;
use crate::{
    db::{Db, Store, all, change, one, run},
    error::StoreError,
    logins::LoginRecord,
    revocation::{above, revoked_among},
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

/// Inserts a token within a transaction of either database.
macro_rules! insert {
    ($tx:ident, $new:expr) => {{
        let $crate::tokens::NewToken { record, hash } = $new;
        let trust = match &record.method {
            portcullis_core::principal::AuthMethod::Oidc { trust } => Some(trust.as_str()),
            portcullis_core::principal::AuthMethod::Key { thumbprint } => Some(thumbprint.as_str()),
            portcullis_core::principal::AuthMethod::Operator
            | portcullis_core::principal::AuthMethod::Token => None,
        };
        $crate::db::run!($tx, $crate::tokens::issue::INSERT => record.id, record.kind.as_str(),
            hash.as_bytes().as_slice(), record.org_id, record.principal_id, record.via,
            record.grant_id, record.parent_id, record.via_token_id, record.scopes,
            record.label.as_deref(), record.method.name(), trust, record.issued_at,
            record.expires_at, record.revoked_at, record.last_used_at,
            record.allowed_cidrs.as_ref().map(ToString::to_string), record.exchange_only,
            serde_json::json!(record.lineage).to_string(),
            record.dpop_jkt);
        if let Some(label) = record.label.as_deref() {
            $crate::search::index_words!($tx, record.org_id, "token", record.id, [label]);
        }
    }};
}

/// Inserts what makes a token a refresh token, within a transaction of either database.
macro_rules! insert_refresh {
    ($tx:ident, $new:expr) => {{
        let $crate::tokens::NewRefresh { token, grant_ends_at, access_seconds } = $new;
        $crate::tokens::issue::insert!($tx, token);
        $crate::db::run!($tx, $crate::tokens::issue::INSERT_REFRESH => token.record.id,
            token.record.org_id, token.record.grant_id, grant_ends_at, access_seconds);
    }};
}

/// Finds out within a transaction of either database, which has locked the tokens of the org, whether access ended of
/// whom a token is for or who acts, or the key is gone that buys it. What ends later finds the token.
macro_rules! has_ended {
    ($tx:ident, $record:ident) => {{
        let mut ended = false;
        for principal in [Some($record.principal_id), $record.via].into_iter().flatten() {
            let enabled: Option<i32> =
                $crate::db::find!($tx, scalar IS_ENABLED => $record.org_id, principal);
            ended |= enabled.is_none();
        }
        if let portcullis_core::principal::AuthMethod::Key { thumbprint } = &$record.method {
            let known: Option<i32> = $crate::db::find!($tx, scalar HAS_KEY => $record.org_id,
                $record.principal_id, thumbprint.as_str());
            ended |= known.is_none();
        }
        ended
    }};
}

/// Uses up an authorization code within a transaction of either database; 0 if it was used before.
macro_rules! spend {
    ($tx:ident, $code:expr, $now:expr) => {
        $crate::db::run!($tx, SPEND_CODE => $code.as_slice(), $now)
    };
}

/// Remembers within a transaction of either database what a client is granted; false if the consent is gone.
macro_rules! insert_granted {
    ($tx:ident, $record:ident, $granted:ident) => {{
        let consent = $granted.consent.map(|id| id.to_string());
        let given: Option<i32> = match &consent {
            None => Some(1),
            Some(consent) => {
                $crate::db::find!($tx, scalar IS_GIVEN => $record.org_id, consent)
            }
        };
        $crate::db::run!($tx, INSERT_GRANTED => $record.org_id, $record.grant_id, consent,
            serde_json::json!($granted).to_string());
        given.is_some()
    }};
}

pub(super) use {insert, insert_refresh};

impl Store {
    /// Remembers a new token by its hash. Fails if its id or hash exists, or if its principal,
    /// `via` or parent is not of the same org.
    #[boxed]
    pub async fn insert_token(
        &self,
        record: &TokenRecord,
        hash: &TokenHash,
    ) -> Result<(), StoreError> {
        change!(self, record.org_id, |tx| insert!(tx, NewToken { record, hash }));
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
                    one!(tx, ANCESTORS => record.org_id, parent);
                if above == 0 || revoked_at.is_some() {
                    return Ok(Issued::ParentRevoked);
                }
                if above > i64::from(MAX_ANCESTORS) {
                    return Ok(Issued::TooManyAncestors);
                }
            }
            if let Some(parent) = record.parent_id {
                let live: i64 = one!(tx, scalar LIVE_CHILDREN => record.org_id, parent,
                    record.issued_at, MAX_LIVE_CHILDREN);
                if live >= i64::from(MAX_LIVE_CHILDREN) {
                    return Ok(Issued::TooManyChildren);
                }
            }
            if let Some(actor) = record.via_token_id {
                let live: i64 = one!(tx, scalar LIVE_ACTING => record.org_id, actor,
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
                && spend!(tx, code, record.issued_at) == 0
            {
                return Ok(Issued::Replayed);
            }
            if let Some(granted) = issue.client
                && !insert_granted!(tx, record, granted)
            {
                return Ok(Issued::ParentRevoked);
            }
            if has_ended!(tx, record) {
                return Ok(Issued::PrincipalEnded);
            }
            insert!(tx, issue.access);
            if let Some(login) = issue.login {
                run!(tx, INSERT_LOGIN => record.org_id, record.grant_id, record.principal_id,
                    login.text(), login.said_at);
            }
            if let Some(refresh) = issue.refresh {
                insert_refresh!(tx, refresh);
            }
        });
        Ok(Issued::Done)
    }

    /// Remembers a JWT that may be used once. `false` if it was used before.
    #[boxed]
    pub async fn use_assertion(&self, assertion: Assertion) -> Result<bool, StoreError> {
        let first = change!(self, installation, |tx| {
            run!(tx, REMEMBER => assertion.digest.as_slice(), assertion.expires_at)
        });
        Ok(first > 0)
    }

    /// Remembers JWTs that may be used once, all of them in one statement. Tells of each whether this was
    /// its first use; of those that come twice in the list, one is first.
    #[boxed]
    pub async fn use_assertions(&self, assertions: &[Assertion]) -> Result<Vec<bool>, StoreError> {
        let remember = match &self.db {
            Db::Sqlite { .. } => REMEMBER_ALL_SQLITE,
            Db::Postgres(_) => REMEMBER_ALL_POSTGRES,
        };
        let mut rows: Vec<(String, i64)> =
            assertions.iter().map(|it| (hex(&it.digest), it.expires_at.as_micros())).collect();
        // All nodes lock them in one order.
        rows.sort_unstable();
        let rows = serde_json::json!(rows).to_string();
        let first: Vec<Vec<u8>> =
            change!(self, installation, |tx| all!(tx, scalar remember => &rows));
        let mut first: BTreeSet<Vec<u8>> = first.into_iter().collect();
        Ok(assertions.iter().map(|it| first.remove(it.digest.as_slice())).collect())
    }

    /// Deletes the JWTs that have expired.
    #[boxed]
    pub async fn forget_assertions(&self, now: Timestamp) -> Result<u64, StoreError> {
        let forgotten = change!(self, installation, |tx| {
            run!(tx, "DELETE FROM used_assertions WHERE expires_at < $1" => now)
        });
        Ok(forgotten)
    }
}

pub(super) const INSERT: &str = "
INSERT INTO tokens (id, kind, hash, org_id, principal_id, via, grant_id, parent_id, via_token_id,
    scopes, label, method, trust, issued_at, expires_at, revoked_at, last_used_at, allowed_cidrs,
    exchange_only, lineage, dpop_jkt)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
    $21)";

pub(super) const INSERT_REFRESH: &str = "
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

const ANCESTORS: &str =
    concat!(above!("$1", "$2"), "SELECT COUNT(*), ", revoked_among!("$1"), " FROM above");

/// The SQL for the number of live tokens that were made from the token `$2`, as far as the bound.
macro_rules! count_live {
    ($made:literal) => {
        concat!(
            "SELECT COUNT(*) FROM (SELECT 1 FROM tokens WHERE org_id = $1 AND ",
            $made,
            " AND revoked_at IS NULL AND expires_at > $3 LIMIT $4) AS live"
        )
    };
}

const LIVE_CHILDREN: &str = count_live!("parent_id = $2");
const LIVE_ACTING: &str = count_live!("via_token_id = $2 AND principal_id = $5");

const REMEMBER_ALL_SQLITE: &str = "
INSERT INTO used_assertions (digest, expires_at)
SELECT unhex(value ->> 0), value ->> 1 FROM json_each($1) WHERE true
ON CONFLICT (digest) DO NOTHING RETURNING digest";

const REMEMBER_ALL_POSTGRES: &str = "
INSERT INTO used_assertions (digest, expires_at)
SELECT decode(value ->> 0, 'hex'), (value ->> 1)::bigint FROM jsonb_array_elements($1::jsonb)
ON CONFLICT (digest) DO NOTHING RETURNING digest";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

pub(crate) const REMEMBER: &str = "
INSERT INTO used_assertions (digest, expires_at) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING";
