//! Looking ahead in the indexes of events: the next place in the log that can match a filter.
//!
//! PostgreSQL indexes the columns of events. SQLite, which writes whole pages, has `audit_index`, which
//! the sealer writes, and indexed columns of the events that were committed before it had.

use super::{EventActor, EventFilter, EventOrder, Visibility, own};
use crate::db::{Db, seals_of_events};

/// A column that an index finds events by.
#[derive(Debug, Clone, Copy)]
pub(super) enum Indexed {
    Actor,
    Request,
    Via,
}

/// The columns that the narrowest filter looks at, and for what.
pub(super) fn index_of(
    visibility: Visibility,
    filter: &EventFilter,
) -> Option<(&'static [Indexed], String)> {
    if let Some(id) = filter.request_id {
        return Some((&[Indexed::Request], id.to_string()));
    }
    if let Some(EventActor::Principal(id)) = filter.actor {
        return Some((&[Indexed::Actor], id.to_string()));
    }
    own(visibility).map(|id| (&[Indexed::Actor, Indexed::Via][..], id))
}

/// Positions ascend with sequences, so an index that ends in the position finds the next sequence
/// of those from `$3` up to, not including, `$4`, also if a seal there is missing.
macro_rules! next_sql {
    ($found:expr, $named:expr, ascending) => {
        concat!(
            "SELECT s.sequence FROM ",
            $found,
            " WHERE ",
            $named,
            " = $2 AND s.sequence >= $3 AND s.sequence < $4
    AND e.position >= (SELECT position FROM audit_seals
        WHERE org_id = $1 AND sequence >= $3 ORDER BY sequence LIMIT 1)
ORDER BY e.position LIMIT 1"
        )
    };
    ($found:expr, $named:expr, descending) => {
        concat!(
            "SELECT s.sequence FROM ",
            $found,
            " WHERE ",
            $named,
            " = $2 AND s.sequence >= $3 AND s.sequence < $4
    AND e.position <= (SELECT position FROM audit_seals
        WHERE org_id = $1 AND sequence < $4 ORDER BY sequence DESC LIMIT 1)
ORDER BY e.position DESC LIMIT 1"
        )
    };
}

macro_rules! next_in_postgres {
    ($column:literal, $order:ident) => {
        next_sql!(seals_of_events!(postgres), concat!("e.org_id = $1 AND e.", $column), $order)
    };
}

/// Of the next in either, the nearer one.
macro_rules! next_in_sqlite {
    ($kind:literal, $column:literal, $order:ident, $by:literal) => {
        concat!(
            "SELECT sequence FROM (SELECT * FROM (",
            next_sql!(
                "audit_index e CROSS JOIN audit_seals s ON s.position = e.position",
                concat!("s.org_id = $1 AND e.kind = ", $kind, " AND e.name"),
                $order
            ),
            ") UNION ALL SELECT * FROM (",
            next_sql!(seals_of_events!(sqlite), concat!("e.org_id = $1 AND e.", $column), $order),
            ")) ORDER BY sequence ",
            $by,
            " LIMIT 1"
        )
    };
}

/// The statement that looks ahead in the index of this column.
pub(super) fn next_in(db: &Db, order: EventOrder, column: Indexed) -> &'static str {
    match db {
        Db::Sqlite { .. } => next_in_sqlite(order, column),
        Db::Postgres(_) => next_in_postgres(order, column),
    }
}

fn next_in_sqlite(order: EventOrder, column: Indexed) -> &'static str {
    match (order, column) {
        (EventOrder::Ascending, Indexed::Actor) => {
            next_in_sqlite!("1", "actor_before", ascending, "ASC")
        }
        (EventOrder::Ascending, Indexed::Via) => {
            next_in_sqlite!("2", "via_before", ascending, "ASC")
        }
        (EventOrder::Ascending, Indexed::Request) => {
            next_in_sqlite!("3", "request_before", ascending, "ASC")
        }
        (EventOrder::Descending, Indexed::Actor) => {
            next_in_sqlite!("1", "actor_before", descending, "DESC")
        }
        (EventOrder::Descending, Indexed::Via) => {
            next_in_sqlite!("2", "via_before", descending, "DESC")
        }
        (EventOrder::Descending, Indexed::Request) => {
            next_in_sqlite!("3", "request_before", descending, "DESC")
        }
    }
}

fn next_in_postgres(order: EventOrder, column: Indexed) -> &'static str {
    match (order, column) {
        (EventOrder::Ascending, Indexed::Actor) => next_in_postgres!("actor_id", ascending),
        (EventOrder::Ascending, Indexed::Via) => next_in_postgres!("via", ascending),
        (EventOrder::Ascending, Indexed::Request) => next_in_postgres!("request_id", ascending),
        (EventOrder::Descending, Indexed::Actor) => next_in_postgres!("actor_id", descending),
        (EventOrder::Descending, Indexed::Via) => next_in_postgres!("via", descending),
        (EventOrder::Descending, Indexed::Request) => next_in_postgres!("request_id", descending),
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

        for (column, before) in [
            (Indexed::Actor, "audit_events_by_actor (org_id=? AND actor_before=? AND position"),
            (Indexed::Via, "audit_events_by_via (org_id=? AND via_before=? AND position"),
            (
                Indexed::Request,
                "audit_events_by_request (request_before=? AND org_id=? AND position",
            ),
        ] {
            for order in [EventOrder::Ascending, EventOrder::Descending] {
                let next = next_in_sqlite(order, column);
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
