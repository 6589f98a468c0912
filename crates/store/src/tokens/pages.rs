//! Tokens of an org, page by page, each with what decides about its state.

use async_recursion::async_recursion as boxed;
use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId, TokenId},
    token::TokenKind,
};

use super::{TokenRecord, TokenRow};
use crate::{
    Store,
    db::{Found, Readable, all, read, row},
    error::StoreError,
};

portcullis_core::words! { listed
    /// State of a token, as far as its own row and its principal's tell.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ListedState {
        Live = "live",
        Expired = "expired",
        Revoked = "revoked",
        /// The refresh token was used.
        Spent = "spent",
        PrincipalDisabled = "principal_disabled",
    }
}

/// A token of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedToken {
    pub token: TokenRecord,
    pub principal_name: String,
    pub state: ListedState,
}

/// Page of the tokens of an org that match every part given, by id.
#[derive(Debug, Clone, Copy)]
pub struct TokenQuery {
    pub principal_id: Option<PrincipalId>,
    pub kind: Option<TokenKind>,
    pub state: Option<ListedState>,
    /// The moment at which the state is told.
    pub now: Timestamp,
    pub after: Option<TokenId>,
    pub limit: u32,
}

row!(StateRow { principal_name: String, state: String });

row!(ListedRow of { token: TokenRow, state: StateRow });

impl Readable for ListedRow {
    const TABLE: &'static str = "tokens";
    type Record = ListedToken;

    fn read(self) -> Result<ListedToken, StoreError> {
        let state = ListedState::from_word(&self.state.state);
        Ok(ListedToken {
            token: self.token.read()?,
            principal_name: self.state.principal_name,
            state: state.ok_or(StoreError::Corrupt("tokens.state"))?,
        })
    }
}

impl Store {
    /// A page of the org's tokens, by id.
    #[boxed]
    pub async fn page_tokens(
        &self,
        org: OrgId,
        query: &TokenQuery,
    ) -> Result<Vec<ListedToken>, StoreError> {
        let after = query.after.map(|id| id.to_string()).unwrap_or_default();
        let principal = query.principal_id.map(|id| id.to_string()).unwrap_or_default();
        let rows: Vec<Found<ListedRow>> = read!(self, org, |conn| {
            all!(conn, PAGE => org, &after, &principal, query.kind.map_or("", TokenKind::as_str),
                query.state.map_or("", ListedState::as_str), query.now, query.limit)
        });
        Ok(self.readable(rows))
    }
}

const PAGE: &str = "
SELECT * FROM (
    SELECT t.*, p.name AS principal_name, CASE
        WHEN t.revoked_at IS NOT NULL THEN 'revoked'
        WHEN EXISTS (SELECT 1 FROM refreshes r WHERE r.org_id = t.org_id AND r.token_id = t.id
            AND r.spent_at IS NOT NULL) THEN 'spent'
        WHEN t.expires_at <= $6 THEN 'expired'
        WHEN p.disabled_at IS NOT NULL THEN 'principal_disabled'
        ELSE 'live' END AS state
    FROM tokens t JOIN principals p ON p.org_id = t.org_id AND p.id = t.principal_id
    WHERE t.org_id = $1 AND t.id > $2 AND ($3 = '' OR t.principal_id = $3)
        AND ($4 = '' OR t.kind = $4)
) AS listed WHERE $5 = '' OR state = $5
ORDER BY id LIMIT $7";
