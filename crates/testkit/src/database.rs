//! The database of a gateway as somebody sees it who has access to it, past the gateway.

use std::process::{Command, Output};

use crate::Gateway;

const SQLITE: &str = "import sqlite3, sys\nbase = sqlite3.connect(sys.argv[1], timeout=30)\n\
                      for row in base.execute(sys.argv[2]): print(row[0])\nbase.commit()";

impl Gateway {
    /// Changes it with a statement.
    pub fn tamper(&self, statement: &str) {
        self.query(statement);
    }

    /// What it answers to a question about one value.
    #[must_use]
    pub fn ask(&self, question: &str) -> String {
        let answer = self.query(question);
        String::from_utf8_lossy(&answer.stdout).trim().to_owned()
    }

    fn query(&self, statement: &str) -> Output {
        let mut command = if let Some(database) = self.postgres() {
            database.psql(statement)
        } else {
            let mut python = Command::new("python3");
            python.args(["-c", SQLITE]).arg(self.folder().join("portcullis.db")).arg(statement);
            python
        };
        let output = command.output().expect("psql or python3");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`{statement}` failed: {error}");
        output
    }
}
