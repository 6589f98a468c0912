//! Looking ahead in the indexes of events: the next place in the log that can match a filter.
//!
//! PostgreSQL indexes the columns of events. SQLite, which writes whole pages, has `audit_index`, which
//! the sealer writes, and indexed columns of the events that were committed before it had.

use super::{EventActor, EventFilter, EventOrder, Visibility, own};
use crate::db::{Db, seals_of_events};

/// A column that an index finds events by: all of them, or those with a value that is rare in a log.
#[derive(Debug, Clone, Copy)]
pub(super) enum Indexed {
    Actor,
    Request,
    Via,
    Type,
    Decision,
    DlpResult,
    Outcome,
}

/// Values that a filter may name and still be looked for one by one.
const FEW: usize = 8;

/// The columns that the narrowest filter looks at, each with a value to look for; none if no index has all that
/// it lets through.
pub(super) fn values_of(visibility: Visibility, filter: &EventFilter) -> Vec<(Indexed, String)> {
    if let Some(id) = filter.request_id {
        return vec![(Indexed::Request, id.to_string())];
    }
    if let Some(EventActor::Principal(id)) = filter.actor {
        return vec![(Indexed::Actor, id.to_string())];
    }
    if let Some(id) = own(visibility) {
        return vec![(Indexed::Actor, id.clone()), (Indexed::Via, id)];
    }
    let exceptions = [
        (Indexed::Type, &filter.kinds, &["mcp.invocation"][..]),
        (Indexed::Outcome, &filter.outcomes, &["success"]),
        (Indexed::Decision, &filter.decisions, &["allow"]),
        (Indexed::DlpResult, &filter.dlp_results, &["passed", "skipped"]),
    ];
    let rare = exceptions.into_iter().find(|(_, values, usual)| {
        let rare = |value: &String| !usual.contains(&value.as_str());
        (1..=FEW).contains(&values.len()) && values.iter().all(rare)
    });
    let Some((column, values, _)) = rare else { return Vec::new() };
    values.iter().map(|value| (column, value.clone())).collect()
}

/// Positions ascend with sequences, so an index that ends in the position finds the next sequence
/// of those from `$3` up to, not including, `$4`, also if a seal there is missing.
macro_rules! next_sql {
    ($found:expr, $named:expr, ascending) => {
        concat!(next_sql!(@ $found, $named), "ORDER BY e.position LIMIT 1")
    };
    ($found:expr, $named:expr, descending) => {
        concat!(next_sql!(@ $found, $named), "ORDER BY e.position DESC LIMIT 1")
    };
    (@ $found:expr, $named:expr) => {
        concat!(
            "SELECT s.sequence FROM ",
            $found,
            " WHERE ",
            $named,
            " AND s.sequence >= $3 AND s.sequence < $4
    AND e.position >= (SELECT position FROM audit_seals
        WHERE org_id = $1 AND sequence >= $3 ORDER BY sequence LIMIT 1)
    AND e.position <= (SELECT position FROM audit_seals
        WHERE org_id = $1 AND sequence < $4 ORDER BY sequence DESC LIMIT 1)
"
        )
    };
}

macro_rules! named_in_postgres {
    ($named:literal, $order:ident) => {
        next_sql!(seals_of_events!(postgres), concat!("e.org_id = $1 AND e.", $named), $order)
    };
}

/// The next by the index of the sealer.
macro_rules! next_by_sealer {
    ($kind:literal, $name:literal, $order:ident) => {
        next_sql!(
            "audit_index e CROSS JOIN audit_seals s ON s.position = e.position",
            concat!("s.org_id = $1 AND e.kind = ", $kind, " AND e.name = ", $name),
            $order
        )
    };
}

/// The nearer one of the next by the index of the sealer and of the next from before it had such entries.
macro_rules! nearer {
    ($by_sealer:expr, $before:expr, $direction:literal) => {
        concat!(
            "SELECT sequence FROM (SELECT * FROM (",
            $by_sealer,
            ") UNION ALL SELECT * FROM (",
            $before,
            ")) ORDER BY sequence ",
            $direction,
            " LIMIT 1"
        )
    };
}

/// Names that columns with indexes of their own had before.
macro_rules! named_in_sqlite {
    ($kind:literal, $column:literal, $order:ident, $direction:literal) => {
        nearer!(
            next_by_sealer!($kind, "$2", $order),
            next_sql!(
                seals_of_events!(sqlite),
                concat!("e.org_id = $1 AND e.", $column, " = $2"),
                $order
            ),
            $direction
        )
    };
}

/// Any place may be one that matches, where exceptions were not indexed yet.
macro_rules! rare_in_sqlite {
    ($kind:literal, ascending) => {
        nearer!(
            next_by_sealer!($kind, "$1 || ' ' || $2", ascending),
            "SELECT $3 AS sequence FROM audit_unmarked WHERE org_id = $1 AND $3 < MIN(size, $4)",
            "ASC"
        )
    };
    ($kind:literal, descending) => {
        nearer!(
            next_by_sealer!($kind, "$1 || ' ' || $2", descending),
            "SELECT MIN(size, $4) - 1 AS sequence FROM audit_unmarked
        WHERE org_id = $1 AND $3 < MIN(size, $4)",
            "DESC"
        )
    };
}

macro_rules! next_in_sqlite {
    ($column:expr, $order:ident, $direction:literal) => {
        match $column {
            Indexed::Actor => named_in_sqlite!("1", "actor_before", $order, $direction),
            Indexed::Via => named_in_sqlite!("2", "via_before", $order, $direction),
            Indexed::Request => named_in_sqlite!("3", "request_before", $order, $direction),
            Indexed::Type => rare_in_sqlite!("7", $order),
            Indexed::Decision => rare_in_sqlite!("8", $order),
            Indexed::DlpResult => rare_in_sqlite!("9", $order),
            Indexed::Outcome => rare_in_sqlite!("10", $order),
        }
    };
}

/// An index of rare values is taken where the statement says that they are.
macro_rules! next_in_postgres {
    ($column:expr, $order:ident) => {
        match $column {
            Indexed::Actor => named_in_postgres!("actor_id = $2", $order),
            Indexed::Via => named_in_postgres!("via = $2", $order),
            Indexed::Request => named_in_postgres!("request_id = $2", $order),
            Indexed::Type => {
                named_in_postgres!("type = $2 AND e.type <> 'mcp.invocation'", $order)
            }
            Indexed::Decision => {
                named_in_postgres!("decision = $2 AND e.decision <> 'allow'", $order)
            }
            Indexed::DlpResult => named_in_postgres!(
                "dlp_result = $2 AND e.dlp_result NOT IN ('passed', 'skipped')",
                $order
            ),
            Indexed::Outcome => {
                named_in_postgres!("outcome = $2 AND e.outcome <> 'success'", $order)
            }
        }
    };
}

/// The statement that looks ahead in the index of this column.
pub(super) fn next_in(db: &Db, order: EventOrder, column: Indexed) -> &'static str {
    match (db, order) {
        (Db::Sqlite { .. }, EventOrder::Ascending) => next_in_sqlite!(column, ascending, "ASC"),
        (Db::Sqlite { .. }, EventOrder::Descending) => next_in_sqlite!(column, descending, "DESC"),
        (Db::Postgres(_), EventOrder::Ascending) => next_in_postgres!(column, ascending),
        (Db::Postgres(_), EventOrder::Descending) => next_in_postgres!(column, descending),
    }
}

#[cfg(test)]
mod tests {
    use sqlx::SqlitePool;

    use super::*;
    use crate::db::schema;

    #[tokio::test]
    async fn the_next_event_is_found_by_the_indexes_alone() {
        let pool = SqlitePool::connect("sqlite::memory:").await.unwrap();
        schema::migrate_sqlite(&pool).await.unwrap();

        let unmarked = "SEARCH audit_unmarked USING PRIMARY KEY (org_id=?)";
        for (column, before) in [
            (Indexed::Actor, "audit_events_by_actor (org_id=? AND actor_before=? AND position"),
            (Indexed::Via, "audit_events_by_via (org_id=? AND via_before=? AND position"),
            (
                Indexed::Request,
                "audit_events_by_request (request_before=? AND org_id=? AND position",
            ),
            (Indexed::Type, unmarked),
            (Indexed::Decision, unmarked),
            (Indexed::DlpResult, unmarked),
            (Indexed::Outcome, unmarked),
        ] {
            for next in [
                next_in_sqlite!(column, ascending, "ASC"),
                next_in_sqlite!(column, descending, "DESC"),
            ] {
                let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {next}"));
                let plan: Vec<(i64, i64, i64, String)> =
                    sqlx::query_as(explain).fetch_all(&pool).await.unwrap();

                for search in [before, "SEARCH e USING PRIMARY KEY (kind=? AND name=? AND position"]
                {
                    assert!(plan.iter().any(|step| step.3.contains(search)), "{search}: {plan:?}");
                }
            }
        }
    }
}
