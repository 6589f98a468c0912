//! The two databases behind one set of statements.
//!
//! [`read!`] and [`change!`] run the same body on either: the statements are written once, with
//! `$1` placeholders, `BIGINT` microseconds, `TEXT` ids and JSON. Each says whose rows it is about
//! ([`Scope`]). What the two databases do differently is a named function of [`Session`].
//!
//! **Invariant:** rows are plain: nothing in this folder knows the modules that make and read them.

mod approvals;
mod batch;
mod dialect;
mod durability;
mod packed;
mod positions;
mod postgres;
mod rows;
pub(crate) mod schema;
mod scope;
mod session;
mod sqlite;
mod statement;
mod unreadable;

pub use self::{
    approvals::ApprovalUse,
    durability::{Durability, Weakness},
    packed::RecordTexts,
    rows::{EventTexts, Name, NewEvent, NewIntent, NewKey, TextColumn},
    unreadable::UnreadableRow,
};
pub(crate) use self::{
    approvals::{INSERT_APPROVAL, RowChange, UPDATE_APPROVAL},
    batch::{AnsweredKey, Batch, Losers},
    packed::MOST_BYTES,
    positions::{last_given, newest_position},
    postgres::{LogWriter, Pool, Tls, insert_seals},
    scope::{Scope, begin},
    session::Session,
    sqlite::{
        Connections, Log, LogConnection, has_sealed_twin, index_entries, insert_events, is_ended,
        positions_of_events, read_id, sealed_upto, waiting_events,
    },
    statement::{
        Bound, Column, FromRow, Row, Value, all, cells, columns, find, one, rows, run, scalar,
        values,
    },
    unreadable::{Found, Readable},
};

pub(crate) use async_recursion::async_recursion as boxed;
use std::{fs::OpenOptions, path::Path, sync::Arc};

use portcullis_core::{
    clock::Timestamp,
    id::{EventId, OrgId},
};
use portcullis_lanes::{FairLimits, FairSlot, FairSlots};
use tokio::task::spawn_blocking;

use self::{schema::Schema, unreadable::Unreadable};
use crate::{
    error::{DriverError, StoreError},
    row_key::RowKey,
    settings::{DatabaseSettings, Sync, Target},
};

/// Connections that read SQLite at the same time, at most: each has a thread and a copy of the schema,
/// and what it reads comes from memory, so more of them would wait for processors.
const SQLITE_READERS: u32 = 4;
/// Reads of orgs that wait for their turns, at most; of more, those of the org with the longest queue are refused.
const WAITING_READS: usize = 1_024;

/// The database of an installation. Clones share the connections.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) db: Db,
    /// Rows that could not be read and were not reported yet.
    pub(crate) unreadable: Arc<Unreadable>,
    pub(crate) row_key: RowKey,
    /// Turns of orgs to read.
    reads: Arc<FairSlots<OrgId>>,
    /// Promise of the configuration about commits.
    sync: Sync,
}

#[derive(Debug, Clone)]
pub(crate) enum Db {
    /// WAL lets many read while one writes, so there is one connection that writes the log and one
    /// for everything else, and they take turns.
    Sqlite {
        log: Log,
        writer: Connections,
        readers: Connections,
    },
    Postgres(Pool),
}

impl Store {
    /// Opens the database, creates it if it is an SQLite file that does not exist, and brings its
    /// schema up to date. Fails for a schema that is newer than this build, or of an older build
    /// whose migrations this one does not have.
    #[boxed]
    pub async fn open(settings: &DatabaseSettings) -> Result<Self, StoreError> {
        let db = match &settings.url.0 {
            Target::Sqlite(path) => {
                make_private(path)?;
                open_sqlite(settings, path).await?
            }
            Target::Postgres(options) => {
                let pool = postgres::open(settings, options).await?;
                schema::migrate_postgres(&pool).await?;
                Db::Postgres(pool)
            }
        };
        Ok(Self {
            db,
            unreadable: Arc::default(),
            row_key: settings.row_key.clone(),
            reads: Arc::new(FairSlots::new(reads_of_orgs(settings))),
            sync: settings.sync,
        })
    }

    /// A turn of the org to read; none is needed for the installation.
    pub(crate) async fn turn_to_read(
        &self,
        scope: Scope,
    ) -> Result<Option<FairSlot<OrgId>>, StoreError> {
        match scope {
            Scope::Org(org) => self.reads.take(org).await.map(Some).ok_or(StoreError::Crowded),
            Scope::Installation => Ok(None),
        }
    }

    /// Opens the database if it is there and has the schema of this build: nothing is made and nothing is
    /// changed. `None` otherwise.
    #[boxed]
    pub async fn open_as_it_is(settings: &DatabaseSettings) -> Result<Option<Self>, StoreError> {
        if schema_of(settings).await? == Schema::Current {
            Self::open(settings).await.map(Some)
        } else {
            Ok(None)
        }
    }

    /// Rejects a database with another schema than that of this build. Nothing is made and nothing
    /// is changed.
    #[boxed]
    pub async fn refuse_other_schema(settings: &DatabaseSettings) -> Result<(), StoreError> {
        match schema_of(settings).await? {
            Schema::Missing | Schema::Current => Ok(()),
            Schema::Other(error) => Err(error),
        }
    }

    /// Checks that the database answers.
    #[boxed]
    pub async fn ping(&self) -> Result<(), StoreError> {
        read!(self, installation, |conn| {
            run!(conn, "SELECT 1");
        });
        Ok(())
    }

    /// Fails unless the database can be written: takes the locks that writing the log takes, writes
    /// a row and waits for its commit. Fails also if PostgreSQL has been told meanwhile not to wait
    /// for its disk, and that was promised; a starting node asks [`Self::durability`].
    #[boxed]
    pub async fn probe(&self, now: Timestamp) -> Result<(), StoreError> {
        change!(self, installation, |tx| {
            tx.lock_log_for_writing().await?;
            run!(
                tx, "INSERT INTO probes (id, probed_at) VALUES (1, $1) \
                 ON CONFLICT (id) DO UPDATE SET probed_at = $1"
                => now
            );
        });
        if let (Db::Postgres(pool), Sync::PowerLoss) = (&self.db, self.sync) {
            let mut session = begin(pool, Scope::Installation).await?;
            let found = postgres::durability(&mut session).await?.weakness;
            return found.map_or(Ok(()), |it| Err(StoreError::Unavailable(it.to_string())));
        }
        Ok(())
    }

    /// Durability of the database, read back from it.
    #[boxed]
    pub async fn durability(&self) -> Result<Durability, StoreError> {
        match &self.db {
            Db::Sqlite { log, .. } => log.act(LogConnection::durability).await,
            Db::Postgres(pool) => {
                postgres::durability(&mut Session::Postgres(pool.take().await?)).await
            }
        }
    }

    /// Writes the SQLite database, as it is at one moment, into a new file for its owner alone;
    /// others read and write meanwhile. Fails for PostgreSQL, which has tools of its own for that.
    #[boxed]
    pub async fn copy_to(&self, file: &Path) -> Result<(), StoreError> {
        let Db::Sqlite { writer, .. } = &self.db else {
            return Err(StoreError::Unavailable("only an SQLite database is copied".to_owned()));
        };
        make_private(file)?;
        let path = file.to_string_lossy().into_owned();
        let mut conn = Session::Sqlite(writer.take().await?);
        run!(conn, "VACUUM INTO $1" => path);
        Ok(())
    }

    /// Waits for what is running and closes every connection; SQLite folds its log into the file.
    #[boxed]
    pub async fn close(&self) {
        match &self.db {
            Db::Sqlite { log, writer, readers } => {
                log.close().await;
                readers.close().await;
                writer.close().await;
            }
            Db::Postgres(pool) => pool.close().await,
        }
    }
}

/// Compares the schema of a database as it is.
async fn schema_of(settings: &DatabaseSettings) -> Result<Schema, StoreError> {
    match &settings.url.0 {
        Target::Sqlite(path) if !path.exists() => Ok(Schema::Missing),
        Target::Sqlite(path) => {
            let path = path.clone();
            let look = move || {
                let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
                schema::of_sqlite(&rusqlite::Connection::open_with_flags(path, flags)?)
            };
            spawn_blocking(look)
                .await
                .map_err(|error| StoreError::Unavailable(error.to_string()))?
        }
        Target::Postgres(options) => {
            let pool = postgres::open(settings, options).await?;
            let found = schema::of_postgres(&pool).await;
            pool.close().await;
            found
        }
    }
}

/// Reads of orgs at once: three quarters of the connections that read. Calls, changes and the installation find the
/// rest, however many lists are asked for.
fn reads_of_orgs(settings: &DatabaseSettings) -> FairLimits {
    let connections = match &settings.url.0 {
        Target::Sqlite(_) => settings.connections.clamp(1, SQLITE_READERS),
        Target::Postgres(_) => settings.connections.max(2),
    };
    let slots = (connections - connections.div_ceil(4)).max(1);
    let slots = usize::try_from(slots).unwrap_or(usize::MAX);
    FairLimits { slots, reserve: slots / 3, waiting: WAITING_READS, patience: settings.wait }
}

/// Makes the file, empty, unless there is one: readable by its owner only. The files that `SQLite`
/// makes beside it have the mode of this one.
fn make_private(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let made = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    made.map(drop).map_err(|error| StoreError::Unavailable(error.to_string()))
}

async fn open_sqlite(settings: &DatabaseSettings, path: &Path) -> Result<Db, StoreError> {
    let (sync, wait) = (settings.sync, settings.wait);
    let file = path.to_path_buf();
    let writer = Connections::new(1, wait, move || sqlite::open_to_write(&file, sync, wait));
    writer.take().await?.call(|open| Ok(schema::migrate_sqlite(open))).await??;
    let file = path.to_path_buf();
    let most = settings.connections.clamp(1, SQLITE_READERS);
    let readers = Connections::new(most, wait, move || sqlite::open_to_read(&file, wait));
    // One that cannot read is found out at the start.
    drop(readers.take().await?);
    let log = Log::new(path, settings);
    Ok(Db::Sqlite { log, writer, readers })
}

impl Db {
    /// Picks one of two by the database.
    pub(crate) fn pick<T>(&self, sqlite: T, postgres: T) -> T {
        match self {
            Self::Sqlite { .. } => sqlite,
            Self::Postgres(_) => postgres,
        }
    }

    /// The SQL for the texts of the JSON array in a parameter; to stand after `IN`.
    pub(crate) fn texts(&self, parameter: &str) -> String {
        self.pick(
            format!("(SELECT value FROM json_each({parameter}))"),
            format!("(SELECT jsonb_array_elements_text({parameter}::jsonb))"),
        )
    }

    /// A connection for reading, within a scope.
    pub(crate) async fn read(&self, scope: Scope) -> Result<Session, DriverError> {
        match self {
            Self::Sqlite { readers, .. } => readers.take().await.map(Session::Sqlite),
            // Nothing is to be committed: it ends while the caller goes on.
            Self::Postgres(pool) => begin(pool, scope).await,
        }
    }

    /// A transaction that may write, within a scope.
    pub(crate) async fn change(&self, scope: Scope) -> Result<Session, StoreError> {
        Ok(match self {
            Self::Sqlite { writer, log, .. } => {
                Session::Sqlite(writer.begin(log.turn().await?).await?)
            }
            Self::Postgres(pool) => begin(pool, scope).await?,
        })
    }
}

/// The seal of one event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewSeal {
    pub(crate) event_id: EventId,
    pub(crate) position: i64,
    pub(crate) recorded_at: i64,
    pub(crate) leaf_hash: [u8; 32],
}

/// Runs the body with a connection for reading, within the scope of an org or, by that word, of
/// the installation. Reads of orgs take turns, so that one that asks for many lists at once leaves
/// connections to others; what calls and the seals of the log wait for is read `unqueued`.
///
/// **Invariant:** no body reads by this macro itself: it would wait for a turn while it has one.
macro_rules! read {
    (@within $store:expr, $scope:expr, |$conn:ident| $body:expr) => {{
        let mut $conn = $store.db.read($scope).await?;
        $body
    }};
    ($store:expr, installation, |$conn:ident| $body:expr) => {
        $crate::db::read!(@within $store, $crate::db::Scope::Installation, |$conn| $body)
    };
    ($store:expr, unqueued $org:expr, |$conn:ident| $body:expr) => {
        $crate::db::read!(@within $store, $crate::db::Scope::from($org), |$conn| $body)
    };
    ($store:expr, $org:expr, |$conn:ident| $body:expr) => {{
        let scope = $crate::db::Scope::from($org);
        let _turn = $store.turn_to_read(scope).await?;
        $crate::db::read!(@within $store, scope, |$conn| $body)
    }};
}

/// Runs the body in a transaction that may write, within the scope of an org or, by that word, of
/// the installation, and commits it. An early return rolls back.
macro_rules! change {
    (@within $store:expr, $scope:expr, |$tx:ident| $body:expr) => {{
        let mut $tx = $store.db.change($scope).await?;
        let answer = $body;
        $tx.commit().await.map_err($crate::error::StoreError::of_commit)?;
        answer
    }};
    ($store:expr, installation, |$tx:ident| $body:expr) => {
        $crate::db::change!(@within $store, $crate::db::Scope::Installation, |$tx| $body)
    };
    ($store:expr, $org:expr, |$tx:ident| $body:expr) => {
        $crate::db::change!(@within $store, $crate::db::Scope::from($org), |$tx| $body)
    };
}

/// A struct that reads itself, column by column of the same name, from a row of either database.
macro_rules! row {
    ($vis:vis $name:ident { $($column:ident: $type:ty),+ $(,)? }) => {
        $vis struct $name { $($column: $type),+ }
        impl $crate::db::FromRow for $name {
            fn from_row(row: $crate::db::Row<'_>) -> Result<Self, $crate::error::DriverError> {
                Ok(Self { $($column: row.get(stringify!($column))?),+ })
            }
        }
    };
}

/// Runs one statement by [`change!`], and gives the number of rows that it changed.
macro_rules! changed {
    ($store:expr, installation, $($statement:tt)+) => {
        $crate::db::change!($store, installation, |tx| $crate::db::run!(tx, $($statement)+))
    };
    ($store:expr, $org:expr, $($statement:tt)+) => {
        $crate::db::change!($store, $org, |tx| $crate::db::run!(tx, $($statement)+))
    };
}

/// Lets a type read itself from the row of a table: each field from the column of its name, or as its expression says.
macro_rules! record {
    ($name:ident in $table:literal, |$row:ident| $($field:ident $(= $value:expr)?),+ $(,)?) => {
        impl $crate::db::FromRow for $name {
            fn from_row($row: $crate::db::Row<'_>) -> Result<Self, $crate::error::DriverError> {
                Ok(Self { $($field: $crate::db::record!(@ $row $table $field $(= $value)?)),+ })
            }
        }
        impl $crate::db::Readable for $name {
            const TABLE: &'static str = $table;
            type Record = Self;
            fn read(self) -> Result<Self, $crate::error::StoreError> {
                Ok(self)
            }
        }
    };
    (@ $row:ident $table:literal $field:ident) => {
        $row.get(concat!($table, ".", stringify!($field)))?
    };
    (@ $row:ident $table:literal $field:ident = $value:expr) => { $value };
}

/// The records that a statement finds, by [`read!`]; those that cannot be read are left out.
macro_rules! list {
    ($store:expr, $scope:tt, $($statement:tt)+) => {
        $crate::db::read!($store, $scope, |conn| {
            let found = $crate::db::all!(conn, $($statement)+);
            $store.records(found)
        })
    };
}

/// The SQL for the texts of the JSON array in a parameter; to stand after `IN`.
macro_rules! text_list {
    (sqlite, $parameter:literal) => {
        concat!("(SELECT value FROM json_each(", $parameter, "))")
    };
    (postgres, $parameter:literal) => {
        concat!("(SELECT jsonb_array_elements_text(", $parameter, "::jsonb))")
    };
}

/// The SQL for the present moment by PostgreSQL's own clock, in microseconds: what nodes compare
/// with each other is not told by clocks of their own.
macro_rules! database_clock {
    () => {
        "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint"
    };
}

/// The SQL for seals `s` and the event `e` of each. PostgreSQL finds by the event's id which month
/// either lies in; `OFFSET 0` keeps its planner, which counts all months for every row, from
/// reading the log the other way round.
macro_rules! events_of_seals {
    (sqlite) => {
        "audit_seals s JOIN audit_events e ON e.position = s.position"
    };
    (postgres) => {
        "audit_seals s JOIN LATERAL \
         (SELECT * FROM audit_events e WHERE e.id = s.event_id OFFSET 0) e ON TRUE"
    };
}

/// The SQL for events `e` and the seal `s` of each that has one, on PostgreSQL.
macro_rules! seals_of_events {
    () => {
        "audit_events e JOIN LATERAL \
         (SELECT * FROM audit_seals s WHERE s.event_id = e.id OFFSET 0) s ON TRUE"
    };
}

pub(crate) use {
    change, changed, database_clock, events_of_seals, list, read, record, row, seals_of_events,
    text_list,
};

/// Reads back a stored text, or says that `column` is unreadable.
pub(crate) fn parse<T: std::str::FromStr>(
    text: &str,
    column: &'static str,
) -> Result<T, StoreError> {
    text.parse().map_err(|_| StoreError::Corrupt(column))
}

/// Reads back a stored text that may be absent.
pub(crate) fn parse_some<T: std::str::FromStr>(
    text: Option<&str>,
    column: &'static str,
) -> Result<Option<T>, StoreError> {
    text.map(|text| parse(text, column)).transpose()
}
