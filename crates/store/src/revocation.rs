//! The SQL of a revocation, which takes all that descends from a token with it.

/// The SQL that revokes the tokens of the org `$1` under a condition, and down from them: their
/// grants, what was made from any of these, their grants, and so on.
macro_rules! revoke_from {
    ($condition:literal at $now:literal) => {
        concat!(
            "
WITH RECURSIVE doomed (id, grant_id) AS (
    SELECT id, grant_id FROM tokens WHERE org_id = $1 AND ",
            $condition,
            "
    UNION
    SELECT t.id, t.grant_id FROM tokens t
    JOIN doomed d ON t.grant_id = d.grant_id OR t.parent_id = d.id OR t.via_token_id = d.id
    WHERE t.org_id = $1
)
UPDATE tokens SET revoked_at = ",
            $now,
            "
WHERE org_id = $1 AND id IN (SELECT id FROM doomed) AND revoked_at IS NULL"
        )
    };
}

pub(crate) use revoke_from;
