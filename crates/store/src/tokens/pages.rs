//! Tokens of an org, page by page, each with what decides about its state.

use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId, TokenId},
    token::TokenKind,
};
use serde::Deserialize;

use super::TokenRecord;
use crate::{
    db::{Found, Store, all, boxed, columns, find, read, record},
    error::StoreError,
    filters,
    search::{beginning, begins, records},
};

portcullis_core::words! { listed
    /// State of a token, as far as its own row and its principal's tell.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "snake_case")]
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

filters::filter! {
    /// Page of the tokens of an org that match every part given, by id. Their state is that at `now`.
    TokenQuery {
        #[serde(deserialize_with = "filters::search")]
        q: Option<String> = "only those of which a word begins so, in any case: of the label, or of names and addresses of the principal", max_length = 64, pattern = "[^, ]";
        principal: Option<PrincipalId> as Option<String> = "only those of this principal", pattern = "^(usr|sa)_[0-9A-HJKMNP-TV-Z]{26}$";
        kind: Option<TokenKind> as Option<String> = "only those of this kind", pattern = "^(user|service|refresh)$";
        state: Option<ListedState> as Option<String> = "only those in this state at this moment", pattern = "^(live|expired|revoked|spent|principal_disabled)$";
    } at { now: Timestamp, after: Option<TokenId>, limit: usize }
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
fn statements(query: &TokenQuery) -> (String, String) {
    let found = |word| records("tokens", "token", word) + " CROSS JOIN tokens t";
    match (query.q.as_ref(), query.principal) {
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
        query: &TokenQuery,
    ) -> Result<TokensPage, StoreError> {
        let after = query.after.map(|id| id.to_string()).unwrap_or_default();
        let principal = query.principal.map(|id| id.to_string()).unwrap_or_default();
        let beginning = beginning(query.q.as_deref());
        let (page, last) = statements(query);
        let is_filtered = query.kind.is_some()
            || query.state.is_some()
            || query.q.is_some() && query.principal.is_some();
        let (rows, last): (Vec<Found<ListedToken>>, Option<TokenId>) = read!(self, org, |conn| {
            let last: Option<TokenId> = if is_filtered {
                find!(conn, scalar last => org, &after, &principal, WALKED - 1, &beginning)
            } else {
                None
            };
            let rows = all!(conn, page => org, &after, &principal,
                query.kind.map_or("", TokenKind::as_str),
                query.state.map_or("", ListedState::as_str), query.now, query.limit.saturating_add(1),
                last.map_or_else(|| BEYOND.to_owned(), |last| last.to_string()), &beginning);
            (rows, last)
        });
        let is_full = rows.len() > query.limit;
        let mut tokens = self.records(rows);
        tokens.truncate(query.limit);
        let reached = if is_full { tokens.last().map(|last| last.token.id) } else { last };
        Ok(TokensPage { tokens, reached })
    }
}
