//! A database of one's own for each test.

use std::{
    ops::Deref,
    panic,
    path::PathBuf,
    process,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use portcullis_store::{DatabaseSettings, DatabaseUrl, Store};
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::{sync::OnceCell, task::JoinSet};
use tokio_postgres::{Client, NoTls};
use tokio_util::task::TaskTracker;

use crate::{given, statements};

/// Role that the store signs in as.
const ROLE: &str = "portcullis_store";

/// An empty database, and its store.
#[derive(Clone)]
pub(crate) struct Database {
    pub(crate) settings: DatabaseSettings,
    pub(crate) store: Store,
    place: Place,
}

#[derive(Clone)]
enum Place {
    File(Arc<TempDir>),
    /// The URL of its owner, whom row-level security holds for, and of who may do everything.
    Server {
        url: String,
        admin: String,
    },
}

impl Deref for Database {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

/// Keeps every writer waiting while it lives.
pub(crate) enum Blocked {
    Sqlite(Connection),
    Postgres(Client),
}

/// The name of a database with the schema, made once: a copy of it costs less than the migrations do.
pub(crate) async fn template(server: &str) -> &'static str {
    static TEMPLATE: OnceCell<String> = OnceCell::const_new();
    let make = async || {
        let name = format!("portcullis_test_{}_template", process::id());
        let admin = connect(server).await;
        let role = format!(
            "DO $$ BEGIN CREATE ROLE {ROLE} LOGIN PASSWORD '{ROLE}'; \
             EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        );
        admin.batch_execute(&role).await.unwrap();
        make_database(&admin, &name, "template1").await;
        let settings = given::settings(url_of(server, &name).parse().unwrap());
        Store::open(&settings).await.unwrap().close().await;
        name
    };
    TEMPLATE.get_or_init(make).await
}

/// Makes the database, in place of one that a run left behind.
pub(crate) async fn make_database(admin: &Client, name: &str, template: &str) {
    for statement in [
        format!("DROP DATABASE IF EXISTS {name}"),
        format!("CREATE DATABASE {name} TEMPLATE {template} OWNER {ROLE}"),
    ] {
        admin.batch_execute(&statement).await.unwrap();
    }
}

pub(crate) fn url_of(server: &str, name: &str) -> String {
    let (place, _) = server.rsplit_once('/').unwrap();
    let (_, host) = place.rsplit_once('@').unwrap();
    format!("postgres://{ROLE}:{ROLE}@{host}/{name}")
}

impl Database {
    /// Runs the test on a database in a fresh folder.
    pub(crate) async fn on_sqlite<F: Future<Output = ()> + Send + 'static>(
        test: impl FnOnce(Self) -> F,
    ) {
        let folder = TempDir::new().unwrap();
        let settings = given::settings(DatabaseUrl::sqlite(folder.path().join("portcullis.db")));
        statements::record();
        let store = Store::open(&settings).await.unwrap();

        let file = folder.path().join("portcullis.db");
        let folder = Arc::new(folder);
        test(Self { settings, store, place: Place::File(Arc::clone(&folder)) }).await;
        statements::check(&file).await;
    }

    /// Runs the test on a new database of the server, and drops it whatever happened.
    pub(crate) async fn on_postgres<F: Future<Output = ()> + Send + 'static>(
        test: impl FnOnce(Self) -> F,
    ) {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let Some(server) = server() else { return };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("portcullis_test_{}_{number}", process::id());
        let admin = connect(&server).await;
        make_database(&admin, &name, template(&server).await).await;
        let (place, _) = server.rsplit_once('/').unwrap();
        let url = url_of(&server, &name);
        let place = Place::Server { url: url.clone(), admin: format!("{place}/{name}") };
        let settings = given::settings(url.parse().unwrap());
        statements::record();
        let store = Store::open(&settings).await.unwrap();

        let mut tests = JoinSet::new();
        tests.spawn(test(Self { settings, store, place }));
        let outcome = tests.join_next().await.unwrap();
        admin.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await.unwrap();

        if let Err(error) = outcome {
            panic::resume_unwind(error.into_panic());
        }
        statements::check_on_postgres().await;
    }

    /// Returns true if it is the one that needs no server.
    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self.place, Place::File(_))
    }

    /// Runs one statement past the store.
    pub(crate) async fn execute(&self, statement: &'static str) {
        self.execute_text(statement.to_owned()).await;
    }

    /// Makes every insert into a table and every update of it fail.
    pub(crate) async fn refuse_writes(&self, table: &str) {
        if self.is_sqlite() {
            for event in ["INSERT", "UPDATE"] {
                let trigger = format!(
                    "CREATE TRIGGER refuse_{event} BEFORE {event} ON {table} \
                     BEGIN SELECT RAISE(ABORT, 'refused'); END"
                );
                self.execute_text(trigger).await;
            }
            return;
        }
        let trigger = format!(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE EXCEPTION 'refused'; END $$; \
             CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON {table} \
             FOR EACH ROW EXECUTE FUNCTION refuse()"
        );
        self.execute_text(trigger).await;
    }

    /// Ends what [`Self::refuse_writes`] began.
    pub(crate) async fn allow_writes(&self, table: &str) {
        if self.is_sqlite() {
            self.execute("DROP TRIGGER refuse_INSERT; DROP TRIGGER refuse_UPDATE").await;
            return;
        }
        self.execute_text(format!("DROP TRIGGER refuse ON {table}; DROP FUNCTION refuse")).await;
    }

    /// The number that a query of an SQLite database gives.
    pub(crate) fn count(&self, query: &str) -> i64 {
        self.sqlite().query_row(query, (), |row| row.get(0)).unwrap()
    }

    pub(crate) async fn execute_text(&self, statement: String) {
        match &self.place {
            Place::File(_) => self.sqlite().execute_batch(&statement).unwrap(),
            Place::Server { admin, .. } => {
                connect(admin).await.batch_execute(&statement).await.unwrap();
            }
        }
    }

    /// Blocks all writers until [`Blocked::release`].
    pub(crate) async fn block_writers(&self) -> Blocked {
        match &self.place {
            Place::File(_) => {
                let conn = self.sqlite();
                conn.execute_batch("BEGIN IMMEDIATE").unwrap();
                Blocked::Sqlite(conn)
            }
            Place::Server { admin, .. } => {
                let conn = connect(admin).await;
                let lock = "BEGIN; LOCK TABLE audit_events, audit_intents IN EXCLUSIVE MODE";
                conn.batch_execute(lock).await.unwrap();
                Blocked::Postgres(conn)
            }
        }
    }

    /// The URL of a PostgreSQL database, for its owner.
    pub(crate) fn url(&self) -> String {
        match &self.place {
            Place::File(_) => panic!("not PostgreSQL"),
            Place::Server { url, .. } => url.clone(),
        }
    }

    /// The file of an SQLite database.
    pub(crate) fn file(&self) -> PathBuf {
        match &self.place {
            Place::File(folder) => folder.path().join("portcullis.db"),
            Place::Server { .. } => panic!("not SQLite"),
        }
    }

    fn sqlite(&self) -> Connection {
        Connection::open(self.file()).unwrap()
    }
}

impl Blocked {
    pub(crate) async fn release(self) {
        match self {
            Self::Sqlite(conn) => conn.execute_batch("ROLLBACK").unwrap(),
            Self::Postgres(conn) => conn.batch_execute("ROLLBACK").await.unwrap(),
        }
    }
}

/// Connects to a PostgreSQL database past the store.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, wire) = tokio_postgres::connect(url, NoTls).await.unwrap();
    // It ends with the client.
    TaskTracker::new().spawn(wire);
    client
}

pub(crate) fn server() -> Option<String> {
    if let Ok(server) = std::env::var("PORTCULLIS_TEST_POSTGRES") {
        return Some(server);
    }
    assert!(
        std::env::var("PORTCULLIS_TEST_SQLITE_ONLY").is_ok_and(|only| only == "1"),
        "this test needs a PostgreSQL server on which it may create databases: set \
         PORTCULLIS_TEST_POSTGRES=postgres://user@host/database (`./test` does), or \
         PORTCULLIS_TEST_SQLITE_ONLY=1 to leave PostgreSQL out"
    );
    None
}

/// Makes of each function a test on either database.
macro_rules! on_both {
    ($(async fn $name:ident($db:ident: Database) $body:block)+) => { $(
        mod $name {
            use super::*;

            async fn body($db: Database) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_sqlite() {
                Database::on_sqlite(body).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_postgres() {
                Database::on_postgres(body).await;
            }
        }
    )+ };
}

/// Makes of each function a test on SQLite.
macro_rules! on_sqlite {
    ($(async fn $name:ident($db:ident: Database) $body:block)+) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            Database::on_sqlite(async |$db| $body).await;
        }
    )+ };
}

/// Makes of each function a test on PostgreSQL.
macro_rules! on_postgres {
    ($(async fn $name:ident($db:ident: Database) $body:block)+) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            Database::on_postgres(async |$db| $body).await;
        }
    )+ };
}
pub(crate) use {on_both, on_postgres, on_sqlite};
