//! Checkpoints that somebody kept: a note, or a file that checkpoints were published to.

use std::path::Path;

use portcullis_core::audit::{
    checkpoint::Checkpoint,
    export::{Fault, Since},
    note::{Note, VerifierKey},
};
use serde_json::Value;

use super::{Lines, MAX_TEXT};

/// The checkpoint to hold a log against.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) since: Since,
    /// Size of the largest tree that was kept of the log.
    pub(super) newest: u64,
}

impl Kept {
    /// The one in the file that tells most about a tree of `size` leaves: the largest that is not
    /// larger, or the smallest.
    pub(super) fn find(path: &Path, size: u64, keys: &[VerifierKey]) -> Result<Self, Fault> {
        let mut lines = Lines::open(path)?;
        let first = lines.next()?.unwrap_or_default().to_vec();
        if !first.starts_with(b"{") {
            let since = Since::open(&lines.all(&first, MAX_TEXT)?, keys)?;
            let newest = since.checkpoint().size;
            return Ok(Self { since, newest });
        }
        let mut best: Option<(u64, String)> = None;
        let mut newest = 0;
        let mut line = Some(first);
        while let Some(text) = line {
            if let Some((found, note)) = published(&text, keys) {
                newest = newest.max(found);
                let better = best.as_ref().is_none_or(|(best, _)| {
                    if found <= size { *best > size || found > *best } else { found < *best }
                });
                if better {
                    best = Some((found, note));
                }
            }
            line = lines.next()?.map(<[u8]>::to_vec);
        }
        let absent = || Fault::unreadable("no checkpoint of this log was kept in that file");
        let (_, note) = best.ok_or_else(absent)?;
        Ok(Self { since: Since::open(&note, keys)?, newest })
    }
}

/// Size and note of a line of an anchor file, if it is of a log that one of the keys signs.
fn published(line: &[u8], keys: &[VerifierKey]) -> Option<(u64, String)> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let note = line.get("note")?.as_str()?;
    let checkpoint = Checkpoint::of(&Note::parse(note).ok()?).ok()?;
    let ours = keys.iter().any(|key| key.name() == checkpoint.origin);
    ours.then(|| (checkpoint.size, note.to_owned()))
}
