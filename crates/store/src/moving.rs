//! Moving an installation from an SQLite file into PostgreSQL: all of it, or nothing.
//!
//! The file is held so that no other process has it open, and is not changed. PostgreSQL takes
//! everything in one transaction, which is committed only after as many rows are there as in the
//! file and every log has the same size and root as in the file: what a crash at any line leaves is
//! an empty database.

mod logs;
mod rows;

use std::{path::Path, time::Duration};

use portcullis_core::{audit::Hash, id::OrgId};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::{
    db::{
        self, Connections, Db, Pool, Scope, Session, Store, boxed,
        schema::{self, Schema},
    },
    error::{DriverError, StoreError},
};

/// Reason why nothing was moved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MovingError {
    /// There is no such file, or it cannot be read, or is not an SQLite database.
    #[error("the SQLite database cannot be read: {0}")]
    Source(String),
    #[error("another process has the SQLite database open: stop it first")]
    InUse,
    #[error("the SQLite database holds no installation")]
    NoInstallation,
    #[error("only a PostgreSQL database can take over an installation")]
    Target,
    #[error("the PostgreSQL database is not empty: there are rows in `{0}`")]
    NotEmpty(&'static str),
    #[error("`{table}` has {found} rows and not {wanted}: nothing was moved")]
    Rows {
        table: &'static str,
        /// Rows in the file.
        wanted: u64,
        /// Rows that arrived.
        found: u64,
    },
    /// A log has not the size and root it had before.
    #[error("the log of {0} has another size or root than before: nothing was moved")]
    Log(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<DriverError> for MovingError {
    fn from(error: DriverError) -> Self {
        Self::Store(error.into())
    }
}

/// Result of a move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedRows {
    /// Every table, in the order in which they were moved.
    pub tables: Vec<MovedTable>,
    /// Every log, by org.
    pub logs: Vec<MovedLog>,
}

/// A table that was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovedTable {
    pub name: &'static str,
    /// Number of rows, before and after.
    pub rows: u64,
}

/// The log of an org, the same before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovedLog {
    pub org_id: OrgId,
    /// Number of sealed events.
    pub size: u64,
    pub root: Hash,
}

impl Store {
    /// Takes over everything from the SQLite file. Fails unless this is an empty PostgreSQL
    /// database, the file has the schema of this build, and no other process has it open. Calls
    /// that are under way in the file are held by no node: the first that starts closes them.
    #[boxed]
    pub async fn take_over(&self, file: &Path) -> Result<MovedRows, MovingError> {
        let Db::Postgres(pool) = &self.db else { return Err(MovingError::Target) };
        let path = file.to_path_buf();
        // One connection, which has the file to itself.
        let connections = Connections::new(1, WAIT, move || open_alone(&path));
        let moved = match hold(&connections).await {
            Ok(mut source) => take(&mut source, pool).await,
            Err(error) => Err(error),
        };
        // Nothing was written to it.
        connections.close().await;
        moved
    }
}

/// Time to wait for a file that is in use.
const WAIT: Duration = Duration::from_secs(5);

fn open_alone(path: &Path) -> rusqlite::Result<Connection> {
    let open = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    open.busy_timeout(WAIT)?;
    // Before the first look: with WAL it fails while another process has the file open.
    open.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    Ok(open)
}

/// Opens the file for this connection alone.
async fn hold(connections: &Connections) -> Result<Session, MovingError> {
    let unreadable = |error: DriverError| {
        let DriverError::Sqlite(failure) = &error else {
            return MovingError::Source(error.to_string());
        };
        match failure.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy) => MovingError::InUse,
            Some(_) | None => MovingError::Source(error.to_string()),
        }
    };
    let mut source = connections.take().await.map_err(unreadable)?;
    source.script("BEGIN EXCLUSIVE".to_owned()).await.map_err(unreadable)?;
    match source.call(|open| Ok(schema::of_sqlite(open))).await?? {
        Schema::Missing => Err(MovingError::NoInstallation),
        Schema::Other(error) => Err(error.into()),
        Schema::Current => Ok(Session::Sqlite(source)),
    }
}

async fn take(source: &mut Session, pool: &Pool) -> Result<MovedRows, MovingError> {
    let mut tx = db::begin(pool, Scope::Installation).await?;
    // While a large file is read and compared, nothing is asked of PostgreSQL for a long time.
    tx.script("SET LOCAL idle_in_transaction_session_timeout = 0").await?;
    rows::refuse_unless_empty(&mut tx).await?;
    rows::make_months(source, &mut tx).await?;
    let mut tables = Vec::with_capacity(rows::TABLES.len());
    for name in rows::TABLES {
        let rows = rows::copy(source, &mut tx, name).await?;
        tables.push(MovedTable { name, rows });
    }
    rows::go_on(&mut tx).await?;
    for table in &tables {
        rows::check(source, &mut tx, *table).await?;
    }
    let logs = logs::compare(source, &mut tx).await?;
    tx.commit().await.map_err(StoreError::of_commit)?;
    // The planner knows nothing yet of what came in one go; without it the first queries are slow.
    pool.take().await?.script("ANALYZE").await?;
    Ok(MovedRows { tables, logs })
}
