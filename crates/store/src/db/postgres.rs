//! What is particular to PostgreSQL.

use sqlx::PgConnection;

use super::{Dialect, Durability, NewSeal, key_rows};
use crate::{
    audit::writer::{AnsweredKey, NewEvent, NewIntent},
    error::StoreError,
    idempotency::NewKey,
};

pub(super) async fn durability(conn: &mut PgConnection) -> Result<Durability, StoreError> {
    let version = sqlx::query_scalar("SHOW server_version").fetch_one(&mut *conn).await?;
    let synchronous: String =
        sqlx::query_scalar("SHOW synchronous_commit").fetch_one(&mut *conn).await?;
    let fsync: String = sqlx::query_scalar("SHOW fsync").fetch_one(&mut *conn).await?;
    Ok(Durability {
        engine: "postgres",
        version,
        journal: "wal".to_owned(),
        survives_power_loss: fsync == "on" && synchronous != "off",
        synchronous,
    })
}

/// Between those who insert events (shared) and who seals them (exclusive).
macro_rules! writers {
    () => {
        "5785245102"
    };
}

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

    async fn insert_intents(&mut self, node: &str, rows: &[&NewIntent]) -> Result<(), sqlx::Error> {
        let insert = "INSERT INTO audit_intents (id, org_id, node, opened_at, record) \
                      SELECT id, org_id, $3, opened_at, record \
                      FROM UNNEST($1::text[], $2::text[], $4::bigint[], $5::text[]) \
                      AS given (id, org_id, opened_at, record)";
        sqlx::query(insert)
            .bind(rows.iter().map(|row| row.id.to_string()).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.org_id.to_string()).collect::<Vec<_>>())
            .bind(node)
            .bind(rows.iter().map(|row| row.opened_at.as_micros()).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.record.as_str()).collect::<Vec<_>>())
            .execute(&mut *self)
            .await?;
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
        let update = "UPDATE idempotency_keys AS k SET sealed = given.sealed \
                      FROM UNNEST($1::text[], $2::text[], $3::bytea[]) \
                      AS given (org_id, subject, sealed) \
                      WHERE k.org_id = given.org_id AND k.subject = given.subject";
        sqlx::query(update)
            .bind(rows.iter().map(|row| row.org_id.as_str()).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.subject.as_str()).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.sealed).collect::<Vec<_>>())
            .execute(&mut *self)
            .await?;
        Ok(())
    }

    async fn insert_events(
        &mut self,
        committed_at: i64,
        rows: &[&NewEvent],
    ) -> Result<(), sqlx::Error> {
        let texts = |of: fn(&NewEvent) -> Option<String>| -> Vec<Option<String>> {
            rows.iter().map(|row| of(row)).collect()
        };
        sqlx::query(INSERT_EVENTS)
            .bind(rows.iter().map(|row| row.id.to_string()).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.org_id.to_string()).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.kind.as_str()).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.occurred_at.as_micros()).collect::<Vec<_>>())
            .bind(committed_at)
            .bind(texts(|row| row.actor_id.map(|id| id.to_string())))
            .bind(texts(|row| row.via.map(|id| id.to_string())))
            .bind(texts(|row| row.token_id.map(|id| id.to_string())))
            .bind(texts(|row| row.target.clone()))
            .bind(texts(|row| row.decision.clone()))
            .bind(texts(|row| row.policy.clone()))
            .bind(texts(|row| row.dlp_result.clone()))
            .bind(texts(|row| row.outcome.clone()))
            .bind(texts(|row| row.request_id.map(|id| id.to_string())))
            .bind(rows.iter().map(|row| row.core.as_str()).collect::<Vec<_>>())
            .bind(texts(|row| row.detached.clone()))
            .bind(texts(|row| row.salts.clone()))
            .bind(rows.iter().map(|row| row.has_payload).collect::<Vec<_>>())
            .execute(&mut *self)
            .await?;
        Ok(())
    }

    async fn delete_intents(&mut self, ids: &[String]) -> Result<(), sqlx::Error> {
        let delete = "DELETE FROM audit_intents WHERE id = ANY($1)";
        sqlx::query(delete).bind(ids).execute(&mut *self).await?;
        Ok(())
    }

    async fn insert_seals(
        &mut self,
        org_id: &str,
        first: i64,
        seals: &[NewSeal],
    ) -> Result<(), sqlx::Error> {
        let insert = "INSERT INTO audit_seals (org_id, sequence, position, recorded_at, leaf_hash) \
                      SELECT $1, $2 + place - 1, position, recorded_at, leaf_hash \
                      FROM UNNEST($3::bigint[], $4::bigint[], $5::bytea[]) WITH ORDINALITY \
                      AS given (position, recorded_at, leaf_hash, place)";
        sqlx::query(insert)
            .bind(org_id)
            .bind(first)
            .bind(seals.iter().map(|seal| seal.position).collect::<Vec<_>>())
            .bind(seals.iter().map(|seal| seal.recorded_at).collect::<Vec<_>>())
            .bind(seals.iter().map(|seal| seal.leaf_hash.as_slice()).collect::<Vec<_>>())
            .execute(&mut *self)
            .await?;
        Ok(())
    }
}

const INSERT_KEYS: &str = "
INSERT INTO idempotency_keys (org_id, digest, fingerprint, subject, request_id, expires_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, (value ->> 5)::bigint
FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS given (value, place) ORDER BY place
ON CONFLICT (org_id, digest) DO UPDATE SET fingerprint = excluded.fingerprint,
    subject = excluded.subject, request_id = excluded.request_id,
    expires_at = excluded.expires_at, sealed = NULL
WHERE idempotency_keys.expires_at <= $2
RETURNING subject";

const INSERT_EVENTS: &str = "
INSERT INTO audit_events (id, org_id, type, occurred_at, committed_at, actor_id, via, token_id,
    target, decision, policy, dlp_result, outcome, request_id, core, detached, salts, payload_at)
SELECT id, org_id, type, occurred_at, $5, actor_id, via, token_id,
    target, decision, policy, dlp_result, outcome, request_id, core, detached, salts,
    CASE WHEN has_payload THEN $5 END
FROM UNNEST($1::text[], $2::text[], $3::text[], $4::bigint[], $6::text[], $7::text[], $8::text[],
    $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[],
    $16::text[], $17::text[], $18::boolean[]) WITH ORDINALITY
AS given (id, org_id, type, occurred_at, actor_id, via, token_id, target, decision, policy,
    dlp_result, outcome, request_id, core, detached, salts, has_payload, place)
ORDER BY place";
