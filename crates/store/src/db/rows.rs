//! Rows of the log as they are written: intents, events and the keys of calls.

use std::{borrow::Cow, ops::Range};

use portcullis_core::{
    clock::Timestamp,
    id::{EventId, OrgId, PrincipalId, RequestId, TokenId},
};

use super::approvals::ApprovalUse;
use crate::row_key::{CodedRow, PackedRecord, RowKey};

/// A call that is about to have effects.
#[derive(Debug, Clone)]
pub struct NewIntent {
    pub id: EventId,
    pub org_id: OrgId,
    pub opened_at: Timestamp,
    /// Texts of its event if the call is cut off.
    pub record: EventTexts,
    /// The idempotency key it is protected by, if it is: then it begins only if the key is free.
    pub key: Option<NewKey>,
    /// Approvals it takes a use of, each for its own policy: it begins only if all of them permit it.
    /// Empty for calls that need none.
    pub approvals: Vec<ApprovalUse>,
}

/// A key that stands for a request from now on.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// The digest of the key and where it means something.
    pub digest: String,
    /// The digest of the request.
    pub fingerprint: String,
    pub request_id: RequestId,
    pub expires_at: Timestamp,
}

/// An event to remember for ever. The columns are those the log can be searched by; the record
/// itself is [`TextColumn::Core`].
#[derive(Debug, Clone)]
pub struct NewEvent {
    pub id: EventId,
    pub org_id: OrgId,
    /// Its type, such as `mcp.invocation`.
    pub kind: Name,
    pub occurred_at: Timestamp,
    pub actor_id: Option<PrincipalId>,
    /// On whose behalf.
    pub via: Option<PrincipalId>,
    pub token_id: Option<TokenId>,
    /// `allow` or `deny`.
    pub decision: Option<Name>,
    pub dlp_result: Option<Name>,
    pub outcome: Option<Name>,
    pub request_id: Option<RequestId>,
    pub texts: EventTexts,
    /// True if the erasable part has a payload, which is deleted sooner than the rest.
    pub has_payload: bool,
}

impl NewIntent {
    /// The code of its row.
    pub(crate) fn code(&self, key: &RowKey, record: &PackedRecord) -> Vec<u8> {
        let (id, org_id) = (self.id.text(), self.org_id.text());
        key.code(CodedRow::Intent { id: id.as_str(), org_id: org_id.as_str() }, record)
    }
}

impl NewEvent {
    /// The code of its row, if it is committed at this moment.
    pub(crate) fn code(&self, key: &RowKey, committed_at: i64, record: &PackedRecord) -> Vec<u8> {
        let (id, org_id) = (self.id.text(), self.org_id.text());
        let (id, org_id, kind) = (id.as_str(), org_id.as_str(), &*self.kind);
        key.code(CodedRow::Event { id, org_id, kind, committed_at }, record)
    }
}

/// A name: one of ours, or one that was read back.
pub type Name = Cow<'static, str>;

/// A column of an event's row with a text of any length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextColumn {
    /// To what: a tool id, a provider id, a policy name.
    Target,
    Policy,
    /// The part that is hashed, as JSON, without sequence and time of recording; with a seed, without the
    /// commitments that follow from the erasable part.
    Core,
    /// The erasable part, as JSON.
    Detached,
    /// The salts of the erasable part, as JSON, or their seed.
    Salts,
}

/// Texts by their column, one behind the other in one piece of memory, each in a line of its own.
#[derive(Debug, Clone, Default)]
pub struct EventTexts {
    pub(super) text: String,
    places: [Option<Range<usize>>; 5],
    /// The packed record, if it was packed since a text was written.
    pub(super) packed: Option<PackedRecord>,
}

impl EventTexts {
    /// None yet, with room for so many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), ..Self::default() }
    }

    /// Sets the text of a column to what `write` appends.
    pub fn write(&mut self, column: TextColumn, write: impl FnOnce(&mut String)) {
        self.packed = None;
        let start = self.text.len();
        write(&mut self.text);
        let end = self.text.len();
        self.text.push('\n');
        if let Some(place) = self.places.get_mut(column as usize) {
            *place = Some(start..end);
        }
    }

    /// The same with this text in a column.
    #[must_use]
    pub fn with(mut self, column: TextColumn, text: &str) -> Self {
        self.write(column, |texts| texts.push_str(text));
        self
    }

    /// The text of a column, if it has one.
    #[must_use]
    pub fn of(&self, column: TextColumn) -> Option<&str> {
        self.text.get(self.place(column)?)
    }

    pub(super) fn place(&self, column: TextColumn) -> Option<Range<usize>> {
        self.places.get(column as usize).cloned().flatten()
    }

    /// The part that is hashed.
    #[must_use]
    pub fn core(&self) -> &str {
        self.of(TextColumn::Core).unwrap_or_default()
    }
}
