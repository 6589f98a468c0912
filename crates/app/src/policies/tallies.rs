//! What became of each policy since this node runs: counted on the path of every call, so without
//! a lock and without a name being copied.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use portcullis_core::{call::Ruling, clock::Timestamp, policy::PolicySet};
use serde::Serialize;

/// The counters of one policy.
#[derive(Debug, Default)]
struct Tally {
    matched: AtomicU64,
    decided: AtomicU64,
    errors: AtomicU64,
    would_flip: AtomicU64,
    last_matched_at: AtomicI64,
}

/// The counters of one policy at a moment, as records show them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PolicyStats {
    /// Decisions in which it took part.
    pub matched: u64,
    /// Decisions that name it.
    pub decided: u64,
    /// Decisions for which it could not be evaluated.
    pub errors: u64,
    /// Decisions that would have been another if it were active.
    pub would_flip: u64,
    /// When it last took part.
    pub last_matched_at: Option<Timestamp>,
}

type Table = HashMap<Arc<str>, Arc<Tally>>;

/// The counters of every policy in force.
#[derive(Debug, Default)]
pub(crate) struct Tallies(ArcSwap<Table>);

impl Tallies {
    /// Makes counters for the policies of `set`; those of a name that stays count on.
    pub(crate) fn fit(&self, set: &PolicySet) {
        let known = self.0.load();
        let tally = |id: &Arc<str>| known.get(id).map(Arc::clone).unwrap_or_default();
        let table = set.records().iter().map(|record| (Arc::clone(&record.id), tally(&record.id)));
        self.0.store(Arc::new(table.collect()));
    }

    /// Counts one decision.
    pub(crate) fn count(&self, ruling: &Ruling, now: Timestamp) {
        let table = self.0.load();
        let add = |id: &str, counter: fn(&Tally) -> &AtomicU64| {
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
        add(&ruling.policy, |tally| &tally.decided);
        for id in &ruling.shadow {
            add(id, |tally| &tally.would_flip);
        }
        for id in &ruling.errors {
            add(id, |tally| &tally.errors);
        }
    }

    /// What was counted for a policy.
    pub(crate) fn of(&self, id: &str) -> PolicyStats {
        let table = self.0.load();
        let Some(tally) = table.get(id) else { return PolicyStats::default() };
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let last = tally.last_matched_at.load(Ordering::Relaxed);
        PolicyStats {
            matched: read(&tally.matched),
            decided: read(&tally.decided),
            errors: read(&tally.errors),
            would_flip: read(&tally.would_flip),
            last_matched_at: (last > 0).then(|| Timestamp::from_micros(last)),
        }
    }
}
