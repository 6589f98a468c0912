//! Differences between the two databases within a transaction.
//!
//! SQLite lets one write at a time, tokens or anything else: positions are given out and committed in the same order,
//! and any writer holds the whole file.

use super::{
    NewEvent,
    postgres::{self, writers},
    run,
    session::Session,
    sqlite,
};
use crate::{
    error::{DriverError, StoreError},
    row_key::RowKey,
};

impl Session {
    /// Keeps [`Self::wait_for_writers`] waiting until the transaction ends.
    pub(crate) async fn announce_writer(&mut self) -> Result<(), DriverError> {
        let lock = concat!("SELECT pg_advisory_xact_lock_shared(", writers!(), ")");
        self.lock(lock, &[]).await
    }

    /// Returns when every event whose position is already given out is visible or gone.
    pub(crate) async fn wait_for_writers(&mut self) -> Result<(), DriverError> {
        let lock = concat!("SELECT pg_advisory_xact_lock(", writers!(), ")");
        self.lock(lock, &[]).await
    }

    /// Locks the tokens of the org against other transactions until this one ends,
    /// so that a revocation sees all that was made from what it takes.
    pub(crate) async fn lock_tokens(&mut self, org_id: &str) -> Result<(), DriverError> {
        // Weak enough for rows that refer to the org to be inserted beside it.
        self.lock("SELECT 1 FROM orgs WHERE id = $1 FOR NO KEY UPDATE", &[org_id]).await
    }

    /// Locks the exports of the org against other transactions until this one ends, so that
    /// no two count the same.
    pub(crate) async fn lock_exports(&mut self, org_id: &str) -> Result<(), DriverError> {
        let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 5785245103))";
        self.lock(lock, &[org_id]).await
    }

    /// Takes the locks that writing events takes; waits while the tables are locked.
    pub(crate) async fn lock_log_for_writing(&mut self) -> Result<(), DriverError> {
        // The lock of an INSERT. Months that are old have locks of their own, and do not matter.
        let lock = "LOCK TABLE ONLY audit_events, ONLY audit_seals, ONLY audit_intents \
                    IN ROW EXCLUSIVE MODE";
        self.lock(lock, &[]).await
    }

    async fn lock(&mut self, sql: &'static str, values: &[&str]) -> Result<(), DriverError> {
        if let Self::Postgres(_) = self {
            self.run(sql, values.iter().map(super::Value::bound).collect()).await?;
        }
        Ok(())
    }

    /// Inserts the rows in few statements; their positions ascend in the order given.
    pub(crate) async fn insert_events(
        &mut self,
        key: &RowKey,
        committed_at: i64,
        rows: &[&NewEvent],
    ) -> Result<(), StoreError> {
        if let Self::Sqlite(session) = self {
            let key = key.clone();
            let rows: Vec<NewEvent> = rows.iter().map(|row| (*row).clone()).collect();
            let insert = move |open: &mut rusqlite::Connection| {
                let rows: Vec<&NewEvent> = rows.iter().collect();
                Ok(sqlite::insert_events(open, &key, committed_at, &rows))
            };
            return session.call(insert).await?;
        }
        let values = postgres::values_of_events(key, committed_at, rows);
        self.run(postgres::INSERT_EVENTS, values).await?;
        Ok(())
    }

    /// Inserts the event of a change that this transaction makes.
    pub(crate) async fn record_event(
        &mut self,
        key: &RowKey,
        event: &NewEvent,
    ) -> Result<(), StoreError> {
        self.announce_writer().await?;
        self.insert_events(key, event.occurred_at.as_micros(), &[event]).await
    }

    /// Removes the intents whose events stand, with the copies of what was erasable in them. On PostgreSQL they go
    /// with the commits of their events.
    pub(crate) async fn remove_ended_intents(&mut self) -> Result<(), DriverError> {
        if let Self::Sqlite(_) = self {
            run!(self, sqlite::REMOVE_ENDED);
        }
        Ok(())
    }

    /// Deletes the first events of the org, which have these positions, with their entries in indexes.
    pub(crate) async fn delete_events(
        &mut self,
        org_id: &str,
        positions: &[i64],
    ) -> Result<(), DriverError> {
        if let Self::Sqlite(_) = self {
            run!(self, sqlite::RAISE_FLOOR);
            let positions = serde_json::Value::from(positions).to_string();
            run!(self, sqlite::DELETE_AT => org_id, positions);
            return Ok(());
        }
        let delete = "DELETE FROM audit_events WHERE org_id = $1 AND position <= $2";
        run!(self, delete => org_id, positions.last().copied());
        Ok(())
    }
}
