//! Judges recorded calls one by one and adds up what changes.

use std::{collections::HashMap, sync::Arc};

use portcullis_core::{
    audit::RecordedDecision,
    capability::Capability,
    policy::{DLP_DEFAULT, PolicySet, Principal, TOKEN_SCOPES, TOOL_PINNING},
};
use portcullis_store::EventRecord;

use super::{
    compare::{Before, Call, Comparison, compare, recorded},
    recorded::{Core, Detached},
    tally::{ReplayCounts, Tally},
};
use crate::{
    base::long_work::Stop,
    catalogue::CapabilityTable,
    simulation::{Options, decision::SimulatedDecision, sets::Sets},
};

/// A tool of the log.
struct RecordedTool {
    tool: Arc<Capability>,
    /// Both sets have the same policies about it.
    same: bool,
    /// The candidate can ask for approvals of its calls.
    asks: bool,
}

/// A replay: its sets and what it has seen.
pub(super) struct Player {
    sets: Sets,
    tools: Arc<CapabilityTable>,
    org: String,
    known: HashMap<String, Option<RecordedTool>>,
    principals: HashMap<String, Arc<Principal>>,
    tally: Tally,
    sample: Option<f64>,
    late: bool,
    reached: Option<i64>,
}

impl Player {
    pub(super) fn new(
        sets: Sets,
        tools: Arc<CapabilityTable>,
        org: String,
        options: &Options,
        sample: Option<f64>,
    ) -> Self {
        Self {
            sets,
            tools,
            org,
            known: HashMap::new(),
            principals: HashMap::new(),
            tally: Tally::new(options),
            sample,
            late: false,
            reached: None,
        }
    }

    /// Returns true if the time limit passed before the end.
    pub(super) const fn is_late(&self) -> bool {
        self.late
    }

    /// The place in the log of the last event that was judged.
    pub(super) const fn reached(&self) -> Option<i64> {
        self.reached
    }

    /// Judges these events until it has to stop.
    pub(super) fn judge_all(&mut self, events: &[EventRecord], stop: &Stop) {
        for event in events {
            if stop.is_due() {
                self.late = true;
                return;
            }
            self.reached = event.seal.as_ref().map(|seal| seal.sequence).or(self.reached);
            if self.sample.is_none_or(|share| is_sampled(&event.id.to_string(), share)) {
                self.judge(event);
            }
        }
    }

    fn judge(&mut self, event: &EventRecord) {
        self.tally.summary.scanned += 1;
        self.tally.summary.oldest = self.tally.summary.oldest.or(Some(event.occurred_at));
        self.tally.summary.newest = Some(event.occurred_at);
        let Ok(core) = serde_json::from_str::<Core<'_>>(&event.core) else {
            self.tally.summary.errors += 1;
            return;
        };
        let detached = event.detached.as_deref().unwrap_or("{}");
        let Ok(detached) = serde_json::from_str::<Detached<'_>>(detached) else {
            self.tally.summary.errors += 1;
            return;
        };
        let Some(recorded) = recorded(&core) else {
            self.tally.summary.undecided += 1;
            return;
        };
        let tool = core.tool();
        self.look_up(tool);
        let outcome = self.outcome(event, &core, &detached, recorded, tool);
        self.tally.add(event, &core, tool, outcome);
    }

    fn look_up(&mut self, tool: &str) {
        if self.known.contains_key(tool) {
            return;
        }
        let baseline = self.sets.baseline();
        let same = |tool: &Capability| {
            baseline.is_some_and(|it| self.sets.candidate.is_same_for(it, tool))
        };
        let found = self.tools.get(tool);
        let found = found.map(|(tool, _)| RecordedTool {
            same: same(tool),
            asks: self.sets.candidate.can_ask_for_approvals(tool),
            tool: Arc::clone(tool),
        });
        self.known.insert(tool.to_owned(), found);
    }

    fn outcome(
        &mut self,
        event: &EventRecord,
        core: &Core<'_>,
        detached: &Detached<'_>,
        recorded: SimulatedDecision,
        tool: &str,
    ) -> Comparison {
        // What decided stands outside the policy files.
        let builtin = [DLP_DEFAULT, TOKEN_SCOPES, TOOL_PINNING];
        let outside = recorded.decision == Some(RecordedDecision::Deny)
            && recorded.policy.as_deref().is_some_and(|policy| builtin.contains(&policy));
        if outside {
            self.tally.summary.evaluated += 1;
            return Comparison::unchanged(recorded);
        }
        let known = self.known.get(tool).and_then(Option::as_ref);
        let (Some(known), Some(inputs)) = (known, &detached.decision_inputs) else {
            let missing = if known.is_none() { tool } else { "decision_inputs" };
            return Comparison::untellable(recorded, missing);
        };
        self.tally.summary.evaluated += 1;
        let same_set = core.governance.as_ref().and_then(|it| it.policy_set.as_deref())
            == self.sets.baseline().map(PolicySet::version);
        if known.same && same_set && !known.asks {
            return Comparison::unchanged(recorded);
        }
        let key = format!(
            "{} {} {}",
            core.actor.id.as_deref().unwrap_or_default(),
            core.actor.via.as_deref().unwrap_or_default(),
            inputs.principal.map_or("", |raw| raw.get()),
        );
        let org = &self.org;
        let principal = self
            .principals
            .entry(key)
            .or_insert_with(|| Arc::new(Principal::new(inputs.identity(&core.actor, org))));
        let call = Call::new(event, core, (detached, inputs), principal, &known.tool);
        let before = self.sets.baseline().map(|set| call.decide(set));
        if let Some(before) = before.as_ref().filter(|before| before.unknown.is_none()) {
            let differs = before.judged.decision != recorded.decision;
            self.tally.summary.drift += usize::from(differs);
        }
        let after = match &before {
            Some(before) if known.same => before.clone(),
            Some(_) | None => call.decide(&self.sets.candidate),
        };
        let before = match before {
            Some(before) if before.unknown.is_none() || !same_set => {
                Before::Asked(Box::new(before))
            }
            Some(_) | None => Before::Recorded(recorded),
        };
        compare(&self.sets, before, after)
    }

    /// The counts and groups as they are answered.
    pub(super) fn tallied(self, complete: bool) -> ReplayCounts {
        self.tally.tallied(complete, self.sample)
    }
}

/// Returns true if an event belongs to the sample: always the same ones (FNV-1a of the id).
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share between 0 and 1 of a million is a number below a million"
)]
fn is_sampled(id: &str, share: f64) -> bool {
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash % 1_000_000 < (share * 1_000_000.0) as u64
}
