//! Tokens of an org, page by page, each with what decides about its state.

use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId, TokenId},
    token::TokenKind,
};

use super::TokenRecord;
use crate::{
    db::{Found, Store, all, boxed, columns, find, read, record},
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
#[derive(Debug, Clone, Copy, Default)]
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

record!(ListedToken in "tokens", |row| token = TokenRecord::from_row(row)?, principal_name, state);

columns!(ListedState => String: |word| Self::from_word(&word););

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
fn page(from: &str, among: &str) -> String {
    format!(
        "
SELECT * FROM (
    SELECT t.*, p.name AS principal_name, CASE
        WHEN t.revoked_at IS NOT NULL THEN 'revoked'
        WHEN EXISTS (SELECT 1 FROM refreshes r WHERE r.org_id = t.org_id AND r.token_id = t.id
            AND r.spent_at IS NOT NULL) THEN 'spent'
        WHEN t.expires_at <= $6 THEN 'expired'
        WHEN p.disabled_at IS NOT NULL THEN 'principal_disabled'
        ELSE 'live' END AS state
    FROM {from} JOIN principals p ON p.org_id = t.org_id AND p.id = t.principal_id
    WHERE {among} AND t.org_id = $1 AND t.id > $2 AND t.id <= $8 AND ($4 = '' OR t.kind = $4)
) AS listed WHERE $5 = '' OR state = $5
ORDER BY id LIMIT $7"
    )
}

/// The SQL for the last of the tokens `t` among which a page looks, if there are as many as it looks at.
fn last(from: &str, among: &str) -> String {
    format!(
        "SELECT t.id FROM {from} WHERE {among} AND t.org_id = $1 AND t.id > $2 \
         ORDER BY t.id LIMIT 1 OFFSET $4"
    )
}

/// The SQL of a query: [`page`] and [`last`].
fn statements(query: &TokenQuery<'_>) -> (String, String) {
    let found = |word| records("tokens", "token", word) + " CROSS JOIN tokens t";
    match (query.search, query.principal_id) {
        (None, None) => {
            (page("tokens t", "$3 = '' AND $9 = ''"), last("tokens t", "$3 = '' AND $5 = ''"))
        }
        (Some(_), None) => {
            let among = "t.id = found.id AND $3 = ''";
            (page(&found("$9"), among), last(&found("$5"), among))
        }
        (search, Some(_)) => {
            let among = match search {
                None => "$9 = ''".to_owned(),
                Some(_) => format!("({} OR {})", begins("$3", "$9"), begins("t.id", "$9")),
            };
            let among = format!("t.principal_id = $3 AND {among}");
            (page("tokens t", &among), last("tokens t", "t.principal_id = $3 AND $5 >= ''"))
        }
    }
}

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
        let (page, last) = statements(query);
        let is_filtered = query.kind.is_some()
            || query.state.is_some()
            || query.search.is_some() && query.principal_id.is_some();
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let (rows, last): (Vec<Found<ListedToken>>, Option<TokenId>) = read!(self, org, |conn| {
            let last: Option<TokenId> = if is_filtered {
                find!(conn, scalar last => org, &after, &principal, WALKED - 1, &beginning)
            } else {
                None
            };
            let rows = all!(conn, page => org, &after, &principal,
                query.kind.map_or("", TokenKind::as_str),
                query.state.map_or("", ListedState::as_str), query.now, i64::from(query.limit) + 1,
                last.map_or_else(|| BEYOND.to_owned(), |last| last.to_string()), &beginning);
            (rows, last)
        });
        let is_full = rows.len() > limit;
        let mut tokens = self.records(rows);
        tokens.truncate(limit);
        let reached = if is_full { tokens.last().map(|last| last.token.id) } else { last };
        Ok(TokensPage { tokens, reached })
    }
}
