//! A batch of the audit log on PostgreSQL: few statements, each of many rows.

mod approvals;

use std::time::Duration;

use portcullis_core::id::EventId;
use sqlx::{
    Connection, PgConnection, PgPool, Postgres,
    pool::{CloseEvent, PoolConnection},
};
use tokio::time::Instant;

use super::{bind_events, insert_events, writers};
use crate::{
    db::{
        approvals::Uses,
        batch::{AnsweredKey, Batch, key_rows},
        rows::{NewIntent, NewKey},
    },
    error::StoreError,
    row_key::{PackedRecord, RowKey},
};

/// Idle time after which a connection is probed.
const REST: Duration = Duration::from_secs(1);

/// Writes batches over a connection that it keeps: borrowing one anew would be two more round trips
/// for each.
#[derive(Debug)]
pub(crate) struct LogWriter {
    pool: PgPool,
    key: RowKey,
    kept: Option<(PoolConnection<Postgres>, Instant)>,
}

impl LogWriter {
    pub(crate) const fn new(pool: PgPool, key: RowKey) -> Self {
        Self { pool, key, kept: None }
    }

    /// Writes the batch in one transaction. Those intents of it that lost their keys or have no
    /// approval are not written.
    ///
    /// Intents or events alone are three round trips: the beginning, one statement, the end.
    pub(crate) async fn commit(
        &mut self,
        node: &str,
        committed_at: i64,
        batch: &mut Batch<'_>,
    ) -> Result<(), StoreError> {
        let mut connection = self.connection().await?;
        let committed = commit(&mut connection, &self.key, node, committed_at, batch).await;
        // The pool finds out what is wrong with one that failed.
        if matches!(committed, Ok(()) | Err(StoreError::Conflict(_))) {
            self.kept = Some((connection, Instant::now()));
        }
        committed
    }

    /// When the pool begins to close; until then the connection may be kept.
    pub(crate) fn closing(&self) -> CloseEvent {
        self.pool.close_event()
    }

    /// Gives the connection back.
    pub(crate) fn let_go(&mut self) {
        self.kept = None;
    }

    async fn connection(&mut self) -> Result<PoolConnection<Postgres>, sqlx::Error> {
        if let Some((mut connection, used)) = self.kept.take()
            && (used.elapsed() < REST || connection.ping().await.is_ok())
        {
            return Ok(connection);
        }
        // The pool tests none: see [`crate::db::begin`].
        for _ in 0..self.pool.num_idle() {
            let mut connection = self.pool.acquire().await?;
            if connection.ping().await.is_ok() {
                return Ok(connection);
            }
        }
        self.pool.acquire().await
    }
}

/// Opens a transaction for the rows of all orgs: [`crate::db::Scope::Installation`].
macro_rules! begin {
    () => {
        "BEGIN; SET LOCAL portcullis.installation = 'on'"
    };
}

async fn commit(
    connection: &mut PgConnection,
    key: &RowKey,
    node: &str,
    committed_at: i64,
    batch: &mut Batch<'_>,
) -> Result<(), StoreError> {
    // The rows of a batch are those of many orgs.
    let is_silent = batch.events.is_empty() && batch.changes.is_empty();
    let begin = if is_silent { begin!() } else { BEGIN_ANNOUNCED };
    let mut tx = connection.begin_with(begin).await?;
    // Locked before keys, on every node: a batch that waits for an approval holds no key.
    if !batch.changes.is_empty() {
        approvals::change(&mut tx, batch).await?;
    }
    let mut uses = Uses::default();
    if !batch.approved.is_empty() {
        uses = approvals::lock_usable(&mut tx, committed_at, &batch.approved).await?;
    }
    if !batch.keyed.is_empty() {
        let won = insert_keys(&mut tx, committed_at, &batch.keyed).await?;
        batch.keep_winners(&won);
    }
    if !batch.approved.is_empty() {
        approvals::take(&mut tx, batch.use_approvals(uses)).await?;
    }
    if !batch.intents.is_empty() {
        insert_intents(&mut tx, key, node, &batch.intents).await?;
    }
    if !batch.events.is_empty() {
        let ended: Vec<_> = batch.finished.iter().map(EventId::to_string).collect();
        let insert = bind_events(sqlx::query(END_INTENTS), key, committed_at, &batch.events);
        insert.bind(ended).execute(&mut *tx).await?;
    }
    if !batch.answered.is_empty() {
        answer_keys(&mut tx, &batch.answered).await?;
    }
    if !batch.released.is_empty() {
        release_keys(&mut tx, &batch.released).await?;
    }
    tx.commit().await.map_err(StoreError::of_commit)
}

async fn insert_intents(
    conn: &mut PgConnection,
    key: &RowKey,
    node: &str,
    rows: &[&NewIntent],
) -> Result<(), sqlx::Error> {
    let insert = "INSERT INTO audit_intents (id, org_id, node, opened_at, packed, mac) \
                  SELECT id, org_id, $3, opened_at, packed, mac \
                  FROM UNNEST($1::text[], $2::text[], $4::bigint[], $5::bytea[], $6::bytea[]) \
                  AS given (id, org_id, opened_at, packed, mac)";
    let packed: Vec<PackedRecord> =
        rows.iter().map(|row| row.record.packed().into_owned()).collect();
    let codes = rows.iter().zip(&packed).map(|(row, record)| row.code(key, record));
    let codes = codes.collect::<Vec<_>>();
    sqlx::query(insert)
        .bind(rows.iter().map(|row| row.id.to_string()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.org_id.to_string()).collect::<Vec<_>>())
        .bind(node)
        .bind(rows.iter().map(|row| row.opened_at.as_micros()).collect::<Vec<_>>())
        .bind(packed.into_iter().map(|record| record.bytes).collect::<Vec<_>>())
        .bind(codes)
        .execute(&mut *conn)
        .await?;
    Ok(())
}

async fn insert_keys(
    conn: &mut PgConnection,
    now: i64,
    rows: &[(&NewIntent, &NewKey)],
) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar(INSERT_KEYS).bind(key_rows(rows)).bind(now).fetch_all(&mut *conn).await
}

async fn answer_keys(conn: &mut PgConnection, rows: &[AnsweredKey<'_>]) -> Result<(), sqlx::Error> {
    let update = "UPDATE idempotency_keys AS k SET sealed = given.sealed \
                  FROM UNNEST($1::text[], $2::text[], $3::bytea[]) \
                  AS given (org_id, subject, sealed) \
                  WHERE k.org_id = given.org_id AND k.subject = given.subject";
    sqlx::query(update)
        .bind(rows.iter().map(|row| row.org_id.as_str()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.subject.as_str()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.sealed).collect::<Vec<_>>())
        .execute(&mut *conn)
        .await?;
    Ok(())
}

async fn release_keys(
    conn: &mut PgConnection,
    keys: &[(String, String)],
) -> Result<(), sqlx::Error> {
    for (org_id, subject) in keys {
        sqlx::query("DELETE FROM idempotency_keys WHERE org_id = $1 AND subject = $2")
            .bind(org_id)
            .bind(subject)
            .execute(&mut *conn)
            .await?;
    }
    Ok(())
}

/// The transaction of a batch with events: see [`super::super::Dialect::announce_writer`]. The planner takes the
/// table of intents for nearly empty and would read it whole, with all that was deleted since the last vacuum;
/// such a plan is kept.
const BEGIN_ANNOUNCED: &str = concat!(
    begin!(),
    "; SET LOCAL enable_seqscan = off; SELECT pg_advisory_xact_lock_shared(",
    writers!(),
    ")"
);

const END_INTENTS: &str =
    concat!("WITH ended AS (DELETE FROM audit_intents WHERE id = ANY($18))", insert_events!());

const INSERT_KEYS: &str = "
INSERT INTO idempotency_keys (org_id, digest, fingerprint, subject, request_id, expires_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, (value ->> 5)::bigint
FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS given (value, place) ORDER BY place
ON CONFLICT (org_id, digest) DO UPDATE SET fingerprint = excluded.fingerprint,
    subject = excluded.subject, request_id = excluded.request_id,
    expires_at = excluded.expires_at, sealed = NULL
WHERE idempotency_keys.expires_at <= $2
RETURNING subject";
