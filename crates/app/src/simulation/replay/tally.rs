//! Adds up what replayed calls come to.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use portcullis_core::{clock::Timestamp, id::EventId};
use portcullis_store::EventRecord;

use super::{
    approvals::{Approvals, ApprovalsReport},
    compare::Comparison,
    recorded::Core,
    report::{ChangedByPolicy, ReplayChange, ReplaySummary, ReplayedPrincipal},
};
use crate::simulation::{
    Options,
    decision::{SimulatedChange, SimulatedDecision},
};

/// The most kinds of changes that are told apart, and examples of each.
const MAX_GROUPS: usize = 10_000;
const MAX_EXAMPLES: usize = 5;

/// The counts and groups of a replay, as they are answered.
pub(super) struct ReplayCounts {
    pub(super) summary: ReplaySummary,
    pub(super) approvals: ApprovalsReport,
    pub(super) by_policy: Vec<ChangedByPolicy>,
    pub(super) changes: Vec<ReplayChange>,
    pub(super) changes_left_off: usize,
}

/// Properties that changes have in common which are put together.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct ChangeGroup {
    change: SimulatedChange,
    principal: String,
    tool: String,
    before: SimulatedDecision,
    after: SimulatedDecision,
    missing: Vec<String>,
    /// Set when like changes are not to be put together.
    event: Option<EventId>,
}

/// State of a replay: counts and groups of changes.
pub(super) struct Tally {
    pub(super) summary: ReplaySummary,
    groups: HashMap<ChangeGroup, ReplayChange>,
    by_policy: BTreeMap<Arc<str>, ChangedByPolicy>,
    approvals: Approvals,
    grouped: bool,
    changed_only: bool,
    max_changes: usize,
}

impl Tally {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            summary: ReplaySummary::default(),
            groups: HashMap::new(),
            by_policy: BTreeMap::new(),
            approvals: Approvals::default(),
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
        mut comparison: Comparison,
    ) {
        self.approvals.count(event, std::mem::take(&mut comparison.approvals));
        let change = comparison.change;
        let summary = &mut self.summary;
        let (counter, is_change) = match change {
            SimulatedChange::None => (&mut summary.unchanged, false),
            SimulatedChange::NewlyDenied => (&mut summary.newly_denied, true),
            SimulatedChange::NewlyAllowed => (&mut summary.newly_allowed, true),
            SimulatedChange::PolicyChanged => (&mut summary.policy_changed, true),
            SimulatedChange::ObligationsChanged => (&mut summary.obligations_changed, true),
            SimulatedChange::MaybeDenied => (&mut summary.maybe_denied, false),
            SimulatedChange::MaybeAllowed => (&mut summary.maybe_allowed, false),
            SimulatedChange::Indeterminate => (&mut summary.indeterminate, false),
        };
        *counter += 1;
        summary.changed += usize::from(is_change);
        self.blame(&comparison);
        if change == SimulatedChange::None && self.changed_only {
            return;
        }
        let group = ChangeGroup {
            change,
            principal: core.actor.id.as_deref().unwrap_or_default().to_owned(),
            tool: tool.to_owned(),
            before: comparison.before,
            after: comparison.after,
            missing: comparison.missing,
            event: (!self.grouped).then_some(event.id),
        };
        self.collect(group, event.id, event.occurred_at);
    }

    fn collect(&mut self, group: ChangeGroup, event: EventId, at: Timestamp) {
        let full = self.groups.len() >= MAX_GROUPS;
        match self.groups.get_mut(&group) {
            Some(seen) => {
                seen.count += 1;
                seen.last_at = at;
                if seen.example_event_ids.len() < MAX_EXAMPLES {
                    seen.example_event_ids.push(event);
                }
            }
            None if full => {}
            None => {
                let first = group.clone();
                let seen = ReplayChange {
                    change: first.change,
                    count: 1,
                    first_at: at,
                    last_at: at,
                    principal: ReplayedPrincipal::recorded(first.principal),
                    tool: first.tool,
                    baseline: first.before,
                    candidate: first.after,
                    missing: first.missing,
                    example_event_ids: vec![event],
                };
                self.groups.insert(group, seen);
            }
        }
    }

    fn blame(&mut self, comparison: &Comparison) {
        let Some(policy) = &comparison.after.policy else { return };
        let (denied, allowed) = match comparison.change {
            SimulatedChange::NewlyDenied => (1, 0),
            SimulatedChange::NewlyAllowed => (0, 1),
            SimulatedChange::None
            | SimulatedChange::PolicyChanged
            | SimulatedChange::ObligationsChanged
            | SimulatedChange::MaybeDenied
            | SimulatedChange::MaybeAllowed
            | SimulatedChange::Indeterminate => return,
        };
        let none =
            || ChangedByPolicy { policy: Arc::clone(policy), newly_denied: 0, newly_allowed: 0 };
        let so_far = self.by_policy.entry(Arc::clone(policy)).or_insert_with(none);
        so_far.newly_denied += denied;
        so_far.newly_allowed += allowed;
    }

    /// The counts and groups as they are answered; `share` of the calls was replayed.
    pub(super) fn tallied(mut self, complete: bool, share: Option<f64>) -> ReplayCounts {
        self.summary.complete = complete;
        let mut groups: Vec<(ChangeGroup, ReplayChange)> = self.groups.into_iter().collect();
        // The most frequent first; equals in an order that does not depend on hashing.
        groups.sort_by(|(a, seen_a), (b, seen_b)| {
            seen_b.count.cmp(&seen_a.count).then_with(|| a.cmp(b))
        });
        let changes_left_off = groups.len().saturating_sub(self.max_changes);
        groups.truncate(self.max_changes);
        let span = self.summary.oldest.zip(self.summary.newest);
        ReplayCounts {
            summary: self.summary,
            approvals: self.approvals.report(span, share),
            by_policy: self.by_policy.into_values().collect(),
            changes: groups.into_iter().map(|(_, seen)| seen).collect(),
            changes_left_off,
        }
    }
}
