//! Copies of events for others: each sink gets every sealed event of every org, in the order of
//! each log, at least once. It follows the log by sequence with a cursor of its own in the store,
//! so that a sink that is slow, dead or new falls behind and catches up; neither the calls nor
//! the record wait for it.

mod feed;
mod file;
mod otlp;
mod stdout;

pub use self::file::FileOutlet;

use std::{io, sync::Arc, time::Duration};

use portcullis_core::audit::StoredError;
use portcullis_store::StoreError;
use portcullis_upstream::{OtlpReceiver, ReceiverError};
use tokio_util::sync::CancellationToken;

use self::{file::LogFile, stdout::Stdout};
use super::Audit;

/// A sink as it is configured.
#[derive(Debug, Clone)]
pub struct SinkSettings {
    /// Its name; its cursor is kept under it.
    pub name: String,
    pub outlet: Outlet,
    /// True if names and addresses go along.
    pub detached: bool,
}

/// Destination of the copies.
#[derive(Debug, Clone)]
pub enum Outlet {
    /// Standard output, an event a line.
    Stdout,
    /// A file that is rotated, an event a line.
    File(FileOutlet),
    Otlp(OtlpReceiver),
}

/// An event on its way out: a line of JSON, and what is told beside it.
#[derive(Debug)]
struct Copy {
    json: String,
    org: String,
    id: String,
    kind: String,
    occurred_at: i64,
    recorded_at: i64,
    sequence: i64,
    denied: bool,
    trace_id: Option<String>,
}

/// Reason that a batch was not delivered.
#[derive(Debug, thiserror::Error)]
enum SinkError {
    #[error("the log cannot be read: {0}")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Stored(#[from] StoredError),
    #[error("writing failed: {0}")]
    Write(#[from] io::Error),
    #[error(transparent)]
    Receiver(#[from] ReceiverError),
}

impl SinkError {
    /// Pause before the next attempt: `own`, or the longer one that the receiver asked for.
    fn pause(&self, own: Duration) -> Duration {
        match self {
            Self::Receiver(error) => error.pause(own),
            Self::Store(_) | Self::Stored(_) | Self::Write(_) => own,
        }
    }

    /// True if the receiver refused what it was sent, and not the sender.
    const fn is_about_content(&self) -> bool {
        match self {
            Self::Receiver(error) => error.is_about_content(),
            Self::Store(_) | Self::Stored(_) | Self::Write(_) => false,
        }
    }
}

/// The way out, opened when something goes through it.
enum OpenOutlet {
    Stdout(Stdout),
    File(LogFile),
    Otlp(OtlpReceiver),
}

impl OpenOutlet {
    fn of(outlet: &Outlet) -> Self {
        match outlet {
            Outlet::Stdout => Self::Stdout(Stdout::default()),
            Outlet::File(settings) => Self::File(LogFile::new(settings.clone())),
            Outlet::Otlp(receiver) => Self::Otlp(receiver.clone()),
        }
    }

    /// Hands the copies over. What it gives is how many were taken for unusable.
    async fn deliver(&mut self, node: &str, copies: &[Copy]) -> Result<u64, SinkError> {
        let lines = || copies.iter().flat_map(|copy| [copy.json.as_bytes(), b"\n"]).flatten();
        match self {
            Self::Stdout(stdout) => stdout.write(lines().copied().collect()).await?,
            Self::File(file) => file.write(lines().copied().collect()).await?,
            Self::Otlp(receiver) => return Ok(receiver.send(otlp::request(node, copies)).await?),
        }
        Ok(0)
    }
}

impl Audit {
    /// Starts to feed the sinks; ends when `stop` is cancelled, where each of them is.
    pub(crate) fn start_sinks(self: &Arc<Self>, stop: &CancellationToken) {
        for settings in &self.sinks {
            let this = Arc::clone(self);
            let settings = settings.clone();
            let stop = stop.clone();
            self.base.tasks.spawn(async move {
                tokio::join!(
                    feed::run(&this, settings.clone(), &stop),
                    feed::tell_lag(&this, &settings.name, &stop),
                );
            });
        }
    }
}
