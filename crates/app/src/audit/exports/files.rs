//! The files of exports: each is made by a task from a row, kept in a folder, and fetched for a day.
//!
//! A file is written under a temporary name and gets its own once it is whole and on the disk. A
//! crash before that leaves a `.part` file that the next sweep removes.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use portcullis_core::{
    audit::{EventType, export::Format},
    clock::Timestamp,
    id::{ExportId, OrgId},
    refusal::{Refusal, Unavailable},
};
use portcullis_store::{ExportBeat, ExportQuota, ExportStatus, StoreError};
use serde_json::json;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    ExportRequest, ExportView,
    writing::{
        ExportError, ExportOutput, ExportedLog, Progress, SignedLog, Written, export_log, exported,
    },
};
use crate::{
    audit::{Audit, events::patience, pace::Pace},
    request::{Ctx, target_of},
    telemetry::counters,
};

/// Exports of one org at once.
pub(super) const PER_ORG: u32 = 3;
/// Exports that a node writes at once; others wait for their turn.
const PER_NODE: usize = 2;
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

/// The exports of this node.
#[derive(Debug)]
pub(crate) struct Exports {
    folder: Folder,
    pub(super) limits: ExportLimits,
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
    async fn has_space(&self) -> io::Result<bool> {
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
    pub(super) const fn quota(&self) -> ExportQuota {
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

/// Folder of export files.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    /// True if every node sees the same files in it.
    shared: bool,
}

impl Folder {
    /// The folder at `path`, made if it is not there.
    pub fn open(path: PathBuf, shared: bool) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        Ok(Self { path, shared })
    }

    /// No folder, for a process that writes no exports.
    pub(crate) const fn none() -> Self {
        Self { path: PathBuf::new(), shared: false }
    }

    /// The bytes that a user other than root can still write to its disk.
    fn free_bytes(&self) -> io::Result<u64> {
        let disk = rustix::fs::statvfs(&self.path)?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    fn part(&self, id: ExportId) -> PathBuf {
        self.path.join(format!("{id}.part"))
    }

    fn whole(&self, id: ExportId, format: Format) -> PathBuf {
        self.path.join(format!("{id}.{}", format.extension()))
    }

    /// The file to write.
    fn begin(&self, id: ExportId) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.part(id))
    }

    /// Gives a file that is whole its own name. It is on the disk when this returns.
    fn finish(&self, id: ExportId, format: Format, file: &File) -> io::Result<()> {
        file.sync_all()?;
        fs::rename(self.part(id), self.whole(id, format))?;
        File::open(&self.path)?.sync_all()
    }

    /// Opens a file that is whole; `None` if it is not here.
    fn find(&self, id: ExportId, format: Format) -> io::Result<Option<File>> {
        match File::open(self.whole(id, format)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes whatever there is of an export.
    fn remove(&self, id: ExportId) {
        for (path, known) in self.files().unwrap_or_default() {
            if known == id
                && let Err(error) = fs::remove_file(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(%error, export = %id, "an export file cannot be removed");
            }
        }
    }

    /// The files of exports, whole or not.
    fn files(&self) -> io::Result<Vec<(PathBuf, ExportId)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            found.extend(export_of(&path).map(|id| (path, id)));
        }
        Ok(found)
    }

    /// The exports that have a file here.
    fn exports(&self) -> io::Result<Vec<ExportId>> {
        let mut ids: Vec<_> = self.files()?.into_iter().map(|(_, id)| id).collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }
}

fn export_of(path: &Path) -> Option<ExportId> {
    path.file_name()?.to_str()?.split_once('.')?.0.parse().ok()
}

/// Makes the export and says how it ended.
pub(super) async fn run(audit: &Arc<Audit>, ctx: &Ctx, id: ExportId, request: &ExportRequest) {
    let org = ctx.caller().org_id;
    match make_export(audit, ctx, id, request).await {
        Ok(written) => {
            let result = json!(written).to_string();
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
    if let Some(mismatched) = written.mismatched {
        counters::mismatched(mismatched.get());
        tracing::error!(
            export = %id,
            log = signed.origin,
            events = mismatched,
            "events of an export are not those that the log holds, and are marked in it"
        );
    }
    let event = ctx.event(&audit.screening, EventType::AuditExported, target_of("export", id));
    let event = exported(event, request, &written, &*audit.base.random);
    audit.writer.append(event, patience()).await.map_err(|error| {
        tracing::error!(%error, export = %id, "an export could not be recorded");
        ExportError::Unrecorded
    })?;
    Ok(written)
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
    async fn turn(&mut self) -> Result<OwnedSemaphorePermit, ExportError> {
        loop {
            let turn = Arc::clone(&self.audit.exports.turns).acquire_owned();
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
        let limits = self.audit.exports.limits;
        let now = self.audit.base.now();
        let beside = self.audit.base.store.export_bytes_beside(self.org, self.id, now).await?;
        self.looked_at = bytes;
        if beside.saturating_add(bytes) > limits.bytes {
            return Err(ExportError::Quota(limits.bytes));
        }
        if self.audit.exports.has_space().await? { Ok(()) } else { Err(ExportError::Space) }
    }

    async fn beat(&mut self, at: ExportBeat) -> Result<(), ExportError> {
        self.told = Instant::now();
        let base = &self.audit.base;
        match base.store.beat_export(self.org, self.id, at, base.now()).await {
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
    /// Refuses while little is free on the disk: calls need what is left.
    pub(super) async fn refuse_without_space(&self) -> Result<(), Refusal> {
        match self.exports.has_space().await {
            Ok(true) => return Ok(()),
            Ok(false) => {
                let least = self.exports.limits.min_free_bytes;
                tracing::warn!(least, "an export was refused: too little is free on its disk");
            }
            Err(error) => {
                tracing::error!(%error, "the free space for exports cannot be determined");
            }
        }
        Err(Refusal::Unavailable { reason: Unavailable::Space })
    }

    /// The file of an export of the caller's org. That it is read is recorded first.
    pub async fn export_file(&self, ctx: &Ctx, id: &str) -> Result<ExportFile, Refusal> {
        let unknown = || Refusal::not_found("export_file", id);
        let export = self.known_export(ctx.caller().org_id, id).await?;
        let view = ExportView::of(&export)?;
        let (ExportStatus::Ready, Some(sha256)) = (view.status, view.written.sha256) else {
            return Err(unknown());
        };
        let folder = &self.exports.folder;
        let format = view.asked.format;
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
        let target = target_of("export", export.id);
        self.record(ctx.event(&self.screening, EventType::AuditAccessed, target)).await?;
        Ok(ExportFile {
            bytes: file.metadata().map_err(|_| Refusal::Internal)?.len(),
            file,
            name: format!("{}.{}", export.id, format.extension()),
            media_type: format.media_type(),
            sha256,
        })
    }

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

#[cfg(test)]
mod tests {
    use std::{io::Write as _, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn a_file_is_found_once_it_is_whole_and_nobody_else_may_read_it() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path().join("exports"), false).unwrap();
        let id: ExportId = "exp_01M754BKTKVNX98VF81AZM2YBG".parse().unwrap();
        fs::write(place.path().join("exports/notes.txt"), "not ours").unwrap();

        let mut file = folder.begin(id).unwrap();
        file.write_all(b"x").unwrap();
        let before = folder.find(id, Format::Csv).unwrap();
        folder.finish(id, Format::Csv, &file).unwrap();

        assert!(before.is_none());
        assert!(folder.find(id, Format::Csv).unwrap().is_some());
        for path in ["exports", "exports/exp_01M754BKTKVNX98VF81AZM2YBG.csv"] {
            let mode = fs::metadata(place.path().join(path)).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{path}");
        }
        assert_eq!(folder.exports().unwrap(), [id]);
        folder.remove(id);
        assert!(folder.exports().unwrap().is_empty());
        assert!(place.path().join("exports/notes.txt").exists());
    }
}
