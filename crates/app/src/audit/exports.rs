//! Exports of the audit log: asked for, written beside the calls, fetched for a day.
//!
//! A request makes a row and a task. The task seals, writes the file under a temporary name,
//! records that it was made, and only then says that it is ready: no client fetches what is not
//! recorded. Wherever the node dies, the row is pending and there is no file; the next start
//! reports that.

pub(crate) mod files;
pub(crate) mod writing;

pub use self::{
    files::{ExportFile, ExportLimits, Folder},
    writing::{ExportError, ExportOutput, Progress, Written, describe_export},
};

use std::{sync::Arc, time::Duration};

use portcullis_core::{
    audit::export::Format,
    clock::Timestamp,
    id::{ExportId, OrgId},
    refusal::{Refusal, Violation},
};
use portcullis_store::{
    EventFilter, ExportBegan, ExportRecord, ExportStatus, NewExport,
    filters::{Given, Wrong, read_given},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;
use tokio::sync::oneshot;
use utoipa::ToSchema;

use self::files::PER_ORG;
use super::Audit;
use crate::{base::claim::Claim, request::Ctx};

/// The longest range, in days.
const MOST_DAYS: i64 = 366;
/// The range if the request has no beginning, in days.
const USUAL_DAYS: i64 = 30;
const DAY: i64 = 86_400;
/// Time that the caller waits for an export that is quick.
const QUICK: Duration = Duration::from_secs(2);
/// When to ask again if there are too many, in seconds.
const RETRY: i64 = 10;

/// The body of an export; without any, the last 30 days as `jsonl`.
#[derive(Debug, Clone, Default, ToSchema)]
#[schema(as = ExportAsked)]
pub struct ExportAsk {
    /// RFC 3339, inclusive, on `recorded_at`; 30 days before `to` by default. Fractions of a
    /// millisecond are rounded up.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub from: Option<Timestamp>,
    /// RFC 3339, exclusive; now by default. At most 366 days after `from`.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub to: Option<Timestamp>,
    /// `jsonl` (default), `csv` or `ocsf`.
    #[schema(example = "jsonl", pattern = "^(jsonl|csv|ocsf)$")]
    pub format: Option<String>,
    /// The filters of `GET /v1/audit/events`, each with an array of values.
    #[schema(value_type = Option<Object>)]
    pub filters: Given,
    /// Of `jsonl`: `payloads`, `proofs`. Of `csv`: `bom`, the mark by which Excel reads UTF-8.
    #[schema(value_type = Option<Vec<String>>)]
    pub include: Vec<String>,
    /// Of `jsonl`: the size of a tree whose checkpoint you kept. The file then also proves that
    /// the log of that time is its beginning.
    pub since: Option<u64>,
}

/// The request, as it was remembered.
// **Invariant:** one that was read can be made, and both bounds are whole milliseconds, as they are written.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = ExportRequested)]
pub struct ExportRequest {
    /// The form of the file.
    format: Format,
    /// The first moment that it covers.
    from: Timestamp,
    /// The moment before which it ends.
    pub to: Timestamp,
    /// The filters as they were given.
    #[schema(value_type = BTreeMap<String, Vec<String>>)]
    filters: Given,
    /// Parts that were asked for besides: `payloads`, `proofs`, `bom`.
    include: Vec<String>,
    /// The size of the tree that the file continues.
    since: Option<u64>,
    /// The file proves that nothing in the range was left out.
    complete: bool,
    #[serde(skip)]
    filter: EventFilter,
}

impl ExportAsk {
    /// Fills in defaults. Rejects what cannot be made, naming the member.
    pub fn read(self, now: Timestamp) -> Result<ExportRequest, Wrong> {
        // Not rounded up: what is recorded later in this millisecond is the next export's.
        let to = self.to.map_or(now.floor_to_millis(), Timestamp::ceil_to_millis);
        let usual = || to.plus_seconds(-USUAL_DAYS * DAY);
        let from = self.from.map_or_else(usual, Timestamp::ceil_to_millis);
        if from >= to {
            return Err(Wrong::new("to", "has to be later than `from`"));
        }
        if to.as_micros().saturating_sub(from.as_micros()) > MOST_DAYS * DAY * 1_000_000 {
            return Err(Wrong::new("from", format!("may be {MOST_DAYS} days before `to`")));
        }
        let named = self.format.as_deref().map_or(Some(Format::Jsonl), Format::from_word);
        let format = named
            .ok_or_else(|| Wrong::new("format", format!("takes {}", Format::NAMES.join(", "))))?;
        let parts = [("payloads", Format::Jsonl), ("proofs", Format::Jsonl), ("bom", Format::Csv)];
        for what in &self.include {
            let Some((_, goes_with)) = parts.iter().find(|(name, _)| name == what) else {
                return Err(Wrong::new("include", "takes payloads, proofs, bom"));
            };
            if format != *goes_with {
                let problem = "takes payloads and proofs with the format jsonl, bom with csv";
                return Err(Wrong::new("include", problem));
            }
        }
        if format != Format::Jsonl && self.since.is_some() {
            let problem = "goes with the format jsonl; the others prove nothing";
            return Err(Wrong::new("since", problem));
        }
        let wanted = parts.map(|(name, _)| name.to_owned()).into_iter();
        let filter = read_given(&self.filters)
            .map_err(|wrong| Wrong { name: format!("filters/{}", wrong.name), ..wrong })?;
        Ok(ExportRequest {
            format,
            from,
            to,
            complete: format == Format::Jsonl && self.filters.is_empty(),
            filters: self.filters,
            include: wanted.filter(|name| self.include.contains(name)).collect(),
            since: self.since,
            filter,
        })
    }
}

impl ExportRequest {
    fn includes(&self, part: &str) -> bool {
        self.include.iter().any(|name| name == part)
    }
}

/// An export as it stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Export)]
pub struct ExportView {
    /// The export.
    pub id: ExportId,
    /// Its state.
    pub status: ExportStatus,
    #[serde(flatten)]
    asked: ExportRequest,
    #[serde(flatten)]
    written: ExportWritten,
    /// Path of the file, once it is ready.
    file: Option<String>,
    /// When it was begun.
    created_at: Timestamp,
    /// When the file is deleted.
    expires_at: Timestamp,
    /// Why there is no file, in one word.
    error: Option<String>,
    /// Progress while it is written.
    progress: Option<ExportProgress>,
}

/// The file, as far as it is known.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
struct ExportWritten {
    /// The part of the log that it covers.
    range: Option<ExportRange>,
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
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
struct ExportRange {
    /// The first.
    first: u64,
    /// The last.
    last: u64,
    /// Size of the tree whose checkpoint covers them; `null` where the file proves nothing.
    checkpoint_size: Option<u64>,
}

/// Progress of an export that is being written.
#[derive(Debug, Serialize, ToSchema)]
struct ExportProgress {
    /// Places of the log that were looked at.
    scanned: i64,
    /// Places of the log to look at.
    total: i64,
    /// The same as a percentage.
    percent: i64,
}

impl ExportView {
    fn of(export: &ExportRecord) -> Result<Self, Refusal> {
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
            progress: pending.then_some(ExportProgress { scanned, total, percent }),
        })
    }
}

fn stored<T: DeserializeOwned>(text: &str) -> Option<T> {
    let read = serde_json::from_str(text);
    read.inspect_err(|error| tracing::error!(%error, "a stored export cannot be read")).ok()
}

/// An export that was asked for.
#[derive(Debug)]
pub struct BegunExport {
    pub export: ExportView,
    /// True if it was asked for before, with the same idempotency key.
    pub replayed: bool,
}

impl Audit {
    /// Begins an export of the caller's org, and gives it as it stands when it is ready or after
    /// two seconds. Refuses if three are under way.
    pub async fn begin_export(
        self: &Arc<Self>,
        ctx: &Ctx,
        request: ExportRequest,
        claim: Option<Claim>,
    ) -> Result<BegunExport, Refusal> {
        let org = ctx.caller().org_id;
        let id = ExportId::new(self.base.ids());
        if let Some(known) = self.same_export(org, claim.as_ref()).await? {
            return Ok(known);
        }
        if let Some(since) = request.since {
            self.refuse_shorter(org, since).await?;
        }
        self.refuse_without_space().await?;
        let this = Arc::clone(self);
        let owned = ctx.clone();
        let key = claim.clone();
        // On a task of its own: a caller that disconnects leaves no row without a worker.
        let begun =
            self.base.tasks.spawn(async move { this.spawn_export(owned, id, request, key).await });
        let Some(done) = begun.await.map_err(|_| Refusal::Internal)?? else {
            let first = ctx.origin.request_id;
            let outrun = self.same_export(org, claim.as_ref()).await?;
            return outrun.ok_or(Refusal::IdempotencyInProgress { first });
        };
        let _ = tokio::time::timeout(QUICK, done).await;
        Ok(BegunExport { export: self.export_of(org, &id.to_string()).await?, replayed: false })
    }

    /// Rejects a tree that is larger than the log: no file could continue it.
    async fn refuse_shorter(&self, org: OrgId, since: u64) -> Result<(), Refusal> {
        self.seal(org).await?;
        let size = self.signed(org).await?.map_or(0, |it| it.size);
        if since <= size {
            return Ok(());
        }
        let message = format!(
            "is larger than the log, which has {size} events: either the number is wrong or the \
             log was cut"
        );
        Err(Refusal::InvalidRequest {
            message: format!("The member `since` {message}."),
            parameter: None,
            violations: vec![Violation { path: "/since".to_owned(), keyword: None, message }],
        })
    }

    /// The export that the key of a claim stands for, as it is now.
    async fn same_export(
        &self,
        org: OrgId,
        claim: Option<&Claim>,
    ) -> Result<Option<BegunExport>, Refusal> {
        let Some(claim) = claim else { return Ok(None) };
        let Some(id) = claim.export(&self.base, org).await? else { return Ok(None) };
        Ok(Some(BegunExport { export: self.export_of(org, &id).await?, replayed: true }))
    }

    async fn spawn_export(
        self: Arc<Self>,
        ctx: Ctx,
        id: ExportId,
        request: ExportRequest,
        claim: Option<Claim>,
    ) -> Result<Option<oneshot::Receiver<()>>, Refusal> {
        let now = self.base.now();
        let new = NewExport {
            id,
            org_id: ctx.caller().org_id,
            principal_id: ctx.caller().principal_id,
            node: self.base.node.clone(),
            request: json!(request).to_string(),
            created_at: now,
            expires_at: now.plus_seconds(DAY),
        };
        let limits = self.exports.limits;
        let key = claim.map(|claim| claim.row(ctx.origin.request_id, now));
        match self.base.store.create_export(&new, limits.quota(), key.as_ref()).await? {
            ExportBegan::Begun => {}
            ExportBegan::KeyTaken => return Ok(None),
            ExportBegan::TooMany => {
                let limit = PER_ORG;
                let reset_at = now.plus_seconds(RETRY);
                return Err(Refusal::TooManyExports { limit, retry_after: RETRY, reset_at });
            }
            ExportBegan::Full(until) => {
                let seconds = until.as_seconds() - now.as_seconds();
                return Err(Refusal::ExportsFull {
                    files: limits.files,
                    bytes: limits.bytes,
                    retry_after: seconds.max(RETRY),
                    reset_at: until.max(now.plus_seconds(RETRY)),
                });
            }
        }
        let (done, waiting) = oneshot::channel();
        let this = Arc::clone(&self);
        self.base.tasks.spawn(async move {
            files::run(&this, &ctx, id, &request).await;
            let _ = done.send(());
        });
        Ok(Some(waiting))
    }

    /// An export of the caller's org as it stands.
    pub async fn export(&self, ctx: &Ctx, id: &str) -> Result<ExportView, Refusal> {
        self.export_of(ctx.caller().org_id, id).await
    }

    async fn export_of(&self, org: OrgId, id: &str) -> Result<ExportView, Refusal> {
        ExportView::of(&self.known_export(org, id).await?)
    }

    /// Fails if the export does not exist, is another org's or has expired.
    async fn known_export(&self, org: OrgId, id: &str) -> Result<ExportRecord, Refusal> {
        let unknown = || Refusal::not_found("export", id);
        let parsed: ExportId = id.parse().map_err(|_| unknown())?;
        let found = self.base.store.find_export(org, parsed).await?;
        found.filter(|export| self.base.now() < export.expires_at).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_795_172_535_123_000);

    fn wrong(ask: ExportAsk) -> String {
        ask.read(NOW).unwrap_err().name
    }

    #[test]
    fn thirty_days_of_jsonl_are_what_is_made_when_nothing_is_asked_for() {
        let request = ExportAsk::default().read(NOW).unwrap();

        assert_eq!((request.from, request.to), (NOW.plus_seconds(-30 * DAY), NOW));
        assert_eq!(request.format, Format::Jsonl);
        assert!(request.complete);
    }

    #[test]
    fn ranges_that_are_none_or_too_long_are_refused() {
        let ask = |from, to| ExportAsk { from: Some(from), to: Some(to), ..ExportAsk::default() };

        assert_eq!(wrong(ask(NOW, NOW)), "to");
        assert_eq!(wrong(ExportAsk { from: Some(NOW), ..ExportAsk::default() }), "to");
        assert_eq!(wrong(ask(NOW, NOW.plus_seconds(366 * DAY + 1))), "from");
        assert!(ask(NOW, NOW.plus_seconds(366 * DAY)).read(NOW).is_ok());
    }

    #[test]
    fn what_no_format_has_is_refused() {
        let ask = |format: &str, include: &str| ExportAsk {
            format: Some(format.to_owned()),
            include: vec![include.to_owned()],
            ..ExportAsk::default()
        };

        assert_eq!(wrong(ask("parquet", "proofs")), "format");
        assert_eq!(wrong(ask("jsonl", "everything")), "include");
        assert_eq!(wrong(ask("csv", "payloads")), "include");
        assert_eq!(wrong(ask("jsonl", "bom")), "include");
        assert_eq!(wrong(ask("ocsf", "bom")), "include");
        assert_eq!(ask("csv", "bom").read(NOW).unwrap().include, ["bom"]);
        let csv = Some("csv".to_owned());
        assert_eq!(
            wrong(ExportAsk { format: csv, since: Some(1), ..ExportAsk::default() }),
            "since"
        );
        assert!(ask("jsonl", "payloads").read(NOW).unwrap().includes("payloads"));
    }

    #[test]
    fn a_filtered_export_is_not_complete() {
        let filters = Given::from([("decision".to_owned(), vec!["deny".to_owned()])]);

        let request = ExportAsk { filters, ..ExportAsk::default() }.read(NOW).unwrap();

        assert!(!request.complete);
        let told = json!(request);
        assert_eq!(told["filters"], json!({"decision": ["deny"]}));
        let filters = Given::from([("colour".to_owned(), vec!["red".to_owned()])]);
        assert_eq!(wrong(ExportAsk { filters, ..ExportAsk::default() }), "filters/colour");
    }
}
