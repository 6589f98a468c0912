//! Pages of the audit log.

mod ahead;

use async_recursion::async_recursion as boxed;
use portcullis_core::{clock::Timestamp, id::OrgId};
use serde::Serialize;
use serde_json::json;

use self::ahead::{Indexed, next_in, values_of};
use super::{
    EventActor, EventFilter, EventOrder, EventPage, EventRecord, EventRow, EventTarget, Visibility,
    is_under, own, under,
};
use crate::{
    db::{Db, Store, Value as _, all, events_of_seals, find, read, scalar, text_list},
    error::StoreError,
};

/// Events that a statement walks at most; behind a place where an index knows an event, few at first.
const STRIDE: i64 = 5_000;
const STRIDE_BY_INDEX: i64 = 64;
/// Events and statements that make a page at most. A page whose filters match little ends early rather than
/// walk a log of millions. PostgreSQL takes four times as long for an event.
const WALKED_IN_SQLITE: i64 = 40_000;
const WALKED_IN_POSTGRES: i64 = 10_000;
const WALKS: usize = 100;

/// Sequences from `low` up to, not including, `high`.
#[derive(Debug, Clone, Copy)]
struct Span {
    low: i64,
    high: i64,
}

impl Span {
    /// Takes a stride of so many places off the end that `order` begins with.
    fn take_stride(&mut self, order: EventOrder, stride: i64) -> Self {
        match order {
            EventOrder::Ascending => {
                let low = self.low;
                self.low = self.high.min(low.saturating_add(stride));
                Self { low, high: self.low }
            }
            EventOrder::Descending => {
                let high = self.high;
                self.high = self.low.max(high.saturating_sub(stride));
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
    #[boxed]
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
        let values = values_of(visibility, filter);
        let mut length = if values.is_empty() { STRIDE } else { STRIDE_BY_INDEX };
        let mut left = match &self.db {
            Db::Sqlite { .. } => WALKED_IN_SQLITE,
            Db::Postgres(_) => WALKED_IN_POSTGRES,
        };
        for _ in 0..WALKS {
            if rest.is_empty() || page.events.len() >= limit || left == 0 {
                break;
            }
            if !values.is_empty() && !self.skip(org, &values, order, &mut rest).await? {
                page.reached = Some(rest.last(order));
                return Ok(page);
            }
            let stride = rest.take_stride(order, length.min(left));
            left -= stride.high - stride.low;
            let room = limit.saturating_sub(page.events.len());
            let found = self.walk(org, visibility, filter, order, stride, room).await?;
            if found.is_empty() {
                length = STRIDE.min(length * 2);
            }
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

    /// Range of the places in the org's log that were recorded from `from` on and before `to`: the
    /// first of them and the first behind them.
    #[boxed]
    pub async fn sealed_range(
        &self,
        org: OrgId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<(i64, i64), StoreError> {
        let first = self.first_recorded(org, from).await?;
        Ok((first, self.first_recorded(org, to).await?.max(first)))
    }

    async fn span(
        &self,
        org: OrgId,
        filter: &EventFilter,
        order: EventOrder,
        after: Option<i64>,
    ) -> Result<Span, StoreError> {
        let low = self.pruned_size(org).await?;
        let mut span = Span { low, high: self.sealed_size(org).await? };
        if let Some(from) = filter.from {
            span.low = self.first_recorded(org, from).await?.max(low);
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
    ///
    /// Times of recording never run backwards along the sequence, and sequences have no gaps: a binary search needs no
    /// index of its own. Where a row was removed the next place counts, so that one row that is missing hides no others.
    pub(in crate::audit) async fn first_recorded(
        &self,
        org: OrgId,
        moment: Timestamp,
    ) -> Result<i64, StoreError> {
        let span = (self.pruned_size(org).await?, self.sealed_size(org).await?);
        let first = read!(self, org, |conn| {
            let (mut low, mut high) = span;
            while low < high {
                let middle = i64::midpoint(low, high);
                let next: Option<(i64, i64)> = find!(conn, NEXT_SEAL => org, middle, high);
                match next {
                    Some((sequence, at)) if at < moment.as_micros() => low = sequence + 1,
                    Some(_) | None => high = middle,
                }
            }
            low
        });
        Ok(first)
    }

    /// Moves the near end of `span` to the first event that indexes know to have one of these values;
    /// `false` if there is none in it.
    async fn skip(
        &self,
        org: OrgId,
        values: &[(Indexed, String)],
        order: EventOrder,
        span: &mut Span,
    ) -> Result<bool, StoreError> {
        let mut found: Option<i64> = None;
        for (column, value) in values {
            // A plan for any value walks the whole log for one that is in no event.
            let next: Option<i64> = read!(self, org, |conn| {
                let values = vec![org.bound(), value.bound(), span.low.bound(), span.high.bound()];
                conn.find_by_value(scalar, next_in(&self.db, order, *column), values).await?
            });
            found = match order {
                EventOrder::Ascending => found.into_iter().chain(next).min(),
                EventOrder::Descending => found.into_iter().chain(next).max(),
            };
        }
        match (order, found) {
            (EventOrder::Ascending, Some(next)) => span.low = next,
            (EventOrder::Descending, Some(next)) => span.high = next + 1,
            (EventOrder::Ascending | EventOrder::Descending, None) => return Ok(false),
        }
        Ok(true)
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
        let (target, prefix, provider) = match &filter.target {
            None => (None, None, None),
            Some(EventTarget::Is(target)) => (Some(target), None, None),
            Some(EventTarget::StartsWith(prefix)) => (None, Some(prefix), None),
            Some(EventTarget::OfProvider(slug)) => (None, None, Some(format!("{slug}:"))),
        };
        let rows: Vec<EventRow> = read!(self, org, |conn| {
            all!(
                conn, sql => org, span.low, span.high, i64::try_from(limit).unwrap_or(i64::MAX),
                own(visibility), principal, token, target, prefix, list(&filter.kinds),
                list(&filter.decision), list(&filter.policy), list(&filter.dlp_result),
                list(&filter.outcome), filter.request_id.map(|id| id.to_string()),
                under(visibility), provider
            )
        });
        rows.into_iter().map(EventRow::read).collect()
    }
}

/// A JSON array, or nothing for no filter at all.
fn list(values: &[impl Serialize]) -> Option<String> {
    (!values.is_empty()).then(|| json!(values).to_string())
}

macro_rules! list_sql {
    ($dialect:ident, $order:literal) => {
        concat!(
            "
SELECT e.id, e.type AS kind, e.occurred_at, e.packed, s.sequence, s.recorded_at, s.leaf_hash
FROM ",
            events_of_seals!($dialect),
            "
WHERE s.org_id = $1 AND e.org_id = $1 AND s.sequence >= $2 AND s.sequence < $3
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
    AND ($16 IS NULL OR ",
            is_under!("$16"),
            ")
    AND ($17 IS NULL OR substr(e.target, 1, length($17)) = $17
        OR substr(e.target, 1, 7 + length($17)) = 'prompt:' || $17
        OR substr(e.target, 1, 9 + length($17)) = 'resource:' || $17
        OR substr(e.target, 1, 6 + length($17)) = 'skill:' || $17)
ORDER BY s.sequence ",
            $order,
            " LIMIT $4"
        )
    };
}
use list_sql;

const NEXT_SEAL: &str = "
SELECT sequence, recorded_at FROM audit_seals
WHERE org_id = $1 AND sequence >= $2 AND sequence < $3 ORDER BY sequence LIMIT 1";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::schema;

    #[test]
    fn a_page_with_any_filter_walks_places_by_index_and_finds_events_by_position() {
        let open = schema::in_memory();

        for list in [list_sql!(sqlite, "ASC"), list_sql!(sqlite, "DESC")] {
            let plan = schema::plan_of(&open, list);

            let steps: Vec<_> = plan.iter().map(String::as_str).collect();
            let places = "audit_seals_1 (org_id=? AND sequence>? AND sequence<?)";
            assert!(steps[0].starts_with("SEARCH s ") && steps[0].ends_with(places), "{steps:?}");
            assert_eq!(steps[1], "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)");
            assert!(!steps.iter().any(|step| step.contains("ORDER BY")), "{steps:?}");
        }
    }
}
