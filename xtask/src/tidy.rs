//! The rules of this repository that the compiler cannot check, one small file a rule.
//!
//! A check is a pure function from the [`Repository`] to violations. **Invariant:** a check never changes a file and never needs the network.

use std::{fmt, io, path::Path};

use self::repository::Repository;

mod circles;
mod code;
mod compatibility;
mod docs;
mod edges;
mod error_docs;
mod imports;
mod names;
mod paths;
mod repository;
mod routes;
mod size;
mod walls;

/// One broken rule, at one place, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    path: String,
    line: usize,
    what: String,
    remedy: String,
}

impl Violation {
    fn new(
        path: impl Into<String>,
        line: usize,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), line, what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} ({})", self.path, self.line, self.what, self.remedy)
    }
}

/// Every broken rule under `root`, sorted by place; fails when files cannot be read.
pub(crate) fn violations(root: &Path) -> io::Result<Vec<Violation>> {
    let repository = Repository::read(root)?;
    let mut found = Vec::new();
    for check in FILE_CHECKS {
        found.extend(check(&repository));
    }
    found.sort();
    Ok(found)
}

const FILE_CHECKS: [fn(&Repository) -> Vec<Violation>; 9] = [
    edges::check,
    walls::check,
    circles::check,
    size::check,
    docs::check,
    error_docs::check,
    compatibility::check,
    names::check,
    routes::check,
];
