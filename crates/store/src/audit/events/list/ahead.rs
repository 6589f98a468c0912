//! Looking ahead in the indexes of events: the next place in the log that can match a filter.
//!
//! PostgreSQL indexes the columns of events. SQLite, which writes whole pages, has `audit_index`, which
//! the sealer writes.

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
    let kinds: Vec<_> = filter.kinds.iter().map(String::as_str).collect();
    let outcome = filter.outcome.iter().map(|it| it.as_str()).collect();
    let decision = filter.decision.iter().map(|it| it.as_str()).collect();
    let dlp_result = filter.dlp_result.iter().map(|it| it.as_str()).collect();
    let exceptions = [
        (Indexed::Type, kinds, &["mcp.invocation"][..]),
        (Indexed::Outcome, outcome, &["success"]),
        (Indexed::Decision, decision, &["allow"]),
        (Indexed::DlpResult, dlp_result, &["passed", "skipped"]),
    ];
    let rare = exceptions.into_iter().find(|(_, values, usual)| {
        (1..=FEW).contains(&values.len()) && values.iter().all(|value| !usual.contains(value))
    });
    let Some((column, values, _)) = rare else { return Vec::new() };
    values.into_iter().map(|value| (column, value.to_owned())).collect()
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
        next_sql!(seals_of_events!(), concat!("e.org_id = $1 AND e.", $named), $order)
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

/// What is rare is found below its org.
macro_rules! next_in_sqlite {
    ($column:expr, $order:ident) => {
        match $column {
            Indexed::Actor => next_by_sealer!("1", "$2", $order),
            Indexed::Via => next_by_sealer!("2", "$2", $order),
            Indexed::Request => next_by_sealer!("3", "$2", $order),
            Indexed::Type => next_by_sealer!("7", "$1 || ' ' || $2", $order),
            Indexed::Decision => next_by_sealer!("8", "$1 || ' ' || $2", $order),
            Indexed::DlpResult => next_by_sealer!("9", "$1 || ' ' || $2", $order),
            Indexed::Outcome => next_by_sealer!("10", "$1 || ' ' || $2", $order),
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
        (Db::Sqlite { .. }, EventOrder::Ascending) => next_in_sqlite!(column, ascending),
        (Db::Sqlite { .. }, EventOrder::Descending) => next_in_sqlite!(column, descending),
        (Db::Postgres(_), EventOrder::Ascending) => next_in_postgres!(column, ascending),
        (Db::Postgres(_), EventOrder::Descending) => next_in_postgres!(column, descending),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::schema;

    #[test]
    fn the_next_event_is_found_by_the_indexes_alone() {
        let open = schema::in_memory();

        for column in [
            Indexed::Actor,
            Indexed::Via,
            Indexed::Request,
            Indexed::Type,
            Indexed::Decision,
            Indexed::DlpResult,
            Indexed::Outcome,
        ] {
            for next in [next_in_sqlite!(column, ascending), next_in_sqlite!(column, descending)] {
                let plan = schema::plan_of(&open, next);

                let search = "SEARCH e USING PRIMARY KEY (kind=? AND name=? AND position";
                assert!(plan.iter().any(|step| step.contains(search)), "{plan:?}");
                assert!(!plan.iter().any(|step| step.starts_with("SCAN")), "{plan:?}");
            }
        }
    }
}
