//! A PostgreSQL database of one's own, on the server that `PORTCULLIS_TEST_POSTGRES` names.

mod proxy;

pub use self::proxy::{Fault, PostgresWire};

use std::{
    env, process,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

/// An empty database; it is dropped with this.
#[derive(Debug)]
pub struct PostgresDatabase {
    server: String,
    name: String,
}

impl PostgresDatabase {
    /// Makes one; `None` when `PORTCULLIS_TEST_SQLITE_ONLY=1` says that there is no server. Panics
    /// without a server or the client program `psql`.
    #[must_use]
    pub fn create(what: &str) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let Ok(server) = env::var("PORTCULLIS_TEST_POSTGRES") else {
            let left_out = env::var("PORTCULLIS_TEST_SQLITE_ONLY").is_ok_and(|only| only == "1");
            assert!(left_out, "set PORTCULLIS_TEST_POSTGRES, or PORTCULLIS_TEST_SQLITE_ONLY=1");
            return None;
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("portcullis_api_{what}_{}_{number}", process::id());
        let database = Self { server, name };
        database.run(&format!("DROP DATABASE IF EXISTS {}", database.name));
        database.run(&format!("CREATE DATABASE {}", database.name));
        Some(database)
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        let (server, _) = self.server.rsplit_once('/').expect("a URL with a database");
        format!("{server}/{}", self.name)
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

    fn run(&self, statement: &str) {
        let output = Command::new("psql")
            .args(["--no-psqlrc", "--quiet", "--command", statement, &self.server])
            .output()
            .expect("the program psql");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`{statement}` failed: {error}");
    }
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        let command = Command::new("psql")
            .args(["--no-psqlrc", "--quiet", "--command", &drop, &self.server])
            .output();
        // What is left behind is dropped by the next who needs the name.
        let _ = command;
    }
}
