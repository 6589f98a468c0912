//! The columns that the log is searched by, beside the records that they were made of.

use async_recursion::async_recursion as boxed;
use portcullis_core::id::OrgId;

use crate::{
    db::{Db, RecordTexts, Store, all, events_of_seals, has_sealed_twin, index_entries, read, row},
    error::StoreError,
};

row!(IndexedRow {
    sequence: i64,
    sealed_position: i64,
    position: i64,
    id: String,
    kind: String,
    occurred_at: i64,
    committed_at: i64,
    recorded_at: i64,
    payload_at: Option<i64>,
    actor_id: Option<String>,
    via: Option<String>,
    token_id: Option<String>,
    target: Option<String>,
    decision: Option<String>,
    policy: Option<String>,
    dlp_result: Option<String>,
    outcome: Option<String>,
    request_id: Option<String>,
    packed: Option<Vec<u8>>,
    leaf_hash: Vec<u8>,
    is_indexed: i64,
    is_twin: i64,
});

/// A sealed event as it is searched for and found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedEvent {
    pub sequence: i64,
    /// Its position among all events, as the event and as its seal have it. Positions ascend with
    /// sequences.
    pub positions: (i64, i64),
    /// Moment at which it happened, in microseconds.
    pub occurred_at: i64,
    /// Moment at which it was committed, in microseconds: holds and erasures select by it.
    pub committed_at: i64,
    /// The same, or that of the event in front if that is later.
    pub recorded_at: i64,
    /// Moment at which its payload was committed, if one is kept: retention selects by it.
    pub payload_at: Option<i64>,
    /// Each column that a filter compares, with the JSON pointer of its value in the record.
    pub columns: [(&'static str, Option<String>, &'static str); 11],
    /// The record, as JSON; empty if it cannot be read.
    pub core: String,
    /// The erasable part, as JSON.
    pub detached: Option<String>,
    /// The salts of the erasable part, as JSON.
    pub salts: Option<String>,
    /// Hash of its leaf, as the seal has it.
    pub leaf_hash: Vec<u8>,
    /// True if the index that the sealer writes has all its entries.
    pub is_indexed: bool,
    /// True if another event has a place and the same id.
    pub is_twin: bool,
}

impl IndexedRow {
    fn read(self) -> IndexedEvent {
        let texts = RecordTexts::of_row(self.packed.as_deref());
        let RecordTexts { core, detached, salts } = texts.unwrap_or_default();
        IndexedEvent {
            sequence: self.sequence,
            positions: (self.position, self.sealed_position),
            occurred_at: self.occurred_at,
            committed_at: self.committed_at,
            recorded_at: self.recorded_at,
            payload_at: self.payload_at,
            columns: [
                ("id", Some(self.id), "/id"),
                ("type", Some(self.kind), "/type"),
                ("actor_id", self.actor_id, "/actor/id"),
                ("via", self.via, "/actor/via"),
                ("token_id", self.token_id, "/actor/token_id"),
                ("target", self.target, "/target/id"),
                ("decision", self.decision, "/governance/decision"),
                ("policy", self.policy, "/governance/policy"),
                ("dlp_result", self.dlp_result, "/governance/dlp_result"),
                ("outcome", self.outcome, "/outcome/status"),
                ("request_id", self.request_id, "/request/id"),
            ],
            core,
            detached,
            salts,
            leaf_hash: self.leaf_hash,
            is_indexed: self.is_indexed == 1,
            is_twin: self.is_twin == 1,
        }
    }
}

/// The SQL for whether `audit_index` has the entries of the event `e`: 1 or 0.
macro_rules! is_indexed {
    (postgres) => {
        "1::bigint"
    };
    (sqlite) => {
        concat!(
            "NOT EXISTS (SELECT 1 FROM (",
            index_entries!("(SELECT 1)", "true"),
            ") n WHERE NOT EXISTS (SELECT 1 FROM audit_index i
            WHERE i.kind = n.kind AND i.name = n.name AND i.position = n.position))"
        )
    };
}

/// The SQL for whether the id of the event `e` has two places: 1 or 0. On PostgreSQL it is a key.
macro_rules! is_twin {
    (postgres) => {
        "0::bigint"
    };
    (sqlite) => {
        has_sealed_twin!()
    };
}

macro_rules! indexed_sql {
    ($dialect:ident) => {
        concat!(
            "
SELECT s.sequence, s.position AS sealed_position, e.position, e.id, e.type AS kind, e.occurred_at,
    e.committed_at, s.recorded_at, e.payload_at, e.actor_id, e.via, e.token_id, e.target, e.decision, e.policy, e.dlp_result, e.outcome,
    e.request_id, e.packed, s.leaf_hash, ",
            is_indexed!($dialect),
            " AS is_indexed, ",
            is_twin!($dialect),
            " AS is_twin
FROM ",
            events_of_seals!($dialect),
            "
WHERE s.org_id = $1 AND e.org_id = $1 AND s.sequence >= $2 AND s.sequence < $3
ORDER BY s.sequence"
        )
    };
}

impl Store {
    /// The sealed events of the org from the place `first` up to, not including, `end`, as far as
    /// they are kept, each with the columns that it is found by.
    #[boxed]
    pub async fn indexed_events(
        &self,
        org: OrgId,
        first: i64,
        end: i64,
    ) -> Result<Vec<IndexedEvent>, StoreError> {
        let sql = match &self.db {
            Db::Sqlite { .. } => indexed_sql!(sqlite),
            Db::Postgres(_) => indexed_sql!(postgres),
        };
        let rows: Vec<IndexedRow> = read!(self, org, |conn| all!(conn, sql => org, first, end));
        Ok(rows.into_iter().map(IndexedRow::read).collect())
    }
}
