//! Counters of each policy in the calls of one org since this node started. They are updated on the
//! path of every call, so without a lock and without copying a name, except the first time that a
//! policy takes part.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use portcullis_core::{call::Ruling, clock::Timestamp, policy::PolicySet};
use serde::Serialize;
use utoipa::ToSchema;

/// The counters of one policy.
#[derive(Debug, Default)]
struct PolicyTally {
    matched: AtomicU64,
    decided: AtomicU64,
    errors: AtomicU64,
    would_flip: AtomicU64,
    last_matched_at: AtomicI64,
}

/// The counters of one policy at a moment, as records show them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct PolicyStats {
    /// The tools it can apply to.
    pub applies_to_tools: usize,
    /// Decisions in which it took part.
    pub matched: u64,
    /// Decisions about calls that name it, as their events do.
    pub decided: u64,
    /// Decisions for which it could not be evaluated.
    pub errors: u64,
    /// Decisions that would have been another if it were active.
    pub would_flip: u64,
    /// When it last took part.
    pub last_matched_at: Option<Timestamp>,
}

type Table = HashMap<Arc<str>, Arc<PolicyTally>>;

/// The counters of one org: of each policy in force that ever had a say in its calls.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    table: ArcSwap<Table>,
    changing: Mutex<()>,
}

impl Tallies {
    /// Forgets the policies that are not in `set`; the others count on.
    pub(crate) fn keep(&self, set: &PolicySet) {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.table.load_full();
        if known.keys().any(|id| set.find(id).is_none()) {
            let kept = known.iter().filter(|(id, _)| set.find(id).is_some());
            let kept = kept.map(|(id, tally)| (Arc::clone(id), Arc::clone(tally)));
            self.table.store(Arc::new(kept.collect()));
        }
    }

    /// Counts one decision, which names `decided` if it decides the call. The set in force is asked for when a
    /// policy is met for the first time.
    pub(crate) fn count(
        &self,
        ruling: &Ruling,
        decided: Option<&str>,
        set: impl FnOnce() -> Arc<PolicySet>,
        now: Timestamp,
    ) {
        let mut table = self.table.load_full();
        if policies_of(ruling).any(|id| !table.contains_key(id)) {
            self.begin(policies_of(ruling), &set());
            table = self.table.load_full();
        }
        let add = |id: &str, counter: fn(&PolicyTally) -> &AtomicU64| {
            if let Some(tally) = table.get(id) {
                counter(tally).fetch_add(1, Ordering::Relaxed);
            }
        };
        for id in &ruling.determining {
            if let Some(tally) = table.get(id.as_str()) {
                tally.matched.fetch_add(1, Ordering::Relaxed);
                tally.last_matched_at.fetch_max(now.as_micros(), Ordering::Relaxed);
            }
        }
        if let Some(id) = decided {
            add(id, |tally| &tally.decided);
        }
        for id in ruling.flipped_by() {
            add(id, |tally| &tally.would_flip);
        }
        for error in &ruling.errors {
            add(&error.policy, |tally| &tally.errors);
        }
    }

    /// Counts a denial by a policy beside which no other was asked.
    pub(crate) fn count_outright(
        &self,
        id: &str,
        set: impl FnOnce() -> Arc<PolicySet>,
        now: Timestamp,
    ) {
        if !self.table.load().contains_key(id) {
            self.begin(std::iter::once(id), &set());
        }
        if let Some(tally) = self.table.load().get(id) {
            tally.matched.fetch_add(1, Ordering::Relaxed);
            tally.decided.fetch_add(1, Ordering::Relaxed);
            tally.last_matched_at.fetch_max(now.as_micros(), Ordering::Relaxed);
        }
    }

    /// Takes a decision back that another one replaced.
    pub(crate) fn replaced(&self, id: &str) {
        if let Some(tally) = self.table.load().get(id) {
            let one_less = |count: u64| count.checked_sub(1);
            let _ = tally.decided.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        }
    }

    /// Makes counters for the policies among `ids` that are in force.
    fn begin<'a>(&self, ids: impl Iterator<Item = &'a str>, set: &PolicySet) {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.table.load_full();
        let fresh = ids.filter(|id| !known.contains_key(*id)).filter_map(|id| set.find(id));
        let fresh: Vec<_> = fresh.map(|record| Arc::clone(&record.id)).collect();
        if !fresh.is_empty() {
            let mut table = Table::clone(&known);
            table.extend(fresh.into_iter().map(|id| (id, Arc::default())));
            self.table.store(Arc::new(table));
        }
    }

    /// Counters of a policy.
    pub(crate) fn of(&self, id: &str) -> PolicyStats {
        let table = self.table.load();
        let Some(tally) = table.get(id) else { return PolicyStats::default() };
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let last = tally.last_matched_at.load(Ordering::Relaxed);
        PolicyStats {
            applies_to_tools: 0,
            matched: read(&tally.matched),
            decided: read(&tally.decided),
            errors: read(&tally.errors),
            would_flip: read(&tally.would_flip),
            last_matched_at: (last > 0).then(|| Timestamp::from_micros(last)),
        }
    }
}

/// Every policy that a decision names.
fn policies_of(ruling: &Ruling) -> impl Iterator<Item = &str> {
    let errors = ruling.errors.iter().map(|error| &*error.policy);
    let others = ruling.determining.iter().map(String::as_str);
    std::iter::once(&*ruling.policy).chain(others).chain(ruling.flipped_by()).chain(errors)
}
