//! Deletion of tokens that ended long ago.

use async_recursion::async_recursion as boxed;
use portcullis_core::clock::Timestamp;
use serde_json::json;

use crate::{
    db::{Db, Store, all, change, read, run, text_list},
    error::StoreError,
};

/// Tokens deleted in one transaction, and transactions of one round.
const PORTION: u32 = 500;
const PORTIONS: usize = 20;

macro_rules! forget_sql {
    ($dialect:ident, $grants:literal) => {
        [
            concat!("DELETE FROM refreshes WHERE token_id IN ", text_list!($dialect, "$1")),
            concat!("DELETE FROM tokens WHERE id IN ", text_list!($dialect, "$1")),
            concat!(
                "DELETE FROM search_words WHERE source = 'token' AND id IN ",
                text_list!($dialect, "$1")
            ),
            concat!(
                "DELETE FROM logins WHERE (org_id, grant_id) IN ",
                $grants,
                " AND NOT EXISTS (SELECT 1 FROM tokens t
        WHERE t.org_id = logins.org_id AND t.grant_id = logins.grant_id)
    AND EXISTS (SELECT 1 FROM logins n WHERE n.org_id = logins.org_id
        AND n.principal_id = logins.principal_id AND n.said_at > logins.said_at)"
            ),
            concat!(
                "DELETE FROM client_grants WHERE (org_id, grant_id) IN ",
                $grants,
                " AND NOT EXISTS (SELECT 1 FROM tokens t
        WHERE t.org_id = client_grants.org_id AND t.grant_id = client_grants.grant_id)"
            ),
        ]
    };
}

const FORGET_SQLITE: [&str; 5] =
    forget_sql!(sqlite, "(SELECT value ->> 0, value ->> 1 FROM json_each($1))");
const FORGET_POSTGRES: [&str; 5] = forget_sql!(
    postgres,
    "(SELECT value ->> 0, value ->> 1 FROM jsonb_array_elements($1::jsonb) OFFSET 0)"
);

impl Store {
    /// Deletes tokens that ended before `before`, with what belongs to their grants once these have no token
    /// left, but for the last login of each principal; those that ended first come first. A token from which
    /// others were made stays until these are gone, so that none of them loses what it is revoked by. A crash
    /// between two portions leaves the rest to the next round.
    #[boxed]
    pub async fn forget_tokens(&self, before: Timestamp) -> Result<u64, StoreError> {
        let [refreshes, tokens, words, logins, client_grants] = match &self.db {
            Db::Sqlite { .. } => FORGET_SQLITE,
            Db::Postgres(_) => FORGET_POSTGRES,
        };
        let mut forgotten = 0;
        for _ in 0..PORTIONS {
            let ended: Vec<(String, String, String)> =
                read!(self, installation, |conn| all!(conn, ENDED => before, PORTION));
            if ended.is_empty() {
                break;
            }
            let ids: Vec<_> = ended.iter().map(|(id, ..)| id).collect();
            let grants: Vec<_> = ended.iter().map(|(_, org, grant)| (org, grant)).collect();
            let (ids, grants) = (json!(ids).to_string(), json!(grants).to_string());
            forgotten += change!(self, installation, |tx| {
                run!(tx, refreshes => &ids);
                let gone = run!(tx, tokens => &ids);
                run!(tx, words => &ids);
                run!(tx, logins => &grants);
                run!(tx, client_grants => &grants);
                gone
            });
        }
        Ok(forgotten)
    }
}

const ENDED: &str = "
SELECT t.id, t.org_id, t.grant_id FROM tokens t WHERE t.expires_at < $1
    AND NOT EXISTS (SELECT 1 FROM tokens c WHERE c.org_id = t.org_id AND c.parent_id = t.id)
    AND NOT EXISTS (SELECT 1 FROM tokens c WHERE c.org_id = t.org_id AND c.via_token_id = t.id)
ORDER BY t.expires_at LIMIT $2";
