//! The connection that the audit log is written through, without a hop to another thread.
//!
//! SQLite lets one write at a time and makes all others poll for their turn. Within this process
//! [`Turns`] is a queue instead: the log and every other change ([`super::super::change`]) stand in
//! it. Other processes still poll.

mod batch;

use std::{path::Path, str::FromStr, sync::Arc, time::Duration};

use rusqlite::{Connection, OpenFlags, Row};
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    task::spawn_blocking,
    time::timeout,
};

use self::batch::KnownIntents;
pub(crate) use self::batch::insert_events;
use crate::{
    db::{Durability, durability, parse},
    error::StoreError,
    row_key::RowKey,
    settings::{DatabaseSettings, Sync},
};

/// Pages that the connection keeps at most, in KiB: those written since the last sealing are in it.
const CACHE_KIB: i64 = 8 * 1024;

/// Pages in the log file after which they are carried into the database. Pages that commits write again
/// and again, the last one of each tree, are carried over once: with four times as many pages as SQLite
/// takes by itself, a twentieth less is written. Carried over by a thread of its own, they take a third more
/// of the processor; pages of 8 KiB save 0.7 write calls a call, and write a sixth more bytes.
const CHECKPOINT_PAGES: i64 = 4_000;

/// Statements that stay prepared.
const STATEMENTS: usize = 48;
const STATEMENTS_OF_OTHERS: usize = 256;

/// The turn to write, and the connection of the log. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    connection: Arc<Mutex<LogConnection>>,
    wait: Duration,
}

/// A turn to write with another connection.
#[derive(Debug)]
pub(crate) struct WriteTurn {
    _turn: OwnedMutexGuard<LogConnection>,
}

impl Log {
    /// The log in the database at `path`; it is opened when first written to.
    pub(crate) fn new(path: &Path, settings: &DatabaseSettings) -> Self {
        let connection = LogConnection {
            path: path.into(),
            row_key: settings.row_key.clone(),
            sync: settings.sync,
            wait: settings.wait,
            open: None,
            closed: false,
            intents: KnownIntents::default(),
        };
        Self { connection: Arc::new(Mutex::new(connection)), wait: settings.wait }
    }

    /// Waits for a turn to write with another connection.
    pub(crate) async fn turn(&self) -> Result<WriteTurn, StoreError> {
        let turn = timeout(self.wait, Arc::clone(&self.connection).lock_owned()).await;
        turn.map(|turn| WriteTurn { _turn: turn }).map_err(|_| busy())
    }

    /// Waits for a turn to write and takes it, on this thread. Must not be called where tasks run.
    pub(crate) fn blocking_turn<R>(
        &self,
        act: impl FnOnce(&mut LogConnection) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        act(&mut self.connection.blocking_lock())
    }

    /// Waits for a turn and takes it, on a thread that may block.
    pub(crate) async fn act<R: Send + 'static>(
        &self,
        act: impl FnOnce(&mut LogConnection) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let turn = timeout(self.wait, Arc::clone(&self.connection).lock_owned()).await;
        let mut turn = turn.map_err(|_| busy())?;
        let acted = spawn_blocking(move || act(&mut turn)).await;
        acted.map_err(|error| StoreError::OutcomeUnknown(error.to_string()))?
    }

    /// Closes the connection for good.
    pub(crate) async fn close(&self) {
        let closing = self.act(|log| {
            (log.open, log.closed) = (None, true);
            Ok(())
        });
        // What is busy for too long is closed when it is dropped.
        let _ = closing.await;
    }
}

fn busy() -> StoreError {
    StoreError::Unavailable("the database is busy".to_owned())
}

/// The connection, open once it was used.
#[derive(Debug)]
pub(crate) struct LogConnection {
    path: Box<Path>,
    pub(crate) row_key: RowKey,
    sync: Sync,
    wait: Duration,
    open: Option<Connection>,
    closed: bool,
    intents: KnownIntents,
}

impl LogConnection {
    /// Durability of the database, read back from the connection that writes.
    pub(crate) fn durability(&mut self) -> Result<Durability, StoreError> {
        let open = self.open()?;
        let text = |sql| open.query_row(sql, (), |row| row.get::<_, String>(0));
        let version = text("SELECT sqlite_version()")?;
        let journal = text("PRAGMA journal_mode")?;
        let level: i64 = open.query_row("PRAGMA synchronous", (), |row| row.get(0))?;
        let synchronous = match level {
            0 => "off",
            1 => "normal",
            2 => "full",
            _ => "extra",
        };
        Ok(Durability {
            engine: "sqlite",
            version,
            weakness: durability::of_build(&compile_options(open)?)
                .or_else(|| durability::of_sqlite(&journal, level, synchronous)),
            journal,
            synchronous: synchronous.to_owned(),
            whole_pages: true,
            row_security: None,
        })
    }

    /// Runs `write` in a transaction that may write, and commits it.
    pub(crate) fn change<R>(
        &mut self,
        write: impl FnOnce(&Connection) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let open = self.open()?;
        let changed = change(open, write);
        if changed.is_err() && !restored(open) {
            // The state of the connection is unknown.
            self.open = None;
        }
        changed
    }

    /// The connection, opened if it was not.
    pub(crate) fn open(&mut self) -> Result<&Connection, StoreError> {
        let open = match self.open.take() {
            Some(open) => open,
            None if self.closed => {
                return Err(StoreError::Unavailable("the database is closed".to_owned()));
            }
            None => connect(&self.path, self.sync, self.wait)?,
        };
        Ok(self.open.insert(open))
    }
}

/// The options that SQLite was compiled with, as it lists them itself.
fn compile_options(open: &Connection) -> Result<Vec<String>, StoreError> {
    let mut list = open.prepare("PRAGMA compile_options")?;
    let options = list.query_map((), |row| row.get(0))?;
    Ok(options.collect::<Result<_, _>>()?)
}

fn connect(path: &Path, sync: Sync, wait: Duration) -> rusqlite::Result<Connection> {
    let open = open(path, wait, STATEMENTS)?;
    set_sync(&open, sync)?;
    open.pragma_update(None, "cache_size", -CACHE_KIB)?;
    open.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    Ok(open)
}

/// A connection that writes all but the log.
pub(crate) fn open_to_write(
    path: &Path,
    sync: Sync,
    wait: Duration,
) -> rusqlite::Result<Connection> {
    let open = open(path, wait, STATEMENTS_OF_OTHERS)?;
    open.pragma_update(None, "journal_mode", "WAL")?;
    set_sync(&open, sync)?;
    Ok(open)
}

/// A connection that writes nothing.
pub(crate) fn open_to_read(path: &Path, wait: Duration) -> rusqlite::Result<Connection> {
    let open = open(path, wait, STATEMENTS_OF_OTHERS)?;
    open.pragma_update(None, "query_only", true)?;
    Ok(open)
}

fn open(path: &Path, wait: Duration, statements: usize) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = Connection::open_with_flags(path, flags)?;
    open.busy_timeout(wait)?;
    open.set_prepared_statement_cache_capacity(statements);
    open.pragma_update(None, "foreign_keys", true)?;
    Ok(open)
}

fn set_sync(open: &Connection, sync: Sync) -> rusqlite::Result<()> {
    let level = match sync {
        Sync::PowerLoss => "FULL",
        Sync::ProcessCrash => "NORMAL",
    };
    open.pragma_update(None, "synchronous", level)
}

fn change<R>(
    open: &Connection,
    write: impl FnOnce(&Connection) -> Result<R, StoreError>,
) -> Result<R, StoreError> {
    open.prepare_cached("BEGIN IMMEDIATE")?.raw_execute()?;
    let written = write(open)?;
    let committed = open.prepare_cached("COMMIT").and_then(|mut commit| commit.raw_execute());
    committed.map_err(StoreError::of_commit)?;
    Ok(written)
}

/// Returns true if the connection stands outside a transaction again.
fn restored(open: &Connection) -> bool {
    open.is_autocommit() || open.execute_batch("ROLLBACK").is_ok() && open.is_autocommit()
}

/// Reads back a stored text, or says that `column` is unreadable.
pub(crate) fn read_id<T: FromStr>(
    row: &Row<'_>,
    place: usize,
    column: &'static str,
) -> Result<T, StoreError> {
    let text = row.get_ref(place)?.as_str().map_err(|_| StoreError::Corrupt(column))?;
    parse(text, column)
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn the_sqlite_of_this_build_names_its_options_and_weakens_nothing() {
        let options = compile_options(&Connection::open_in_memory().unwrap()).unwrap();

        assert!(options.contains(&"THREADSAFE=1".to_owned()), "{options:?}");
        assert_eq!(durability::of_build(&options), None);
    }

    #[test]
    fn a_statement_is_compiled_once_whatever_is_bound_to_it() {
        let open = Connection::open_in_memory().unwrap();
        open.execute_batch("CREATE TABLE t (x INTEGER PRIMARY KEY, y TEXT)").unwrap();
        let mut select = open.prepare("SELECT y FROM t WHERE x > ? ORDER BY x LIMIT ?").unwrap();

        for limit in 1..5 {
            assert!(!select.exists((limit, limit)).unwrap());
        }

        assert_eq!(select.get_status(StatementStatus::RePrepare), 0);
    }
}
