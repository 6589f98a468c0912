//! Deletion of tokens that ended long ago.

use portcullis_core::clock::Timestamp;
use serde_json::json;

use crate::{
    db::{Db, Store, all, boxed, change, read, run},
    error::StoreError,
};

/// Tokens deleted in one transaction, and transactions of one round.
const PORTION: u32 = 500;
const PORTIONS: usize = 20;

fn forget_sql(db: &Db) -> [String; 5] {
    let ids = db.texts("$1");
    let grants = db.pick(
        "(SELECT value ->> 0, value ->> 1 FROM json_each($1))",
        "(SELECT value ->> 0, value ->> 1 FROM jsonb_array_elements($1::jsonb) OFFSET 0)",
    );
    let without_token = |table| {
        format!(
            "DELETE FROM {table} WHERE (org_id, grant_id) IN {grants} AND NOT EXISTS (
    SELECT 1 FROM tokens t WHERE t.org_id = {table}.org_id AND t.grant_id = {table}.grant_id)"
        )
    };
    let logins = without_token("logins")
        + " AND EXISTS (SELECT 1 FROM logins n WHERE n.org_id = logins.org_id
        AND n.principal_id = logins.principal_id AND n.said_at > logins.said_at)";
    [
        format!("DELETE FROM refreshes WHERE token_id IN {ids}"),
        format!("DELETE FROM tokens WHERE id IN {ids}"),
        format!("DELETE FROM search_words WHERE source = 'token' AND id IN {ids}"),
        logins,
        without_token("client_grants"),
    ]
}

impl Store {
    /// Deletes tokens that ended before `before`, with what belongs to their grants once these have no token
    /// left, but for the last login of each principal; those that ended first come first. A token from which
    /// others were made stays until these are gone, so that none of them loses what it is revoked by. A crash
    /// between two portions leaves the rest to the next round.
    #[boxed]
    pub async fn forget_tokens(&self, before: Timestamp) -> Result<u64, StoreError> {
        let [refreshes, tokens, words, logins, client_grants] = forget_sql(&self.db);
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
                run!(tx, refreshes.clone() => &ids);
                let gone = run!(tx, tokens.clone() => &ids);
                run!(tx, words.clone() => &ids);
                run!(tx, logins.clone() => &grants);
                run!(tx, client_grants.clone() => &grants);
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
