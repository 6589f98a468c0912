//! PostgreSQL's peculiarities.

mod batch;
mod pool;
mod tls;

pub(crate) use self::{
    batch::LogWriter,
    pool::{LONGEST_COMMIT, Pool, Session, open},
    tls::Tls,
};

use super::{
    Durability, NewEvent, NewSeal, TextColumn, Value as _, durability, one, run, session,
    statement::Bound,
};
use crate::{
    error::{DriverError, StoreError},
    row_key::{PackedRecord, RowKey},
};

/// `SHOW` of each, as a session of this role gets it.
const DURABILITY: &str = "
SELECT current_setting('server_version'), current_setting('synchronous_commit'),
    trim(current_setting('synchronous_standby_names')) <> '',
    current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',
    NOT (rolsuper OR rolbypassrls)
FROM pg_roles WHERE rolname = current_user";

pub(super) async fn durability(conn: &mut session::Session) -> Result<Durability, StoreError> {
    let found: (String, String, bool, bool, bool, bool) = one!(conn, DURABILITY);
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
pub(super) use writers;

/// Inserts the seals of consecutive sequences of one org, beginning with `first`.
pub(crate) async fn insert_seals(
    conn: &mut session::Session,
    org_id: &str,
    first: i64,
    seals: &[NewSeal],
) -> Result<(), DriverError> {
    let insert = "INSERT INTO audit_seals \
                  (org_id, sequence, position, recorded_at, leaf_hash, event_id) \
                  SELECT $1, $2 + place - 1, position, recorded_at, leaf_hash, event_id \
                  FROM UNNEST($3::bigint[], $4::bigint[], $5::bytea[], $6::text[]) \
                  WITH ORDINALITY AS given (position, recorded_at, leaf_hash, event_id, place)";
    run!(
        conn, insert => org_id, first, seals.iter().map(|seal| seal.position).collect::<Vec<_>>(),
        seals.iter().map(|seal| seal.recorded_at).collect::<Vec<_>>(),
        seals.iter().map(|seal| seal.leaf_hash.as_slice()).collect::<Vec<_>>(),
        seals.iter().map(|seal| seal.event_id.to_string()).collect::<Vec<_>>()
    );
    Ok(())
}

/// Values of [`INSERT_EVENTS`].
pub(super) fn values_of_events(key: &RowKey, committed_at: i64, rows: &[&NewEvent]) -> Vec<Bound> {
    let texts = |of: fn(&NewEvent) -> Option<String>| -> Vec<Option<String>> {
        rows.iter().map(|row| of(row)).collect()
    };
    let packed: Vec<PackedRecord> =
        rows.iter().map(|row| row.texts.packed().into_owned()).collect();
    let codes = rows.iter().zip(&packed).map(|(row, it)| row.code(key, committed_at, it));
    let codes = codes.collect::<Vec<_>>();
    vec![
        rows.iter().map(|row| row.id.to_string()).collect::<Vec<_>>().bound(),
        rows.iter().map(|row| row.org_id.to_string()).collect::<Vec<_>>().bound(),
        rows.iter().map(|row| &*row.kind).collect::<Vec<_>>().bound(),
        rows.iter().map(|row| row.occurred_at.as_micros()).collect::<Vec<_>>().bound(),
        committed_at.bound(),
        texts(|row| row.actor_id.map(|id| id.to_string())).bound(),
        texts(|row| row.via.map(|id| id.to_string())).bound(),
        texts(|row| row.token_id.map(|id| id.to_string())).bound(),
        rows.iter().map(|row| row.texts.of(TextColumn::Target)).collect::<Vec<_>>().bound(),
        rows.iter().map(|row| row.decision.as_deref()).collect::<Vec<_>>().bound(),
        rows.iter().map(|row| row.texts.of(TextColumn::Policy)).collect::<Vec<_>>().bound(),
        rows.iter().map(|row| row.dlp_result.as_deref()).collect::<Vec<_>>().bound(),
        rows.iter().map(|row| row.outcome.as_deref()).collect::<Vec<_>>().bound(),
        texts(|row| row.request_id.map(|id| id.to_string())).bound(),
        packed.into_iter().map(|record| record.bytes).collect::<Vec<_>>().bound(),
        rows.iter().map(|row| row.has_payload).collect::<Vec<_>>().bound(),
        codes.bound(),
    ]
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

pub(super) const INSERT_EVENTS: &str = insert_events!();
