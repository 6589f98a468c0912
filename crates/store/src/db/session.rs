//! A session with either database: a connection that is one caller's until it is dropped. What was begun
//! and not committed by then is rolled back.

use std::borrow::Cow;

use super::{
    postgres, sqlite,
    statement::{Bound, Most, Read},
};
use crate::error::DriverError;

/// Target of the texts of statements in the log, at its finest level.
const STATEMENTS: &str = "portcullis_store::statements";

#[derive(Debug)]
pub(crate) enum Session {
    Sqlite(sqlite::Session),
    Postgres(postgres::Session),
}

impl Session {
    /// Runs a statement, and gives the number of rows that it changed.
    pub(crate) async fn run(
        &mut self,
        sql: impl Into<Cow<'static, str>>,
        values: Vec<Bound>,
    ) -> Result<u64, DriverError> {
        let sql = self.log(sql.into());
        match self {
            Self::Sqlite(session) => session.run(sql, values).await,
            Self::Postgres(session) => session.run(sql, values).await,
        }
    }

    /// Every row of a statement.
    pub(crate) async fn all<T: Send + 'static>(
        &mut self,
        read: Read<T>,
        sql: impl Into<Cow<'static, str>>,
        values: Vec<Bound>,
    ) -> Result<Vec<T>, DriverError> {
        self.rows(Most::All, read, sql.into(), values).await
    }

    /// The first row of a statement, if there is one.
    pub(crate) async fn find<T: Send + 'static>(
        &mut self,
        read: Read<T>,
        sql: impl Into<Cow<'static, str>>,
        values: Vec<Bound>,
    ) -> Result<Option<T>, DriverError> {
        Ok(self.rows(Most::One, read, sql.into(), values).await?.pop())
    }

    /// The first row of a statement.
    pub(crate) async fn one<T: Send + 'static>(
        &mut self,
        read: Read<T>,
        sql: impl Into<Cow<'static, str>>,
        values: Vec<Bound>,
    ) -> Result<T, DriverError> {
        let found = self.rows(Most::One, read, sql.into(), values).await?.pop();
        found.ok_or(DriverError::Unavailable("the database gave no row"))
    }

    async fn rows<T: Send + 'static>(
        &mut self,
        most: Most,
        read: Read<T>,
        sql: Cow<'static, str>,
        values: Vec<Bound>,
    ) -> Result<Vec<T>, DriverError> {
        let sql = self.log(sql);
        match self {
            Self::Sqlite(session) => session.rows(most, read, sql, values).await,
            Self::Postgres(session) => session.rows(most, read, sql, values).await,
        }
    }

    /// The first row of a statement, if there is one, planned for these values on PostgreSQL: a plan that is kept
    /// is one for any values.
    pub(crate) async fn find_by_value<T: Send + 'static>(
        &mut self,
        read: Read<T>,
        sql: impl Into<Cow<'static, str>>,
        values: Vec<Bound>,
    ) -> Result<Option<T>, DriverError> {
        let Self::Postgres(session) = self else { return self.find(read, sql, values).await };
        let sql = sql.into();
        tracing::trace!(target: STATEMENTS, is_sqlite = false, statement = &*sql);
        session.find_by_value(read, &sql, values).await
    }

    /// Runs statements without values.
    pub(crate) async fn script(&mut self, sql: &str) -> Result<(), DriverError> {
        match self {
            Self::Sqlite(session) => session.script(sql.to_owned()).await,
            Self::Postgres(session) => session.script(sql).await,
        }
    }

    pub(crate) async fn commit(self) -> Result<(), DriverError> {
        match self {
            Self::Sqlite(mut session) => session.commit().await,
            Self::Postgres(mut session) => session.commit().await,
        }
    }

    /// Cuts a connection to PostgreSQL off.
    pub(crate) fn discard(self) {
        if let Self::Postgres(session) = self {
            session.discard();
        }
    }

    fn log(&self, sql: Cow<'static, str>) -> Cow<'static, str> {
        let is_sqlite = matches!(self, Self::Sqlite(_));
        tracing::trace!(target: STATEMENTS, is_sqlite, statement = &*sql);
        sql
    }
}
