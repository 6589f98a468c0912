//! `portcullis policy reload`.

use std::{path::Path, time::Duration};

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{Failure, Installation};
use crate::{boot, reload_report::ReloadReport};

/// The longest wait for the result; a large set takes seconds to load.
const PATIENCE: Duration = Duration::from_mins(1);
const INTERVAL: Duration = Duration::from_millis(50);

#[derive(Args)]
pub(in crate::cli) struct Reload {
    #[command(flatten)]
    installation: Installation,
}

impl Reload {
    /// Sends the signal and waits for the result. Fails if the set was not taken, with every error.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let config = self.installation.config()?;
        let process = boot::serving(&config)?;
        let pid = Pid::from_raw(process).ok_or("the lock file names no process")?;
        let file = config.reload_report_file();
        let before = ReloadReport::read(&file, process).map_or(0, |report| report.ordered);
        kill_process(pid, Signal::HUP)
            .map_err(|error| format!("process {process} cannot be signalled: {error}"))?;
        let report = tokio::time::timeout(PATIENCE, report_after(before, &file, process)).await;
        let report = report.map_err(|_| {
            let seconds = PATIENCE.as_secs();
            format!("process {process} has not told its result within {seconds} s; see its log")
        })?;
        if report.errors.is_empty() {
            let text = format!("process {process} decides by the set {}", report.policy_set);
            return self.installation.output().record(&json!(report), &text);
        }
        let errors = report.errors.join("\n");
        Err(format!("{errors}\nprocess {process} decides by the policies that were last in force")
            .into())
    }
}

/// Report of the first reload that was ordered after `before` others.
async fn report_after(before: u64, file: &Path, process: i32) -> ReloadReport {
    let mut looks = tokio::time::interval(INTERVAL);
    loop {
        looks.tick().await;
        let report = ReloadReport::read(file, process);
        if let Some(report) = report.filter(|report| report.ordered > before) {
            return report;
        }
    }
}
