//! Writing an export: pages of the log one after the other, each turned into lines and put away
//! before the next is read. What it takes in memory does not grow with the log.

use std::{fs::File, io::Write};

use portcullis_core::audit::{CSV_MARK, Hash, Shown};
use portcullis_store::{EventOrder, EventRecord, ExportBeat, StoreError, Visibility};
use serde_json::{Value, json};

use super::{
    error::ExportError,
    evidence,
    lines::{Lines, Pen},
    request::{ExportRequest, Format},
    signed::ExportedLog,
};

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
    export_places(log, request, first, end, output, progress).await
}

/// Writes the places of the log from the first up to, not including, the end of this range.
pub(crate) async fn export_places(
    log: ExportedLog<'_>,
    request: &ExportRequest,
    first: i64,
    end: i64,
    output: ExportOutput,
    progress: &mut impl Progress,
) -> Result<Written, ExportError> {
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
        desk = desk.put(evidence::manifest(log, request, first, end).into_bytes()).await?;
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
        let proofs =
            if request.proofs { evidence::paths(log, &page.events).await? } else { Vec::new() };
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
        let closing = evidence::closing(log, request, first, end, events).await?;
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
