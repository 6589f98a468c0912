//! Policies and settings of a serving node that are not those of the files.

use portcullis_app::{LastGood, PolicyFolder};

use super::serving;
use crate::{
    config::Config,
    reload_report::{ReloadReport, RestartReport},
};

/// Says so if a node serves from the data folder and decides by other policies than those of the folder: it
/// did not take them, or it has not yet.
pub(crate) fn outdated(config: &Config) -> Option<String> {
    let process = serving(config).ok()?;
    let in_force = LastGood::new(config.last_good_file()).read().ok()?;
    let folder = config.policy_folder();
    let written = PolicyFolder::new(folder.clone()).read();
    if written.is_ok_and(|files| files.policies == in_force) {
        return None;
    }
    let report = ReloadReport::read(&config.reload_report_file(), process).unwrap_or_default();
    let causes: Vec<String> = report.errors.iter().map(|error| format!("\n  {error}")).collect();
    Some(format!(
        "the node that serves here (process {process}) decides by the policies that were last in force, not \
         by those in `{}`; its log and `GET /v1/policies` say why{}",
        folder.display(),
        causes.concat()
    ))
}

/// Names of changed settings that the node which serves from the data folder takes at its next start only.
pub(crate) fn needing_restart(config: &Config) -> Vec<String> {
    let read = |process| RestartReport::read(&config.restart_report_file(), process);
    serving(config).map(read).unwrap_or_default()
}
