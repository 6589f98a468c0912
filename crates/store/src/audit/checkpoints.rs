//! The latest signed trees of each org.

use async_recursion::async_recursion as boxed;
use portcullis_core::{audit::Hash, clock::Timestamp, id::OrgId};

use super::tree::size_of;
use crate::{
    db::{Found, Readable, Store, all, change, find, parse, read, row},
    error::StoreError,
};

/// Selection of a checkpoint of an org.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointKind {
    /// The latest that the log signed.
    Signed,
    /// The latest that a witness signed too.
    Witnessed,
}

impl CheckpointKind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Signed => "signed",
            Self::Witnessed => "witnessed",
        }
    }
}

/// A signed tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCheckpoint {
    /// Number of leaves.
    pub size: u64,
    pub root: Hash,
    pub note: String,
    pub signed_at: Timestamp,
}

row!(pub(crate) CheckpointRow { size: i64, root: Vec<u8>, note: String, signed_at: i64 });

impl CheckpointRow {
    pub(crate) fn read(self) -> Result<StoredCheckpoint, StoreError> {
        let root = self.root.try_into();
        Ok(StoredCheckpoint {
            size: size_of(self.size)?,
            root: root.map_err(|_| StoreError::Corrupt("audit_checkpoints.root"))?,
            note: self.note,
            signed_at: Timestamp::from_micros(self.signed_at),
        })
    }
}

row!(OrgCheckpointRow { org_id: String, size: i64, root: Vec<u8>, note: String, signed_at: i64 });

impl Readable for OrgCheckpointRow {
    const TABLE: &'static str = "audit_checkpoints";
    type Record = (OrgId, StoredCheckpoint);

    fn read(self) -> Result<(OrgId, StoredCheckpoint), StoreError> {
        let Self { org_id, size, root, note, signed_at } = self;
        let org = parse(&org_id, "audit_checkpoints.org_id")?;
        Ok((org, CheckpointRow { size, root, note, signed_at }.read()?))
    }
}

row!(pub(crate) HeadRow { org_id: String });

/// The org of a log's head.
impl Readable for HeadRow {
    const TABLE: &'static str = "audit_heads";
    type Record = OrgId;

    fn read(self) -> Result<OrgId, StoreError> {
        parse(&self.org_id, "audit_heads.org_id")
    }
}

/// Stores a checkpoint within a transaction, unless a larger one stands there. What this leaves
/// behind if the transaction fails is the older checkpoint, which is as true as before.
macro_rules! put_checkpoint {
    ($tx:ident, $org:expr, $kind:expr, $checkpoint:expr) => {{
        let checkpoint: &$crate::audit::checkpoints::StoredCheckpoint = $checkpoint;
        $crate::db::run!(
            $tx, $crate::audit::checkpoints::PUT => $org, $kind.as_str(),
            $crate::audit::tree::number(checkpoint.size), checkpoint.root.as_slice(),
            checkpoint.note.as_str(), checkpoint.signed_at.as_micros()
        );
    }};
}

pub(crate) use put_checkpoint;

pub(crate) const FIND: &str = "
SELECT size, root, note, signed_at FROM audit_checkpoints WHERE org_id = $1 AND kind = $2";

pub(crate) const PUT: &str = "
INSERT INTO audit_checkpoints (org_id, kind, size, root, note, signed_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (org_id, kind) DO UPDATE SET size = excluded.size, root = excluded.root,
    note = excluded.note, signed_at = excluded.signed_at
WHERE audit_checkpoints.size <= excluded.size";

impl Store {
    /// The org's latest checkpoint of a kind.
    #[boxed]
    pub async fn find_checkpoint(
        &self,
        org: OrgId,
        kind: CheckpointKind,
    ) -> Result<Option<StoredCheckpoint>, StoreError> {
        let row: Option<CheckpointRow> = read!(self, unqueued org, |conn| {
            find!(conn, FIND => org, kind.as_str())
        });
        row.map(CheckpointRow::read).transpose()
    }

    /// Keeps a checkpoint, unless a larger one of the kind is kept.
    #[boxed]
    pub async fn keep_checkpoint(
        &self,
        org: OrgId,
        kind: CheckpointKind,
        checkpoint: &StoredCheckpoint,
    ) -> Result<(), StoreError> {
        let id = org.to_string();
        change!(self, org, |tx| put_checkpoint!(tx, &id, kind, checkpoint));
        Ok(())
    }

    /// A checkpoint that some org's log signed, if any has: who starts without its key has lost
    /// it.
    #[boxed]
    pub async fn any_checkpoint(&self) -> Result<Option<(OrgId, String)>, StoreError> {
        let row: Option<(String, String)> = read!(self, installation, |conn| {
            find!(
                conn,
                "SELECT org_id, note FROM audit_checkpoints WHERE kind = 'signed' \
                 ORDER BY signed_at DESC LIMIT 1"
            )
        });
        let read = |(org, note): (String, String)| {
            Ok::<_, StoreError>((parse(&org, "audit_checkpoints.org_id")?, note))
        };
        row.map(read).transpose()
    }

    /// The signed checkpoints of some orgs, those that were signed last: to see whose keys these
    /// are.
    #[boxed]
    pub async fn recent_checkpoints(
        &self,
        limit: u32,
    ) -> Result<Vec<(OrgId, StoredCheckpoint)>, StoreError> {
        let rows: Vec<Found<OrgCheckpointRow>> = read!(self, installation, |conn| {
            all!(
                conn, "SELECT org_id, size, root, note, signed_at FROM audit_checkpoints \
                 WHERE kind = 'signed' ORDER BY signed_at DESC, org_id LIMIT $1"
                => i64::from(limit)
            )
        });
        Ok(self.readable(rows))
    }

    /// The latest signed checkpoints of all orgs that were signed at this moment or later, by the
    /// time they were signed.
    #[boxed]
    pub async fn checkpoints_since(
        &self,
        moment: Timestamp,
    ) -> Result<Vec<(OrgId, StoredCheckpoint)>, StoreError> {
        let rows: Vec<Found<OrgCheckpointRow>> = read!(self, installation, |conn| {
            all!(
                conn, "SELECT org_id, size, root, note, signed_at FROM audit_checkpoints \
                 WHERE kind = 'signed' AND signed_at >= $1 ORDER BY signed_at, org_id"
                => moment.as_micros()
            )
        });
        Ok(self.readable(rows))
    }

    /// The orgs of which not everything that is sealed is signed.
    #[boxed]
    pub async fn orgs_with_unsigned(&self) -> Result<Vec<OrgId>, StoreError> {
        let rows: Vec<Found<HeadRow>> = read!(self, installation, |conn| {
            all!(
                conn,
                "SELECT h.org_id FROM audit_heads h LEFT JOIN audit_checkpoints c \
                 ON c.org_id = h.org_id AND c.kind = 'signed' \
                 WHERE h.size > COALESCE(c.size, 0) ORDER BY h.org_id"
            )
        });
        Ok(self.readable(rows))
    }
}
