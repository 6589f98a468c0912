//! Events as lines of one of the formats, and where the lines go.

use std::{
    fs::File,
    io::{self, Write},
};

use aws_lc_rs::digest;
use portcullis_core::audit::{
    CsvLines, Hash, Sealed, Shown, StoredError, export::event_line, ocsf_line,
};
use portcullis_store::EventRecord;
use serde_json::value::RawValue;

use super::request::Format;

/// A sealed event as core reads it; `None` for one without a place in the log.
pub(crate) fn sealed(record: &EventRecord) -> Option<Sealed<'_>> {
    let seal = record.seal.as_ref()?;
    Some(Sealed {
        core: &record.core,
        detached: record.detached.as_deref(),
        salts: record.salts.as_deref(),
        sequence: seal.sequence,
        recorded_at: seal.recorded_at,
        leaf_hash: seal.leaf_hash,
    })
}

/// Writer of events as lines, by format.
#[derive(Debug)]
pub(super) enum Lines {
    Jsonl { shown: Shown },
    Csv(Box<CsvLines>),
    Ocsf,
}

impl Lines {
    pub(super) fn new(format: Format, shown: Shown) -> Self {
        match format {
            Format::Jsonl => Self::Jsonl { shown },
            Format::Csv => Self::Csv(Box::default()),
            Format::Ocsf => Self::Ocsf,
        }
    }

    /// The lines of these events of the log named `log`; their proofs beside them, or none. What is
    /// not as the log holds it is marked and counted.
    pub(super) fn of(
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
pub(super) struct Pen {
    out: Box<dyn Write + Send>,
    /// The file behind `out`, if it is one that has to be on the disk.
    disk: Option<File>,
    hash: digest::Context,
    pub(super) bytes: u64,
    unsynced: u64,
}

impl Pen {
    pub(super) fn new(out: Box<dyn Write + Send>, disk: Option<File>) -> Self {
        let hash = digest::Context::new(&digest::SHA256);
        Self { out, disk, hash, bytes: 0, unsynced: 0 }
    }

    pub(super) fn put(&mut self, lines: &[u8]) -> io::Result<()> {
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
    pub(super) fn end(mut self) -> io::Result<(u64, String)> {
        self.out.flush()?;
        let digest = self.hash.finish();
        let hex: Vec<String> = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((self.bytes, hex.concat()))
    }
}
