//! Rows of approvals: how they are read, and how changes are written.

use portcullis_core::approval::{Approval, Audience, MAX_PENDING, Status};
use serde_json::Value;

use super::{ApprovalChange, ApprovalGlance, StoredApproval};
use crate::{
    db::{
        FromRow, INSERT_APPROVAL, Readable, Row, RowChange, UPDATE_APPROVAL, columns, record,
        values,
    },
    error::{DriverError, StoreError},
};

/// An approval whose input is not read.
pub(super) struct WithoutInput(StoredApproval);

impl FromRow for WithoutInput {
    /// A use by a call writes no state, so the columns hold.
    fn from_row(row: Row<'_>) -> Result<Self, DriverError> {
        let (org, id, digest): (String, String, String) =
            (row.get("org_id")?, row.get("id")?, row.get("digest")?);
        let state: Approval = row.json("approvals.state")?;
        let is_of_row =
            state.digest == digest && state.id.to_string() == id && state.org_id.to_string() == org;
        if !is_of_row {
            return Err(DriverError::Corrupt("approvals.state"));
        }
        let approval = Approval {
            status: row.get("approvals.status")?,
            uses_left: row.get("approvals.uses_left")?,
            expires_at: row.get("approvals.expires_at")?,
            ..state
        };
        Ok(Self(StoredApproval { approval, revision: row.get("approvals.revision")? }))
    }
}

impl Readable for WithoutInput {
    const TABLE: &'static str = "approvals";
    type Record = StoredApproval;

    fn read(self) -> Result<StoredApproval, StoreError> {
        Ok(self.0)
    }
}

record!(StoredApproval in "approvals", |row| revision, approval = Approval {
    input: input_of(row)?,
    ..WithoutInput::from_row(row)?.0.approval
});

columns!(Status => String: |word| Self::from_word(&word););

/// A call that cannot be shown must not be decided.
fn input_of(row: Row<'_>) -> Result<Value, DriverError> {
    let input: Value = row.json("approvals.input")?;
    if input.is_null() { Err(DriverError::Corrupt("approvals.input")) } else { Ok(input) }
}

record!(ApprovalGlance in "approvals", |row| id, principal_id, capability_id,
    audience = row.json("approvals.audience")?, bytes = row.get("approvals.size")?);

impl RowChange {
    pub(crate) fn of(change: &ApprovalChange) -> Result<Self, StoreError> {
        let ApprovalChange { approval, from } = change;
        let input = approval.input.to_string();
        let rest = Approval { input: Value::Null, ..approval.clone() };
        let conflict = |_| StoreError::Conflict("approvals".to_owned());
        let state = serde_json::to_string(&rest).map_err(conflict)?;
        let audience = serde_json::to_string(&Audience::of(approval)).map_err(conflict)?;
        let size = u64::try_from(state.len() + input.len()).unwrap_or(u64::MAX);
        let Approval {
            org_id, id, digest, status, uses_left, created_at, expires_at, tool, ..
        } = approval;
        let principal_id = approval.requester.principal_id;
        let (status, tool) = (status.as_str(), &tool.id);
        let (sql, values) = match from {
            None => (
                INSERT_APPROVAL,
                values![
                    org_id, id, digest, principal_id, status, uses_left, created_at, expires_at,
                    state, tool, audience, size, input, MAX_PENDING
                ],
            ),
            Some(revision) => (
                UPDATE_APPROVAL,
                values![
                    status, uses_left, expires_at, state, tool, audience, size, input, org_id, id,
                    digest, revision
                ],
            ),
        };
        Ok(Self {
            org_id: org_id.to_string(),
            id: id.to_string(),
            digest: digest.clone(),
            new_of: from.is_none().then(|| principal_id.to_string()),
            sql,
            values,
        })
    }
}
