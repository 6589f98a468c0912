//! SQLite's peculiarities.

mod log;
mod pool;

pub(crate) use self::{
    log::{Log, LogConnection, insert_events, open_to_read, open_to_write, read_id},
    pool::{Connections, Session},
};
use super::{last_given, newest_position};

/// One event; what it is bound to, here and in [`log`], stands in the order of the columns.
const INSERT_EVENT: &str = concat!(
    "
INSERT INTO audit_events (position, id, org_id, type, occurred_at, committed_at, actor_id, via,
    token_id, target, decision, policy, dlp_result, outcome, request_id, packed, payload_at, mac)
VALUES (1 + ",
    last_given!(sqlite),
    ", ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
);

/// A position is never given twice: what was sealed behind it stays in front of what comes.
pub(super) const RAISE_FLOOR: &str =
    concat!("UPDATE audit_floor SET position = MAX(position, ", newest_position!(), ")");

/// The events of a JSON array of positions; a trigger deletes their entries in the index of the sealer.
pub(super) const DELETE_AT: &str = "
DELETE FROM audit_events WHERE org_id = $1 AND position IN (SELECT value FROM json_each($2))";

/// The SQL for the entries of `audit_index` that these events `e` have, one for each name. Kinds: 1 the actor,
/// 2 on whose behalf, 3 the request, 4 the event itself, 5 the org and the moment of a payload; and, below the
/// org, what is rare in a log: 7 the type of what is no call, 8 the decision `deny`, 9 the result of DLP that
/// found something, 10 the outcome without success.
macro_rules! index_entries {
    ($from:expr, $which:expr) => {
        concat!(
            "SELECT kind, name, position FROM (
    SELECT k.column1 AS kind, e.position, CASE k.column1 WHEN 1 THEN e.actor_id WHEN 2 THEN e.via
        WHEN 3 THEN e.request_id
        WHEN 4 THEN e.id
        WHEN 5 THEN CASE WHEN e.payload_at IS NOT NULL
            THEN e.org_id || printf(' %016d', e.payload_at) END
        WHEN 7 THEN CASE WHEN e.type <> 'mcp.invocation' THEN e.org_id || ' ' || e.type END
        WHEN 8 THEN CASE WHEN e.decision <> 'allow' THEN e.org_id || ' ' || e.decision END
        WHEN 9 THEN CASE WHEN e.dlp_result NOT IN ('passed', 'skipped')
            THEN e.org_id || ' ' || e.dlp_result END
        ELSE CASE WHEN e.outcome <> 'success' THEN e.org_id || ' ' || e.outcome END END AS name
    FROM ",
            $from,
            " CROSS JOIN (VALUES (1), (2), (3), (4), (5), (7), (8), (9), (10)) k
    WHERE ",
            $which,
            "
) WHERE name IS NOT NULL"
        )
    };
}

/// The SQL for the position up to which every event has its place, or is noted as one that waits for long.
macro_rules! sealed_upto {
    () => {
        "(SELECT COALESCE(MAX(sealed), 0) FROM audit_floor)"
    };
}

/// The SQL for the positions of events by their ids, to be compared as `$ids` says: of those at the end of
/// the table, and of those that the sealer indexed.
macro_rules! positions_of_events {
    ($ids:literal) => {
        concat!(
            "SELECT u.position FROM audit_events u WHERE u.position > ",
            $crate::db::sealed_upto!(),
            " AND u.id ",
            $ids,
            " UNION ALL SELECT i.position FROM audit_index i WHERE i.kind = 4 AND i.name ",
            $ids
        )
    };
}

/// The SQL for whether another event than `e` has a place and the id of `e`: 1 or 0.
macro_rules! has_sealed_twin {
    () => {
        "EXISTS (SELECT 1 FROM audit_index i WHERE i.kind = 4 AND i.name = e.id AND i.position <> e.position
        AND EXISTS (SELECT 1 FROM audit_seals t WHERE t.position = i.position))"
    };
}

/// The SQL for positions and orgs of the events that may have no place yet: those at the end of the table,
/// and those that are noted.
macro_rules! waiting_events {
    () => {
        concat!(
            "SELECT u.position, u.org_id FROM audit_events u WHERE u.position > ",
            $crate::db::sealed_upto!(),
            " UNION ALL SELECT i.position, i.name FROM audit_index i WHERE i.kind = 6"
        )
    };
}
/// The SQL for whether the event of a row of `audit_intents` stands.
macro_rules! is_ended {
    () => {
        concat!(
            "EXISTS (SELECT 1 FROM audit_events e WHERE e.id = audit_intents.id AND e.position IN (",
            $crate::db::positions_of_events!("= audit_intents.id"),
            "))"
        )
    };
}
pub(crate) use {
    has_sealed_twin, index_entries, is_ended, positions_of_events, sealed_upto, waiting_events,
};

/// Intents that nothing has removed yet since their events were committed.
pub(super) const REMOVE_ENDED: &str = concat!("DELETE FROM audit_intents WHERE ", is_ended!());
