//! PostgreSQL's peculiarities.

mod batch;
mod nodelay;
mod pool;

use sqlx::{PgConnection, Postgres, postgres::PgArguments, query::Query};

pub(crate) use self::{batch::LogWriter, nodelay::opened_at_once, pool::open};

use super::{Dialect, Durability, NewEvent, NewSeal, TextColumn, durability};
use crate::{
    error::StoreError,
    row_key::{PackedRecord, RowKey},
};

/// `SHOW` of each, as a session of this role gets it.
const DURABILITY: &str = "
SELECT current_setting('server_version'), current_setting('synchronous_commit'),
    trim(current_setting('synchronous_standby_names')) <> '',
    current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',
    NOT (rolsuper OR rolbypassrls)
FROM pg_roles WHERE rolname = current_user";

pub(super) async fn durability(conn: &mut PgConnection) -> Result<Durability, StoreError> {
    let found: (String, String, bool, bool, bool, bool) =
        sqlx::query_as(DURABILITY).fetch_one(conn).await?;
    let (version, synchronous, names_replica, fsync, whole_pages, walled) = found;
    Ok(Durability {
        engine: "postgres",
        version,
        journal: "wal".to_owned(),
        weakness: durability::of_postgres(&synchronous, names_replica, fsync),
        synchronous,
        whole_pages,
        row_security: Some(walled),
    })
}

/// Between those who insert events (shared) and who seals them (exclusive).
macro_rules! writers {
    () => {
        "5785245102"
    };
}
use writers;

impl Dialect for PgConnection {
    async fn announce_writer(&mut self) -> Result<(), sqlx::Error> {
        let lock = concat!("SELECT pg_advisory_xact_lock_shared(", writers!(), ")");
        sqlx::query(lock).execute(&mut *self).await?;
        Ok(())
    }

    async fn wait_for_writers(&mut self) -> Result<(), sqlx::Error> {
        let lock = concat!("SELECT pg_advisory_xact_lock(", writers!(), ")");
        sqlx::query(lock).execute(&mut *self).await?;
        Ok(())
    }

    async fn lock_tokens(&mut self, org_id: &str) -> Result<(), sqlx::Error> {
        // Weak enough for rows that refer to the org to be inserted beside it.
        let lock = "SELECT 1 FROM orgs WHERE id = $1 FOR NO KEY UPDATE";
        sqlx::query(lock).bind(org_id).execute(&mut *self).await?;
        Ok(())
    }

    async fn lock_exports(&mut self, org_id: &str) -> Result<(), sqlx::Error> {
        let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 5785245103))";
        sqlx::query(lock).bind(org_id).execute(&mut *self).await?;
        Ok(())
    }

    async fn lock_log_for_writing(&mut self) -> Result<(), sqlx::Error> {
        // The lock of an INSERT. Months that are old have locks of their own, and do not matter.
        let lock = "LOCK TABLE ONLY audit_events, ONLY audit_seals, ONLY audit_intents \
                    IN ROW EXCLUSIVE MODE";
        sqlx::query(lock).execute(&mut *self).await?;
        Ok(())
    }

    async fn insert_events(
        &mut self,
        key: &RowKey,
        committed_at: i64,
        rows: &[&NewEvent],
    ) -> Result<(), sqlx::Error> {
        bind_events(sqlx::query(INSERT_EVENTS), key, committed_at, rows)
            .execute(&mut *self)
            .await?;
        Ok(())
    }

    async fn remove_ended_intents(&mut self) -> Result<(), sqlx::Error> {
        // They go with the commits of their events.
        Ok(())
    }

    async fn delete_events(&mut self, org_id: &str, positions: &[i64]) -> Result<(), sqlx::Error> {
        let delete = "DELETE FROM audit_events WHERE org_id = $1 AND position <= $2";
        let last = positions.last().copied();
        sqlx::query(delete).bind(org_id).bind(last).execute(&mut *self).await?;
        Ok(())
    }
}

/// Inserts the seals of consecutive sequences of one org, beginning with `first`.
pub(crate) async fn insert_seals(
    conn: &mut PgConnection,
    org_id: &str,
    first: i64,
    seals: &[NewSeal],
) -> Result<(), sqlx::Error> {
    let insert = "INSERT INTO audit_seals \
                  (org_id, sequence, position, recorded_at, leaf_hash, event_id) \
                  SELECT $1, $2 + place - 1, position, recorded_at, leaf_hash, event_id \
                  FROM UNNEST($3::bigint[], $4::bigint[], $5::bytea[], $6::text[]) \
                  WITH ORDINALITY AS given (position, recorded_at, leaf_hash, event_id, place)";
    sqlx::query(insert)
        .bind(org_id)
        .bind(first)
        .bind(seals.iter().map(|seal| seal.position).collect::<Vec<_>>())
        .bind(seals.iter().map(|seal| seal.recorded_at).collect::<Vec<_>>())
        .bind(seals.iter().map(|seal| seal.leaf_hash.as_slice()).collect::<Vec<_>>())
        .bind(seals.iter().map(|seal| seal.event_id.to_string()).collect::<Vec<_>>())
        .execute(conn)
        .await?;
    Ok(())
}

type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// Binds what [`insert_events`] takes.
fn bind_events<'q>(
    insert: Statement<'q>,
    key: &RowKey,
    committed_at: i64,
    rows: &'q [&NewEvent],
) -> Statement<'q> {
    let texts = |of: fn(&NewEvent) -> Option<String>| -> Vec<Option<String>> {
        rows.iter().map(|row| of(row)).collect()
    };
    let packed: Vec<PackedRecord> =
        rows.iter().map(|row| row.texts.packed().into_owned()).collect();
    let codes = rows.iter().zip(&packed).map(|(row, it)| row.code(key, committed_at, it));
    let codes = codes.collect::<Vec<_>>();
    insert
        .bind(rows.iter().map(|row| row.id.to_string()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.org_id.to_string()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| &*row.kind).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.occurred_at.as_micros()).collect::<Vec<_>>())
        .bind(committed_at)
        .bind(texts(|row| row.actor_id.map(|id| id.to_string())))
        .bind(texts(|row| row.via.map(|id| id.to_string())))
        .bind(texts(|row| row.token_id.map(|id| id.to_string())))
        .bind(rows.iter().map(|row| row.texts.of(TextColumn::Target)).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.decision.as_deref()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.texts.of(TextColumn::Policy)).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.dlp_result.as_deref()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.outcome.as_deref()).collect::<Vec<_>>())
        .bind(texts(|row| row.request_id.map(|id| id.to_string())))
        .bind(packed.into_iter().map(|record| record.bytes).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.has_payload).collect::<Vec<_>>())
        .bind(codes)
}

/// Inserts the events of the parameters `$1` to `$17`.
macro_rules! insert_events {
    () => {
        "
INSERT INTO audit_events (id, org_id, type, occurred_at, committed_at, actor_id, via, token_id,
    target, decision, policy, dlp_result, outcome, request_id, packed, mac, payload_at)
SELECT id, org_id, type, occurred_at, $5, actor_id, via, token_id,
    target, decision, policy, dlp_result, outcome, request_id, packed, mac,
    CASE WHEN has_payload THEN $5 END
FROM UNNEST($1::text[], $2::text[], $3::text[], $4::bigint[], $6::text[], $7::text[], $8::text[],
    $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::bytea[],
    $16::boolean[], $17::bytea[]) WITH ORDINALITY
AS given (id, org_id, type, occurred_at, actor_id, via, token_id, target, decision, policy,
    dlp_result, outcome, request_id, packed, has_payload, mac, place)
ORDER BY place"
    };
}
use insert_events;

const INSERT_EVENTS: &str = insert_events!();
