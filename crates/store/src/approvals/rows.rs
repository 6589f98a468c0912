//! Rows of approvals: how they are read, and how changes are written.

use portcullis_core::{
    approval::{Approval, Audience, Status},
    clock::Timestamp,
};
use serde_json::Value;

use super::{ApprovalChange, ApprovalGlance, StoredApproval};
use crate::{
    db::{ApprovalRow, Readable, parse, row},
    error::StoreError,
};

row!(pub(super) StoredRow of { rest: RowWithoutInput, input: InputRow });

row!(InputRow { input: String });

row!(pub(super) RowWithoutInput {
    org_id: String,
    id: String,
    digest: String,
    status: String,
    revision: i64,
    uses_left: i64,
    expires_at: i64,
    state: String,
});

row!(pub(super) GlanceRow {
    id: String,
    principal_id: String,
    tool_id: String,
    audience: String,
    size: i64,
});

impl Readable for StoredRow {
    const TABLE: &'static str = "approvals";
    type Record = StoredApproval;

    fn read(self) -> Result<StoredApproval, StoreError> {
        let mut stored = self.rest.read()?;
        let corrupt = || StoreError::Corrupt("approvals.input");
        stored.approval.input = serde_json::from_str(&self.input.input).map_err(|_| corrupt())?;
        // A call that cannot be shown must not be decided.
        if stored.approval.input.is_null() { Err(corrupt()) } else { Ok(stored) }
    }
}

impl Readable for RowWithoutInput {
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
            status: Status::from_word(&self.status)
                .ok_or(StoreError::Corrupt("approvals.status"))?,
            uses_left: uses_left.map_err(|_| StoreError::Corrupt("approvals.uses_left"))?,
            expires_at: Timestamp::from_micros(self.expires_at),
            ..state
        };
        Ok(StoredApproval { approval, revision: self.revision })
    }
}

impl Readable for GlanceRow {
    const TABLE: &'static str = "approvals";
    type Record = ApprovalGlance;

    fn read(self) -> Result<ApprovalGlance, StoreError> {
        let audience = serde_json::from_str(&self.audience);
        Ok(ApprovalGlance {
            id: parse(&self.id, "approvals.id")?,
            principal_id: parse(&self.principal_id, "approvals.principal_id")?,
            tool_id: self.tool_id,
            bytes: usize::try_from(self.size).map_err(|_| StoreError::Corrupt("approvals.size"))?,
            audience: audience.map_err(|_| StoreError::Corrupt("approvals.audience"))?,
        })
    }
}

impl RowWithoutInput {
    /// Returns true if the state is that of the row's approval, for the row's call.
    fn is_of(&self, state: &Approval) -> bool {
        state.digest == self.digest
            && state.id.to_string() == self.id
            && state.org_id.to_string() == self.org_id
    }
}

impl ApprovalRow {
    pub(crate) fn of(change: &ApprovalChange) -> Result<Self, StoreError> {
        let ApprovalChange { approval, from } = change;
        let input = approval.input.to_string();
        let rest = Approval { input: Value::Null, ..approval.clone() };
        let conflict = |_| StoreError::Conflict("approvals".to_owned());
        let state = serde_json::to_string(&rest).map_err(conflict)?;
        let audience = serde_json::to_string(&Audience::of(approval)).map_err(conflict)?;
        Ok(Self {
            org_id: approval.org_id.to_string(),
            id: approval.id.to_string(),
            digest: approval.digest.clone(),
            principal_id: approval.requester.principal_id.to_string(),
            status: approval.status.as_str(),
            uses_left: i64::from(approval.uses_left),
            created_at: approval.created_at.as_micros(),
            expires_at: approval.expires_at.as_micros(),
            tool_id: approval.tool.id.clone(),
            size: i64::try_from(state.len() + input.len()).unwrap_or(i64::MAX),
            state,
            audience,
            input,
            replaces: *from,
        })
    }
}
