//! Adds up what replayed calls come to.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use portcullis_core::clock::Timestamp;
use portcullis_store::EventRecord;
use serde::Serialize;
use serde_json::{Value, json};

use super::{compare::Outcome, recorded::Core};
use crate::calls::simulate::{
    Options,
    report::{Brief, Change},
};

/// The most kinds of changes that are told apart, and examples of each.
const MAX_GROUPS: usize = 10_000;
const MAX_EXAMPLES: usize = 5;

/// Report of a replay.
pub(super) struct Report {
    pub(super) summary: Value,
    pub(super) by_policy: Vec<Value>,
    pub(super) changes: Vec<Value>,
    pub(super) left_off: usize,
}

/// Counts over all events.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Summary {
    pub(super) scanned: usize,
    pub(super) evaluated: usize,
    pub(super) undecided: usize,
    unchanged: usize,
    changed: usize,
    newly_denied: usize,
    newly_allowed: usize,
    policy_changed: usize,
    obligations_changed: usize,
    maybe_denied: usize,
    maybe_allowed: usize,
    indeterminate: usize,
    pub(super) drift: usize,
    pub(super) errors: usize,
    pub(super) oldest: Option<Timestamp>,
    pub(super) newest: Option<Timestamp>,
    complete: bool,
}

/// Changes of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Kind {
    change: Change,
    principal: String,
    tool: String,
    before: Brief,
    after: Brief,
    missing: Vec<String>,
    /// Set when like changes are not to be put together.
    event: Option<String>,
}

#[derive(Debug, Clone)]
struct Seen {
    count: usize,
    first_at: Timestamp,
    last_at: Timestamp,
    examples: Vec<String>,
}

/// State of a replay: counts and groups of changes.
pub(super) struct Tally {
    pub(super) summary: Summary,
    kinds: HashMap<Kind, Seen>,
    by_policy: BTreeMap<Arc<str>, (usize, usize)>,
    grouped: bool,
    changed_only: bool,
    max_changes: usize,
}

impl Tally {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            summary: Summary::default(),
            kinds: HashMap::new(),
            by_policy: BTreeMap::new(),
            grouped: options.group,
            changed_only: options.changed_only,
            max_changes: options.max_changes,
        }
    }

    /// Adds what one event came to.
    pub(super) fn add(
        &mut self,
        event: &EventRecord,
        core: &Core<'_>,
        tool: &str,
        outcome: Outcome,
    ) {
        let change = outcome.change;
        let summary = &mut self.summary;
        let counter = match change {
            Change::None => &mut summary.unchanged,
            Change::NewlyDenied => &mut summary.newly_denied,
            Change::NewlyAllowed => &mut summary.newly_allowed,
            Change::PolicyChanged => &mut summary.policy_changed,
            Change::ObligationsChanged => &mut summary.obligations_changed,
            Change::MaybeDenied => &mut summary.maybe_denied,
            Change::MaybeAllowed => &mut summary.maybe_allowed,
            Change::Indeterminate => &mut summary.indeterminate,
        };
        *counter += 1;
        let is_change = match change {
            Change::NewlyDenied
            | Change::NewlyAllowed
            | Change::PolicyChanged
            | Change::ObligationsChanged => true,
            Change::None | Change::MaybeDenied | Change::MaybeAllowed | Change::Indeterminate => {
                false
            }
        };
        summary.changed += usize::from(is_change);
        self.blame(&outcome);
        if change == Change::None && self.changed_only {
            return;
        }
        let id = event.id.to_string();
        let kind = Kind {
            change,
            principal: core.actor.id.as_deref().unwrap_or_default().to_owned(),
            tool: tool.to_owned(),
            before: outcome.before,
            after: outcome.after,
            missing: outcome.missing,
            event: (!self.grouped).then(|| id.clone()),
        };
        self.collect(kind, id, event.occurred_at);
    }

    fn collect(&mut self, kind: Kind, event: String, at: Timestamp) {
        let full = self.kinds.len() >= MAX_GROUPS;
        match self.kinds.get_mut(&kind) {
            Some(seen) => {
                seen.count += 1;
                seen.last_at = at;
                if seen.examples.len() < MAX_EXAMPLES {
                    seen.examples.push(event);
                }
            }
            None if full => {}
            None => {
                let seen = Seen { count: 1, first_at: at, last_at: at, examples: vec![event] };
                self.kinds.insert(kind, seen);
            }
        }
    }

    fn blame(&mut self, outcome: &Outcome) {
        let Some(policy) = &outcome.after.policy else { return };
        let counts = match outcome.change {
            Change::NewlyDenied => (1, 0),
            Change::NewlyAllowed => (0, 1),
            Change::None
            | Change::PolicyChanged
            | Change::ObligationsChanged
            | Change::MaybeDenied
            | Change::MaybeAllowed
            | Change::Indeterminate => return,
        };
        let so_far = self.by_policy.entry(Arc::clone(policy)).or_default();
        *so_far = (so_far.0 + counts.0, so_far.1 + counts.1);
    }

    /// The answer.
    pub(super) fn report(mut self, complete: bool) -> Report {
        self.summary.complete = complete;
        let mut kinds: Vec<(Kind, Seen)> = self.kinds.into_iter().collect();
        // The most frequent first; equals in an order that does not depend on hashing.
        kinds.sort_by(|(a, seen_a), (b, seen_b)| {
            seen_b.count.cmp(&seen_a.count).then_with(|| a.cmp(b))
        });
        let left_off = kinds.len().saturating_sub(self.max_changes);
        kinds.truncate(self.max_changes);
        let by_policy = self.by_policy.iter().map(|(policy, (denied, allowed))| {
            json!({ "policy": policy, "newly_denied": denied, "newly_allowed": allowed })
        });
        Report {
            summary: json!(self.summary),
            by_policy: by_policy.collect(),
            changes: kinds.iter().map(|(kind, seen)| told(kind, seen)).collect(),
            left_off,
        }
    }
}

fn told(kind: &Kind, seen: &Seen) -> Value {
    let principal = json!({
        "type": if kind.principal.starts_with("sa_") { "service" } else { "user" },
        "id": kind.principal,
    });
    json!({
        "change": kind.change, "count": seen.count, "first_at": seen.first_at,
        "last_at": seen.last_at, "principal": principal, "tool": kind.tool,
        "baseline": kind.before, "candidate": kind.after, "missing": kind.missing,
        "example_event_ids": seen.examples,
    })
}
