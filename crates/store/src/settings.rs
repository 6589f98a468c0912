//! Address of the database, and safety of a commit.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use crate::{address::Address, row_key::RowKey};

/// Durability of a commit. SQLite is told so; PostgreSQL keeps its own `synchronous_commit`, which
/// [`crate::Store::durability`] reads back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sync {
    /// A commit waits for the disk and survives a power loss.
    #[default]
    PowerLoss,
    /// A commit survives the death of the process, not a power loss.
    ProcessCrash,
}

/// Address of the database.
#[derive(Clone)]
pub struct DatabaseUrl(pub(crate) Target);

#[derive(Clone)]
pub(crate) enum Target {
    Sqlite(PathBuf),
    Postgres(Box<Address>),
}

/// The text names no database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseUrlError {
    #[error("the database URL names no file")]
    Empty,
    #[error("the database is a file path, `sqlite:` and a path, or a `postgres://` URL")]
    Scheme,
    #[error("{0}")]
    Postgres(String),
}

impl DatabaseUrl {
    /// The file of an SQLite database.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match &self.0 {
            Target::Sqlite(path) => Some(path),
            Target::Postgres(_) => None,
        }
    }

    /// The SQLite database in this file; it is created when opened.
    #[must_use]
    pub const fn sqlite(path: PathBuf) -> Self {
        Self(Target::Sqlite(path))
    }
}

impl FromStr for DatabaseUrl {
    type Err = DatabaseUrlError;
    fn from_str(text: &str) -> Result<Self, DatabaseUrlError> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            let options = text.parse::<Address>();
            let options = options.map_err(|fault| DatabaseUrlError::Postgres(fault.to_string()))?;
            return Ok(Self(Target::Postgres(Box::new(options))));
        }
        let path = text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:"));
        match path {
            None if ["://", "host=", "dbname="].iter().any(|it| text.contains(it)) => {
                Err(DatabaseUrlError::Scheme)
            }
            None if text.is_empty() => Err(DatabaseUrlError::Empty),
            Some("") => Err(DatabaseUrlError::Empty),
            Some(path) => Ok(Self::sqlite(path.into())),
            None => Ok(Self::sqlite(text.into())),
        }
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Target::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Target::Postgres(address) => fmt::Display::fmt(address, f),
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Settings for opening the database.
#[derive(Debug, Clone)]
pub struct DatabaseSettings {
    pub url: DatabaseUrl,
    /// The key of the codes over rows of the log that wait.
    pub row_key: RowKey,
    /// Failures that a commit survives.
    pub sync: Sync,
    /// Connections to PostgreSQL; SQLite is read by no more than four of them at the same time.
    pub connections: u32,
    /// Wait for a connection or for another writer after which the database
    /// is unavailable.
    pub wait: Duration,
}

impl DatabaseSettings {
    /// The defaults for the database at `url`: commits survive a power loss, 8 connections,
    /// 5 seconds.
    #[must_use]
    pub const fn new(url: DatabaseUrl, row_key: RowKey) -> Self {
        Self { url, row_key, sync: Sync::PowerLoss, connections: 8, wait: Duration::from_secs(5) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let url: DatabaseUrl =
            "postgres://gate:hunter2@db.example:5433/portcullis".parse().unwrap();
        let settings = DatabaseSettings::new(url.clone(), RowKey::derive(&[0; 32]));

        assert_eq!(url.to_string(), "postgres://db.example:5433/portcullis");
        assert!(!format!("{settings:?}").contains("hunter2"));
    }

    #[test]
    fn a_path_with_and_without_scheme_is_sqlite() {
        for text in ["/var/lib/portcullis.db", "sqlite:/var/lib/portcullis.db"] {
            let url: DatabaseUrl = text.parse().unwrap();

            assert_eq!(url.to_string(), "sqlite:/var/lib/portcullis.db");
        }
    }

    #[test]
    fn what_names_no_database_is_refused() {
        for text in ["", "sqlite:", "mysql://localhost/x", "host=a dbname=b", "postgres://[/x"] {
            assert!(text.parse::<DatabaseUrl>().is_err(), "{text}");
        }
    }
}
