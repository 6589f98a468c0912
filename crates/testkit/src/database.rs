//! The database of a gateway, accessed past the gateway.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use crate::{
    Gateway,
    programs::{KilledOnDrop, printed_by},
};

const SQLITE: &str = "import sqlite3, sys\nbase = sqlite3.connect(sys.argv[1], timeout=30)\n\
                      for row in base.execute(sys.argv[2]): print(row[0])\nbase.commit()";

const LOCK_SQLITE: &str = "import sqlite3, sys\n\
                           base = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)\n\
                           base.execute('BEGIN IMMEDIATE')\n\
                           print('locked', flush=True)\nsys.stdin.read()";
const LOCK_POSTGRES: &str = "BEGIN; LOCK TABLE audit_events IN ACCESS EXCLUSIVE MODE;\n\
                             \\echo locked\n";

/// A lock that another program holds until this is dropped.
#[derive(Debug)]
pub struct DatabaseLock {
    _holder: KilledOnDrop,
}

impl Gateway {
    /// Another program locks it: an SQLite file against every write, on PostgreSQL the table of
    /// events.
    #[must_use]
    pub fn lock_database(&self) -> DatabaseLock {
        let (mut command, first) = if let Some(database) = self.postgres() {
            (database.psql_session(), LOCK_POSTGRES)
        } else {
            let mut python = Command::new("python3");
            python.args(["-c", LOCK_SQLITE]).arg(self.folder().join("portcullis.db"));
            (python, "")
        };
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut lock = KilledOnDrop(command.spawn().expect("psql or python3"));
        // What the program reads from stays open as long as the lock.
        let stdin = lock.0.stdin.as_mut().expect("its input");
        stdin.write_all(first.as_bytes()).expect("statements");
        stdin.flush().expect("statements");
        let mut line = String::new();
        let stdout = lock.0.stdout.as_mut().expect("its output");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        assert_eq!(line.trim(), "locked");
        DatabaseLock { _holder: lock }
    }

    /// Changes it with a statement.
    pub fn tamper(&self, statement: &str) {
        self.query(statement);
    }

    /// Result of a query for one value.
    #[must_use]
    pub fn ask(&self, question: &str) -> String {
        String::from_utf8_lossy(&self.query(question)).trim().to_owned()
    }

    fn query(&self, statement: &str) -> Vec<u8> {
        let mut command = if let Some(database) = self.postgres() {
            database.psql(statement)
        } else {
            let mut python = Command::new("python3");
            python.args(["-c", SQLITE]).arg(self.folder().join("portcullis.db")).arg(statement);
            python
        };
        printed_by(&mut command)
    }
}
