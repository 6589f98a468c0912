//! SQLite's peculiarities.

mod log;

use sqlx::{Sqlite, SqliteConnection, query::Query, sqlite::SqliteArguments};

pub(crate) use self::log::{Log, LogConnection, read_id};
use super::{DELETE_EVENTS, Dialect, NewEvent, TextColumn};

/// One event; what it is bound to, here and in [`log`], stands in the order of the columns.
const INSERT_EVENT: &str = "
INSERT INTO audit_events (position, id, org_id, type, occurred_at, committed_at, actor, behalf,
    token_id, target, decision, policy, dlp_result, outcome, request, packed, payload_at, core,
    by_sealer)
VALUES ((SELECT 1 + MAX(
        COALESCE((SELECT MAX(position) FROM audit_events), 0),
        COALESCE((SELECT MAX(position) FROM audit_seals), 0),
        COALESCE((SELECT MAX(position) FROM audit_floor), 0)
    )), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', 1)";

/// A position is never given twice: what was sealed behind it stays in front of what comes.
const RAISE_FLOOR: &str = "
UPDATE audit_floor
SET position = MAX(position, COALESCE((SELECT MAX(position) FROM audit_events), 0))";

/// The SQL for the entries of `audit_index` that the events of an org between two positions have: one
/// for each name, of which an event has up to four. Kinds: 1 the actor, 2 on whose behalf, 3 the request,
/// 4 the event itself.
macro_rules! index_entries {
    ($between:literal) => {
        concat!(
            "SELECT kind, name, position FROM (
    SELECT k.column1 AS kind, e.position, CASE k.column1 WHEN 1 THEN e.actor WHEN 2 THEN e.behalf
        WHEN 3 THEN e.request ELSE CASE WHEN e.by_sealer IS NOT NULL THEN e.id END END AS name
    FROM audit_events e CROSS JOIN (VALUES (1), (2), (3), (4)) k
    WHERE e.org_id = $1 AND ",
            $between,
            "
) WHERE name IS NOT NULL"
        )
    };
}
pub(crate) use index_entries;

/// The SQL for the positions of the event `$2` of the org `$1`: of one that is not sealed yet, of one
/// that the sealer indexed, or of one of schema 39 and before.
macro_rules! positions_of_event {
    () => {
        "SELECT u.position FROM audit_events u WHERE u.org_id = $1 AND u.position > COALESCE(
    (SELECT h.last_position FROM audit_heads h WHERE h.org_id = $1), 0) AND u.id = $2
UNION ALL SELECT i.position FROM audit_index i WHERE i.kind = 4 AND i.name = $2
UNION ALL SELECT b.position FROM audit_events b WHERE b.id = $2 AND b.by_sealer IS NULL"
    };
}
pub(crate) use positions_of_event;

/// Entries that the sealer wrote.
const DELETE_ENTRIES: &str = concat!(
    "DELETE FROM audit_index WHERE (kind, name, position) IN (",
    index_entries!("e.position <= $2"),
    ")"
);

impl Dialect for SqliteConnection {
    async fn announce_writer(&mut self) -> Result<(), sqlx::Error> {
        Ok(())
    }

    async fn wait_for_writers(&mut self) -> Result<(), sqlx::Error> {
        // One writes at a time: positions are given out and committed in the same order.
        Ok(())
    }

    async fn lock_tokens(&mut self, _: &str) -> Result<(), sqlx::Error> {
        // One writes at a time, tokens or anything else.
        Ok(())
    }

    async fn lock_exports(&mut self, _: &str) -> Result<(), sqlx::Error> {
        // One writes at a time, exports or anything else.
        Ok(())
    }

    async fn lock_log_for_writing(&mut self) -> Result<(), sqlx::Error> {
        // Any writer holds the whole file.
        Ok(())
    }

    async fn insert_events(
        &mut self,
        committed_at: i64,
        rows: &[&NewEvent],
    ) -> Result<(), sqlx::Error> {
        for row in rows {
            bind_event(sqlx::query(INSERT_EVENT), committed_at, row).execute(&mut *self).await?;
        }
        Ok(())
    }

    async fn delete_events(&mut self, org_id: &str, upto: i64) -> Result<(), sqlx::Error> {
        sqlx::query(RAISE_FLOOR).execute(&mut *self).await?;
        for delete in [DELETE_ENTRIES, DELETE_EVENTS] {
            sqlx::query(delete).bind(org_id).bind(upto).execute(&mut *self).await?;
        }
        Ok(())
    }
}

fn bind_event<'q>(
    insert: Query<'q, Sqlite, SqliteArguments>,
    committed_at: i64,
    event: &'q NewEvent,
) -> Query<'q, Sqlite, SqliteArguments> {
    insert
        .bind(event.id.to_string())
        .bind(event.org_id.to_string())
        .bind(&*event.kind)
        .bind(event.occurred_at.as_micros())
        .bind(committed_at)
        .bind(event.actor_id.map(|id| id.to_string()))
        .bind(event.via.map(|id| id.to_string()))
        .bind(event.token_id.map(|id| id.to_string()))
        .bind(event.texts.of(TextColumn::Target))
        .bind(event.decision.as_deref())
        .bind(event.texts.of(TextColumn::Policy))
        .bind(event.dlp_result.as_deref())
        .bind(event.outcome.as_deref())
        .bind(event.request_id.map(|id| id.to_string()))
        .bind(event.texts.packed().into_owned())
        .bind(event.has_payload.then_some(committed_at))
}
