//! Exports of the audit log: asked for, written beside the calls, fetched for a day.
//!
//! A request makes a row and a task. The task seals, writes the file under a temporary name,
//! records that it was made, and only then says that it is ready: no client fetches what is not
//! recorded. Wherever the node dies, the row is pending and there is no file; the next start
//! reports that.

pub(crate) mod folder;
mod job;
pub(crate) mod pace;
pub(crate) mod request;
mod view;
pub(crate) mod writing;

pub(crate) use self::job::sweep;
pub use self::{
    folder::Folder,
    request::{ExportAsk, ExportRequest, Format},
    view::ExportView,
    writing::{ExportError, ExportOutput, ExportedLog, Progress, SignedLog, Written, export_log},
};

use std::{fs::File, io, sync::Arc, time::Duration};

use portcullis_core::{
    audit::{self, Actor, Detached, Event, EventType, Outcome, Target},
    clock::Timestamp,
    id::{EventId, ExportId, OrgId},
    random::Random,
    refusal::{Executed, Refusal, Unavailable, Violation},
};
use portcullis_store::{ExportBegan, ExportQuota, ExportRecord, ExportStatus, NewExport};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use super::{Audit, events::object};
use crate::{base::claim::Claim, request::Ctx};

/// Exports of one org at once.
const PER_ORG: u32 = 3;
/// Exports that a node writes at once; others wait for their turn.
const PER_NODE: usize = 2;
/// Seconds for which a file can be fetched.
const KEPT: i64 = 24 * 60 * 60;
/// Time that the caller waits for an export that is quick.
const QUICK: Duration = Duration::from_secs(2);
/// When to ask again if there are too many.
const RETRY: i64 = 10;

/// The exports of this node.
#[derive(Debug)]
pub(crate) struct Exports {
    folder: Folder,
    limits: ExportLimits,
    turns: Arc<Semaphore>,
    /// Cancelled when the node ends.
    pub(crate) stop: CancellationToken,
}

impl Exports {
    pub(crate) fn new(folder: Folder, limits: ExportLimits) -> Self {
        let turns = Arc::new(Semaphore::new(PER_NODE));
        Self { folder, limits, turns, stop: CancellationToken::new() }
    }

    /// True while enough is free on the disk of the folder for files to grow on it.
    pub(crate) async fn has_space(&self) -> io::Result<bool> {
        let folder = self.folder.clone();
        let least = self.limits.min_free_bytes;
        // A disk may take its time to answer, above all one at the end of a network.
        let asked = tokio::task::spawn_blocking(move || folder.free_bytes());
        Ok(asked.await.map_err(io::Error::other)?? >= least)
    }
}

/// Limits on export files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportLimits {
    /// Files of an org at once, those included that are being written.
    pub files: u32,
    /// Bytes of an org's files together.
    pub bytes: u64,
    /// Bytes that have to stay free on the disk of the folder: the log may lie there, too.
    pub min_free_bytes: u64,
}

impl Default for ExportLimits {
    /// 100 files of 10 GiB together, and 1 GiB that stays free.
    fn default() -> Self {
        Self { files: 100, bytes: 10 << 30, min_free_bytes: 1 << 30 }
    }
}

impl ExportLimits {
    const fn quota(&self) -> ExportQuota {
        ExportQuota { running: PER_ORG, files: self.files, bytes: self.bytes }
    }
}

/// A file that can be fetched.
#[derive(Debug)]
pub struct ExportFile {
    pub file: File,
    pub name: String,
    pub media_type: &'static str,
    pub bytes: u64,
    /// The SHA-256 of it, in hex.
    pub sha256: String,
}

/// An export that was made, and who made it.
pub(crate) struct ExportMade<'a> {
    pub(crate) org_id: OrgId,
    pub(crate) export: &'a str,
    pub(crate) request: &'a Value,
    pub(crate) result: &'a Value,
    pub(crate) actor: Actor,
    /// The request of the API that asked for it, if one did.
    pub(crate) asked: Option<audit::Request>,
    pub(crate) detached: Detached,
}

/// The event that tells of an export that was made: what was asked for, and what came of it. The
/// hash of the file stands in the part of the record that is hashed itself.
pub(crate) fn exported(
    made: ExportMade<'_>,
    id: EventId,
    occurred_at: Timestamp,
    random: &dyn Random,
) -> Event {
    let ExportMade { org_id, export, request, result, actor, asked, detached } = made;
    let hash = result.get("sha256").and_then(Value::as_str);
    let mut details = Map::new();
    for part in [request, result] {
        details.extend(part.as_object().cloned().unwrap_or_default());
    }
    Event {
        id,
        org_id,
        kind: EventType::AuditExported,
        occurred_at,
        count: None,
        actor,
        request: asked,
        target: Some(Target {
            capability: None,
            credential: None,
            id: Some(export.to_owned()),
            provider_id: None,
            kind: "export",
            version: hash.map(|hash| format!("sha256:{hash}")),
        }),
        governance: None,
        outcome: Outcome::success(Executed::Yes),
        detached: detached.keep("export", Some(Value::Object(details)), random),
    }
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
        Ok(BegunExport { export: self.export_of(org, id).await?, replayed: false })
    }

    /// Refuses while little is free on the disk: calls need what is left.
    async fn refuse_without_space(&self) -> Result<(), Refusal> {
        match self.exports.has_space().await {
            Ok(true) => Ok(()),
            Ok(false) => {
                let least = self.exports.limits.min_free_bytes;
                tracing::warn!(least, "an export was refused: too little is free on its disk");
                Err(Refusal::Unavailable { reason: Unavailable::Space })
            }
            Err(error) => {
                tracing::error!(%error, "the free space for exports cannot be determined");
                Err(Refusal::Unavailable { reason: Unavailable::Space })
            }
        }
    }

    /// Rejects a tree that is larger than the log: no file could continue it.
    async fn refuse_shorter(&self, org: OrgId, since: u64) -> Result<(), Refusal> {
        let signed = async {
            self.seal(org).await?;
            self.signed(org).await
        };
        let size = signed.await?.map_or(0, |it| it.size);
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
        let export = ExportView::of(&self.known_export(org, &id).await?)?;
        Ok(Some(BegunExport { export, replayed: true }))
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
            request: request.to_json().to_string(),
            created_at: now,
            expires_at: now.plus_seconds(KEPT),
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
            job::run(&this, &ctx, id, &request).await;
            let _ = done.send(());
        });
        Ok(Some(waiting))
    }

    /// An export of the caller's org as it stands.
    pub async fn export(&self, ctx: &Ctx, id: &str) -> Result<ExportView, Refusal> {
        let known = self.known_export(ctx.caller().org_id, id).await?;
        ExportView::of(&known)
    }

    async fn export_of(&self, org: OrgId, id: ExportId) -> Result<ExportView, Refusal> {
        ExportView::of(&self.known_export(org, &id.to_string()).await?)
    }

    /// Fails if the export does not exist, is another org's or has expired.
    async fn known_export(&self, org: OrgId, id: &str) -> Result<ExportRecord, Refusal> {
        let unknown = || Refusal::not_found("export", id);
        let parsed: ExportId = id.parse().map_err(|_| unknown())?;
        let found = self.base.store.find_export(org, parsed).await;
        let found = found?;
        found.filter(|export| self.base.now() < export.expires_at).ok_or_else(unknown)
    }

    fn read_event(&self, ctx: &Ctx, export: ExportId) -> Event {
        Event {
            id: EventId::new(self.base.ids()),
            org_id: ctx.caller().org_id,
            kind: EventType::AuditAccessed,
            occurred_at: ctx.origin.arrived,
            count: None,
            actor: Actor::of(ctx.caller()),
            request: Some(ctx.recorded_request()),
            target: Some(Target {
                capability: None,
                credential: None,
                id: Some(export.to_string()),
                provider_id: None,
                kind: "export",
                version: None,
            }),
            governance: None,
            outcome: Outcome::success(Executed::Yes),
            detached: ctx.detached(&self.screening),
        }
    }

    /// The file of an export of the caller's org. That it is read is recorded first.
    pub async fn export_file(&self, ctx: &Ctx, id: &str) -> Result<ExportFile, Refusal> {
        let unknown = || Refusal::not_found("export_file", id);
        let export = self.known_export(ctx.caller().org_id, id).await?;
        let format = format_of(&export);
        let result = export.result.as_deref().and_then(object);
        let (Some(format), Some(result), ExportStatus::Ready) = (format, result, export.status)
        else {
            return Err(unknown());
        };
        let folder = &self.exports.folder;
        let file = folder.find(export.id, format).map_err(|error| {
            tracing::error!(%error, export = %export.id, "an export file cannot be opened");
            Refusal::Internal
        })?;
        let Some(file) = file else {
            if export.node != self.base.node && !folder.shared {
                return Err(Refusal::Unavailable { reason: Unavailable::FileElsewhere });
            }
            tracing::warn!(export = %export.id, "an export file is gone before its time");
            return Err(unknown());
        };
        self.record(self.read_event(ctx, export.id)).await?;
        let sha256 = result.get("sha256").and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(ExportFile {
            bytes: file.metadata().map_err(|_| Refusal::Internal)?.len(),
            file,
            name: format!("{}.{}", export.id, format.extension()),
            media_type: format.media_type(),
            sha256,
        })
    }
}

fn format_of(export: &ExportRecord) -> Option<Format> {
    Format::from_word(object(&export.request)?.get("format")?.as_str()?)
}
