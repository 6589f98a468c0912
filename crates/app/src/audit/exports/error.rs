//! Failures of an export.

use std::io;

use portcullis_core::audit::StoredError;
use portcullis_store::StoreError;

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
