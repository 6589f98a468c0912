//! Events without a place in the log and places without an event: whether the rows of a log are
//! those that its head counts.

use async_recursion::async_recursion as boxed;
use portcullis_core::id::OrgId;

use super::seal_of_event;
use crate::{
    db::{Db, Store, all, find, last_given, one, read, row},
    error::StoreError,
};

row!(EndsRow {
    size: i64,
    last_position: i64,
    last_recorded_at: i64,
    sequence: Option<i64>,
    position: Option<i64>,
    recorded_at: Option<i64>,
    last_is_there: bool,
});

/// End of a log as its head counts it and as its last seal has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnds {
    /// Number of places that the head has given out.
    pub size: i64,
    /// Number of places up to the last one that is there.
    pub sealed: i64,
    /// True if position and time of the last place are those that the head goes on from, but for events that were
    /// refused.
    pub agree: bool,
}

row!(BeyondRow { org_id: String, position: i64, id: String });

/// A row at a position that the gateway has not given out, with whatever is written there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowBeyond {
    pub org_id: String,
    pub position: i64,
    pub id: String,
}

impl BeyondRow {
    fn read(self) -> RowBeyond {
        RowBeyond { org_id: self.org_id, position: self.position, id: self.id }
    }
}

impl EndsRow {
    fn read(self) -> LogEnds {
        let agree = self.position.zip(self.recorded_at).is_none_or(|(position, recorded_at)| {
            let goes_on = position < self.last_position && self.last_is_there;
            (position == self.last_position || goes_on) && recorded_at == self.last_recorded_at
        });
        LogEnds {
            size: self.size,
            sealed: self.sequence.map_or(0, |sequence| sequence.saturating_add(1)),
            agree,
        }
    }
}

/// One statement, so that what a seal adds meanwhile is seen in all of it or nowhere.
const ENDS: &str = "
SELECT COALESCE(MAX(h.size), 0) AS size, COALESCE(MAX(h.last_position), 0) AS last_position,
    COALESCE(MAX(h.last_recorded_at), 0) AS last_recorded_at, MAX(s.sequence) AS sequence,
    MAX(s.position) AS position, MAX(s.recorded_at) AS recorded_at,
    EXISTS (SELECT 1 FROM audit_events e JOIN audit_heads d ON d.last_position = e.position
        WHERE d.org_id = $1 AND e.org_id = $1) AS last_is_there
FROM (SELECT 1 AS one) AS once
LEFT JOIN audit_heads h ON h.org_id = $1
LEFT JOIN (SELECT sequence, position, recorded_at FROM audit_seals WHERE org_id = $1
    ORDER BY sequence DESC LIMIT 1) AS s ON one = 1";

const COUNT: &str = "
SELECT COUNT(*) FROM audit_events WHERE org_id = $1 AND position > $2 AND position <= $3";

macro_rules! stray_event_sql {
    ($dialect:ident) => {
        concat!(
            "
SELECT e.id FROM audit_events e WHERE e.org_id = $1 AND e.position > $2
    AND e.position <= COALESCE($3, (SELECT last_position FROM audit_heads WHERE org_id = $1))
    AND (SELECT COUNT(*) FROM audit_seals s WHERE s.org_id = $1 AND ",
            seal_of_event!($dialect),
            ") = 0
ORDER BY e.position LIMIT 1"
        )
    };
}

macro_rules! event_beyond_sql {
    ($dialect:ident) => {
        concat!(
            "SELECT e.id FROM audit_events e WHERE e.org_id = $1 AND e.position > ",
            last_given!($dialect),
            " ORDER BY e.position LIMIT 1"
        )
    };
}

macro_rules! rows_beyond_sql {
    ($dialect:ident) => {
        concat!(
            "SELECT e.org_id, e.position, e.id FROM audit_events e WHERE e.position > ",
            last_given!($dialect),
            " ORDER BY e.position LIMIT $1"
        )
    };
}

macro_rules! stray_seal_sql {
    ($dialect:ident) => {
        concat!(
            "
SELECT s.sequence FROM audit_seals s WHERE s.org_id = $1 AND s.sequence >= $2 AND s.sequence < $3
    AND (SELECT COUNT(*) FROM audit_events e WHERE e.org_id = $1 AND ",
            seal_of_event!($dialect),
            ") = 0
ORDER BY s.sequence LIMIT 1"
        )
    };
}

impl Store {
    /// Ends of the org's log, by its head and by its last seal.
    #[boxed]
    pub async fn log_ends(&self, org: OrgId) -> Result<LogEnds, StoreError> {
        let ends: EndsRow = read!(self, org, |conn| one!(conn, ENDS => org));
        Ok(ends.read())
    }

    /// Number of the org's events behind the position `after` up to the position `upto`.
    #[boxed]
    pub async fn count_events(&self, org: OrgId, after: i64, upto: i64) -> Result<i64, StoreError> {
        Ok(read!(self, org, |conn| one!(conn, scalar COUNT => org, after, upto)))
    }

    /// Id of the org's first event behind the position `after` that has no place in the log, up to
    /// the position `upto`, or up to that behind which events still wait for their places.
    #[boxed]
    pub async fn stray_event(
        &self,
        org: OrgId,
        after: i64,
        upto: Option<i64>,
    ) -> Result<Option<String>, StoreError> {
        let sql = match &self.db {
            Db::Sqlite { .. } => stray_event_sql!(sqlite),
            Db::Postgres(_) => stray_event_sql!(postgres),
        };
        Ok(read!(self, org, |conn| find!(conn, scalar sql => org, after, upto)))
    }

    /// Id of the org's first row at a position that the gateway has not given out: it waits for no place.
    #[boxed]
    pub async fn event_beyond(&self, org: OrgId) -> Result<Option<String>, StoreError> {
        let sql = match &self.db {
            Db::Sqlite { .. } => event_beyond_sql!(sqlite),
            Db::Postgres(_) => event_beyond_sql!(postgres),
        };
        Ok(read!(self, org, |conn| find!(conn, scalar sql => org)))
    }

    /// The first such rows of all orgs, at most `limit`.
    #[boxed]
    pub async fn rows_beyond(&self, limit: i64) -> Result<Vec<RowBeyond>, StoreError> {
        let sql = match &self.db {
            Db::Sqlite { .. } => rows_beyond_sql!(sqlite),
            Db::Postgres(_) => rows_beyond_sql!(postgres),
        };
        let rows: Vec<BeyondRow> = read!(self, installation, |conn| all!(conn, sql => limit));
        Ok(rows.into_iter().map(BeyondRow::read).collect())
    }

    /// The first place of the org's log from `first` up to, not including, `end` whose event is not
    /// there.
    #[boxed]
    pub async fn stray_seal(
        &self,
        org: OrgId,
        first: i64,
        end: i64,
    ) -> Result<Option<i64>, StoreError> {
        let sql = match &self.db {
            Db::Sqlite { .. } => stray_seal_sql!(sqlite),
            Db::Postgres(_) => stray_seal_sql!(postgres),
        };
        Ok(read!(self, org, |conn| find!(conn, scalar sql => org, first, end)))
    }
}
