//! Intents that a crash left open.

use async_recursion::async_recursion as boxed;
use portcullis_core::{
    clock::Timestamp,
    id::{EventId, OrgId},
};

use crate::{
    db::{
        Db, Found, NewEvent, Readable, RecordTexts, Store, all, change, database_clock, is_ended,
        parse, read, row, run, text_list,
    },
    error::StoreError,
    row_key::{CodedRow, RowKey},
};

/// A call that began and of which no end is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenIntent {
    /// The id its event will have.
    pub id: EventId,
    pub org_id: OrgId,
    /// The lease of the node that opened it; on SQLite, its name.
    pub node: String,
    pub opened_at: Timestamp,
    /// Texts of its event; empty if the row is not as it was written.
    pub record: RecordTexts,
}

row!(IntentRow {
    id: String,
    org_id: String,
    node: String,
    opened_at: i64,
    packed: Option<Vec<u8>>,
    mac: Option<Vec<u8>>,
});

/// An intent as it is stored.
struct StoredIntent {
    intent: OpenIntent,
    packed: Option<Vec<u8>>,
    mac: Option<Vec<u8>>,
}

impl StoredIntent {
    /// The intent; without texts if it is not as it was written. The one who closes it records that.
    fn open(self, key: &RowKey) -> OpenIntent {
        let Self { mut intent, packed, mac } = self;
        let (id, org_id) = (intent.id.text(), intent.org_id.text());
        let row = CodedRow::Intent { id: id.as_str(), org_id: org_id.as_str() };
        if key.fits(row, packed.as_deref(), mac.as_deref())
            && let Some(record) = packed.and_then(|packed| RecordTexts::unpack(&packed).ok())
        {
            intent.record = record;
        }
        intent
    }
}

impl Readable for IntentRow {
    const TABLE: &'static str = "audit_intents";
    type Record = StoredIntent;

    fn read(self) -> Result<StoredIntent, StoreError> {
        let intent = OpenIntent {
            id: parse(&self.id, "audit_intents.id")?,
            org_id: parse(&self.org_id, "audit_intents.org_id")?,
            node: self.node,
            opened_at: Timestamp::from_micros(self.opened_at),
            record: RecordTexts::default(),
        };
        Ok(StoredIntent { intent, packed: self.packed, mac: self.mac })
    }
}

macro_rules! delete_intents_sql {
    ($dialect:ident) => {
        concat!(
            "DELETE FROM audit_intents WHERE org_id = $1 AND id IN ",
            text_list!($dialect, "$2")
        )
    };
}

impl Store {
    /// The intents that no living node holds, oldest first, at most `limit`. An SQLite file has one
    /// node at a time, which asks before it serves: there it gives all.
    ///
    /// Each is closed by finishing an event of its id. Several nodes may do so at once: of their
    /// events one is recorded. One that cannot be told from others stays where it is.
    #[boxed]
    pub async fn abandoned_intents(&self, limit: u32) -> Result<Vec<OpenIntent>, StoreError> {
        let mut skipped = 0;
        loop {
            let rows = self.intents_beyond(skipped, limit).await?;
            let found = rows.len();
            let open = self.readable(rows);
            if !open.is_empty() || found == 0 {
                return Ok(open.into_iter().map(|stored| stored.open(&self.row_key)).collect());
            }
            skipped = skipped.saturating_add(i64::try_from(found).unwrap_or(i64::MAX));
        }
    }

    async fn intents_beyond(
        &self,
        skipped: i64,
        limit: u32,
    ) -> Result<Vec<Found<IntentRow>>, StoreError> {
        let sql = match &self.db {
            Db::Sqlite { .. } => OPEN,
            Db::Postgres(_) => ABANDONED,
        };
        Ok(read!(self, installation, |conn| all!(conn, sql => limit, skipped)))
    }

    /// Removes intents of the org that are not as they were written; the event that tells of them is committed
    /// with it. `false`, and nothing is written, if another node was faster.
    #[boxed]
    pub async fn refuse_intents(
        &self,
        org: OrgId,
        ids: &[EventId],
        event: &NewEvent,
    ) -> Result<bool, StoreError> {
        let delete = match &self.db {
            Db::Sqlite { .. } => delete_intents_sql!(sqlite),
            Db::Postgres(_) => delete_intents_sql!(postgres),
        };
        let ids = serde_json::json!(ids).to_string();
        change!(self, org, |tx| {
            if run!(tx, delete => org, &ids) == 0 {
                return Ok(false);
            }
            tx.record_event(&self.row_key, event).await?;
        });
        Ok(true)
    }

    /// Removes an intent whose event stands already.
    #[boxed]
    pub async fn drop_intent(&self, org: OrgId, id: EventId) -> Result<(), StoreError> {
        change!(self, org, |tx| {
            run!(tx, "DELETE FROM audit_intents WHERE org_id = $1 AND id = $2" => org, id);
        });
        Ok(())
    }
}

/// Intents whose events stand are removed later.
const OPEN: &str = concat!(
    "SELECT * FROM audit_intents WHERE NOT ",
    is_ended!(),
    " ORDER BY id LIMIT $1 OFFSET $2"
);

const ABANDONED: &str = concat!(
    "SELECT * FROM audit_intents WHERE NOT EXISTS ",
    "(SELECT 1 FROM nodes WHERE nodes.lease = audit_intents.node AND nodes.ends_at > ",
    database_clock!(),
    ") ORDER BY id LIMIT $1 OFFSET $2"
);
