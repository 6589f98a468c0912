//! Positions that the gateway has given out: a row with a higher one was added from outside. Nothing moves on
//! to such a row: events with positions in front of it would be taken for ones that were refused.

/// The SQL for the last position that the gateway has given out, at least.
macro_rules! last_given {
    (sqlite) => {
        concat!(
            "(SELECT MAX(
        COALESCE((SELECT MAX(position) FROM audit_seals), 0),
        COALESCE((SELECT MAX(MAX(position, sealed)) FROM audit_floor), 0),
        ",
            $crate::db::newest_position!(),
            "))"
        )
    };
    (postgres) => {
        "(SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM audit_events_position_seq)"
    };
}

/// The SQL for the position of the newest event on SQLite, which has no sequence: the next one is counted from
/// it. A row further ahead than the gateway counts between two seals is none of its own.
macro_rules! newest_position {
    () => {
        "COALESCE((SELECT position FROM audit_events WHERE position <=
            (SELECT COALESCE(MAX(MAX(position, sealed)), 0) + 1099511627776 FROM audit_floor)
        ORDER BY position DESC LIMIT 1), 0)"
    };
}

pub(crate) use {last_given, newest_position};
