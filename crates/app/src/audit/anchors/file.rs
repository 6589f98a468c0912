//! A file of checkpoints that is only appended to: one JSON object a line with the members `log`,
//! `size`, `note` (the signed note) and `anchored_at`. `portcullis audit verify --since` reads it.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::PathBuf,
    sync::Arc,
};

use portcullis_core::{
    audit::{checkpoint::Checkpoint, note::Note},
    id::OrgId,
};
use serde_json::{Value, json};

use super::{AnchorProgress, Reached};
use crate::{audit::Audit, telemetry::counters};

const NAME: &str = "file";
/// Lines that are longer were not written here.
const MAX_LINE: u64 = 1 << 20;

/// The file.
#[derive(Debug)]
pub struct AnchorFile {
    path: Arc<PathBuf>,
    progress: AnchorProgress,
}

impl AnchorFile {
    /// The file at `path`, as far as it was written before. Fails if it cannot be read or appended
    /// to.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).read(true).open(&path)?;
        let mut reached = Reached::default();
        for (org, Checkpoint { size, root, .. }) in published_in(file)? {
            reached.sizes.insert(org, size);
            reached.roots.insert(org, root);
        }
        counters::start_anchor_file(NAME);
        Ok(Self { path: Arc::new(path), progress: AnchorProgress(reached.into()) })
    }

    pub(super) async fn publish(&self, audit: &Audit) {
        let mut reached = self.progress.0.lock().await;
        reached.look(audit, NAME).await;
        let fresh: Vec<_> = reached.waiting.iter().map(|(org, it)| (*org, it.clone())).collect();
        if !fresh.is_empty() {
            let now = audit.base.now();
            let mut lines = String::new();
            for (org, it) in &fresh {
                let log = audit.log.origin(*org);
                let size = it.size;
                let note = &it.note;
                let line = json!({"log": log, "size": size, "note": note, "anchored_at": now});
                lines.extend([line.to_string().as_str(), "\n"]);
            }
            let path = Arc::clone(&self.path);
            let written = tokio::task::spawn_blocking(move || append(&path, &lines)).await;
            match written {
                Ok(Ok(())) => {
                    for (org, it) in fresh {
                        reached.published(org, it.size);
                    }
                    counters::anchored(NAME, "published");
                }
                Ok(Err(error)) => {
                    counters::anchored(NAME, "failed");
                    tracing::error!(%error, "checkpoints cannot be written to the anchor file");
                }
                Err(_) => counters::anchored(NAME, "failed"),
            }
        }
        counters::anchor_behind(NAME, reached.waiting.len());
    }
}

fn append(path: &PathBuf, lines: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    // Whole lines in one write: beside those of other nodes, and after a crash at most the last
    // is cut off.
    file.write_all(lines.as_bytes())?;
    file.sync_data()
}

/// The logs in the file, each with its trees in the order they were published in. What is no line of ours is
/// skipped: the file is evidence for others and no input.
fn published_in(file: File) -> io::Result<Vec<(OrgId, Checkpoint)>> {
    let mut found = Vec::new();
    let mut reader = BufReader::new(file);
    loop {
        let mut line = Vec::new();
        if io::Read::take(&mut reader, MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(found);
        }
        found.extend(read_line(&line));
    }
}

fn read_line(line: &[u8]) -> Option<(OrgId, Checkpoint)> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let note = Note::parse(line.get("note")?.as_str()?).ok()?;
    let checkpoint = Checkpoint::of(&note).ok()?;
    let org = checkpoint.origin.rsplit('/').next()?.parse().ok()?;
    Some((org, checkpoint))
}
