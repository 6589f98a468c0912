//! Settings that a serving node took from changed files at its last reload, for the commands beside it.

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

/// Settings of the configuration that changed since a serving node started, and that it does not take.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RestartReport {
    /// The process that serves.
    process: i32,
    /// Their names, such as `providers.github`.
    changed: Vec<String>,
}

impl RestartReport {
    /// Names of the settings that the process reported.
    pub(crate) fn read(file: &Path, process: i32) -> Vec<String> {
        let report = fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let report = report.filter(|report: &Self| report.process == process);
        report.map(|report| report.changed).unwrap_or_default()
    }

    /// Reports these of this process.
    pub(crate) fn write(file: &Path, changed: &[String]) -> io::Result<()> {
        let process = i32::try_from(std::process::id()).unwrap_or_default();
        let report = Self { process, changed: changed.to_vec() };
        replace_private_file(file, &serde_json::to_vec(&report)?)
    }
}
