//! Sealing: gives committed events their place in the org's log.
//!
//! Anyone may seal at any time, several at once: only who still finds the head of the log as it
//! was read may move it.

use portcullis_core::{
    clock::Timestamp,
    id::{EventId, OrgId},
};

use crate::{
    Store,
    db::{Dialect, NewSeal, change, parse, read, row},
    error::StoreError,
};

const BATCH: i64 = 1000;

/// A committed event that has no place yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsealedEvent {
    /// Its id.
    pub id: EventId,
    /// The tenant.
    pub org_id: OrgId,
    /// The part that is hashed, as JSON, without sequence and time of recording.
    pub core: String,
}

row!(Head { size: i64, last_position: i64, last_recorded_at: i64 });
row!(UnsealedRow { position: i64, id: String, committed_at: i64, core: String });

impl Store {
    /// Seals what the org has committed, in the order of commits, and says how many events that
    /// were. `leaf` makes the leaf hash of an event from its sequence (counted from 0 without
    /// gaps) and time of recording (never running backwards); it may run more than once.
    pub async fn seal<F>(&self, org: OrgId, leaf: F) -> Result<u64, StoreError>
    where
        F: Fn(&UnsealedEvent, i64, Timestamp) -> [u8; 32] + Send,
    {
        let horizon = self.horizon().await?;
        let mut sealed = 0;
        while let Some(head) = self.head(org).await? {
            let rows = self.unsealed(org, &head, horizon).await?;
            let Some(last) = rows.last().map(|row| row.position) else { break };
            let seals = seals_of(org, &head, rows, &leaf)?;
            if self.append_seals(org, &head, last, &seals).await? {
                sealed += u64::try_from(seals.len()).unwrap_or(0);
            }
        }
        Ok(sealed)
    }

    /// The orgs that have something to seal.
    pub async fn orgs_with_unsealed(&self) -> Result<Vec<OrgId>, StoreError> {
        let rows: Vec<String> = read!(self, |conn| {
            sqlx::query_scalar(
                "SELECT h.org_id FROM audit_heads h WHERE EXISTS (SELECT 1 FROM audit_events e \
                 WHERE e.org_id = h.org_id AND e.position > h.last_position) ORDER BY h.org_id",
            )
            .fetch_all(&mut *conn)
            .await?
        });
        rows.iter().map(|id| parse(id, "audit_heads.org_id")).collect()
    }

    /// How many events of the org are sealed: the sequence the next one gets.
    pub async fn sealed_size(&self, org: OrgId) -> Result<i64, StoreError> {
        Ok(self.head(org).await?.map_or(0, |head| head.size))
    }

    /// A position up to which every event is visible.
    async fn horizon(&self) -> Result<i64, StoreError> {
        let last: i64 = change!(self, |tx| {
            tx.wait_for_writers().await?;
            sqlx::query_scalar("SELECT COALESCE(MAX(position), 0) FROM audit_events")
                .fetch_one(&mut *tx)
                .await?
        });
        Ok(last)
    }

    async fn head(&self, org: OrgId) -> Result<Option<Head>, StoreError> {
        Ok(read!(self, |conn| {
            sqlx::query_as(
                "SELECT size, last_position, last_recorded_at FROM audit_heads WHERE org_id = $1",
            )
            .bind(org.to_string())
            .fetch_optional(&mut *conn)
            .await?
        }))
    }

    async fn unsealed(
        &self,
        org: OrgId,
        head: &Head,
        horizon: i64,
    ) -> Result<Vec<UnsealedRow>, StoreError> {
        Ok(read!(self, |conn| {
            sqlx::query_as(
                "SELECT position, id, committed_at, core FROM audit_events \
                 WHERE org_id = $1 AND position > $2 AND position <= $3 \
                 ORDER BY position LIMIT $4",
            )
            .bind(org.to_string())
            .bind(head.last_position)
            .bind(horizon)
            .bind(BATCH)
            .fetch_all(&mut *conn)
            .await?
        }))
    }

    /// `false` if somebody else moved the head meanwhile; then nothing was written.
    async fn append_seals(
        &self,
        org: OrgId,
        head: &Head,
        last_position: i64,
        seals: &[NewSeal],
    ) -> Result<bool, StoreError> {
        let org = org.to_string();
        let last_recorded_at = seals.last().map_or(head.last_recorded_at, |seal| seal.recorded_at);
        Ok(change!(self, |tx| {
            let moved = sqlx::query(
                "UPDATE audit_heads SET size = size + $3, last_position = $4, \
                 last_recorded_at = $5 WHERE org_id = $1 AND size = $2",
            )
            .bind(&org)
            .bind(head.size)
            .bind(i64::try_from(seals.len()).unwrap_or(0))
            .bind(last_position)
            .bind(last_recorded_at)
            .execute(&mut *tx)
            .await?;
            let ours = moved.rows_affected() == 1;
            if ours {
                tx.insert_seals(&org, head.size, seals).await?;
            }
            ours
        }))
    }
}

fn seals_of<F>(
    org_id: OrgId,
    head: &Head,
    rows: Vec<UnsealedRow>,
    leaf: &F,
) -> Result<Vec<NewSeal>, StoreError>
where
    F: Fn(&UnsealedEvent, i64, Timestamp) -> [u8; 32],
{
    let mut recorded_at = head.last_recorded_at;
    let sequences = head.size..;
    let rows = rows.into_iter().zip(sequences).map(|(row, sequence)| {
        recorded_at = recorded_at.max(row.committed_at);
        let id = parse(&row.id, "audit_events.id")?;
        let event = UnsealedEvent { id, org_id, core: row.core };
        let leaf_hash = leaf(&event, sequence, Timestamp::from_micros(recorded_at));
        Ok(NewSeal { position: row.position, recorded_at, leaf_hash })
    });
    rows.collect()
}
