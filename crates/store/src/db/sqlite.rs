//! What is particular to SQLite.

use std::{fmt::Write, sync::OnceLock};

use serde_json::json;
use sqlx::{Sqlite, SqliteConnection, query::Query, sqlite::SqliteArguments};

use super::{Dialect, Durability, NewSeal, key_rows};
use crate::{
    audit::writer::{AnsweredKey, NewEvent, NewIntent},
    error::StoreError,
    idempotency::NewKey,
};

pub(super) async fn durability(conn: &mut SqliteConnection) -> Result<Durability, StoreError> {
    let version = sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut *conn).await?;
    let journal: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut *conn).await?;
    let level: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(&mut *conn).await?;
    let synchronous = match level {
        0 => "off",
        1 => "normal",
        2 => "full",
        _ => "extra",
    };
    Ok(Durability {
        engine: "sqlite",
        version,
        journal,
        synchronous: synchronous.to_owned(),
        survives_power_loss: level >= 2,
    })
}

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

    async fn insert_intents(&mut self, node: &str, rows: &[&NewIntent]) -> Result<(), sqlx::Error> {
        for rows in portions(rows) {
            let mut insert = sqlx::query(INTENTS.sql(rows.len()));
            for row in rows {
                insert = insert
                    .bind(row.id.to_string())
                    .bind(row.org_id.to_string())
                    .bind(node)
                    .bind(row.opened_at.as_micros())
                    .bind(row.record.as_str());
            }
            insert.execute(&mut *self).await?;
        }
        Ok(())
    }

    async fn insert_keys(
        &mut self,
        now: i64,
        rows: &[(&NewIntent, &NewKey)],
    ) -> Result<Vec<String>, sqlx::Error> {
        sqlx::query_scalar(INSERT_KEYS).bind(key_rows(rows)).bind(now).fetch_all(&mut *self).await
    }

    async fn answer_keys(&mut self, rows: &[AnsweredKey<'_>]) -> Result<(), sqlx::Error> {
        for row in rows {
            let update =
                "UPDATE idempotency_keys SET sealed = $3 WHERE org_id = $1 AND subject = $2";
            let update = sqlx::query(update).bind(&row.org_id).bind(&row.subject);
            update.bind(row.sealed).execute(&mut *self).await?;
        }
        Ok(())
    }

    async fn insert_events(
        &mut self,
        committed_at: i64,
        rows: &[&NewEvent],
    ) -> Result<(), sqlx::Error> {
        for rows in portions(rows) {
            let mut insert = sqlx::query(EVENTS.sql(rows.len()));
            for row in rows {
                insert = bind_event(insert, committed_at, row);
            }
            insert.execute(&mut *self).await?;
        }
        Ok(())
    }

    async fn delete_intents(&mut self, ids: &[String]) -> Result<(), sqlx::Error> {
        let delete = "DELETE FROM audit_intents WHERE id IN (SELECT value FROM json_each(?))";
        sqlx::query(delete).bind(json!(ids).to_string()).execute(&mut *self).await?;
        Ok(())
    }

    async fn insert_seals(
        &mut self,
        org_id: &str,
        first: i64,
        seals: &[NewSeal],
    ) -> Result<(), sqlx::Error> {
        let insert = "INSERT INTO audit_seals (org_id, sequence, position, recorded_at, leaf_hash) \
                      SELECT $1, $2 + key, value ->> 0, value ->> 1, substr($4, 1 + 32 * key, 32) \
                      FROM json_each($3)";
        let places: Vec<_> = seals.iter().map(|seal| (seal.position, seal.recorded_at)).collect();
        let hashes: Vec<u8> = seals.iter().flat_map(|seal| seal.leaf_hash).collect();
        let insert = sqlx::query(insert).bind(org_id).bind(first);
        insert.bind(json!(places).to_string()).bind(hashes).execute(&mut *self).await?;
        Ok(())
    }
}

const INSERT_KEYS: &str = "
INSERT INTO idempotency_keys (org_id, digest, fingerprint, subject, request_id, expires_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5
FROM json_each($1) WHERE TRUE
ON CONFLICT (org_id, digest) DO UPDATE SET fingerprint = excluded.fingerprint,
    subject = excluded.subject, request_id = excluded.request_id,
    expires_at = excluded.expires_at, sealed = NULL
WHERE idempotency_keys.expires_at <= $2
RETURNING subject";

const MOST_ROWS: usize = 128;

/// Measured: one statement of many rows costs a third of as many statements of one row, and half
/// of `json_each` over the rows; named placeholders would make binding quadratic. Up to 32 rows
/// every number has its own statement, beyond that only the powers of two, so that all of them
/// stay prepared.
fn portions<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = match rows.len() {
            0 => return None,
            few @ 1..=32 => few,
            33..=63 => 32,
            64..=127 => 64,
            _ => MOST_ROWS,
        };
        let (portion, rest) = rows.split_at_checked(size)?;
        rows = rest;
        Some(portion)
    })
}

static INTENTS: Rows =
    Rows::new("INSERT INTO audit_intents (id, org_id, node, opened_at, record) VALUES ", 5);

static EVENTS: Rows = Rows::new(
    "INSERT INTO audit_events (id, org_id, type, occurred_at, committed_at, actor_id, via, \
     token_id, target, decision, policy, dlp_result, outcome, request_id, core, detached, salts, \
     payload_at) VALUES ",
    18,
);

/// The texts of an insert of 1, 2, … rows, each made when first needed.
struct Rows {
    insert: &'static str,
    columns: usize,
    texts: [OnceLock<String>; MOST_ROWS],
}

impl Rows {
    const fn new(insert: &'static str, columns: usize) -> Self {
        Self { insert, columns, texts: [const { OnceLock::new() }; MOST_ROWS] }
    }

    fn sql(&'static self, rows: usize) -> &'static str {
        let row = format!("(?{})", ",?".repeat(self.columns.saturating_sub(1)));
        let text = || {
            let mut text = format!("{}{row}", self.insert);
            for _ in 1..rows {
                let _ = write!(text, ",{row}");
            }
            text
        };
        let place = rows.saturating_sub(1);
        self.texts.get(place).map_or(self.insert, |cell| cell.get_or_init(text).as_str())
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
        .bind(event.kind.as_str())
        .bind(event.occurred_at.as_micros())
        .bind(committed_at)
        .bind(event.actor_id.map(|id| id.to_string()))
        .bind(event.via.map(|id| id.to_string()))
        .bind(event.token_id.map(|id| id.to_string()))
        .bind(event.target.as_deref())
        .bind(event.decision.as_deref())
        .bind(event.policy.as_deref())
        .bind(event.dlp_result.as_deref())
        .bind(event.outcome.as_deref())
        .bind(event.request_id.map(|id| id.to_string()))
        .bind(event.core.as_str())
        .bind(event.detached.as_deref())
        .bind(event.salts.as_deref())
        .bind(event.has_payload.then_some(committed_at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_hold_every_row_once_in_order() {
        for count in [0, 1, 32, 33, 64, 100, 127, 128, 300] {
            let rows: Vec<_> = (0..count).collect();

            let portions: Vec<_> = portions(&rows).collect();

            assert_eq!(portions.concat(), rows);
            assert!(portions.iter().all(|portion| (1..=MOST_ROWS).contains(&portion.len())));
        }
    }
}
