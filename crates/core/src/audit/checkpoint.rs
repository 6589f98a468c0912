//! Checkpoints: size and root of a log at a moment, as <https://c2sp.org/tlog-checkpoint> writes
//! them.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    merkle::{Hash, MAX_SIZE},
    note::{KeyKind, Note, NoteError, SigningKey, Verified, VerifierKey},
};

/// State of a log, as its operator signs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Name of the log: `<host>/audit/<org_id>`.
    pub origin: String,
    /// Number of leaves of the tree.
    pub size: u64,
    pub root: Hash,
}

/// Reason that a checkpoint is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    #[error("not a checkpoint: {0}")]
    Form(&'static str),
    #[error(transparent)]
    Note(#[from] NoteError),
    #[error("it is not signed by a given key of the log `{0}`")]
    NotByTheLog(String),
}

impl CheckpointError {
    /// Returns true if the text is no checkpoint at all; otherwise its signatures are wrong.
    #[must_use]
    pub const fn is_form(&self) -> bool {
        matches!(self, Self::Form(_) | Self::Note(NoteError::Form(_)))
    }
}

impl Checkpoint {
    /// The signed note of this checkpoint.
    #[must_use]
    pub fn sign(&self, keys: &[&SigningKey]) -> Note {
        Note::sign(self.to_string(), keys)
    }

    /// Reads the text of a note without checking its signatures.
    pub fn of(note: &Note) -> Result<Self, CheckpointError> {
        let form = CheckpointError::Form;
        let mut lines = note.text().strip_suffix('\n').unwrap_or_default().split('\n');
        let mut line = || lines.next().filter(|line| !line.is_empty());
        let origin = line().ok_or(form("it has no origin"))?.to_owned();
        let size = line().and_then(decimal).ok_or(form("its second line is no size"))?;
        let root = line().and_then(hash_of).ok_or(form("its third line is no root hash"))?;
        if lines.any(str::is_empty) {
            return Err(form("it has an empty line"));
        }
        Ok(Self { origin, size, root })
    }

    /// Reads a signed note, and which of `keys` signed it. Fails unless a key of the log itself is
    /// among them, which is one whose name is the origin.
    pub fn open(
        note: &str,
        keys: &[VerifierKey],
    ) -> Result<(Self, Vec<Verified>), CheckpointError> {
        let note = Note::parse(note)?;
        let checkpoint = Self::of(&note)?;
        let verified = note.verify(keys)?;
        let own =
            |by: &Verified| by.key.kind() == KeyKind::Log && by.key.name() == checkpoint.origin;
        if !verified.iter().any(own) {
            return Err(CheckpointError::NotByTheLog(checkpoint.origin));
        }
        Ok((checkpoint, verified))
    }

    /// True if the log is that of the org: the last part of its origin.
    pub(super) fn is_of_org(&self, org_id: &str) -> bool {
        self.origin.rsplit('/').next() == Some(org_id)
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}\n{}", self.origin, self.size, hash_text(&self.root))
    }
}

/// A number as these formats write it: decimal, without leading zeros, small enough for a tree.
#[must_use]
pub fn decimal(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let led = text.len() > 1 && text.starts_with('0');
    text.parse().ok().filter(|number| plain && !led && *number <= MAX_SIZE)
}

/// A hash in base64.
#[must_use]
pub fn hash_text(hash: &Hash) -> String {
    STANDARD.encode(hash)
}

/// The hash that [`hash_text`] wrote.
#[must_use]
pub fn hash_of(text: &str) -> Option<Hash> {
    // 44 characters are 32 bytes; nothing longer is decoded.
    STANDARD.decode(text.get(..44).filter(|_| text.len() == 44)?).ok()?.try_into().ok()
}
