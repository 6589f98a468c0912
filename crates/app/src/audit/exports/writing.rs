//! Writing an export: pages of the log one after the other, each turned into lines and put away
//! before the next is read. What it takes in memory does not grow with the log.
//!
//! Evidence in a file is the manifest in front, the proofs of single events, and at the end the signed
//! checkpoint with the hashes left and right of the range.

use std::{
    fs::File,
    io::{self, Write},
};

use aws_lc_rs::digest;
use portcullis_core::{
    audit::{
        CSV_MARK, CsvLines, Hash, Plan, Shown, StoredError,
        export::{Consistency, FORMAT, Manifest, Neighbour, Range, Trailer, event_line},
        leaf_bytes,
        merkle::empty_root,
        ocsf_line,
        tiles::TileId,
    },
    clock::Timestamp,
    id::OrgId,
};
use portcullis_store::{
    CheckpointKind, EventFilter, EventOrder, EventRecord, ExportBeat, Sealer, Store, StoreError,
    Visibility,
};
use serde_json::{Value, json, value::RawValue};

use super::request::{ExportRequest, Format};
use crate::audit::{
    events::{object, sealed},
    log::LogSigner,
};

/// The signed state of a log that everything in a file is proven against.
#[derive(Debug, Clone)]
pub struct SignedLog {
    /// Origin of the log: `<host>/audit/<org_id>`.
    pub origin: String,
    pub note: String,
    pub size: u64,
    pub keys: Vec<String>,
}

/// The log that is exported.
#[derive(Debug, Clone, Copy)]
pub struct ExportedLog<'a> {
    pub store: &'a Store,
    pub org: OrgId,
    /// Its signed state, which covers all that is exported.
    pub signed: &'a SignedLog,
    pub now: Timestamp,
}

impl SignedLog {
    /// Seals what is committed, and takes the checkpoint that covers it.
    pub(crate) async fn take(
        store: &Store,
        signer: &LogSigner,
        org: OrgId,
    ) -> Result<Self, ExportError> {
        store.seal(org, signer).await?;
        let latest = store.find_checkpoint(org, CheckpointKind::Signed).await?;
        let (note, size) = if let Some(latest) = latest {
            (latest.note, latest.size)
        } else {
            // Nothing was ever recorded.
            (signer.sign(org, 0, &empty_root()).ok_or(ExportError::Tree)?.note, 0)
        };
        let keys = signer.known(org).map_err(|_| ExportError::Tree)?;
        let keys = keys.iter().map(|key| key.verifier.to_string()).collect();
        Ok(Self { origin: signer.origin(org), note, size, keys })
    }
}

/// Events that are read at a time.
const PAGE: u32 = 200;

/// Receiver of a writing's progress, which may slow it down or end it.
pub trait Progress {
    /// So many places of the log of so many have been looked at, and so many bytes written.
    fn reached(&mut self, at: ExportBeat) -> impl Future<Output = Result<(), ExportError>> + Send;
}

/// Summary of a written export.
#[derive(Debug, Clone)]
pub struct Written {
    /// Part of the log that it covers; absent for an empty export.
    pub range: Option<Value>,
    pub events: u64,
    /// Number of those that are marked: they are not what the log holds.
    pub mismatched: u64,
    pub bytes: u64,
    /// Their SHA-256, in hex.
    pub sha256: String,
}

impl Written {
    pub(crate) fn to_json(&self) -> Value {
        let mut told = json!({
            "range": self.range,
            "events": self.events,
            "bytes": self.bytes,
            "sha256": self.sha256,
        });
        if let (Value::Object(told), 1..) = (&mut told, self.mismatched) {
            told.insert("mismatched".to_owned(), json!(self.mismatched));
        }
        told
    }
}

/// Destination of an export.
pub struct ExportOutput {
    /// Receiver of its bytes.
    pub out: Box<dyn Write + Send>,
    /// The file behind it, if that has to be on the disk.
    pub file: Option<File>,
}

/// Writes what is asked for of a log that is sealed.
pub async fn export_log(
    log: ExportedLog<'_>,
    request: &ExportRequest,
    output: ExportOutput,
    progress: &mut impl Progress,
) -> Result<Written, ExportError> {
    let (first, end) = log.store.sealed_range(log.org, request.from, request.to).await?;
    // What was sealed after it was signed is the next export's.
    let end = end.min(i64::try_from(log.signed.size).unwrap_or(i64::MAX));
    let first = first.min(end);
    if request.since.is_some_and(|since| since > log.signed.size) {
        return Err(ExportError::Shorter);
    }
    let provable = request.format == Format::Jsonl;
    let shown = if request.payloads { Shown::Whole } else { Shown::Named };
    let mut desk =
        Desk { lines: Lines::new(request.format, shown), pen: Pen::new(output.out, output.file) };
    let origin = &log.signed.origin;
    if provable {
        desk = desk.put(manifest(log, request, first, end).into_bytes()).await?;
    } else {
        if request.bom {
            desk = desk.put(CSV_MARK.to_vec()).await?;
        }
        // The header of a table that may have no lines.
        desk = desk.write(origin.clone(), Vec::new(), Vec::new()).await?.0;
    }
    let mut reached = first;
    let mut events = 0;
    let mut mismatched = 0;
    while reached < end {
        let page = next_page(log, request, reached, end).await?;
        reached = page.reached;
        let proofs = if request.proofs { paths(log, &page.events).await? } else { Vec::new() };
        events += u64::try_from(page.events.len()).unwrap_or(0);
        let marked;
        (desk, marked) = desk.write(origin.clone(), page.events, proofs).await?;
        mismatched += marked;
        let scanned = reached - first;
        let total = end - first;
        progress.reached(ExportBeat { scanned, total, bytes: desk.pen.bytes }).await?;
    }
    if request.is_complete() && i64::try_from(events) != Ok(end - first) {
        return Err(ExportError::Gap);
    }
    if provable {
        let closing = closing(log, request, first, end, events).await?;
        desk = desk.put(closing.into_bytes()).await?;
    }
    let range = (first < end).then(|| {
        let size = provable.then_some(log.signed.size);
        json!({ "first": first, "last": end - 1, "checkpoint_size": size })
    });
    let (bytes, sha256) = desk.end().await?;
    Ok(Written { range, events, mismatched, bytes, sha256 })
}

struct Page {
    events: Vec<EventRecord>,
    /// The first place that was not looked at.
    reached: i64,
}

async fn next_page(
    log: ExportedLog<'_>,
    request: &ExportRequest,
    from: i64,
    end: i64,
) -> Result<Page, StoreError> {
    let all = Visibility::All;
    let order = EventOrder::Ascending;
    let after = Some(from - 1);
    let page = log.store.list_events(log.org, all, &request.filter, order, after, PAGE).await?;
    let reached = page.reached.filter(|_| page.more).map_or(end, |last| last + 1).min(end);
    let within = |event: &EventRecord| event.seal.is_some_and(|seal| seal.sequence < end);
    let events = page.events.into_iter().filter(within).collect();
    Ok(Page { events, reached })
}

/// Lines and pen, handed to a thread that may wait for the disk and back.
struct Desk {
    lines: Lines,
    pen: Pen,
}

impl Desk {
    /// Writes the lines of these events; gives how many of them had to be marked.
    async fn write(
        mut self,
        log: String,
        events: Vec<EventRecord>,
        proofs: Vec<Vec<Hash>>,
    ) -> Result<(Self, u64), ExportError> {
        let writing = tokio::task::spawn_blocking(move || {
            let (lines, mismatched) = self.lines.of(&log, &events, &proofs)?;
            self.pen.put(&lines)?;
            Ok((self, mismatched))
        });
        writing.await.unwrap_or(Err(ExportError::Stopped))
    }

    async fn put(mut self, line: Vec<u8>) -> Result<Self, ExportError> {
        let writing = tokio::task::spawn_blocking(move || {
            self.pen.put(&line)?;
            Ok(self)
        });
        writing.await.unwrap_or(Err(ExportError::Stopped))
    }

    async fn end(self) -> Result<(u64, String), ExportError> {
        let ending = tokio::task::spawn_blocking(move || Ok(self.pen.end()?));
        ending.await.unwrap_or(Err(ExportError::Stopped))
    }
}

fn place(sequence: i64) -> u64 {
    u64::try_from(sequence).unwrap_or(0)
}

/// The first line of a file that covers the places from `first` up to `end`.
fn manifest(log: ExportedLog<'_>, request: &ExportRequest, first: i64, end: i64) -> String {
    let range = (first < end).then(|| Range {
        first: place(first),
        last: place(end - 1),
        checkpoint_size: log.signed.size,
    });
    let manifest = Manifest {
        format: FORMAT.to_owned(),
        log: log.signed.origin.clone(),
        org_id: log.org.to_string(),
        created_at: log.now.to_string(),
        from: request.from.to_string(),
        to: request.to.to_string(),
        filters: request.filters(),
        include: request.include().into_iter().map(str::to_owned).collect(),
        complete: request.is_complete(),
        range,
        keys: log.signed.keys.clone(),
    };
    manifest.line()
}

/// The inclusion path of each of these events.
async fn paths(
    log: ExportedLog<'_>,
    events: &[EventRecord],
) -> Result<Vec<Vec<Hash>>, ExportError> {
    let places = events.iter().filter_map(|event| event.seal).map(|seal| place(seal.sequence));
    let plans: Option<Vec<Plan>> =
        places.map(|place| Plan::inclusion(place, log.signed.size)).collect();
    hashes(log, &plans.ok_or(ExportError::Tree)?).await
}

async fn hashes(log: ExportedLog<'_>, plans: &[Plan]) -> Result<Vec<Vec<Hash>>, ExportError> {
    let all: Vec<&Plan> = plans.iter().collect();
    let tiles = log.store.tiles(log.org, TileId::of_plans(&all)).await?;
    let told = plans.iter().map(|plan| plan.hashes(&tiles).map_err(|_| ExportError::Tree));
    told.collect()
}

/// The last line of a file that covers the places from `first` up to `end`.
async fn closing(
    log: ExportedLog<'_>,
    request: &ExportRequest,
    first: i64,
    end: i64,
    events: u64,
) -> Result<String, ExportError> {
    let mut trailer = Trailer { note: log.signed.note.clone(), events, ..Trailer::default() };
    if request.is_complete() {
        let left = Plan::span(0, place(first));
        let right = Plan::span(place(end), log.signed.size);
        let mut sides = hashes(log, &[left, right]).await?.into_iter();
        trailer.prefix = sides.next().unwrap_or_default();
        trailer.suffix = sides.next().unwrap_or_default();
        trailer.before = neighbour(log, first - 1).await?;
        trailer.after = neighbour(log, end).await?;
        // Beside the range there is an event, unless the log begins or ends there. A file that
        // claimed to be complete without it would hide that its end was cut off.
        let ends = place(end) >= log.signed.size || trailer.after.is_some();
        let begins = first == 0 || trailer.before.is_some();
        if !ends || !begins && first > log.store.pruned_size(log.org).await? {
            return Err(ExportError::Gap);
        }
    }
    if let Some(since) = request.since {
        let plan = Plan::consistency(since, log.signed.size).ok_or(ExportError::Shorter)?;
        let hashes = hashes(log, &[plan]).await?.pop().unwrap_or_default();
        trailer.consistency = Some(Consistency { since, hashes });
    }
    Ok(trailer.line())
}

/// The event at a place beside the range, if there is one that the checkpoint covers.
async fn neighbour(log: ExportedLog<'_>, sequence: i64) -> Result<Option<Neighbour>, ExportError> {
    if sequence < 0 || place(sequence) >= log.signed.size {
        return Ok(None);
    }
    let all = Visibility::All;
    let order = EventOrder::Ascending;
    let everything = EventFilter::default();
    let after = Some(sequence - 1);
    let page = log.store.list_events(log.org, all, &everything, order, after, 1).await?;
    let found = page.events.first().and_then(|event| Some((event, event.seal?)));
    let Some((event, seal)) = found.filter(|(_, seal)| seal.sequence == sequence) else {
        return Ok(None);
    };
    let leaf = leaf_bytes(&event.core, seal.sequence, seal.recorded_at).ok();
    let record = leaf.as_deref().and_then(object).ok_or(ExportError::Tree)?;
    let proof = paths(log, std::slice::from_ref(event)).await?.into_iter().next();
    Ok(Some(Neighbour { event: record, proof: proof.unwrap_or_default() }))
}

/// Writer of events as lines, by format.
#[derive(Debug)]
enum Lines {
    Jsonl { shown: Shown },
    Csv(Box<CsvLines>),
    Ocsf,
}

impl Lines {
    fn new(format: Format, shown: Shown) -> Self {
        match format {
            Format::Jsonl => Self::Jsonl { shown },
            Format::Csv => Self::Csv(Box::default()),
            Format::Ocsf => Self::Ocsf,
        }
    }

    /// The lines of these events of the log named `log`; their proofs beside them, or none. What is
    /// not as the log holds it is marked and counted.
    fn of(
        &mut self,
        log: &str,
        events: &[EventRecord],
        proofs: &[Vec<Hash>],
    ) -> Result<(Vec<u8>, u64), StoredError> {
        let mut marked = 0;
        let mut written = Vec::with_capacity(events.len() * 1_200);
        for (place, event) in events.iter().filter_map(sealed).enumerate() {
            let mismatches = event.mismatches(self.shown_members());
            marked += u64::from(!mismatches.is_empty());
            match self {
                Self::Jsonl { shown } => {
                    let record = event.record(log, *shown, &mismatches)?;
                    let record = RawValue::from_string(record);
                    let record = record.map_err(|_| StoredError(event.sequence))?;
                    let proof = proofs.get(place).map(Vec::as_slice);
                    written.extend_from_slice(event_line(&record, proof).as_bytes());
                }
                Self::Csv(lines) => lines.push(&event, &mismatches)?,
                Self::Ocsf => {
                    written.extend_from_slice(ocsf_line(&event, log, &mismatches)?.as_bytes());
                    written.push(b'\n');
                }
            }
        }
        if let Self::Csv(lines) = self {
            written = lines.take();
        }
        Ok((written, marked))
    }

    /// Part of the erasable members that is in a line.
    fn shown_members(&self) -> Shown {
        match self {
            Self::Jsonl { shown } => *shown,
            Self::Csv(_) | Self::Ocsf => Shown::Named,
        }
    }
}

/// Bytes written before the disk is waited for: few enough that the log's own commits do not wait
/// behind them.
const SYNCED: u64 = 4 << 20;

/// Output of lines, with the bytes written so far and their hash.
struct Pen {
    out: Box<dyn Write + Send>,
    /// The file behind `out`, if it is one that has to be on the disk.
    disk: Option<File>,
    hash: digest::Context,
    bytes: u64,
    unsynced: u64,
}

impl Pen {
    fn new(out: Box<dyn Write + Send>, disk: Option<File>) -> Self {
        let hash = digest::Context::new(&digest::SHA256);
        Self { out, disk, hash, bytes: 0, unsynced: 0 }
    }

    fn put(&mut self, lines: &[u8]) -> io::Result<()> {
        self.out.write_all(lines)?;
        self.hash.update(lines);
        let written = u64::try_from(lines.len()).unwrap_or(u64::MAX);
        self.bytes += written;
        self.unsynced += written;
        if self.unsynced >= SYNCED
            && let Some(disk) = &self.disk
        {
            disk.sync_data()?;
            self.unsynced = 0;
        }
        Ok(())
    }

    /// The SHA-256 of everything that was written, in hex.
    fn end(mut self) -> io::Result<(u64, String)> {
        self.out.flush()?;
        let digest = self.hash.finish();
        let hex: Vec<String> = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((self.bytes, hex.concat()))
    }
}

/// Reason that an export failed. The text may be shown to the requester.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("The store could not be read; ask again.")]
    Store(#[from] StoreError),
    #[error("{0}; `portcullis audit verify` tells more.")]
    Stored(#[from] StoredError),
    #[error("The file could not be written: {}. Ask again once there is room.", .0.kind())]
    Write(#[from] io::Error),
    /// The tree that proofs are taken from is damaged.
    #[error("The log's tree could not be read, so nothing can be proven.")]
    Tree,
    /// Events of the range are not there, so that it cannot be complete.
    #[error(
        "Events of the range or beside it are not there; where they are not kept any more, ask for a \
         later range, or with a filter; otherwise `portcullis audit verify --org` tells which."
    )]
    Gap,
    /// The log is shorter than the tree that the requester kept.
    #[error("`since` is larger than the log: either the number is wrong or the log was cut.")]
    Shorter,
    /// An export that could not be recorded, so it is not handed out.
    #[error("The export could not be recorded in the audit log; ask again.")]
    Unrecorded,
    #[error("The node was stopped before the export was written; ask again.")]
    Stopped,
    /// The files of the org would be larger than they may be.
    #[error("The exports of the org would have more than {0} bytes; ask for less, or later.")]
    Quota(u64),
    #[error("Too little is free on the disk of the exports; ask again once there is more.")]
    Space,
    #[error("The export was given up.")]
    GivenUp,
}

impl ExportError {
    /// The failure, with the detail that only the operator is told.
    pub(crate) fn detail(&self) -> String {
        std::error::Error::source(self).map_or_else(|| self.to_string(), ToString::to_string)
    }
}
