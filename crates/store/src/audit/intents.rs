//! What a crash left open.

use portcullis_core::{
    clock::Timestamp,
    id::{EventId, OrgId},
};

use crate::{
    Store,
    db::{Db, change, parse, read, row},
    error::StoreError,
};

/// A call that began and of which no end is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenIntent {
    /// The id its event will have.
    pub id: EventId,
    /// The tenant.
    pub org_id: OrgId,
    /// The node that opened it.
    pub node: String,
    /// When.
    pub opened_at: Timestamp,
    /// What is needed to write its event, as JSON.
    pub record: String,
}

row!(IntentRow { id: String, org_id: String, node: String, opened_at: i64, record: String });

impl IntentRow {
    fn read(self) -> Result<OpenIntent, StoreError> {
        Ok(OpenIntent {
            id: parse(&self.id, "audit_intents.id")?,
            org_id: parse(&self.org_id, "audit_intents.org_id")?,
            node: self.node,
            opened_at: Timestamp::from_micros(self.opened_at),
            record: self.record,
        })
    }
}

impl Store {
    /// The intents `node` left open, oldest first, at most `limit`. An SQLite file has one node at
    /// a time, so there it gives all, whatever the node was called.
    ///
    /// To be asked before the node serves; each is closed by finishing an event of its id.
    pub async fn open_intents(
        &self,
        node: &str,
        limit: u32,
    ) -> Result<Vec<OpenIntent>, StoreError> {
        let node = match &self.db {
            Db::Sqlite { .. } => None,
            Db::Postgres(_) => Some(node),
        };
        let rows: Vec<IntentRow> = read!(self, |conn| {
            sqlx::query_as(
                "SELECT * FROM audit_intents WHERE ($1 IS NULL OR node = $1) \
                 ORDER BY id LIMIT $2",
            )
            .bind(node)
            .bind(i64::from(limit))
            .fetch_all(&mut *conn)
            .await?
        });
        rows.into_iter().map(IntentRow::read).collect()
    }

    /// Removes an intent whose event stands already.
    pub async fn drop_intent(&self, org: OrgId, id: EventId) -> Result<(), StoreError> {
        change!(self, |tx| {
            sqlx::query("DELETE FROM audit_intents WHERE org_id = $1 AND id = $2")
                .bind(org.to_string())
                .bind(id.to_string())
                .execute(&mut *tx)
                .await?;
        });
        Ok(())
    }
}
