//! The two databases behind one set of statements.
//!
//! [`read!`] and [`change!`] run the same body on either: the statements are written once, with
//! `$1` placeholders, `BIGINT` microseconds, `TEXT` ids and JSON. Each says whose rows it is about
//! ([`Scope`]). What the two databases do differently is a named function of [`Dialect`].
//!
//! **Invariant:** rows are plain: nothing in this folder knows the modules that make and read them.

mod approvals;
mod batch;
mod durability;
mod packed;
mod positions;
mod postgres;
mod rows;
pub(crate) mod schema;
mod scope;
mod sqlite;
mod statement;
mod unreadable;

pub(crate) use self::{
    approvals::ApprovalRow,
    batch::{AnsweredKey, Batch, Losers},
    positions::{last_given, newest_position},
    postgres::{LogWriter, insert_seals, opened_at_once},
    scope::{Scope, begin},
    sqlite::{
        Log, LogConnection, has_sealed_twin, index_entries, insert_events, is_ended,
        positions_of_events, read_id, sealed_upto, waiting_events,
    },
    statement::{Value, all, bound, find, one, rows, run},
    unreadable::{Found, Readable},
};
pub use self::{
    approvals::ApprovalUse,
    durability::{Durability, Weakness},
    packed::RecordTexts,
    rows::{EventTexts, Name, NewEvent, NewIntent, NewKey, TextColumn},
    unreadable::UnreadableRow,
};

use async_recursion::async_recursion as boxed;
use std::{fs::OpenOptions, io, path::Path, sync::Arc};

use portcullis_core::{
    clock::Timestamp,
    id::{EventId, OrgId},
};
use portcullis_lanes::{FairLimits, FairSlot, FairSlots};
use sqlx::{
    ConnectOptions, Connection, PgPool, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use self::{schema::Schema, unreadable::Unreadable};
use crate::{
    error::StoreError,
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
        writer: SqlitePool,
        readers: SqlitePool,
    },
    Postgres(PgPool),
}

impl Store {
    /// Opens the database, creates it if it is an SQLite file that does not exist, and brings its
    /// schema up to date. Fails for a schema that is newer than this build, or of an older build
    /// whose migrations this one does not have.
    #[boxed]
    pub async fn open(settings: &DatabaseSettings) -> Result<Self, StoreError> {
        let db = match &settings.url.0 {
            Target::Sqlite(path) => {
                make_private(path).map_err(sqlx::Error::Io)?;
                let options = SqliteConnectOptions::new()
                    .filename(path)
                    .create_if_missing(true)
                    // Of a file that is made now; any other keeps what it was made with.
                    .journal_mode(SqliteJournalMode::Wal)
                    .synchronous(match settings.sync {
                        Sync::PowerLoss => SqliteSynchronous::Full,
                        Sync::ProcessCrash => SqliteSynchronous::Normal,
                    })
                    .foreign_keys(true)
                    .busy_timeout(settings.wait)
                    .statement_cache_capacity(256);
                open_sqlite(settings, path, options).await?
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
            Db::Postgres(pool) => postgres::durability(&mut *pool.acquire().await?).await,
        }
    }

    /// Writes the SQLite database, as it is at one moment, into a new file for its owner alone;
    /// others read and write meanwhile. Fails for PostgreSQL, which has tools of its own for that.
    #[boxed]
    pub async fn copy_to(&self, file: &Path) -> Result<(), StoreError> {
        let Db::Sqlite { writer, .. } = &self.db else {
            return Err(StoreError::Unavailable("only an SQLite database is copied".to_owned()));
        };
        make_private(file).map_err(sqlx::Error::Io)?;
        let path = file.to_string_lossy().into_owned();
        sqlx::query("VACUUM INTO $1").bind(path).execute(writer).await?;
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
            let options = SqliteConnectOptions::new().filename(path).read_only(true);
            let mut conn = options.connect().await?;
            let found = schema::of_sqlite(&mut conn).await?;
            conn.close().await?;
            Ok(found)
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
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    OpenOptions::new().append(true).create(true).mode(0o600).open(path).map(drop)
}

async fn open_sqlite(
    settings: &DatabaseSettings,
    path: &Path,
    options: SqliteConnectOptions,
) -> Result<Db, StoreError> {
    let pool = |connections: u32| {
        SqlitePoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(settings.wait)
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
    };
    let writer = pool(1).before_acquire(|connection, _| Box::pin(is_clean(connection)));
    let writer = writer.connect_with(options.clone()).await?;
    schema::migrate_sqlite(&writer).await?;
    let readers = pool(settings.connections.clamp(1, SQLITE_READERS));
    let readers = readers.connect_with(options.pragma("query_only", "on")).await?;
    let log = Log::new(path, settings);
    Ok(Db::Sqlite { log, writer, readers })
}

/// Returns true if the writing connection can begin a transaction. After a commit that failed SQLite has
/// rolled back by itself, which the driver does not notice: it would take the connection for busy
/// for ever. Such a connection is replaced.
async fn is_clean(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    if connection.is_in_transaction() {
        // A rollback may be under way; this waits for it.
        connection.ping().await?;
    }
    Ok(!connection.is_in_transaction())
}

/// Differences between the two databases.
pub(crate) trait Dialect {
    /// Keeps [`Self::wait_for_writers`] waiting until the transaction ends.
    async fn announce_writer(&mut self) -> Result<(), sqlx::Error>;

    /// Returns when every event whose position is already given out is visible or gone.
    async fn wait_for_writers(&mut self) -> Result<(), sqlx::Error>;

    /// Locks the tokens of the org against other transactions until this one ends,
    /// so that a revocation sees all that was made from what it takes.
    async fn lock_tokens(&mut self, org_id: &str) -> Result<(), sqlx::Error>;

    /// Locks the exports of the org against other transactions until this one ends, so that
    /// no two count the same.
    async fn lock_exports(&mut self, org_id: &str) -> Result<(), sqlx::Error>;

    /// Takes the locks that writing events takes; waits while the tables are locked.
    async fn lock_log_for_writing(&mut self) -> Result<(), sqlx::Error>;

    /// Inserts the rows in few statements; their positions ascend in the order given.
    async fn insert_events(
        &mut self,
        key: &RowKey,
        committed_at: i64,
        rows: &[&NewEvent],
    ) -> Result<(), sqlx::Error>;

    /// Inserts the event of a change that this transaction makes.
    async fn record_event(&mut self, key: &RowKey, event: &NewEvent) -> Result<(), sqlx::Error> {
        self.announce_writer().await?;
        self.insert_events(key, event.occurred_at.as_micros(), &[event]).await
    }

    /// Removes the intents whose events stand, with the copies of what was erasable in them.
    async fn remove_ended_intents(&mut self) -> Result<(), sqlx::Error>;

    /// Deletes the first events of the org, which have these positions, with their entries in indexes.
    async fn delete_events(&mut self, org_id: &str, positions: &[i64]) -> Result<(), sqlx::Error>;
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
    (@within $store:expr, $scope:expr, |$conn:ident| $body:expr) => {
        match &$store.db {
            $crate::db::Db::Sqlite { readers, .. } => {
                let mut $conn = readers.acquire().await?;
                $body
            }
            $crate::db::Db::Postgres(pool) => {
                let mut $conn = $crate::db::begin(pool, $scope).await?;
                // Nothing is to be committed: it ends while the caller goes on.
                $body
            }
        }
    };
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
    (@within $store:expr, $scope:expr, |$tx:ident| $body:expr) => {
        match &$store.db {
            $crate::db::Db::Sqlite { writer, log, .. } => {
                let _turn = log.turn().await?;
                let mut $tx = writer.begin_with("BEGIN IMMEDIATE").await?;
                let answer = $body;
                $tx.commit().await.map_err($crate::StoreError::of_commit)?;
                answer
            }
            $crate::db::Db::Postgres(pool) => {
                let mut $tx = $crate::db::begin(pool, $scope).await?;
                let answer = $body;
                $tx.commit().await.map_err($crate::StoreError::of_commit)?;
                answer
            }
        }
    };
    ($store:expr, installation, |$tx:ident| $body:expr) => {
        $crate::db::change!(@within $store, $crate::db::Scope::Installation, |$tx| $body)
    };
    ($store:expr, $org:expr, |$tx:ident| $body:expr) => {
        $crate::db::change!(@within $store, $crate::db::Scope::from($org), |$tx| $body)
    };
}

/// A struct that reads itself, column by column of the same name, from a row of either database; after
/// `of`, part by part.
macro_rules! row {
    ($vis:vis $name:ident of { $($part:ident: $type:ty),+ $(,)? }) => {
        $vis struct $name { $($part: $type),+ }
        row!(@parts sqlx::sqlite::SqliteRow, $name { $($part: $type),+ });
        row!(@parts sqlx::postgres::PgRow, $name { $($part: $type),+ });
    };
    (@parts $row:ty, $name:ident { $($part:ident: $type:ty),+ }) => {
        impl<'r> sqlx::FromRow<'r, $row> for $name {
            fn from_row(row: &'r $row) -> Result<Self, sqlx::Error> {
                Ok(Self { $($part: <$type as sqlx::FromRow<'r, $row>>::from_row(row)?),+ })
            }
        }
    };
    ($vis:vis $name:ident { $($column:ident: $type:ty),+ $(,)? }) => {
        $vis struct $name { $($column: $type),+ }
        row!(@of sqlx::sqlite::SqliteRow, $name { $($column),+ });
        row!(@of sqlx::postgres::PgRow, $name { $($column),+ });
    };
    (@of $row:ty, $name:ident { $($column:ident),+ }) => {
        impl<'r> sqlx::FromRow<'r, $row> for $name {
            fn from_row(row: &'r $row) -> Result<Self, sqlx::Error> {
                Ok(Self { $($column: sqlx::Row::try_get(row, stringify!($column))?),+ })
            }
        }
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

pub(crate) use {change, database_clock, events_of_seals, read, row, seals_of_events, text_list};

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
