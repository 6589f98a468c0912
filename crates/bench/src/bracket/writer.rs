//! The thread that commits what waits, all of it in one transaction that is synced, and one message
//! to each thread that waited.

use std::{path::Path, sync::Arc, thread};

use http::StatusCode;
use portcullis_lanes::Own;
use rusqlite::{Connection, OpenFlags, params};
use tokio::{
    runtime::{Handle, Id},
    sync::{mpsc, oneshot},
};

use crate::Failure;

/// Rows of a transaction at most.
const BATCH: usize = 1024;

const TABLES: &str = "
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE intents (call INTEGER PRIMARY KEY, tool TEXT NOT NULL, bytes INTEGER NOT NULL) STRICT;
CREATE TABLE outcomes (
    call INTEGER PRIMARY KEY REFERENCES intents (call),
    status INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    withheld INTEGER NOT NULL
) STRICT;";

/// A row to write.
pub(super) enum Row {
    Intent { call: i64, tool: String, bytes: i64 },
    Outcome { call: i64, status: StatusCode, bytes: i64, withheld: bool },
}

/// A row, and the caller that waits until it is durable.
struct Job {
    row: Row,
    runtime: Id,
    waiter: Waiter,
}

type Waiter = oneshot::Sender<()>;
type Waiters = Own<mpsc::UnboundedSender<Vec<Waiter>>>;

/// The queue in front of the writer.
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
    waiters: Arc<Waiters>,
}

impl Writer {
    /// Makes the database and starts the thread, which ends with this value.
    pub(super) fn start(database: &Path) -> Result<Self, Failure> {
        let mut open = Connection::open(database)?;
        open.execute_batch(TABLES)?;
        let (jobs, mut waiting) = mpsc::channel(BATCH);
        let waiters = Arc::<Waiters>::default();
        let told = Arc::clone(&waiters);
        thread::Builder::new().name("bracket-writer".to_owned()).spawn(move || {
            let mut batch = Vec::with_capacity(BATCH);
            while waiting.blocking_recv_many(&mut batch, BATCH) > 0 {
                // The caller hears of a failure by being let go.
                let written = commit(&mut open, &batch);
                let batch = batch.drain(..).filter(|_| written.is_ok());
                tell(batch, &told);
            }
        })?;
        Ok(Self { jobs, waiters })
    }

    /// Waits until the row is durable.
    pub(super) async fn write(&self, row: Row) -> Result<(), Failure> {
        let runtime = Handle::current();
        if self.waiters.of(runtime.id()).is_none() {
            let (sender, mut batches) = mpsc::unbounded_channel::<Vec<Waiter>>();
            self.waiters.of_or(runtime.id(), sender);
            runtime.spawn(async move {
                while let Some(batch) = batches.recv().await {
                    for waiter in batch {
                        // It may be gone; what was committed stays.
                        let _ = waiter.send(());
                    }
                }
            });
        }
        let (waiter, written) = oneshot::channel();
        let stopped = "the writer has stopped";
        let job = Job { row, runtime: runtime.id(), waiter };
        self.jobs.send(job).await.map_err(|_| stopped)?;
        Ok(written.await.map_err(|_| stopped)?)
    }
}

/// Wakes the waiters, each thread once.
fn tell(jobs: impl Iterator<Item = Job>, waiters: &Waiters) {
    let mut each: Vec<(Id, Vec<Waiter>)> = Vec::new();
    for Job { runtime, waiter, .. } in jobs {
        match each.iter_mut().find(|(id, _)| *id == runtime) {
            Some((_, waiters)) => waiters.push(waiter),
            None => each.push((runtime, vec![waiter])),
        }
    }
    for (runtime, batch) in each {
        // A runtime that has ended waits for nothing.
        let _ = waiters.of(runtime).map(|sender| sender.send(batch));
    }
}

fn commit(open: &mut Connection, jobs: &[Job]) -> Result<(), rusqlite::Error> {
    let writing = open.transaction()?;
    {
        let mut intent = writing.prepare_cached("INSERT INTO intents VALUES (?, ?, ?)")?;
        let mut outcome = writing.prepare_cached("INSERT INTO outcomes VALUES (?, ?, ?, ?)")?;
        for Job { row, .. } in jobs {
            match row {
                Row::Intent { call, tool, bytes } => intent.execute(params![call, tool, bytes])?,
                Row::Outcome { call, status, bytes, withheld } => {
                    outcome.execute(params![call, status.as_u16(), bytes, withheld])?
                }
            };
        }
    }
    writing.commit()
}

/// Number of calls of which the outcome is recorded.
pub(crate) fn outcomes(database: &Path) -> Result<u64, Failure> {
    let open = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let count: i64 = open.query_row("SELECT COUNT(*) FROM outcomes", (), |row| row.get(0))?;
    Ok(count.try_into()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rows_are_there_when_their_writers_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("bracket.db");
        let writer = Writer::start(&database).unwrap();

        writer.write(Row::Intent { call: 0, tool: "echo".to_owned(), bytes: 2 }).await.unwrap();
        assert_eq!(outcomes(&database).unwrap(), 0);
        let outcome = Row::Outcome { call: 0, status: StatusCode::OK, bytes: 2, withheld: false };
        writer.write(outcome).await.unwrap();

        assert_eq!(outcomes(&database).unwrap(), 1);
        let again = Row::Intent { call: 0, tool: "echo".to_owned(), bytes: 2 };
        assert!(writer.write(again).await.is_err(), "the number is taken");
    }
}
