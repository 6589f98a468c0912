//! Writing an export: pages of the log one after the other, each turned into lines and put away
//! before the next is read. What it takes in memory does not grow with the log.
//!
//! Evidence in a file is the manifest in front, the proofs of single events, and at the end the signed
//! checkpoint with the hashes left and right of the range.

use std::{
    fs::File,
    io::{self, Write},
    num::NonZeroU64,
};

use aws_lc_rs::digest;
use portcullis_core::{
    audit::{
        Event, Hash, Plan, Shown, StoredError, Target,
        export::{Consistency, FORMAT, Format, Manifest, Neighbour, Range, Trailer},
        leaf_bytes,
        merkle::empty_root,
        tiles::TileId,
    },
    clock::Timestamp,
    id::OrgId,
    random::Random,
};
use portcullis_store::{
    CheckpointKind, EventFilter, EventOrder, EventPage, EventRecord, ExportBeat, NewEvent, Sealer,
    Store, StoreError, Visibility,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{ExportRange, ExportRequest};
use crate::audit::{
    events::{object, row_of, sealed},
    log::LogSigner,
};

/// The signed state of a log that everything in a file is proven against.
#[derive(Debug, Clone)]
pub(crate) struct SignedLog {
    /// Origin of the log: `<host>/audit/<org_id>`.
    pub(crate) origin: String,
    pub(crate) note: String,
    pub(crate) size: u64,
    keys: Vec<String>,
}

/// The log that is exported.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExportedLog<'a> {
    pub(crate) store: &'a Store,
    pub(crate) org: OrgId,
    /// Its signed state, which covers all that is exported.
    pub(crate) signed: &'a SignedLog,
    pub(crate) now: Timestamp,
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
#[derive(Debug, Clone, Serialize)]
pub struct Written {
    /// Part of the log that it covers; absent for an empty export.
    range: Option<ExportRange>,
    events: u64,
    pub(super) bytes: u64,
    /// Their SHA-256, in hex.
    sha256: String,
    /// Number of events that are marked: they are not what the log holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mismatched: Option<NonZeroU64>,
}

/// An export as a person and its event are told of it: what was asked for and what came of it.
#[must_use]
pub fn describe_export(request: &ExportRequest, written: &Written) -> Value {
    let mut told = json!(request);
    if let (Value::Object(told), Value::Object(written)) = (&mut told, json!(written)) {
        told.extend(written);
    }
    told
}

/// The event of an export that was made. The hash of the file stands in the part of the record that is hashed itself.
pub(crate) fn exported(
    event: Event,
    request: &ExportRequest,
    written: &Written,
    random: &dyn Random,
) -> NewEvent {
    let version = Some(format!("sha256:{}", written.sha256));
    let target = event.target.map(|target| Target { version, ..target });
    let detached = event.detached.keep("export", Some(describe_export(request, written)), random);
    row_of(&Event { target, detached, ..event })
}

/// Destination of an export.
pub struct ExportOutput {
    /// Receiver of its bytes.
    pub out: Box<dyn Write + Send>,
    /// The file behind it, if that has to be on the disk.
    pub file: Option<File>,
}

/// Writes what is asked for of a log that is sealed.
pub(crate) async fn export_log(
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
    let format = request.format;
    let provable = format == Format::Jsonl;
    let shown = if request.includes("payloads") { Shown::Whole } else { Shown::Named };
    let head = if provable {
        manifest(log, request, first, end).into_bytes()
    } else {
        format.head(request.includes("bom"))
    };
    let mut pen = Pen::new(output).put(head).await?;
    let mut reached = first;
    let mut events = 0;
    let mut mismatched = 0;
    while reached < end {
        let page = page(log, &request.filter, reached, PAGE).await?;
        reached = page.reached.filter(|_| page.more).map_or(end, |last| last + 1).min(end);
        let within = |event: &EventRecord| event.seal.is_some_and(|seal| seal.sequence < end);
        let page: Vec<_> = page.events.into_iter().filter(within).collect();
        let proofs = if request.includes("proofs") { paths(log, &page).await? } else { Vec::new() };
        events += u64::try_from(page.len()).unwrap_or(0);
        let origin = log.signed.origin.clone();
        let marked;
        let make = move || lines(format, &origin, shown, &page, &proofs);
        (pen, marked) = pen.write(make).await?;
        mismatched += marked;
        let scanned = reached - first;
        let total = end - first;
        progress.reached(ExportBeat { scanned, total, bytes: pen.bytes }).await?;
    }
    if request.complete && i64::try_from(events) != Ok(end - first) {
        return Err(ExportError::Gap);
    }
    if provable {
        pen = pen.put(closing(log, request, first, end, events).await?.into_bytes()).await?;
    }
    let range = (first < end).then(|| ExportRange {
        first: place(first),
        last: place(end - 1),
        checkpoint_size: provable.then_some(log.signed.size),
    });
    let (bytes, sha256) = pen.end().await?;
    Ok(Written { range, events, bytes, sha256, mismatched: NonZeroU64::new(mismatched) })
}

/// Events of the log from the place `from` on.
async fn page(
    log: ExportedLog<'_>,
    filter: &EventFilter,
    from: i64,
    most: u32,
) -> Result<EventPage, StoreError> {
    let all = Visibility::All;
    let order = EventOrder::Ascending;
    log.store.list_events(log.org, all, filter, order, Some(from - 1), most).await
}

/// The lines of these events, their proofs beside them, or none; and how many had to be marked.
fn lines(
    format: Format,
    log: &str,
    shown: Shown,
    events: &[EventRecord],
    proofs: &[Vec<Hash>],
) -> Result<(Vec<u8>, u64), ExportError> {
    let mut written = Vec::with_capacity(events.len() * 1_200);
    let mut marked = 0;
    for (place, event) in events.iter().filter_map(sealed).enumerate() {
        let proof = proofs.get(place).map(Vec::as_slice);
        marked += u64::from(format.write(&mut written, &event, log, shown, proof)?);
    }
    Ok((written, marked))
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
        filters: json!(request.filters),
        include: request.include.clone(),
        complete: request.complete,
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
    if request.complete {
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
    let page = page(log, &EventFilter::default(), sequence, 1).await?;
    let found = page.events.first().and_then(|event| Some((event, event.seal?)));
    let Some((event, seal)) = found.filter(|(_, seal)| seal.sequence == sequence) else {
        return Ok(None);
    };
    let leaf = leaf_bytes(&event.core, seal.sequence, seal.recorded_at).ok();
    let record = leaf.as_deref().and_then(object).ok_or(ExportError::Tree)?;
    let proof = paths(log, std::slice::from_ref(event)).await?.into_iter().next();
    Ok(Some(Neighbour { event: record, proof: proof.unwrap_or_default() }))
}

/// Bytes written before the disk is waited for: few enough that the log's own commits do not wait
/// behind them.
const SYNCED: u64 = 4 << 20;

/// Output of lines, with the bytes written so far and their hash. Its work is done on a thread that may wait for the disk.
struct Pen {
    output: ExportOutput,
    hash: digest::Context,
    bytes: u64,
    unsynced: u64,
}

impl Pen {
    fn new(output: ExportOutput) -> Self {
        let hash = digest::Context::new(&digest::SHA256);
        Self { output, hash, bytes: 0, unsynced: 0 }
    }

    async fn put(self, line: Vec<u8>) -> Result<Self, ExportError> {
        Ok(self.write(|| Ok((line, 0))).await?.0)
    }

    /// Writes what `make` makes; gives what it tells besides.
    async fn write(
        mut self,
        make: impl FnOnce() -> Result<(Vec<u8>, u64), ExportError> + Send + 'static,
    ) -> Result<(Self, u64), ExportError> {
        let writing = tokio::task::spawn_blocking(move || {
            let (lines, told) = make()?;
            self.append(&lines)?;
            Ok((self, told))
        });
        writing.await.unwrap_or(Err(ExportError::Stopped))
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.output.out.write_all(lines)?;
        self.hash.update(lines);
        let written = u64::try_from(lines.len()).unwrap_or(u64::MAX);
        self.bytes += written;
        self.unsynced += written;
        if self.unsynced >= SYNCED
            && let Some(disk) = &self.output.file
        {
            disk.sync_data()?;
            self.unsynced = 0;
        }
        Ok(())
    }

    /// Number and SHA-256 of the bytes that were written, the hash in hex.
    async fn end(mut self) -> Result<(u64, String), ExportError> {
        let ending = tokio::task::spawn_blocking(move || {
            self.output.out.flush()?;
            let digest = self.hash.finish();
            let hex = |hex: String, byte: &u8| hex + &format!("{byte:02x}");
            Ok((self.bytes, digest.as_ref().iter().fold(String::new(), hex)))
        });
        ending.await.unwrap_or(Err(ExportError::Stopped))
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
