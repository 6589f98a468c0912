//! `portcullis audit`: the log as evidence and as a file.

mod export;
mod filters;
mod keys;
mod tail;
mod verify;

use std::process::ExitCode;

use clap::Subcommand;

use super::Failure;

#[derive(Subcommand)]
pub(super) enum Audit {
    /// Write a part of the log to a file or to standard output
    Export(Box<export::Export>),
    /// Show the end of the log and, with `--follow`, what comes
    Tail(Box<tail::Tail>),
    /// Verify an export, a proof or a checkpoint, offline
    ///
    /// Exit codes: 0 verified, 1 not readable or no evidence, 2 wrong usage, 10 the events are not
    /// those of the signed tree, 11 not signed by a given key, 12 not the continuation of the older
    /// checkpoint, 13 events or the end of the file are missing.
    Verify(verify::Verify),
    /// List and replace the keys that sign the logs
    #[command(subcommand)]
    Key(keys::AuditKeys),
}

impl Audit {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Export(export) => export.run().await.map(|()| ExitCode::SUCCESS),
            Self::Tail(tail) => tail.run().await.map(|()| ExitCode::SUCCESS),
            Self::Verify(verify) => Ok(verify.run()),
            Self::Key(keys) => keys.run().await.map(|()| ExitCode::SUCCESS),
        }
    }
}
