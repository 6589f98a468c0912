//! Descent of tokens in SQL, and revocation along it.
//!
//! **Invariant:** a token is good for as long as no token of its grant, and of the grants above it, is
//! revoked; whatever decides about a token asks so ([`revoked_above`]). So a revocation marks its roots in
//! one short transaction, which ends all that descends from them; the marks of the descendants follow in
//! portions, and only lists show them. What a crash leaves unmarked opens nothing, is shown as live until it
//! expires, and is marked if the revocation is repeated.

use portcullis_core::{clock::Timestamp, id::OrgId};
use serde_json::json;

use crate::{
    db::{Db, Store, all, boxed, change, read, run},
    error::StoreError,
};

/// Tokens marked in one transaction.
const PORTION: usize = 500;

/// The SQL for `above`: a token and all that it was made from, found by their ids.
macro_rules! above {
    ($org:literal, $token:literal) => {
        concat!(
            "WITH RECURSIVE above (id, grant_id, parent_id, via_token_id) AS (
    SELECT id, grant_id, parent_id, via_token_id FROM tokens WHERE org_id = ",
            $org,
            " AND id = ",
            $token,
            "
    UNION
    SELECT p.id, p.grant_id, p.parent_id, p.via_token_id FROM above a CROSS JOIN tokens p
    WHERE p.org_id = ",
            $org,
            " AND p.id IN (a.parent_id, a.via_token_id)
) "
        )
    };
}
pub(crate) use above;

/// The SQL for the moment from which on a grant of `above` was revoked.
pub(crate) fn revoked_among(org: &str) -> String {
    format!(
        "MIN((SELECT MIN(r.revoked_at) FROM tokens r WHERE r.org_id = {org} \
         AND r.grant_id = above.grant_id AND r.revoked_at > 0))"
    )
}

/// The SQL for the moment from which on the token `t` is revoked, by itself or by what it was made from.
pub(crate) fn revoked_above() -> String {
    let (above, revoked) = (above!("t.org_id", "t.id"), revoked_among("t.org_id"));
    format!("({above}SELECT {revoked} FROM above)")
}

/// The SQL that marks the roots of a revocation, tokens of the org `$1` under a condition, as revoked.
pub(crate) fn revoke_roots(condition: &str, now: &str) -> String {
    format!(
        "UPDATE tokens SET revoked_at = {now}
WHERE org_id = $1 AND revoked_at IS NULL AND {condition} RETURNING id"
    )
}

/// The SQL for live tokens `c` of the org `$1`: of a grant, or made from a token.
fn live(column: &str, from: &str, link: &str, of: &str) -> String {
    format!(
        "SELECT c.{column} FROM {from}tokens c WHERE c.org_id = $1 AND c.{link} = {of} \
         AND c.revoked_at IS NULL AND c.expires_at > $3"
    )
}

/// The SQL for the grants of live tokens `c` that were made from the tokens `of`, by one link and the other.
fn children(from: &str, of: &str, union: &str) -> String {
    ["parent_id", "via_token_id"].map(|link| live("grant_id", from, link, of)).join(union)
}

/// The SQL for the live tokens below the roots `$2`, and of their grants, from the top down. A token never outlives
/// what it was made from, so that nothing lives below one that has expired; nor below one that is revoked, unless
/// another revocation is under way there. SQLite has no `LATERAL`, PostgreSQL only one recursive term; `OFFSET 0`
/// keeps its planner, which takes the walk to be long, from reading all tokens instead.
fn live_below(db: &Db) -> String {
    if let Db::Sqlite { .. } = db {
        let roots = "json_each($2) r CROSS JOIN ";
        let children = children(roots, "r.value", " UNION ");
        let step = |link| {
            live("grant_id", "made m CROSS JOIN tokens x CROSS JOIN ", link, "x.id")
                + " AND x.org_id = $1 AND x.grant_id = m.grant_id AND x.revoked_at IS NULL \
                   AND x.expires_at > $3"
        };
        let steps = ["parent_id", "via_token_id"].map(step).join(" UNION ");
        let all = live("id", "made m CROSS JOIN ", "grant_id", "m.grant_id");
        return format!(
            "WITH RECURSIVE made (grant_id) AS (
    SELECT t.grant_id FROM {roots}tokens t WHERE t.org_id = $1 AND t.id = r.value
    UNION {children} UNION {steps}) {all}"
        );
    }
    let (of_roots, of_grants) =
        (children("", "r.value", " UNION ALL "), children("", "x.id", " UNION ALL "));
    let live = live("id", "", "grant_id", "m.grant_id");
    format!(
        "WITH RECURSIVE made (grant_id) AS (
    SELECT b.grant_id FROM jsonb_array_elements_text($2::jsonb) r (value) CROSS JOIN LATERAL (
        SELECT grant_id FROM tokens WHERE org_id = $1 AND id = r.value UNION ALL {of_roots}) b
    UNION
    SELECT b.grant_id FROM made m CROSS JOIN LATERAL ({live} OFFSET 0) x
    CROSS JOIN LATERAL ({of_grants}) b
) SELECT x.id FROM made m CROSS JOIN LATERAL ({live} OFFSET 0) x"
    )
}

impl Store {
    /// Marks what descends from tokens that were revoked, and the rest of their grants, as revoked, and gives the
    /// number of these. Those at the bottom come first: what is left can still be found from the roots.
    #[boxed]
    pub(crate) async fn revoke_descendants(
        &self,
        org: OrgId,
        roots: &[String],
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let live_below = live_below(&self.db);
        let revoke = "UPDATE tokens SET revoked_at = $3
            WHERE org_id = $1 AND revoked_at IS NULL AND id IN ";
        let revoke = revoke.to_owned() + &self.db.texts("$2");
        let roots = json!(roots).to_string();
        let live: Vec<String> =
            read!(self, org, |conn| all!(conn, scalar live_below => org, &roots, now));
        let mut revoked = 0;
        for portion in live.rchunks(PORTION) {
            let portion = json!(portion).to_string();
            revoked += change!(self, org, |tx| {
                tx.lock_tokens(&org.to_string()).await?;
                run!(tx, revoke.clone() => org, &portion, now)
            });
        }
        Ok(revoked)
    }
}
