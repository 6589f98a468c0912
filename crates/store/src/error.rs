//! Errors of the store.

use std::error::Error as _;

use portcullis_core::refusal::{Refusal, Unavailable};
use rusqlite::ffi;
use tokio_postgres::error::DbError;

/// Failure of a store operation. No message carries a stored value or a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, is busy or refused to write. Nothing was changed.
    #[error("the database is unavailable: {0}")]
    Unavailable(String),
    /// Too many reads of the org wait for their turns. Nothing was read.
    #[error("the org reads too much at once")]
    Crowded,
    /// The answer to a commit did not arrive: the change may or may not have been made.
    #[error("the database may or may not have written: {0}")]
    OutcomeUnknown(String),
    /// Something with that id or name exists already, what it belongs to does not, or a value is
    /// one that the database cannot hold. Nothing was changed.
    #[error("the database refused a row of `{0}`")]
    Conflict(String),
    #[error("the database holds an unreadable value in `{0}`")]
    Corrupt(&'static str),
    #[error(
        "the database has schema {found}, this Portcullis knows {known}: run a version at least \
         as new as the one that wrote it"
    )]
    NewerSchema {
        /// The schema version of the database.
        found: i64,
        /// The newest schema version this build knows.
        known: i64,
    },
    #[error(
        "the database has schema {found}, this Portcullis has {known}: `portcullis migrate` or `portcullis serve` \
         updates it, and only a backup leads back"
    )]
    OlderSchema {
        /// The schema version of the database.
        found: i64,
        /// The newest schema version this build knows.
        known: i64,
    },
    /// The migrations of the database are not those of this build.
    #[error(
        "the database was made by an older build of Portcullis, whose schema this one does not know, \
         and is left as it is: export its logs with that build (`portcullis audit export`), or start \
         with a new database"
    )]
    OlderBuild,
}

impl StoreError {
    /// Tells the log of the node that the store failed, for work whose caller is not told.
    pub fn log(&self) {
        tracing::error!(error = %self, "the store failed");
    }
}

/// The answer to a caller says only that the store failed, or that its org asks for too much; the log of the node says
/// how it failed.
impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::Crowded) {
            return Self::Unavailable { reason: Unavailable::Overloaded };
        }
        error.log();
        Self::Unavailable { reason: Unavailable::Store }
    }
}

impl StoreError {
    /// A failed commit: it is unknown on which side of the write the failure was.
    pub(crate) fn of_commit(error: impl Into<Self>) -> Self {
        match error.into() {
            Self::Unavailable(reason) => Self::OutcomeUnknown(reason),
            other @ (Self::Crowded
            | Self::OutcomeUnknown(_)
            | Self::Conflict(_)
            | Self::Corrupt(_)
            | Self::NewerSchema { .. }
            | Self::OlderSchema { .. }
            | Self::OlderBuild) => other,
        }
    }
}

/// Failure of a driver.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DriverError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("{}", with_sources(.0))]
    Postgres(#[from] tokio_postgres::Error),
    /// A column has another type, or is not there.
    #[error("{0}")]
    Column(String),
    #[error("the database holds an unreadable value in `{0}`")]
    Corrupt(&'static str),
    #[error("{0}")]
    Settings(String),
    #[error("{0}")]
    Unavailable(&'static str),
}

/// The driver names kinds of errors; what happened is in their sources.
fn with_sources(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

impl From<DriverError> for StoreError {
    fn from(error: DriverError) -> Self {
        match error {
            DriverError::Sqlite(error) => error.into(),
            DriverError::Postgres(error) => match error.as_db_error() {
                Some(error) => Self::of_server(error),
                None => Self::Unavailable(with_sources(&error)),
            },
            DriverError::Column(_) => Self::Corrupt("a column"),
            DriverError::Corrupt(place) => Self::Corrupt(place),
            DriverError::Settings(reason) => Self::Unavailable(reason),
            DriverError::Unavailable(reason) => Self::Unavailable(reason.to_owned()),
        }
    }
}

impl StoreError {
    /// In PostgreSQL's classes 22 (data exceptions) and 23 (constraints), the row is at fault, not the database.
    fn of_server(error: &DbError) -> Self {
        if ["22", "23"].iter().any(|class| error.code().code().starts_with(class)) {
            Self::Conflict(error.table().unwrap_or("a table").to_owned())
        } else {
            Self::Unavailable(error.message().to_owned())
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error().map(|error| error.extended_code);
        match code {
            Some(code) if FAULTS_OF_ROWS.contains(&code) => Self::Conflict("a table".to_owned()),
            Some(_) => Self::Unavailable(error.to_string()),
            // It is about what was read, or about our own statements.
            None => Self::Corrupt("a column"),
        }
    }
}

/// SQLite error codes for a faulty row rather than a faulty database.
const FAULTS_OF_ROWS: [i32; 7] = [
    ffi::SQLITE_CONSTRAINT_CHECK,
    ffi::SQLITE_CONSTRAINT_FOREIGNKEY,
    ffi::SQLITE_CONSTRAINT_NOTNULL,
    ffi::SQLITE_CONSTRAINT_PRIMARYKEY,
    ffi::SQLITE_CONSTRAINT_UNIQUE,
    ffi::SQLITE_MISMATCH,
    ffi::SQLITE_TOOBIG,
];
