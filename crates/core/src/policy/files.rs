//! Files of the policies folder, and errors with the place in them.

use std::{fmt, io};

use miette::Diagnostic;
use serde::Serialize;
use utoipa::ToSchema;

/// A file of the policies folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFile {
    /// Its path within the folder, such as `github.cedar`.
    pub path: String,
    pub text: String,
}

/// Error in a policy file, with its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, thiserror::Error, ToSchema)]
pub struct PolicyError {
    /// The file, within the policies folder.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// Kind of error, in `snake_case`.
    pub code: &'static str,
    /// The policy's name, when it has one.
    pub policy: Option<String>,
    /// Message that says what to do.
    pub message: String,
}

impl PolicyError {
    /// The folder itself could not be read.
    #[must_use]
    pub fn unreadable(path: &str, error: &io::Error) -> Self {
        Self {
            path: path.to_owned(),
            line: 1,
            column: 1,
            code: "unreadable",
            policy: None,
            message: if error.kind() == io::ErrorKind::NotFound {
                "there is no such folder; `portcullis policy init` writes a first set there"
                    .to_owned()
            } else {
                format!("the folder cannot be read: {error}")
            },
        }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.path, self.line, self.column, self.message)
    }
}

/// The largest policy file that is read, in bytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// A file and where its lines begin.
#[derive(Debug)]
pub(in crate::policy) struct SourceFile {
    path: String,
    text: String,
    lines: Vec<usize>,
}

impl SourceFile {
    pub(in crate::policy) fn new(file: PolicyFile) -> Self {
        let text = match file.text.strip_prefix('\u{feff}') {
            Some(rest) => rest.to_owned(),
            None => file.text,
        };
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(starts).collect();
        Self { path: file.path, text, lines }
    }

    pub(in crate::policy) fn path(&self) -> &str {
        &self.path
    }

    pub(in crate::policy) fn text(&self) -> &str {
        &self.text
    }

    /// Line and column of a byte offset, both from 1; columns count characters.
    pub(in crate::policy) fn place(&self, offset: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).and_then(|at| self.lines.get(at)).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or_default();
        (line, before.chars().count() + 1)
    }

    pub(in crate::policy) fn error(
        &self,
        offset: usize,
        code: &'static str,
        policy: Option<&str>,
        message: String,
    ) -> PolicyError {
        let (line, column) = self.place(offset);
        let policy = policy.map(str::to_owned);
        PolicyError { path: self.path.clone(), line, column, code, policy, message }
    }
}

/// Position that a diagnostic points at.
pub(in crate::policy) fn label_offset(diagnostic: &dyn Diagnostic) -> Option<usize> {
    diagnostic.labels()?.next().map(|label| label.offset())
}

pub(in crate::policy) fn sorted(mut errors: Vec<PolicyError>) -> Vec<PolicyError> {
    errors.sort();
    errors.dedup();
    errors
}
