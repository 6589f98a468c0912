//! A batch of the audit log on PostgreSQL: few statements, each of many rows.

mod approvals;

use std::time::Duration;

use portcullis_core::id::EventId;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    LONGEST_COMMIT, Pool, Session as Connection, insert_events, values_of_events, writers,
};
use crate::{
    db::{
        Value as _, all,
        approvals::Uses,
        batch::{AnsweredKey, Batch, key_rows},
        rows::{NewIntent, NewKey},
        run,
        session::Session,
    },
    error::{DriverError, StoreError},
    row_key::{PackedRecord, RowKey},
};

/// Opens a transaction for the rows of all orgs: [`crate::db::Scope::Installation`].
macro_rules! begin {
    () => {
        "BEGIN; SET LOCAL portcullis.installation = 'on'"
    };
}

/// Idle time after which a connection is probed.
const REST: Duration = Duration::from_secs(1);
/// Time for the answer to a probe.
const PROBE: Duration = Duration::from_secs(2);

/// Writes batches over a connection that it keeps: borrowing one anew would be two more round trips
/// for each.
#[derive(Debug)]
pub(crate) struct LogWriter {
    pool: Pool,
    key: RowKey,
    kept: Option<(Connection, Instant)>,
}

impl LogWriter {
    pub(crate) const fn new(pool: Pool, key: RowKey) -> Self {
        Self { pool, key, kept: None }
    }

    /// Writes the batch in one transaction. Those intents of it that lost their keys or have no
    /// approval are not written.
    ///
    /// Intents or events alone are three round trips: the beginning, one statement, the end. A server that does not
    /// answer is waited for [`LONGEST_COMMIT`]; then another connection is used.
    pub(crate) async fn commit(
        &mut self,
        node: &str,
        committed_at: i64,
        batch: &mut Batch<'_>,
    ) -> Result<(), StoreError> {
        let committing = self.commit_over_connection(node, committed_at, batch);
        let late = || StoreError::OutcomeUnknown("PostgreSQL does not answer".to_owned());
        timeout(LONGEST_COMMIT, committing).await.unwrap_or_else(|_| Err(late()))
    }

    async fn commit_over_connection(
        &mut self,
        node: &str,
        committed_at: i64,
        batch: &mut Batch<'_>,
    ) -> Result<(), StoreError> {
        let mut connection = self.connection().await?;
        // The rows of a batch are those of many orgs.
        let is_silent = batch.events.is_empty() && batch.changes.is_empty();
        connection.begin(if is_silent { begin!() } else { BEGIN_ANNOUNCED }).await?;
        let mut tx = Session::Postgres(connection);
        let written = write(&mut tx, &self.key, node, committed_at, batch).await;
        let Session::Postgres(mut connection) = tx else { return written };
        let committed = match written {
            Ok(()) => connection.commit().await.map_err(StoreError::of_commit),
            Err(error) => Err(error),
        };
        let is_usable = match &committed {
            Ok(()) => true,
            Err(StoreError::Conflict(_)) => connection.roll_back().await.is_ok(),
            // The pool finds out what is wrong with it.
            Err(_) => false,
        };
        if is_usable {
            self.kept = Some((connection, Instant::now()));
        }
        committed
    }

    /// When the pool begins to close; until then the connection may be kept.
    pub(crate) fn closing(&self) -> CancellationToken {
        self.pool.closing()
    }

    /// Gives the connection back.
    pub(crate) fn let_go(&mut self) {
        self.kept = None;
    }

    async fn connection(&mut self) -> Result<Connection, DriverError> {
        if let Some((mut connection, used)) = self.kept.take()
            && (used.elapsed() < REST || answers(&mut connection).await)
        {
            return Ok(connection);
        }
        // The pool tests none: see [`Pool::begin`].
        loop {
            let mut connection = self.pool.take().await?;
            if !connection.was_idle() || answers(&mut connection).await {
                return Ok(connection);
            }
            connection.discard();
        }
    }
}

/// Asks the server. A connection without an answer is given up.
async fn answers(connection: &mut Connection) -> bool {
    matches!(timeout(PROBE, connection.ping()).await, Ok(Ok(())))
}

async fn write(
    tx: &mut Session,
    key: &RowKey,
    node: &str,
    committed_at: i64,
    batch: &mut Batch<'_>,
) -> Result<(), StoreError> {
    // Locked before keys, on every node: a batch that waits for an approval holds no key.
    if !batch.changes.is_empty() {
        approvals::change(tx, batch).await?;
    }
    let mut uses = Uses::default();
    if !batch.approved.is_empty() {
        uses = approvals::lock_usable(tx, committed_at, &batch.approved).await?;
    }
    if !batch.keyed.is_empty() {
        let won = insert_keys(tx, committed_at, &batch.keyed).await?;
        batch.keep_winners(&won);
    }
    if !batch.approved.is_empty() {
        approvals::take(tx, batch.use_approvals(uses)).await?;
    }
    if !batch.intents.is_empty() {
        insert_intents(tx, key, node, &batch.intents).await?;
    }
    if !batch.events.is_empty() {
        let ended: Vec<_> = batch.finished.iter().map(EventId::to_string).collect();
        let mut values = values_of_events(key, committed_at, &batch.events);
        values.push(ended.bound());
        tx.run(END_INTENTS, values).await?;
    }
    if !batch.answered.is_empty() {
        answer_keys(tx, &batch.answered).await?;
    }
    if !batch.released.is_empty() {
        release_keys(tx, &batch.released).await?;
    }
    Ok(())
}

async fn insert_intents(
    conn: &mut Session,
    key: &RowKey,
    node: &str,
    rows: &[&NewIntent],
) -> Result<(), DriverError> {
    let insert = "INSERT INTO audit_intents (id, org_id, node, opened_at, packed, mac) \
                  SELECT id, org_id, $3, opened_at, packed, mac \
                  FROM UNNEST($1::text[], $2::text[], $4::bigint[], $5::bytea[], $6::bytea[]) \
                  AS given (id, org_id, opened_at, packed, mac)";
    let packed: Vec<PackedRecord> =
        rows.iter().map(|row| row.record.packed().into_owned()).collect();
    let codes = rows.iter().zip(&packed).map(|(row, record)| row.code(key, record));
    let codes = codes.collect::<Vec<_>>();
    run!(
        conn, insert => rows.iter().map(|row| row.id.to_string()).collect::<Vec<_>>(),
        rows.iter().map(|row| row.org_id.to_string()).collect::<Vec<_>>(), node,
        rows.iter().map(|row| row.opened_at.as_micros()).collect::<Vec<_>>(),
        packed.into_iter().map(|record| record.bytes).collect::<Vec<_>>(), codes
    );
    Ok(())
}

async fn insert_keys(
    conn: &mut Session,
    now: i64,
    rows: &[(&NewIntent, &NewKey)],
) -> Result<Vec<String>, DriverError> {
    Ok(all!(conn, scalar INSERT_KEYS => key_rows(rows), now))
}

async fn answer_keys(conn: &mut Session, rows: &[AnsweredKey<'_>]) -> Result<(), DriverError> {
    let update = "UPDATE idempotency_keys AS k SET sealed = given.sealed \
                  FROM UNNEST($1::text[], $2::text[], $3::bytea[]) \
                  AS given (org_id, subject, sealed) \
                  WHERE k.org_id = given.org_id AND k.subject = given.subject";
    run!(
        conn, update => rows.iter().map(|row| row.org_id.as_str()).collect::<Vec<_>>(),
        rows.iter().map(|row| row.subject.as_str()).collect::<Vec<_>>(),
        rows.iter().map(|row| row.sealed).collect::<Vec<_>>()
    );
    Ok(())
}

async fn release_keys(conn: &mut Session, keys: &[(String, String)]) -> Result<(), DriverError> {
    for (org_id, subject) in keys {
        run!(
            conn, "DELETE FROM idempotency_keys WHERE org_id = $1 AND subject = $2" => org_id,
            subject
        );
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
