//! Faults in evidence, each with the code that `portcullis audit verify` exits with.

/// Reason that a file does not prove what it should. The text says what was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not an export, proof or checkpoint at all.
    #[error("{0}")]
    Unreadable(String),
    /// The events are not those of the signed tree: something was edited, added or moved.
    #[error("{0}")]
    Root(String),
    /// The checkpoint is not signed by the log's key.
    #[error("{0}")]
    Signature(String),
    /// The log is not the continuation of the one that was seen before.
    #[error("{0}")]
    Inconsistent(String),
    /// Columns or tiles, by which the log is searched and proven, are not those of its events.
    #[error("{0}")]
    Index(String),
    /// Events or the end of the file are missing, or nothing is proven at all.
    #[error("{0}")]
    Incomplete(String),
}

impl Fault {
    /// Something that is no evidence.
    pub fn unreadable(text: impl Into<String>) -> Self {
        Self::Unreadable(text.into())
    }

    /// 1 unreadable, 10 root mismatch, 11 bad signature, 12 inconsistent with an older
    /// checkpoint, 13 range incomplete, 14 columns or tiles that are not those of the events.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Unreadable(_) => 1,
            Self::Root(_) => 10,
            Self::Signature(_) => 11,
            Self::Inconsistent(_) => 12,
            Self::Incomplete(_) => 13,
            Self::Index(_) => 14,
        }
    }

    /// The same as a word, for programs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "unreadable",
            Self::Root(_) => "root_mismatch",
            Self::Signature(_) => "bad_signature",
            Self::Inconsistent(_) => "inconsistent",
            Self::Incomplete(_) => "incomplete",
            Self::Index(_) => "index_mismatch",
        }
    }
}
