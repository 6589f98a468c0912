//! Tokens of an org, page by page, each with what decides about its state.

use async_recursion::async_recursion as boxed;
use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId, TokenId},
    token::TokenKind,
};

use super::{TokenRecord, TokenRow};
use crate::{
    db::{Found, Readable, Store, all, find, parse_some, read, row},
    error::StoreError,
    search::{beginning, begins, records},
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
pub struct TokenQuery<'a> {
    /// Only those of which a word begins so: label, names and addresses of the principal.
    pub search: Option<&'a str>,
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

/// A page of tokens. It may be short or empty before the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokensPage {
    pub tokens: Vec<ListedToken>,
    /// The last token that was looked at, if there may be others behind it: from here the next page goes on.
    pub reached: Option<TokenId>,
}

/// Tokens that a page looks at. One whose state is rare ends early rather than read all tokens of an org.
const WALKED: u32 = 5_000;

/// The SQL for a page of the tokens `t` among which to look.
macro_rules! page {
    ([$($from:tt)+] $($among:tt)+) => {
        concat!(
            "
SELECT * FROM (
    SELECT t.*, p.name AS principal_name, CASE
        WHEN t.revoked_at IS NOT NULL THEN 'revoked'
        WHEN EXISTS (SELECT 1 FROM refreshes r WHERE r.org_id = t.org_id AND r.token_id = t.id
            AND r.spent_at IS NOT NULL) THEN 'spent'
        WHEN t.expires_at <= $6 THEN 'expired'
        WHEN p.disabled_at IS NOT NULL THEN 'principal_disabled'
        ELSE 'live' END AS state
    FROM ",
            $($from)+,
            " JOIN principals p ON p.org_id = t.org_id AND p.id = t.principal_id
    WHERE ",
            $($among)+,
            " AND t.org_id = $1 AND t.id > $2 AND t.id <= $8 AND ($4 = '' OR t.kind = $4)
) AS listed WHERE $5 = '' OR state = $5
ORDER BY id LIMIT $7"
        )
    };
}

/// The SQL for the last of the tokens `t` among which a page looks, if there are as many as it looks at.
macro_rules! last {
    ([$($from:tt)+] $among:literal) => {
        concat!(
            "SELECT t.id FROM ",
            $($from)+,
            " WHERE ",
            $among,
            " AND t.org_id = $1 AND t.id > $2 ORDER BY t.id LIMIT 1 OFFSET $4"
        )
    };
}

const ALL: &str = page!(["tokens t"] "$3 = '' AND $9 = ''");
const LAST_OF_ALL: &str = last!(["tokens t"] "$3 = '' AND $5 = ''");
const OF_PRINCIPAL: &str = page!(["tokens t"] "t.principal_id = $3 AND $9 = ''");
const LAST_OF_PRINCIPAL: &str = last!(["tokens t"] "t.principal_id = $3 AND $5 >= ''");
const SEARCH: &str = page!(
    [concat!(records!("tokens", "token", "$9"), " CROSS JOIN tokens t")]
    "t.id = found.id AND $3 = ''"
);
const LAST_OF_SEARCH: &str = last!(
    [concat!(records!("tokens", "token", "$5"), " CROSS JOIN tokens t")]
    "t.id = found.id AND $3 = ''"
);
const SEARCH_OF_PRINCIPAL: &str = page!(
    ["tokens t"] "t.principal_id = $3 AND (", begins!("$3", "$9"), " OR ", begins!("t.id", "$9"), ")"
);

/// Beyond all ids, which have letters and digits.
const BEYOND: &str = "~";

impl Store {
    /// A page of the org's tokens, by id.
    #[boxed]
    pub async fn page_tokens(
        &self,
        org: OrgId,
        query: &TokenQuery<'_>,
    ) -> Result<TokensPage, StoreError> {
        let after = query.after.map(|id| id.to_string()).unwrap_or_default();
        let principal = query.principal_id.map(|id| id.to_string()).unwrap_or_default();
        let beginning = beginning(query.search);
        let (page, last) = match (query.search, query.principal_id) {
            (None, None) => (ALL, LAST_OF_ALL),
            (None, Some(_)) => (OF_PRINCIPAL, LAST_OF_PRINCIPAL),
            (Some(_), None) => (SEARCH, LAST_OF_SEARCH),
            (Some(_), Some(_)) => (SEARCH_OF_PRINCIPAL, LAST_OF_PRINCIPAL),
        };
        let is_filtered = query.kind.is_some()
            || query.state.is_some()
            || query.search.is_some() && query.principal_id.is_some();
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let (rows, last): (Vec<Found<ListedRow>>, Option<String>) = read!(self, org, |conn| {
            let last: Option<String> = if is_filtered {
                find!(conn, scalar last => org, &after, &principal, WALKED - 1, &beginning)
            } else {
                None
            };
            let rows = all!(conn, page => org, &after, &principal,
                query.kind.map_or("", TokenKind::as_str),
                query.state.map_or("", ListedState::as_str), query.now, i64::from(query.limit) + 1,
                last.as_deref().unwrap_or(BEYOND), &beginning);
            (rows, last)
        });
        let is_full = rows.len() > limit;
        let mut tokens = self.readable(rows);
        tokens.truncate(limit);
        let reached = if is_full {
            tokens.last().map(|last| last.token.id)
        } else {
            parse_some(last.as_deref(), "tokens.id")?
        };
        Ok(TokensPage { tokens, reached })
    }
}
