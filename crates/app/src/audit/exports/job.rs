//! One export from its row to its file, and what is left over of others.

use std::{sync::Arc, time::Duration};

use portcullis_core::{
    audit::Actor,
    clock::Timestamp,
    id::{EventId, ExportId, OrgId},
};
use portcullis_store::{ExportBeat, ExportStatus, StoreError};
use tokio::time::Instant;

use super::{
    ExportMade, exported,
    pace::Pace,
    request::ExportRequest,
    writing::{ExportError, ExportOutput, ExportedLog, Progress, SignedLog, Written, export_log},
};
use crate::{
    audit::{
        Audit,
        events::{patience, row_of},
    },
    request::Ctx,
    telemetry::counters,
};

/// Time between two reports of an export's progress.
const BEAT: Duration = Duration::from_secs(1);
/// Bytes that a file may grow by until it is held against the quota and the free space.
const LOOKED_AT: u64 = 8 << 20;
/// Seconds after which an export of which nothing is heard is given up.
const SILENCE: i64 = 300;
/// Time before another attempt when the store does not answer.
const AGAIN: Duration = Duration::from_secs(1);

const SILENT: &str = "The node that wrote the export is gone; ask again.";
const RESTARTED: &str = "The node was restarted before the export was written; ask again.";

/// Makes the export and says how it ended.
pub(super) async fn run(audit: &Arc<Audit>, ctx: &Ctx, id: ExportId, request: &ExportRequest) {
    let org = ctx.caller().org_id;
    match make_export(audit, ctx, id, request).await {
        Ok(written) => {
            let result = written.to_json().to_string();
            insist(audit, || audit.base.store.finish_export(org, id, &result, written.bytes)).await;
        }
        Err(error) => {
            tracing::warn!(export = %id, cause = ?error, "an export came to nothing");
            audit.exports.folder.remove(id);
            let reason = error.to_string();
            insist(audit, || audit.base.store.fail_export(org, id, &reason)).await;
        }
    }
}

/// Tries until the store has it. Which of two tries it was that did is all the same: each says
/// the same of a row that is pending. A node that ends leaves it to the next start.
async fn insist<F: Future<Output = Result<bool, StoreError>>>(audit: &Audit, say: impl Fn() -> F) {
    while let Err(error) = say().await {
        error.log();
        if audit.exports.stop.run_until_cancelled(tokio::time::sleep(AGAIN)).await.is_none() {
            return;
        }
    }
}

async fn make_export(
    audit: &Arc<Audit>,
    ctx: &Ctx,
    id: ExportId,
    request: &ExportRequest,
) -> Result<Written, ExportError> {
    let org = ctx.caller().org_id;
    let mut watch = ExportWatch::new(audit, org, id);
    let _turn = watch.turn().await?;
    let signed = SignedLog::take(&audit.base.store, &audit.log, org).await?;
    let folder = &audit.exports.folder;
    let file = folder.begin(id)?;
    let output = ExportOutput { out: Box::new(file.try_clone()?), file: Some(file.try_clone()?) };
    let log = ExportedLog { store: &audit.base.store, org, signed: &signed, now: audit.base.now() };
    let writing = export_log(log, request, output, &mut watch);
    let stopped = audit.exports.stop.run_until_cancelled(writing).await;
    let written = stopped.unwrap_or(Err(ExportError::Stopped))?;
    watch.keep_within(written.bytes).await?;
    let place = folder.clone();
    let format = request.format;
    let finishing = tokio::task::spawn_blocking(move || place.finish(id, format, &file));
    finishing.await.map_err(|_| ExportError::Stopped)??;
    if written.mismatched > 0 {
        counters::mismatched(written.mismatched);
        tracing::error!(
            export = %id,
            log = signed.origin,
            events = written.mismatched,
            "events of an export are not those that the log holds, and are marked in it"
        );
    }
    record(audit, ctx, id, request, &written).await?;
    Ok(written)
}

async fn record(
    audit: &Audit,
    ctx: &Ctx,
    id: ExportId,
    request: &ExportRequest,
    written: &Written,
) -> Result<(), ExportError> {
    let request = request.to_json();
    let result = written.to_json();
    let event_id = EventId::new(audit.base.ids());
    let made = ExportMade {
        org_id: ctx.caller().org_id,
        export: &id.to_string(),
        request: &request,
        result: &result,
        actor: Actor::of(ctx.caller()),
        asked: Some(ctx.recorded_request()),
        detached: ctx.detached(&audit.screening),
    };
    let event = exported(made, event_id, ctx.origin.arrived, &*audit.base.random);
    audit.writer.append(row_of(&event), patience()).await.map_err(|error| {
        tracing::error!(%error, export = %id, "an export could not be recorded");
        ExportError::Unrecorded
    })
}

/// Says how far an export has come, and keeps it from getting in the way of calls.
struct ExportWatch<'a> {
    audit: &'a Audit,
    org: OrgId,
    id: ExportId,
    pace: Pace,
    told: Instant,
    /// The length of the file when it was last held against the quota and the free space.
    looked_at: u64,
}

impl<'a> ExportWatch<'a> {
    fn new(audit: &'a Audit, org: OrgId, id: ExportId) -> Self {
        let pace = Pace::new(audit.writer.progress().jobs);
        Self { audit, org, id, pace, told: Instant::now(), looked_at: 0 }
    }

    /// Waits until it is this export's turn.
    async fn turn(&mut self) -> Result<tokio::sync::OwnedSemaphorePermit, ExportError> {
        let turns = &self.audit.exports.turns;
        loop {
            let turn = Arc::clone(turns).acquire_owned();
            tokio::select! {
                turn = turn => return turn.map_err(|_| ExportError::Stopped),
                () = self.audit.exports.stop.cancelled() => return Err(ExportError::Stopped),
                () = tokio::time::sleep(BEAT.saturating_mul(30)) => {
                    self.beat(ExportBeat::default()).await?;
                }
            }
        }
    }

    /// Fails once the org has more bytes than it may have, or the disk less than has to stay free.
    async fn keep_within(&mut self, bytes: u64) -> Result<(), ExportError> {
        let exports = &self.audit.exports;
        let now = self.audit.base.now();
        let beside = self.audit.base.store.export_bytes_beside(self.org, self.id, now).await?;
        self.looked_at = bytes;
        if beside.saturating_add(bytes) > exports.limits.bytes {
            return Err(ExportError::Quota(exports.limits.bytes));
        }
        if exports.has_space().await? { Ok(()) } else { Err(ExportError::Space) }
    }

    async fn beat(&mut self, at: ExportBeat) -> Result<(), ExportError> {
        self.told = Instant::now();
        match self.audit.base.store.beat_export(self.org, self.id, at, self.audit.base.now()).await
        {
            Ok(true) => Ok(()),
            Ok(false) => Err(ExportError::GivenUp),
            // How far it has come is no reason to end it.
            Err(error) => {
                error.log();
                Ok(())
            }
        }
    }
}

impl Progress for ExportWatch<'_> {
    async fn reached(&mut self, at: ExportBeat) -> Result<(), ExportError> {
        let due = self.told.elapsed() >= BEAT;
        // What others of the org write at the same time counts from their last beat on.
        if due || at.bytes >= self.looked_at.saturating_add(LOOKED_AT) {
            self.beat(at).await?;
            self.keep_within(at.bytes).await?;
        }
        self.pace.rest(self.audit.writer.progress().jobs).await;
        Ok(())
    }
}

impl Audit {
    /// Declares failed what this node was exporting when it ended, before it serves again, and
    /// removes what is left of it. Gives how many exports that were.
    pub async fn recover_exports(&self) -> Result<u64, StoreError> {
        let failed = self.base.store.fail_exports_of(&self.base.node, RESTARTED).await?;
        sweep(self).await;
        Ok(failed)
    }

    /// Declares failed what nodes were exporting that are gone.
    pub(crate) async fn fail_abandoned_exports(&self) -> Result<u64, StoreError> {
        self.base.store.fail_abandoned_exports(SILENT).await
    }
}

/// Gives up exports whose node is gone, forgets those that have expired, and removes files that
/// belong to no export that can be fetched.
pub(crate) async fn sweep(audit: &Audit) {
    let now = audit.base.now();
    let silent = audit.base.store.fail_silent_exports(now.plus_seconds(-SILENCE), SILENT).await;
    let forgotten = audit.base.store.forget_exports(now).await;
    for error in [silent, forgotten].into_iter().filter_map(Result::err) {
        error.log();
    }
    let folder = &audit.exports.folder;
    let files = match folder.exports() {
        Ok(files) => files,
        Err(error) => return tracing::error!(%error, "the export folder cannot be read"),
    };
    for id in files {
        match audit.base.store.export_expiry(id).await {
            Ok(known) if is_wanted(known, now) => {}
            Ok(_) => folder.remove(id),
            Err(error) => error.log(),
        }
    }
}

fn is_wanted(known: Option<(ExportStatus, Timestamp)>, now: Timestamp) -> bool {
    known.is_some_and(|(status, expires_at)| status != ExportStatus::Failed && now < expires_at)
}
