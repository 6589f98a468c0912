//! Result of the last reload of a serving node, for the commands beside it.

use std::{fs, io, path::Path};

use portcullis_app::replace_private_file;
use serde::{Deserialize, Serialize};

/// Result of the last reload, in a file of the data folder.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ReloadReport {
    /// The process that serves.
    pub(crate) process: i32,
    /// Number of reloads that were ordered since it started.
    pub(crate) ordered: u64,
    /// Version of the set in force.
    pub(crate) policy_set: String,
    /// Errors, each with its place; empty if the set was taken.
    pub(crate) errors: Vec<String>,
}

impl ReloadReport {
    /// Report of the process, if it wrote one.
    pub(crate) fn read(file: &Path, process: i32) -> Option<Self> {
        let report: Self = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
        (report.process == process).then_some(report)
    }

    pub(crate) fn write(&self, file: &Path) -> io::Result<()> {
        replace_private_file(file, &serde_json::to_vec(self)?)
    }
}
