//! A PostgreSQL database of one's own, on the server that `PORTCULLIS_TEST_POSTGRES` names.

mod proxy;
mod server;

pub use self::{
    proxy::{Fault, PostgresWire},
    server::PostgresServer,
};

use std::{
    env,
    path::Path,
    process::{self, Command},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::programs::printed_by;

/// Role that gateways sign in as: no superuser, for whom row-level security would not count.
const ROLE: &str = "portcullis_gateway";

/// A database; it is dropped with this.
#[derive(Debug)]
pub struct PostgresDatabase {
    server: String,
    name: String,
}

impl PostgresDatabase {
    /// Makes an empty one; `None` when `PORTCULLIS_TEST_SQLITE_ONLY=1` says that there is no
    /// server. Panics without a server or the client program `psql`.
    #[must_use]
    pub fn create(what: &str) -> Option<Self> {
        let Ok(server) = env::var("PORTCULLIS_TEST_POSTGRES") else {
            let left_out = env::var("PORTCULLIS_TEST_SQLITE_ONLY").is_ok_and(|only| only == "1");
            assert!(left_out, "set PORTCULLIS_TEST_POSTGRES, or PORTCULLIS_TEST_SQLITE_ONLY=1");
            return None;
        };
        Some(Self::make(server, what, "template1"))
    }

    /// Makes one with the schema of `binary` for a test that runs on PostgreSQL, as
    /// `PORTCULLIS_TEST_STORE=postgres` says for all of them; `None` when they run on SQLite.
    #[must_use]
    pub fn chosen(binary: &Path) -> Option<Self> {
        match env::var("PORTCULLIS_TEST_STORE").as_deref() {
            Ok("postgres") => {}
            Ok("sqlite") | Err(_) => return None,
            Ok(other) => panic!("PORTCULLIS_TEST_STORE is `sqlite` or `postgres`, not `{other}`"),
        }
        let server = env::var("PORTCULLIS_TEST_POSTGRES")
            .expect("PORTCULLIS_TEST_POSTGRES, for PORTCULLIS_TEST_STORE=postgres");
        Some(Self::make(server, "api", template(binary)))
    }

    /// A copy of the database `template`.
    fn make(server: String, what: &str, template: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("portcullis_{what}_{}_{number}", process::id());
        let database = Self { server, name };
        make_role(&database.server);
        let name = &database.name;
        let drop = format!("DROP DATABASE IF EXISTS {name}");
        let create = format!("CREATE DATABASE {name} TEMPLATE {template} OWNER {ROLE}");
        run(&database.server, &[&drop, &create]);
        database
    }

    /// Its URL, for the role that owns it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://{ROLE}:{ROLE}@{}/{}", self.address(), self.name)
    }

    /// The host and port of its server.
    #[must_use]
    pub fn address(&self) -> &str {
        let (_, place) = self.server.rsplit_once('@').expect("a URL with a user");
        place.split('/').next().expect("a host")
    }

    /// The configuration of a gateway that uses it.
    #[must_use]
    pub fn config(&self) -> String {
        format!("[database]\nurl = \"{}\"\n", self.url())
    }

    /// Runs a statement in it, past every gateway and every policy.
    pub fn execute(&self, statement: &str) {
        run(&self.administered(), &[statement]);
    }

    /// A program that runs a statement in it and prints bare values.
    pub(crate) fn psql(&self, statement: &str) -> Command {
        let mut command = psql(&self.administered(), &[statement]);
        command.args(["--tuples-only", "--no-align"]);
        command
    }

    /// A program that runs the statements it reads, in one session.
    pub(crate) fn psql_session(&self) -> Command {
        psql(&self.administered(), &[])
    }

    /// From now on it can be read and not be written.
    pub fn refuse_writes(&self) {
        self.change_rights("REVOKE", "FROM");
    }

    /// The database can be written again.
    pub fn allow_writes(&self) {
        self.change_rights("GRANT", "TO");
    }

    fn change_rights(&self, change: &str, of: &str) {
        let rights = "INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA public";
        self.execute(&format!("{change} {rights} {of} {ROLE}"));
    }

    /// Everything that is stored in it, as text.
    #[must_use]
    pub fn dump(&self) -> Vec<u8> {
        let database = self.administered();
        printed_by(Command::new("pg_dump").args(["--data-only", "--dbname", &database]))
    }

    /// Its URL, for the user that makes databases.
    #[must_use]
    pub fn administered(&self) -> String {
        let (server, _) = self.server.rsplit_once('/').expect("a URL with a database");
        format!("{server}/{}", self.name)
    }
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        // What is left behind is dropped by the next who needs the name.
        let _ = psql(&self.server, &[&drop]).output();
    }
}

/// The name of a database with the schema of `binary`, made once by each process of tests: a copy
/// of it costs less than the migrations do.
fn template(binary: &Path) -> &'static str {
    static TEMPLATE: OnceLock<(PostgresDatabase, String)> = OnceLock::new();
    let make = || {
        let server = env::var("PORTCULLIS_TEST_POSTGRES").expect("PORTCULLIS_TEST_POSTGRES");
        let database = PostgresDatabase::make(server, "template", "template1");
        let folder = tempfile::tempdir().expect("a folder");
        // A database is opened beside a key file only.
        for command in [["key", "new"], ["org", "list"]] {
            let mut program = Command::new(binary);
            program.args(command).env("PORTCULLIS_DATABASE__URL", database.url());
            printed_by(program.env("PORTCULLIS_DATA_DIR", folder.path()));
        }
        let name = database.name.clone();
        (database, name)
    };
    &TEMPLATE.get_or_init(make).1
}

/// Makes the role unless it is there; several processes of tests may do so at once.
fn make_role(server: &str) {
    static MADE: OnceLock<()> = OnceLock::new();
    let make = format!(
        "DO $$ BEGIN CREATE ROLE {ROLE} LOGIN PASSWORD '{ROLE}' NOSUPERUSER NOBYPASSRLS; \
         EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
    );
    MADE.get_or_init(|| run(server, &[&make]));
}

fn psql(server: &str, statements: &[&str]) -> Command {
    let mut command = Command::new("psql");
    command.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"]);
    for statement in statements {
        command.args(["--command", statement]);
    }
    command.arg(server);
    command
}

fn run(server: &str, statements: &[&str]) {
    printed_by(&mut psql(server, statements));
}
