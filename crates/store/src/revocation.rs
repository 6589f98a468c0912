//! Descent of tokens in SQL, and revocation along it.
//!
//! **Invariant:** a token is good for as long as no token of its grant, and of the grants above it, is
//! revoked; whatever decides about a token asks so ([`revoked_above`]). So a revocation marks its roots in
//! one short transaction, which ends all that descends from them; the marks of the descendants follow in
//! portions, and only lists show them. What a crash leaves unmarked opens nothing, is shown as live until it
//! expires, and is marked if the revocation is repeated.

use async_recursion::async_recursion as boxed;
use portcullis_core::{clock::Timestamp, id::OrgId};
use serde_json::json;

use crate::{
    db::{Db, Store, all, change, read, run, text_list},
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

/// The SQL for the moment from which on a grant of `above` was revoked.
macro_rules! revoked_among {
    ($org:literal) => {
        concat!(
            "MIN((SELECT MIN(r.revoked_at) FROM tokens r WHERE r.org_id = ",
            $org,
            " AND r.grant_id = above.grant_id AND r.revoked_at > 0))"
        )
    };
}

/// The SQL for the moment from which on the token `t` is revoked, by itself or by what it was made from.
macro_rules! revoked_above {
    () => {
        concat!(
            "(",
            $crate::revocation::above!("t.org_id", "t.id"),
            "SELECT ",
            $crate::revocation::revoked_among!("t.org_id"),
            " FROM above)"
        )
    };
}

/// The SQL that marks the roots of a revocation, tokens of the org `$1` under a condition, as revoked.
macro_rules! revoke_roots {
    ($condition:literal at $now:literal) => {
        concat!(
            "UPDATE tokens SET revoked_at = ",
            $now,
            " WHERE org_id = $1 AND revoked_at IS NULL AND ",
            $condition,
            " RETURNING id"
        )
    };
}

pub(crate) use {above, revoke_roots, revoked_above, revoked_among};

/// The SQL for live tokens `c` of the org `$1`: of a grant, or made from a token.
macro_rules! live {
    ($column:literal of $from:expr, $link:literal = $of:literal) => {
        concat!(
            "SELECT c.",
            $column,
            " FROM ",
            $from,
            "tokens c WHERE c.org_id = $1 AND c.",
            $link,
            " = ",
            $of,
            " AND c.revoked_at IS NULL AND c.expires_at > $3"
        )
    };
}

/// The SQL for the grants of live tokens `c` that were made from the tokens `$of`, by one link and the other.
macro_rules! children {
    ($from:expr, $of:literal, $union:literal) => {
        concat!(
            live!("grant_id" of $from, "parent_id" = $of),
            $union,
            live!("grant_id" of $from, "via_token_id" = $of)
        )
    };
}

/// The SQL for the live tokens below the roots `$2`, and of their grants, from the top down. A token never outlives
/// what it was made from, so that nothing lives below one that has expired; nor below one that is revoked, unless
/// another revocation is under way there. SQLite has no `LATERAL`, PostgreSQL only one recursive term; `OFFSET 0`
/// keeps its planner, which takes the walk to be long, from reading all tokens instead.
macro_rules! live_below {
    (sqlite) => {
        concat!(
            "WITH RECURSIVE made (grant_id) AS (
    SELECT t.grant_id FROM json_each($2) r CROSS JOIN tokens t WHERE t.org_id = $1 AND t.id = r.value
    UNION ",
            children!("json_each($2) r CROSS JOIN ", "r.value", " UNION "),
            " UNION ",
            live_below!(step "parent_id"),
            " UNION ",
            live_below!(step "via_token_id"),
            ") ",
            live!("id" of "made m CROSS JOIN ", "grant_id" = "m.grant_id")
        )
    };
    (step $link:literal) => {
        concat!(
            live!("grant_id" of "made m CROSS JOIN tokens x CROSS JOIN ", $link = "x.id"),
            " AND x.org_id = $1 AND x.grant_id = m.grant_id AND x.revoked_at IS NULL \
             AND x.expires_at > $3"
        )
    };
    (postgres) => {
        concat!(
            "WITH RECURSIVE made (grant_id) AS (
    SELECT b.grant_id FROM jsonb_array_elements_text($2::jsonb) r (value) CROSS JOIN LATERAL (
        SELECT grant_id FROM tokens WHERE org_id = $1 AND id = r.value UNION ALL ",
            children!("", "r.value", " UNION ALL "),
            ") b
    UNION
    SELECT b.grant_id FROM made m CROSS JOIN LATERAL (",
            live!("id" of "", "grant_id" = "m.grant_id"),
            " OFFSET 0) x CROSS JOIN LATERAL (",
            children!("", "x.id", " UNION ALL "),
            ") b
) SELECT x.id FROM made m CROSS JOIN LATERAL (",
            live!("id" of "", "grant_id" = "m.grant_id"),
            " OFFSET 0) x"
        )
    };
}

macro_rules! revoke_these {
    ($dialect:ident) => {
        concat!(
            "UPDATE tokens SET revoked_at = $3 WHERE org_id = $1 AND revoked_at IS NULL AND id IN ",
            text_list!($dialect, "$2")
        )
    };
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
        let (live_below, revoke) = match &self.db {
            Db::Sqlite { .. } => (live_below!(sqlite), revoke_these!(sqlite)),
            Db::Postgres(_) => (live_below!(postgres), revoke_these!(postgres)),
        };
        let roots = json!(roots).to_string();
        let live: Vec<String> =
            read!(self, org, |conn| all!(conn, scalar live_below => org, &roots, now));
        let mut revoked = 0;
        for portion in live.rchunks(PORTION) {
            let portion = json!(portion).to_string();
            revoked += change!(self, org, |tx| {
                tx.lock_tokens(&org.to_string()).await?;
                run!(tx, revoke => org, &portion, now)
            });
        }
        Ok(revoked)
    }
}
