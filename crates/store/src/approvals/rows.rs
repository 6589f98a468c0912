//! Rows of approvals: how they are read, and how changes are written.

use portcullis_core::{
    approval::{Approval, Status},
    clock::Timestamp,
};

use super::{ApprovalChange, StoredApproval};
use crate::{db::row, error::StoreError, unreadable::Readable};

row!(pub(super) StoredRow {
    org_id: String,
    id: String,
    digest: String,
    status: String,
    revision: i64,
    uses_left: i64,
    expires_at: i64,
    state: String,
});

impl Readable for StoredRow {
    const TABLE: &'static str = "approvals";
    type Record = StoredApproval;

    /// A use by a call writes no state, so the columns hold.
    fn read(self) -> Result<StoredApproval, StoreError> {
        let state: Approval = serde_json::from_str(&self.state)
            .ok()
            .filter(|state| self.is_of(state))
            .ok_or(StoreError::Corrupt("approvals.state"))?;
        let uses_left = u32::try_from(self.uses_left);
        let approval = Approval {
            status: Status::named(&self.status).ok_or(StoreError::Corrupt("approvals.status"))?,
            uses_left: uses_left.map_err(|_| StoreError::Corrupt("approvals.uses_left"))?,
            expires_at: Timestamp::from_micros(self.expires_at),
            ..state
        };
        Ok(StoredApproval { approval, revision: self.revision })
    }
}

impl StoredRow {
    /// Returns true if the state is that of the row's approval, for the row's call.
    fn is_of(&self, state: &Approval) -> bool {
        state.digest == self.digest
            && state.id.to_string() == self.id
            && state.org_id.to_string() == self.org_id
    }
}

/// A change of an approval as it is written.
#[derive(Debug)]
pub(crate) struct ApprovalRow {
    pub(crate) org_id: String,
    pub(crate) id: String,
    pub(crate) digest: String,
    pub(crate) principal_id: String,
    pub(crate) status: &'static str,
    pub(crate) uses_left: i64,
    pub(crate) created_at: i64,
    pub(crate) expires_at: i64,
    pub(crate) state: String,
    /// The revision that it replaces; `None` if it is new.
    pub(crate) replaces: Option<i64>,
}

impl ApprovalRow {
    pub(crate) fn of(change: &ApprovalChange) -> Result<Self, StoreError> {
        let ApprovalChange { approval, from } = change;
        let state = serde_json::to_string(approval);
        Ok(Self {
            org_id: approval.org_id.to_string(),
            id: approval.id.to_string(),
            digest: approval.digest.clone(),
            principal_id: approval.requester.principal_id.to_string(),
            status: approval.status.as_str(),
            uses_left: i64::from(approval.uses_left),
            created_at: approval.created_at.as_micros(),
            expires_at: approval.expires_at.as_micros(),
            state: state.map_err(|_| StoreError::Conflict("approvals".to_owned()))?,
            replaces: *from,
        })
    }

    /// Place among the changes of a batch: in one order on every node.
    pub(crate) fn place(&self) -> (&str, &str) {
        (&self.org_id, &self.digest)
    }
}

/// Writes a new approval, unless as many requests of its principal are pending at its time as `$10` says.
pub(crate) const INSERT: &str = "
INSERT INTO approvals (org_id, id, digest, principal_id, status, revision, uses_left, created_at,
    expires_at, state)
SELECT $1, $2, $3, $4, $5, 1, $6, $7, $8, $9
WHERE $5 <> 'pending' OR $10 > (SELECT COUNT(*) FROM approvals
    WHERE org_id = $1 AND principal_id = $4 AND status = 'pending' AND expires_at > $7)
ON CONFLICT DO NOTHING";

pub(crate) const UPDATE: &str = "
UPDATE approvals SET status = $1, uses_left = $2, expires_at = $3, state = $4,
    revision = revision + 1
WHERE org_id = $5 AND id = $6 AND digest = $7 AND revision = $8
    AND status IN ('pending', 'approved')";

/// Takes uses of an approval that is locked and has as many.
pub(crate) const TAKE: &str = "
UPDATE approvals SET uses_left = uses_left - $1, revision = revision + $1,
    status = CASE WHEN uses_left = $1 THEN 'consumed' ELSE status END
WHERE org_id = $2 AND id = $3";
