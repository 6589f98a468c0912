//! The refresh tokens of a grant: one is unspent, the one before it may be asked about again.

use std::sync::LazyLock;

use portcullis_core::{
    clock::Timestamp,
    grant::{CLIENT_RETRY_SECONDS, Presented, RETRY_SECONDS, RefreshState, Spent},
    id::{OrgId, TokenId},
    token::TokenHash,
};

use super::{
    KnownToken, NewRefresh, NewToken, TokenRecord,
    issue::{insert, insert_refresh},
};
use crate::{
    db::{Row, Store, boxed, change, changed, find, one, read, record, run},
    error::{DriverError, StoreError},
    revocation::revoked_above,
};

/// A refresh token, whose it is, and how things stand with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownRefresh {
    /// The token, its principal and its org.
    pub known: KnownToken,
    pub grant_ends_at: Timestamp,
    /// Lifetime of the access tokens that it buys.
    pub access_seconds: i64,
    pub state: RefreshState,
}

/// A refresh token to be spent, and what it buys.
#[derive(Debug, Clone, Copy)]
pub struct Rotation<'a> {
    pub presented: &'a TokenHash,
    pub access: NewToken<'a>,
    pub refresh: NewRefresh<'a>,
    /// Both as text, sealed so that only the presented token opens it.
    pub sealed: &'a [u8],
    pub now: Timestamp,
}

/// The pair a spent refresh token has bought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    pub access: TokenRecord,
    pub refresh: TokenRecord,
    /// Both as text, sealed.
    pub sealed: Vec<u8>,
}

/// Result of a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rotated {
    /// The token is spent, the new pair is live.
    Done,
    /// The token was spent a moment ago, for this pair. Nothing was changed.
    Repeated(Box<Pair>),
    /// The token is worth nothing. Nothing was changed.
    Refused(Presented),
}

/// A refresh token as it stands, and the pair that it has bought.
struct RefreshRow {
    token_id: TokenId,
    state: RefreshState,
    grant_ends_at: Timestamp,
    access_seconds: i64,
    next_access_id: Option<TokenId>,
    next_refresh_id: Option<TokenId>,
    sealed: Option<Vec<u8>>,
}

record!(RefreshRow in "refreshes", |row| token_id, grant_ends_at, access_seconds, next_access_id,
    next_refresh_id, sealed, state = state_of(row)?);

fn state_of(row: Row<'_>) -> Result<RefreshState, DriverError> {
    let revoked_at: Option<Timestamp> = row.get("revoked_at")?;
    let spent_at: Option<Timestamp> = row.get("spent_at")?;
    let next_spent_at: Option<Timestamp> = row.get("next_spent_at")?;
    let sealed: Option<Vec<u8>> = row.get("sealed")?;
    // A pair that is no longer there cannot be given again.
    let successor_spent = next_spent_at.is_some() || sealed.is_none();
    Ok(RefreshState {
        expires_at: row.get("expires_at")?,
        revoked: revoked_at.is_some(),
        spent: spent_at.map(|at| Spent { at, successor_spent }),
        retry_seconds: if row.get("of_client")? { CLIENT_RETRY_SECONDS } else { RETRY_SECONDS },
    })
}

impl Store {
    /// The refresh token with this hash; `None` if there is none, or the token is another kind.
    #[boxed]
    pub async fn find_refresh(&self, hash: &TokenHash) -> Result<Option<KnownRefresh>, StoreError> {
        let Some(known) = self.find_token_by_hash(hash).await? else { return Ok(None) };
        let found: Option<RefreshRow> = read!(self, known.token.org_id, |conn| {
            find!(conn, STATE.as_str() => hash.as_bytes().as_slice())
        });
        Ok(found.map(|RefreshRow { state, grant_ends_at, access_seconds, .. }| KnownRefresh {
            known,
            grant_ends_at,
            access_seconds,
            state,
        }))
    }

    /// Returns true if the org's refresh token with this id has bought its pair.
    #[boxed]
    pub async fn is_spent(&self, org: OrgId, id: TokenId) -> Result<bool, StoreError> {
        let spent: Option<i32> = read!(self, org, |conn| {
            find!(
                conn, scalar "SELECT 1 FROM refreshes \
                 WHERE org_id = $1 AND token_id = $2 AND spent_at IS NOT NULL"
                => org, id
            )
        });
        Ok(spent.is_some())
    }

    /// Spends a refresh token for the next pair, or says what became of it before. Of any number
    /// of callers at the same moment one spends it, and the others are given the pair it bought.
    pub async fn rotate(&self, rotation: Rotation<'_>) -> Result<Rotated, StoreError> {
        let hash = rotation.presented.as_bytes().as_slice();
        let org = rotation.access.record.org_id.to_string();
        let pair = change!(self, rotation.access.record.org_id, |tx| {
            tx.lock_tokens(&org).await?;
            let found: RefreshRow = one!(tx, STATE.as_str() => hash);
            match found.state.presented(rotation.now) {
                Presented::Fresh => {
                    run!(tx, SPEND => found.token_id, rotation.now, rotation.access.record.id,
                        rotation.refresh.token.record.id, rotation.sealed);
                    run!(tx, FORGET_PREVIOUS => found.token_id);
                    insert(&mut tx, rotation.access).await?;
                    insert_refresh(&mut tx, rotation.refresh).await?;
                    None
                }
                Presented::Repeated => Some(found),
                refused @ (Presented::Reused | Presented::Expired | Presented::Revoked) => {
                    return Ok(Rotated::Refused(refused));
                }
            }
        });
        match pair {
            None => Ok(Rotated::Done),
            Some(found) => {
                let org = rotation.access.record.org_id;
                Ok(Rotated::Repeated(Box::new(self.bought(org, found).await?)))
            }
        }
    }

    async fn bought(&self, org: OrgId, found: RefreshRow) -> Result<Pair, StoreError> {
        let (Some(access), Some(refresh), Some(sealed)) =
            (found.next_access_id, found.next_refresh_id, found.sealed)
        else {
            return Err(StoreError::Corrupt("refreshes.sealed"));
        };
        let (access, refresh) =
            (self.find_token(org, access).await?, self.find_token(org, refresh).await?);
        let (Some(access), Some(refresh)) = (access, refresh) else {
            return Err(StoreError::Corrupt("refreshes"));
        };
        Ok(Pair { access, refresh, sealed })
    }

    /// Forgets the sealed pairs that may not be asked for any more.
    #[boxed]
    pub async fn forget_sealed_pairs(&self, now: Timestamp) -> Result<u64, StoreError> {
        Ok(changed!(self, installation, FORGET_SEALED => now.plus_seconds(-CLIENT_RETRY_SECONDS)))
    }
}

static STATE: LazyLock<String> = LazyLock::new(|| {
    let revoked = revoked_above();
    format!(
        "
SELECT r.token_id, t.expires_at, {revoked} AS revoked_at, r.grant_ends_at, r.access_seconds,
    r.spent_at, r.next_access_id, r.next_refresh_id, n.spent_at AS next_spent_at, r.sealed,
    CAST(CASE WHEN g.grant_id IS NULL THEN 0 ELSE 1 END AS BIGINT) AS of_client
FROM tokens t
JOIN refreshes r ON r.token_id = t.id
LEFT JOIN refreshes n ON n.token_id = r.next_refresh_id
LEFT JOIN client_grants g ON g.org_id = t.org_id AND g.grant_id = t.grant_id
WHERE t.hash = $1"
    )
});

const SPEND: &str = "
UPDATE refreshes SET spent_at = $2, next_access_id = $3, next_refresh_id = $4, sealed = $5
WHERE token_id = $1";

/// Only the token spent last may be answered again.
const FORGET_PREVIOUS: &str = "
UPDATE refreshes SET sealed = NULL WHERE next_refresh_id = $1 AND sealed IS NOT NULL";

const FORGET_SEALED: &str = "
UPDATE refreshes SET sealed = NULL WHERE sealed IS NOT NULL AND spent_at < $1";
