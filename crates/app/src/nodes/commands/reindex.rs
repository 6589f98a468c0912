//! The index of events, made anew from the log: whatever events are found and counted by follows from their records,
//! and is compared with these.
//!
//! A record is taken only if it is the one of its leaf in the signed tree. Each batch of events is a transaction of its
//! own, beside whatever serves: a run that was ended is gone on with by another one.

use std::collections::BTreeMap;

use portcullis_core::{
    audit::{EventType, Hash, Shown, tiles::TileId},
    clock::Timestamp,
    id::OrgId,
};
use portcullis_store::{
    CountedEvents, IndexColumns, IndexedEvent, IndexedPortion, NewEvent, Org, StoreError,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{LogIdentity, Operator};
use crate::{
    audit::{
        events::{object, row_of},
        faults::Unproven,
        proven::{ProvenLog, WIDTH, columns_of, differing_columns, indexed, place},
        retention::Retention,
    },
    request::target_of,
};

/// Events that are named.
const MAX_NAMED: usize = 20;
/// Events that may be sealed after the others were counted, and are counted while nothing is sealed.
const LATE: i64 = 1_000;

/// Extent of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReindexMode {
    /// Differences are told, and left as they are.
    Check,
    /// Differences are mended.
    Mend,
}

/// Differences of the index of a log from its records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Reindexed {
    /// Number of events that were compared.
    pub events: u64,
    /// Number of those of which columns or entries of the index were not those of the record.
    pub differing: u64,
    /// The first of them.
    pub named: Vec<DifferingEvent>,
    /// Number of those whose record is not the one in the tree: nothing follows from it.
    pub unproven: u64,
    /// The first of their places.
    pub unproven_places: Vec<i64>,
    /// Number of places without an event.
    pub missing: u64,
    /// Fault at the end of the log, of which then nothing is compared.
    pub end: Option<String>,
    /// Number of entries of the index that no event has.
    pub stray_entries: u64,
    /// Number of counts that were not those of the events; absent if differing events were left
    /// as they are, or events are not those of the log.
    pub counts: Option<u64>,
}

/// An event whose index is not that of its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DifferingEvent {
    /// Its id, as the record has it.
    pub event: String,
    pub sequence: i64,
    /// The columns that differ; `index` for entries that are not there.
    pub columns: Vec<&'static str>,
}

impl Reindexed {
    /// True if every event of the log was there, with its record.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.unproven == 0 && self.missing == 0 && self.end.is_none()
    }

    /// True if anything was not as the records say.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.differing + self.stray_entries + self.counts.unwrap_or(0) > 0
    }

    /// Notes these events, of which these columns follow. True if any of them differs.
    fn note(&mut self, events: &[IndexedEvent], derived: &[Option<IndexColumns>]) -> bool {
        let before = self.differing;
        for (event, derived) in events.iter().zip(derived) {
            self.events += 1;
            let Some(derived) = derived else {
                self.unproven += 1;
                if self.unproven_places.len() < MAX_NAMED {
                    self.unproven_places.push(event.sequence);
                }
                continue;
            };
            let columns = differing_columns(event, Some(derived));
            if columns.is_empty() {
                continue;
            }
            self.differing += 1;
            if self.named.len() < MAX_NAMED {
                let [id, ..] = &derived.texts;
                let event_id = id.clone().unwrap_or_default();
                let sequence = event.sequence;
                self.named.push(DifferingEvent { event: event_id, sequence, columns });
            }
        }
        self.differing > before
    }
}

/// Leaves of a part of a log, and what stands in front of it.
struct Part {
    first: u64,
    /// The first place behind it.
    end: u64,
    /// None of them if the tree does not have them.
    leaves: Vec<Hash>,
    /// When the event in front was recorded.
    before: Option<i64>,
}

impl Part {
    /// The columns that follow from the records of these events; none of a record that is not the one in the tree.
    fn derive(&self, events: &[IndexedEvent]) -> Vec<Option<IndexColumns>> {
        let mut before = self.before;
        let derive = |event: &IndexedEvent| {
            let earlier = before.replace(event.recorded_at);
            let within = u64::try_from(event.sequence).ok()?.checked_sub(self.first)?;
            let leaf = self.leaves.get(usize::try_from(within).ok()?)?;
            let sealed = indexed(event)?;
            if sealed.leaf_hash != *leaf || !sealed.mismatches(Shown::Bare).is_empty() {
                return None;
            }
            columns_of(event, &object(&event.core)?, earlier)
        };
        events.iter().map(derive).collect()
    }
}

impl Operator {
    /// Compares what the org's events are found and counted by with their records, and with [`ReindexMode::Mend`]
    /// makes it anew. Tells `progress` the events that were looked at and their number.
    pub async fn reindex(
        &self,
        org: &Org,
        identity: LogIdentity,
        mode: ReindexMode,
        retention: Retention,
        progress: impl FnMut(i64, i64) + Send,
    ) -> Result<Reindexed, StoreError> {
        let mut found = Reindexed::default();
        let signer = self.signer(identity);
        let reader = self.reader(&signer);
        let done = async {
            let log = ProvenLog::open(&reader, org.id).await?;
            self.reindex_log(&log, mode, retention, progress, &mut found).await
        };
        match done.await {
            Ok(()) => {}
            // Other logs are looked at.
            Err(Unproven::Fault(fault)) => found.end = Some(fault.to_string()),
            Err(Unproven::Store(error @ StoreError::Conflict(_))) => {
                found.end = Some(error.to_string());
            }
            Err(Unproven::Store(error)) => return Err(error),
        }
        Ok(found)
    }

    async fn reindex_log(
        &self,
        log: &ProvenLog<'_>,
        mode: ReindexMode,
        retention: Retention,
        mut progress: impl FnMut(i64, i64) + Send,
        found: &mut Reindexed,
    ) -> Result<(), Unproven> {
        let org = log.org;
        let kept_from = self.store.pruned_size(org).await?;
        let mut counted = Some(self.nothing_counted(org, kept_from, retention).await?);
        // What is sealed from now on is indexed by whoever seals it.
        let size = log.size;
        let begin = u64::try_from(kept_from).unwrap_or(0) / WIDTH;
        let mut before = None;
        for index in begin..size.div_ceil(WIDTH) {
            let first = index * WIDTH;
            let end = size.min(first + WIDTH);
            let id = TileId { level: 0, index };
            let leaves = self.tile(org, id, end - first).await?.unwrap_or_default();
            // A tile that is not of the signed tree proves nothing.
            let leaves = if log.has_leaves(first, &leaves).await? { leaves } else { Vec::new() };
            let mut part = Part { first, end, leaves, before };
            self.reindex_part(org, mode, &mut part, kept_from, found).await?;
            before = part.before;
            self.count_calls(org, &mut counted, place(end)).await?;
            progress(place(end), place(size));
        }
        self.reindex_counts(org, mode, counted, found).await?;
        Ok(())
    }

    /// Counts up to the place `end`; nothing any more, if columns cannot be counted by.
    async fn count_calls(
        &self,
        org: OrgId,
        counted: &mut Option<CountedEvents>,
        end: i64,
    ) -> Result<(), StoreError> {
        let Some(so_far) = counted else { return Ok(()) };
        match self.store.count_calls(org, so_far, end).await {
            Err(StoreError::Corrupt(_) | StoreError::Conflict(_)) => *counted = None,
            done => done?,
        }
        Ok(())
    }

    /// Compares the counts of the org, or makes them anew.
    async fn reindex_counts(
        &self,
        org: OrgId,
        mode: ReindexMode,
        mut counted: Option<CountedEvents>,
        found: &mut Reindexed,
    ) -> Result<(), StoreError> {
        while let Some(end) = counted.as_ref().map(|it| it.end.saturating_add(LATE))
            && place(self.size(org).await?) > end
        {
            self.count_calls(org, &mut counted, end).await?;
        }
        // Counts of what is gone are what is left of it.
        let Some(counted) = counted.filter(|_| found.is_whole()) else { return Ok(()) };
        found.counts = match mode {
            // Counted by columns that are wrong, they would only seem to differ.
            ReindexMode::Check if found.differing > 0 => None,
            ReindexMode::Check => {
                Some(self.store.mend_counts(org, counted, None::<fn(u64) -> NewEvent>).await?)
            }
            ReindexMode::Mend => {
                let tell = |count| self.reindexed(org, count, &json!({ "what": "counts" }));
                Some(self.store.mend_counts(org, counted, Some(tell)).await?)
            }
        };
        Ok(())
    }

    /// Number of the org's sealed events.
    async fn size(&self, org: OrgId) -> Result<u64, StoreError> {
        Ok(u64::try_from(self.store.sealed_size(org).await?).unwrap_or(0))
    }

    /// Counts of no event yet. Those of a time of which events or counts may be gone are left as they are.
    async fn nothing_counted(
        &self,
        org: OrgId,
        kept_from: i64,
        retention: Retention,
    ) -> Result<CountedEvents, StoreError> {
        let now = self.clock.now();
        let mut complete = now.plus_seconds(-retention.events);
        if kept_from > 0 {
            let oldest =
                self.store.indexed_events(org, kept_from, kept_from.saturating_add(1)).await?;
            let oldest =
                oldest.events.first().map(|event| Timestamp::from_micros(event.recorded_at));
            complete = complete.max(oldest.unwrap_or(complete));
        }
        Ok(CountedEvents::new(kept_from, complete, now))
    }

    /// Compares the events of a part of the log, as many at a time as may be read together, and mends those that
    /// differ.
    async fn reindex_part(
        &self,
        org: OrgId,
        mode: ReindexMode,
        part: &mut Part,
        kept_from: i64,
        found: &mut Reindexed,
    ) -> Result<(), StoreError> {
        let mut first = place(part.first);
        while first < place(part.end) {
            let read = self.store.indexed_events(org, first, place(part.end)).await?;
            let IndexedPortion { events, end } = read;
            let there = i64::try_from(events.len()).unwrap_or(i64::MAX);
            let places = end - first.max(kept_from).min(end);
            found.missing += u64::try_from(places - there).unwrap_or(0);
            if found.note(&events, &part.derive(&events)) && mode == ReindexMode::Mend {
                let details = json!({ "what": "events", "first": first, "last": end - 1 });
                let tell = |count| self.reindexed(org, count, &details);
                self.store.mend_events(org, first, end, |events| part.derive(events), tell).await?;
            }
            part.before = events.last().map(|event| event.recorded_at).or(part.before);
            first = end;
        }
        Ok(())
    }

    /// Compares the entries of the index with the events, and with [`ReindexMode::Mend`] removes those that none has:
    /// of one org, or all. Number of such entries by org; those without one are at positions of no event.
    pub async fn reindex_entries(
        &self,
        only: Option<OrgId>,
        mode: ReindexMode,
    ) -> Result<BTreeMap<Option<OrgId>, u64>, StoreError> {
        let mut found = BTreeMap::new();
        let mut after = (i64::MIN, String::new(), i64::MIN);
        loop {
            let (stray, last) = self.store.stray_entries(&after).await?;
            let mut by_org = BTreeMap::<_, Vec<_>>::new();
            for entry in stray.into_iter().filter(|it| only.is_none() || it.org == only) {
                by_org.entry(entry.org).or_default().push(entry);
            }
            for (org, entries) in by_org {
                let details = json!({ "what": "entries" });
                let tell = |count| org.map(|org| self.reindexed(org, count, &details));
                let count = match mode {
                    ReindexMode::Check => u64::try_from(entries.len()).unwrap_or(u64::MAX),
                    ReindexMode::Mend => self.store.remove_stray_entries(&entries, tell).await?,
                };
                *found.entry(org).or_default() += count;
            }
            let Some(last) = last else { return Ok(found) };
            after = last;
        }
    }

    /// The event that tells of a part of the index that was made anew.
    fn reindexed(&self, org: OrgId, count: u64, details: &Value) -> NewEvent {
        let mut event = self.event(EventType::AuditReindexed, org, target_of("audit_log", org));
        event.count = Some(count);
        event.detached = event.detached.keep("reindex", Some(details.clone()), &*self.random);
        row_of(&event)
    }
}
