//! `portcullis policy reload`.

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};

use super::{Failure, Installation};
use crate::boot;

#[derive(Args)]
pub(in crate::cli) struct Reload {
    #[command(flatten)]
    installation: Installation,
}

impl Reload {
    /// Sends the signal; what became of it stands in the log and in `GET /v1/policies`.
    pub(super) fn run(self) -> Result<(), Failure> {
        let config = self.installation.config()?;
        let process = boot::serving(&config)?;
        let pid = Pid::from_raw(process).ok_or("the lock file names no process")?;
        kill_process(pid, Signal::HUP)
            .map_err(|error| format!("process {process} cannot be signalled: {error}"))?;
        self.installation.output().line(&format!("process {process} loads its policies anew"))
    }
}
