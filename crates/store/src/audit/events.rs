//! Reading the audit log: by sequence, and one event by id.

use portcullis_core::{
    clock::Timestamp,
    id::{EventId, OrgId, PrincipalId, RequestId, TokenId},
};
use serde_json::json;

use crate::{
    Store,
    db::{Db, parse, read, row, text_list},
    error::StoreError,
};

/// How much of the log one statement walks, and how many statements make a page at most. A page
/// whose filters match little ends early rather than walk a log of millions.
const STRIDE: i64 = 5_000;
const STRIDES: usize = 10;

/// Whose events may be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// The whole org's.
    All,
    /// Those a principal did itself or that were done on its behalf.
    Own(PrincipalId),
}

/// In which order to read the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventOrder {
    /// Oldest first.
    Ascending,
    /// Newest first.
    Descending,
}

/// Who did it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventActor {
    /// A user or a service account.
    Principal(PrincipalId),
    /// Whoever presented this token.
    Token(TokenId),
}

/// What it was done to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventTarget {
    /// Exactly this.
    Is(String),
    /// Anything that begins so.
    StartsWith(String),
}

/// Which events to list. Empty parts let everything through; all others must match.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// Recorded at this moment or later.
    pub from: Option<Timestamp>,
    /// Recorded before this moment.
    pub to: Option<Timestamp>,
    /// Of one of these types.
    pub kinds: Vec<String>,
    /// Done by.
    pub actor: Option<EventActor>,
    /// Done to.
    pub target: Option<EventTarget>,
    /// Decided so.
    pub decisions: Vec<String>,
    /// Decided by one of these policies.
    pub policies: Vec<String>,
    /// With one of these DLP results.
    pub dlp_results: Vec<String>,
    /// Ended in one of these ways.
    pub outcomes: Vec<String>,
    /// Of this request.
    pub request_id: Option<RequestId>,
}

/// An event and, when it has one, its place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// Its id.
    pub id: EventId,
    /// Its type.
    pub kind: String,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// The part that is hashed, as JSON, without sequence and time of recording.
    pub core: String,
    /// The erasable part, as JSON.
    pub detached: Option<String>,
    /// The salts of the erasable part, as JSON.
    pub salts: Option<String>,
    /// Its place in the log; `None` until sealed.
    pub seal: Option<Seal>,
}

/// An event's place in its org's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seal {
    /// Counted from 0 without gaps.
    pub sequence: i64,
    /// When it was committed, never before the one in front of it.
    pub recorded_at: Timestamp,
    /// What the tree holds of it.
    pub leaf_hash: [u8; 32],
}

/// A page of events. It may be short or empty before the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    /// The events, in the order asked for.
    pub events: Vec<EventRecord>,
    /// The last sequence that was looked at: from here the next page goes on. `None` if there was
    /// nothing to look at.
    pub reached: Option<i64>,
    /// Whether there is more behind it now.
    pub more: bool,
}

row!(EventRow {
    id: String,
    kind: String,
    occurred_at: i64,
    core: String,
    detached: Option<String>,
    salts: Option<String>,
    sequence: Option<i64>,
    recorded_at: Option<i64>,
    leaf_hash: Option<Vec<u8>>,
});

impl EventRow {
    fn read(self) -> Result<EventRecord, StoreError> {
        let seal = match (self.sequence, self.recorded_at, self.leaf_hash) {
            (Some(sequence), Some(recorded_at), Some(leaf_hash)) => Some(Seal {
                sequence,
                recorded_at: Timestamp::from_micros(recorded_at),
                leaf_hash: leaf_hash
                    .try_into()
                    .map_err(|_| StoreError::Corrupt("audit_seals.leaf_hash"))?,
            }),
            _ => None,
        };
        Ok(EventRecord {
            id: parse(&self.id, "audit_events.id")?,
            kind: self.kind,
            occurred_at: Timestamp::from_micros(self.occurred_at),
            core: self.core,
            detached: self.detached,
            salts: self.salts,
            seal,
        })
    }
}

/// Sequences from `low` up to, not including, `high`.
#[derive(Debug, Clone, Copy)]
struct Span {
    low: i64,
    high: i64,
}

impl Span {
    /// Takes the next stride off the end that `order` begins with.
    fn take_stride(&mut self, order: EventOrder) -> Self {
        match order {
            EventOrder::Ascending => {
                let low = self.low;
                self.low = self.high.min(low.saturating_add(STRIDE));
                Self { low, high: self.low }
            }
            EventOrder::Descending => {
                let high = self.high;
                self.high = self.low.max(high.saturating_sub(STRIDE));
                Self { low: self.high, high }
            }
        }
    }

    const fn is_empty(self) -> bool {
        self.low >= self.high
    }

    const fn last(self, order: EventOrder) -> i64 {
        match order {
            EventOrder::Ascending => self.high - 1,
            EventOrder::Descending => self.low,
        }
    }
}

impl Store {
    /// A page of the org's sealed events that match, by sequence, going on after the sequence
    /// `after`. Events that arrive meanwhile neither repeat nor hide any.
    pub async fn list_events(
        &self,
        org: OrgId,
        visibility: Visibility,
        filter: &EventFilter,
        order: EventOrder,
        after: Option<i64>,
        limit: u32,
    ) -> Result<EventPage, StoreError> {
        let mut rest = self.span(org, filter, order, after).await?;
        let mut page = EventPage { events: Vec::new(), reached: None, more: false };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        for _ in 0..STRIDES {
            if rest.is_empty() || page.events.len() >= limit {
                break;
            }
            let stride = rest.take_stride(order);
            let room = limit.saturating_sub(page.events.len());
            let found = self.walk(org, visibility, filter, order, stride, room).await?;
            page.reached = Some(stride.last(order));
            let full = found.len() >= room;
            page.events.extend(found);
            if full {
                let last = page.events.last().and_then(|event| event.seal);
                page.reached = last.map(|seal| seal.sequence).or(page.reached);
                page.more = page.reached != Some(stride.last(order));
            }
        }
        page.more = page.more || !rest.is_empty();
        Ok(page)
    }

    /// The org's event with this id, sealed or not.
    pub async fn find_event(
        &self,
        org: OrgId,
        visibility: Visibility,
        id: EventId,
    ) -> Result<Option<EventRecord>, StoreError> {
        let own = own(visibility);
        let row: Option<EventRow> = read!(self, |conn| {
            sqlx::query_as(FIND)
                .bind(org.to_string())
                .bind(id.to_string())
                .bind(own)
                .fetch_optional(&mut *conn)
                .await?
        });
        row.map(EventRow::read).transpose()
    }

    async fn span(
        &self,
        org: OrgId,
        filter: &EventFilter,
        order: EventOrder,
        after: Option<i64>,
    ) -> Result<Span, StoreError> {
        let mut span = Span { low: 0, high: self.sealed_size(org).await? };
        if let Some(from) = filter.from {
            span.low = self.first_recorded(org, from).await?;
        }
        if let Some(to) = filter.to {
            span.high = self.first_recorded(org, to).await?;
        }
        match (order, after) {
            (EventOrder::Ascending, Some(after)) => {
                span.low = span.low.max(after.saturating_add(1));
            }
            (EventOrder::Descending, Some(after)) => span.high = span.high.min(after),
            (EventOrder::Ascending | EventOrder::Descending, None) => {}
        }
        Ok(span)
    }

    /// The first sequence recorded at `moment` or later; the size of the log if there is none.
    async fn first_recorded(&self, org: OrgId, moment: Timestamp) -> Result<i64, StoreError> {
        let first: Option<i64> = read!(self, |conn| {
            sqlx::query_scalar(FIRST_RECORDED)
                .bind(org.to_string())
                .bind(moment.as_micros())
                .fetch_optional(&mut *conn)
                .await?
        });
        Ok(first.unwrap_or(0))
    }

    async fn walk(
        &self,
        org: OrgId,
        visibility: Visibility,
        filter: &EventFilter,
        order: EventOrder,
        span: Span,
        limit: usize,
    ) -> Result<Vec<EventRecord>, StoreError> {
        let sql = match (&self.db, order) {
            (Db::Sqlite { .. }, EventOrder::Ascending) => list_sql!(sqlite, "ASC"),
            (Db::Sqlite { .. }, EventOrder::Descending) => list_sql!(sqlite, "DESC"),
            (Db::Postgres(_), EventOrder::Ascending) => list_sql!(postgres, "ASC"),
            (Db::Postgres(_), EventOrder::Descending) => list_sql!(postgres, "DESC"),
        };
        let (principal, token) = match filter.actor {
            None => (None, None),
            Some(EventActor::Principal(id)) => (Some(id.to_string()), None),
            Some(EventActor::Token(id)) => (None, Some(id.to_string())),
        };
        let (target, prefix) = match &filter.target {
            None => (None, None),
            Some(EventTarget::Is(target)) => (Some(target), None),
            Some(EventTarget::StartsWith(prefix)) => (None, Some(prefix)),
        };
        let rows: Vec<EventRow> = read!(self, |conn| {
            sqlx::query_as(sql)
                .bind(org.to_string())
                .bind(span.low)
                .bind(span.high)
                .bind(i64::try_from(limit).unwrap_or(i64::MAX))
                .bind(own(visibility))
                .bind(principal)
                .bind(token)
                .bind(target)
                .bind(prefix)
                .bind(list(&filter.kinds))
                .bind(list(&filter.decisions))
                .bind(list(&filter.policies))
                .bind(list(&filter.dlp_results))
                .bind(list(&filter.outcomes))
                .bind(filter.request_id.map(|id| id.to_string()))
                .fetch_all(&mut *conn)
                .await?
        });
        rows.into_iter().map(EventRow::read).collect()
    }
}

fn own(visibility: Visibility) -> Option<String> {
    match visibility {
        Visibility::All => None,
        Visibility::Own(id) => Some(id.to_string()),
    }
}

/// A JSON array, or nothing for no filter at all.
fn list(values: &[String]) -> Option<String> {
    (!values.is_empty()).then(|| json!(values).to_string())
}

macro_rules! list_sql {
    ($dialect:ident, $order:literal) => {
        concat!(
            "
SELECT e.id, e.type AS kind, e.occurred_at, e.core, e.detached, e.salts,
    s.sequence, s.recorded_at, s.leaf_hash
FROM audit_seals s
JOIN audit_events e ON e.position = s.position AND e.org_id = s.org_id
WHERE s.org_id = $1 AND s.sequence >= $2 AND s.sequence < $3
    AND ($5 IS NULL OR e.actor_id = $5 OR e.via = $5)
    AND ($6 IS NULL OR e.actor_id = $6)
    AND ($7 IS NULL OR e.token_id = $7)
    AND ($8 IS NULL OR e.target = $8)
    AND ($9 IS NULL OR substr(e.target, 1, length($9)) = $9)
    AND ($10 IS NULL OR e.type IN ",
            text_list!($dialect, "$10"),
            ")
    AND ($11 IS NULL OR e.decision IN ",
            text_list!($dialect, "$11"),
            ")
    AND ($12 IS NULL OR e.policy IN ",
            text_list!($dialect, "$12"),
            ")
    AND ($13 IS NULL OR e.dlp_result IN ",
            text_list!($dialect, "$13"),
            ")
    AND ($14 IS NULL OR e.outcome IN ",
            text_list!($dialect, "$14"),
            ")
    AND ($15 IS NULL OR e.request_id = $15)
ORDER BY s.sequence ",
            $order,
            " LIMIT $4"
        )
    };
}
use list_sql;

const FIND: &str = "
SELECT e.id, e.type AS kind, e.occurred_at, e.core, e.detached, e.salts,
    s.sequence, s.recorded_at, s.leaf_hash
FROM audit_events e
LEFT JOIN audit_seals s ON s.position = e.position
WHERE e.org_id = $1 AND e.id = $2 AND ($3 IS NULL OR e.actor_id = $3 OR e.via = $3)";

/// Times of recording never run backwards along the sequence, and sequences have no gaps: a
/// binary search needs no index of its own.
const FIRST_RECORDED: &str = "
WITH RECURSIVE search (low, high) AS (
    SELECT CAST(0 AS BIGINT), size FROM audit_heads WHERE org_id = $1
    UNION ALL
    SELECT CASE WHEN s.recorded_at < $2 THEN s.sequence + 1 ELSE search.low END,
        CASE WHEN s.recorded_at < $2 THEN search.high ELSE s.sequence END
    FROM search
    JOIN audit_seals s ON s.org_id = $1 AND s.sequence = (search.low + search.high) / 2
    WHERE search.low < search.high
)
SELECT low FROM search WHERE low >= high";
