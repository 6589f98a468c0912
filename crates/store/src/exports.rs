//! Exports of the audit log: what was asked for and what became of it. The files lie elsewhere.

use portcullis_core::{
    clock::Timestamp,
    id::{ExportId, OrgId, PrincipalId},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    db::{
        Db, NewKey, Scope, Store, begin, boxed, change, changed, columns, database_clock, find,
        one, read, record, row, run,
    },
    error::StoreError,
};

portcullis_core::words! { listed
    /// Status of an export.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ExportStatus {
        /// The file is being written.
        Pending = "pending",
        /// Its file can be fetched.
        Ready = "ready",
        /// There will be no file.
        Failed = "failed",
    }
}

columns!(ExportStatus => String: |word| Self::from_word(&word););

/// Result of beginning an export. If it did not begin, nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportBegan {
    Begun,
    /// Too many of the org's are under way.
    TooMany,
    /// The org has as many files as it may have, until the oldest of them goes at this moment.
    Full(Timestamp),
    /// Its idempotency key stands for another one.
    KeyTaken,
}

/// The exports that an org may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportQuota {
    /// Under way at once.
    pub running: u32,
    /// Under way, or with a file that can be fetched.
    pub files: u32,
    /// Bytes of these files.
    pub bytes: u64,
}

/// The progress of an export that is being written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportBeat {
    /// Places of the log that were looked at.
    pub scanned: i64,
    /// Of how many.
    pub total: i64,
    pub bytes: u64,
}

/// An export that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewExport {
    pub id: ExportId,
    pub org_id: OrgId,
    /// Requester.
    pub principal_id: PrincipalId,
    /// The node that writes it.
    pub node: String,
    /// Request, as JSON.
    pub request: String,
    pub created_at: Timestamp,
    /// Until when it can be fetched.
    pub expires_at: Timestamp,
}

/// An export as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportRecord {
    pub id: ExportId,
    pub org_id: OrgId,
    /// Requester.
    pub principal_id: PrincipalId,
    /// The node that writes or wrote it.
    pub node: String,
    pub status: ExportStatus,
    /// Request, as JSON.
    pub request: String,
    /// Result, as JSON; once it is ready.
    pub result: Option<String>,
    /// Reason; once it has failed.
    pub error: Option<String>,
    /// Places of the log that were looked at.
    pub scanned: i64,
    /// Total; 0 while unknown.
    pub total: i64,
    pub created_at: Timestamp,
    /// Until when it can be fetched.
    pub expires_at: Timestamp,
}

record!(ExportRecord in "exports", |row| id, org_id, principal_id, node, status, request, result,
    error, scanned, total, created_at, expires_at);

row!(KeptRow { running: i64, files: i64, bytes: i64, next: Option<i64> });

impl KeptRow {
    /// Reason against a further export.
    fn refusal(&self, quota: ExportQuota) -> Option<ExportBegan> {
        if self.running >= i64::from(quota.running) {
            return Some(ExportBegan::TooMany);
        }
        let full = self.files >= i64::from(quota.files) || self.bytes.unsigned_abs() >= quota.bytes;
        full.then(|| ExportBegan::Full(Timestamp::from_micros(self.next.unwrap_or(0))))
    }
}

impl Store {
    /// Begins an export, unless the org has as many as it may have. Under an idempotency key, the key stands for it
    /// from then on: of any number with the same key one begins.
    #[boxed]
    pub async fn create_export(
        &self,
        export: &NewExport,
        quota: ExportQuota,
        key: Option<&NewKey>,
    ) -> Result<ExportBegan, StoreError> {
        let org = export.org_id.to_string();
        Ok(change!(self, export.org_id, |tx| {
            tx.lock_exports(&org).await?;
            if let Some(key) = key {
                let taken = run!(tx, TAKE_KEY => &org, &key.digest, &key.fingerprint, export.id,
                    key.request_id, key.expires_at, export.created_at);
                if taken == 0 {
                    return Ok(ExportBegan::KeyTaken);
                }
            }
            let kept: KeptRow = one!(tx, KEPT => &org, export.created_at);
            if let Some(no) = kept.refusal(quota) {
                return Ok(no);
            }
            run!(tx, INSERT => export.id, &org, export.principal_id, &export.node,
                &export.request, export.created_at, export.expires_at);
            ExportBegan::Begun
        }))
    }

    /// The org's export with this id.
    #[boxed]
    pub async fn find_export(
        &self,
        org: OrgId,
        id: ExportId,
    ) -> Result<Option<ExportRecord>, StoreError> {
        Ok(read!(self, org, |conn| find!(conn, FIND => org, id)))
    }

    /// The bytes of the org's other exports, which are under way or can be fetched.
    #[boxed]
    pub async fn export_bytes_beside(
        &self,
        org: OrgId,
        id: ExportId,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        Ok(read!(self, org, |conn| one!(conn, scalar BESIDE => org, id, now)))
    }

    /// Says that an export is being worked on and how far it has come. `false` when it is not
    /// pending any more: its writer shall stop.
    #[boxed]
    pub async fn beat_export(
        &self,
        org: OrgId,
        id: ExportId,
        ExportBeat { scanned, total, bytes }: ExportBeat,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let beat = "UPDATE exports SET scanned = $3, total = $4, beat_at = $5, bytes = $6 \
                    WHERE org_id = $1 AND id = $2 AND status = 'pending'";
        Ok(changed!(self, org, beat => org, id, scanned, total, now, bytes) == 1)
    }

    /// The file of a pending export can be fetched. `false` when it is not pending.
    #[boxed]
    pub async fn finish_export(
        &self,
        org: OrgId,
        id: ExportId,
        result: &str,
        bytes: u64,
    ) -> Result<bool, StoreError> {
        let finish = "UPDATE exports SET status = 'ready', result = $3, scanned = total, bytes = $4 \
                      WHERE org_id = $1 AND id = $2 AND status = 'pending'";
        Ok(changed!(self, org, finish => org, id, result, bytes) == 1)
    }

    /// A pending export comes to nothing, for this reason. `false` when it is not pending.
    #[boxed]
    pub async fn fail_export(
        &self,
        org: OrgId,
        id: ExportId,
        error: &str,
    ) -> Result<bool, StoreError> {
        let fail = "UPDATE exports SET status = 'failed', error = $3 \
                    WHERE org_id = $1 AND id = $2 AND status = 'pending'";
        Ok(changed!(self, org, fail => org, id, error) == 1)
    }

    /// Every export that `node` was writing comes to nothing. Gives how many there were.
    #[boxed]
    pub async fn fail_exports_of(&self, node: &str, error: &str) -> Result<u64, StoreError> {
        let fail = "UPDATE exports SET status = 'failed', error = $2 WHERE node = $1 AND status = 'pending'";
        Ok(changed!(self, installation, fail => node, error))
    }

    /// Every export that a node was writing which is gone comes to nothing. Gives how many there
    /// were; on SQLite none, which has one node.
    #[boxed]
    pub async fn fail_abandoned_exports(&self, error: &str) -> Result<u64, StoreError> {
        match &self.db {
            Db::Sqlite { .. } => Ok(0),
            Db::Postgres(pool) => {
                let mut tx = begin(pool, Scope::Installation).await?;
                let failed = run!(tx, ABANDON => error);
                tx.commit().await.map_err(StoreError::of_commit)?;
                Ok(failed)
            }
        }
    }

    /// Every export of which nothing was heard since `since` comes to nothing.
    #[boxed]
    pub async fn fail_silent_exports(
        &self,
        since: Timestamp,
        error: &str,
    ) -> Result<u64, StoreError> {
        let fail = "UPDATE exports SET status = 'failed', error = $2 \
                    WHERE beat_at < $1 AND status = 'pending'";
        Ok(changed!(self, installation, fail => since, error))
    }

    /// Until when the file of any org's export has to be kept, and how far it is; `None` when there
    /// is no such export.
    #[boxed]
    pub async fn export_expiry(
        &self,
        id: ExportId,
    ) -> Result<Option<(ExportStatus, Timestamp)>, StoreError> {
        Ok(read!(self, installation, |conn| {
            find!(conn, "SELECT status, expires_at FROM exports WHERE id = $1" => id)
        }))
    }

    /// Forgets the exports that expired before `before`. Gives how many there were.
    #[boxed]
    pub async fn forget_exports(&self, before: Timestamp) -> Result<u64, StoreError> {
        let forget = "DELETE FROM exports WHERE expires_at < $1 AND status <> 'pending'";
        Ok(changed!(self, installation, forget => before))
    }
}

/// A key that has expired makes room.
const TAKE_KEY: &str = "
INSERT INTO idempotency_keys (org_id, digest, fingerprint, subject, request_id, expires_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (org_id, digest) DO UPDATE SET fingerprint = excluded.fingerprint,
    subject = excluded.subject, request_id = excluded.request_id,
    expires_at = excluded.expires_at, sealed = NULL
WHERE idempotency_keys.expires_at <= $7";

const INSERT: &str = "
INSERT INTO exports (id, org_id, principal_id, node, status, request, scanned, total,
    created_at, beat_at, expires_at)
VALUES ($1, $2, $3, $4, 'pending', $5, 0, 0, $6, $6, $7)";

const KEPT: &str = "
SELECT COUNT(*) FILTER (WHERE status = 'pending') AS running, COUNT(*) AS files,
    CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS bytes, MIN(expires_at) AS next
FROM exports
WHERE org_id = $1 AND (status = 'pending' OR (status = 'ready' AND expires_at > $2))";

const BESIDE: &str = "
SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM exports
WHERE org_id = $1 AND id <> $2
    AND (status = 'pending' OR (status = 'ready' AND expires_at > $3))";

const FIND: &str = "
SELECT id, org_id, principal_id, node, status, request, result, error, scanned, total,
    created_at, expires_at
FROM exports WHERE org_id = $1 AND id = $2";

const ABANDON: &str = concat!(
    "UPDATE exports SET status = 'failed', error = $1 WHERE status = 'pending' AND NOT EXISTS ",
    "(SELECT 1 FROM nodes WHERE nodes.name = exports.node AND nodes.ends_at > ",
    database_clock!(),
    ")"
);
