//! Checkpoints that the verifier kept: a note, or a file that checkpoints were published to.

use std::{collections::BTreeMap, path::Path};

use portcullis_core::{
    audit::{
        checkpoint::Checkpoint,
        export::{Fault, Since},
        merkle::Hash,
        note::{Note, VerifierKey},
    },
    clock::Timestamp,
};
use serde_json::Value;

use super::{Lines, MAX_TEXT};

/// Clocks of nodes differ: a checkpoint that was published so many seconds before a file was made may
/// be younger than it.
const SLACK: i64 = 60;

/// The checkpoint to hold a file against.
#[derive(Debug)]
pub(super) struct KeptCheckpoint {
    pub(super) since: Since,
    /// Size of the largest tree that was kept of the log.
    pub(super) newest: u64,
}

impl KeptCheckpoint {
    /// The one in the file at `path` that tells most about a tree of `size` leaves in a file that
    /// was `made` then: one that is larger and was published before, which proves that the log was
    /// set back; otherwise the largest that is not larger, or the smallest.
    pub(super) fn find(
        path: &Path,
        size: u64,
        made: Option<Timestamp>,
        keys: &[VerifierKey],
    ) -> Result<Self, Fault> {
        let mut best = None::<Published>;
        let mut newest = 0;
        each(path, keys, |found| {
            newest = newest.max(found.size);
            let better =
                best.as_ref().is_none_or(|best| found.worth(size, made) > best.worth(size, made));
            if better {
                best = Some(found);
            }
        })?;
        let best = best.ok_or_else(absent)?;
        Ok(Self { since: Since::open(&best.note, keys)?, newest })
    }
}

/// All trees that were kept of a log, to hold the log itself against.
#[derive(Debug)]
pub(super) struct KeptLog {
    pub(super) newest: Since,
    /// Root by size; several where they contradict each other. Not all of them may be signed.
    pub(super) trees: BTreeMap<u64, Vec<Hash>>,
}

impl KeptLog {
    pub(super) fn read(path: &Path, keys: &[VerifierKey]) -> Result<Self, Fault> {
        let mut newest = None::<Published>;
        let mut trees = BTreeMap::<u64, Vec<Hash>>::new();
        each(path, keys, |found| {
            let roots = trees.entry(found.size).or_default();
            if !roots.contains(&found.root) {
                roots.push(found.root);
            }
            if newest.as_ref().is_none_or(|newest| found.size > newest.size) {
                newest = Some(found);
            }
        })?;
        let newest = newest.ok_or_else(absent)?;
        Ok(Self { newest: Since::open(&newest.note, keys)?, trees })
    }

    /// Fails if one of these trees, which are not the beginning of the log, was signed as one: a
    /// line that an outsider wrote into the file counts for nothing.
    pub(super) fn refuse(
        path: &Path,
        strangers: &[(u64, Hash)],
        keys: &[VerifierKey],
    ) -> Result<(), Fault> {
        let mut signed = None;
        if !strangers.is_empty() {
            each(path, keys, |found| {
                let other = strangers.contains(&(found.size, found.root));
                if signed.is_none() && other && Since::open(&found.note, keys).is_ok() {
                    signed = Some(found.size);
                }
            })?;
        }
        let what = |size| {
            format!(
                "a signed checkpoint of {size} events was kept whose events are not the first \
                 {size} of this log: it was set back or rewritten"
            )
        };
        signed.map_or(Ok(()), |size| Err(Fault::Inconsistent(what(size))))
    }
}

/// A checkpoint of the log, signed or not.
#[derive(Debug)]
struct Published {
    size: u64,
    root: Hash,
    note: String,
    at: Option<Timestamp>,
}

impl Published {
    /// Rank by what it tells about a tree of `size` leaves; larger is more.
    fn worth(&self, size: u64, made: Option<Timestamp>) -> (u8, u64) {
        let before = self.at.zip(made).is_some_and(|(at, made)| at.plus_seconds(SLACK) < made);
        match self.size > size {
            true if before => (2, self.size),
            false => (1, self.size),
            true => (0, u64::MAX - self.size),
        }
    }
}

fn absent() -> Fault {
    Fault::unreadable("no checkpoint of this log was kept in that file")
}

/// Gives every checkpoint in the file that is of a log that one of the keys signs. A note that stands
/// alone has to be signed.
fn each(path: &Path, keys: &[VerifierKey], mut take: impl FnMut(Published)) -> Result<(), Fault> {
    let mut lines = Lines::open(path)?;
    let first = lines.next()?.unwrap_or_default().to_vec();
    if !first.starts_with(b"{") {
        let note = lines.all(&first, MAX_TEXT)?;
        let Checkpoint { size, root, .. } = Since::open(&note, keys)?.checkpoint().clone();
        take(Published { size, root, note, at: None });
        return Ok(());
    }
    let mut line = Some(first);
    while let Some(text) = line {
        if let Some(found) = published(&text, keys) {
            take(found);
        }
        line = lines.next()?.map(<[u8]>::to_vec);
    }
    Ok(())
}

/// Checkpoint in a line of an anchor file, if it is of a log that one of the keys signs.
fn published(line: &[u8], keys: &[VerifierKey]) -> Option<Published> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let note = line.get("note")?.as_str()?;
    let checkpoint = Checkpoint::of(&Note::parse(note).ok()?).ok()?;
    let at = line.get("anchored_at").and_then(Value::as_str).and_then(Timestamp::parse_rfc3339);
    let ours = keys.iter().any(|key| key.name() == checkpoint.origin);
    let Checkpoint { size, root, .. } = checkpoint;
    ours.then(|| Published { size, root, note: note.to_owned(), at })
}
