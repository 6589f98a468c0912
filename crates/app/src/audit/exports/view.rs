//! Exports as they are shown.

use portcullis_core::{clock::Timestamp, id::ExportId, refusal::Refusal};
use portcullis_store::{ExportRecord, ExportStatus, filters::Given};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use utoipa::ToSchema;

use super::Format;

/// An export as it stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Export)]
pub struct ExportView {
    /// The export.
    pub id: ExportId,
    /// Its state.
    pub status: ExportStatus,
    #[serde(flatten)]
    asked: ExportRequested,
    #[serde(flatten)]
    written: Written,
    /// Path of the file, once it is ready.
    file: Option<String>,
    /// When it was begun.
    created_at: Timestamp,
    /// When the file is deleted.
    expires_at: Timestamp,
    /// Why there is no file, in one word.
    error: Option<String>,
    /// Progress while it is written.
    progress: Option<Progress>,
}

/// The request, as it was remembered.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
struct ExportRequested {
    /// The form of the file.
    format: Format,
    /// The first moment that it covers.
    from: Timestamp,
    /// The moment before which it ends.
    to: Timestamp,
    /// The filters as they were given.
    #[schema(value_type = BTreeMap<String, Vec<String>>)]
    filters: Given,
    /// Parts that were asked for besides: `payloads`, `proofs`, `bom`.
    include: Vec<String>,
    /// The size of the tree that the file continues.
    since: Option<u64>,
    /// The file proves that nothing in the range was left out.
    complete: bool,
}

/// The file, as far as it is known.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = ExportWritten)]
struct Written {
    /// The part of the log that it covers.
    range: Option<Range>,
    /// Number of events.
    events: Option<u64>,
    /// Its size.
    bytes: Option<u64>,
    /// Its SHA-256, in hex.
    sha256: Option<String>,
    /// Number of events that are not what the log holds; absent when it is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mismatched: Option<u64>,
}

/// A range of sequence numbers.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ExportRange)]
struct Range {
    /// The first.
    first: u64,
    /// The last.
    last: u64,
    /// Size of the tree whose checkpoint covers them; `null` where the file proves nothing.
    checkpoint_size: Option<u64>,
}

/// Progress of an export that is being written.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExportProgress)]
struct Progress {
    /// Places of the log that were looked at.
    scanned: i64,
    /// Places of the log to look at.
    total: i64,
    /// The same as a percentage.
    percent: i64,
}

impl ExportView {
    /// The view of a stored export.
    pub(super) fn of(export: &ExportRecord) -> Result<Self, Refusal> {
        let total = export.total;
        let scanned = export.scanned;
        let pending = export.status == ExportStatus::Pending;
        let percent = if total > 0 { 100 * scanned.min(total) / total } else { 0 };
        Ok(Self {
            id: export.id,
            status: export.status,
            asked: stored(&export.request).ok_or(Refusal::Internal)?,
            written: export.result.as_deref().and_then(stored).unwrap_or_default(),
            file: (export.status == ExportStatus::Ready)
                .then(|| format!("/v1/audit/exports/{}/file", export.id)),
            created_at: export.created_at,
            expires_at: export.expires_at,
            error: export.error.clone(),
            progress: pending.then_some(Progress { scanned, total, percent }),
        })
    }
}

fn stored<T: DeserializeOwned>(text: &str) -> Option<T> {
    let read = serde_json::from_str(text);
    read.inspect_err(|error| tracing::error!(%error, "a stored export cannot be read")).ok()
}
