//! `portcullis audit`: the log as evidence and as a file, and what may be let go of it.

mod erase;
mod export;
mod filters;
mod hold;
mod keys;
mod reindex;
mod show;
mod tail;
mod verify;

use std::process::ExitCode;

use clap::Subcommand;
use portcullis_core::{clock::Timestamp, id::PrincipalId};

use super::output::Failure;

#[derive(Subcommand)]
pub(super) enum Audit {
    /// Write a part of the log to a file or to standard output
    Export(Box<export::Export>),
    /// Show the end of the log and, with `--follow`, what comes
    Tail(Box<tail::Tail>),
    /// Show one event in full
    Show(show::Show),
    /// Verify an export, a proof or a checkpoint, offline, or the log in the database
    ///
    /// Exit codes: 0 verified, 1 not readable or no evidence, 2 wrong usage, 10 the events are not
    /// those of the signed tree, 11 not signed by a given key, 12 not the continuation of the older
    /// checkpoint, 13 events or the end of the file are missing, 14 what the log is proven by does not match it.
    Verify(verify::Verify),
    /// Make what events are found and counted by anew from the log, and tell what differed
    ///
    /// Events are found by columns beside their records, on SQLite also by an index of these, and calls are
    /// counted by minute. All of it follows from the records. Where it is not as they say, because somebody changed
    /// the database, lists and filters hide events or show them wrongly. Every event that is shown is checked against
    /// the log, whatever this command finds.
    ///
    /// A gateway may serve meanwhile. Each 256 events are a transaction, with an `audit.reindexed` event if something
    /// differed; a run that was ended is gone on with by running the command again.
    ///
    /// Exit codes: 0 nothing differed, 1 it could not be carried out, 2 wrong usage, 10 records are not those of the
    /// log, and nothing was made of them (see `audit verify`), 14 something differed and was made anew, or with
    /// `--check` was left as it is.
    Reindex(reindex::Reindex),
    /// List and replace the keys that sign the logs
    #[command(subcommand)]
    Key(keys::AuditKeys),
    /// Erase names, addresses and payloads from events; the proofs of the events stay valid
    Erase(erase::Erase),
    /// Keep events from being erased and pruned
    #[command(subcommand)]
    Hold(hold::Holds),
}

impl Audit {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        let done = match self {
            Self::Verify(verify) => return verify.run().await,
            Self::Reindex(reindex) => return reindex.run().await,
            Self::Export(export) => export.run().await,
            Self::Tail(tail) => tail.run().await,
            Self::Show(show) => show.run().await,
            Self::Key(keys) => keys.run().await,
            Self::Erase(erase) => erase.run().await,
            Self::Hold(holds) => holds.run().await,
        };
        done.map(|()| ExitCode::SUCCESS)
    }
}

/// The principal that is named by its id, also one that is gone, or by its name, which `find` looks up.
async fn actor(
    named: Option<&str>,
    find: impl AsyncFnOnce(&str) -> Result<PrincipalId, Failure>,
) -> Result<Option<PrincipalId>, Failure> {
    let Some(named) = named else { return Ok(None) };
    let found = if let Ok(id) = named.parse() { id } else { find(named).await? };
    Ok(Some(found))
}

/// The bound of a range of moments in RFC 3339, such as `2026-11-20T11:02:15Z`. It is recorded in
/// milliseconds, so it is rounded up to one.
fn moment(text: &str) -> Result<Timestamp, String> {
    let wrong = || "a moment is written like 2026-11-20T11:02:15Z".to_owned();
    Timestamp::parse_rfc3339(text).map(Timestamp::ceil_to_millis).ok_or_else(wrong)
}
