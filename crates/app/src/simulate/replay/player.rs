//! Judges recorded calls one by one and adds up what changes.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use portcullis_core::{
    audit::RecordedDecision,
    clock::Timestamp,
    policy::{
        DLP_DEFAULT, DlpFacts, Explain, Indeterminate, Known, Phase, PolicySet, Principal,
        Question, TOKEN_SCOPES, TOOL_PINNING,
    },
    tool::Tool,
};
use portcullis_store::EventRecord;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::recorded::{Core, Detached, Facts, Inputs};
use crate::{
    simulate::{
        Options, Sets,
        judge::{Judged, heard},
        report::{Brief, Change},
    },
    tools::ToolTable,
};

/// How many events are judged between two looks at the time.
const STRIDE: usize = 128;
/// The most kinds of changes that are told apart, and examples of each.
const MAX_GROUPS: usize = 10_000;
const MAX_EXAMPLES: usize = 5;

/// What became of all events.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Summary {
    scanned: usize,
    evaluated: usize,
    undecided: usize,
    unchanged: usize,
    changed: usize,
    newly_denied: usize,
    newly_allowed: usize,
    policy_changed: usize,
    obligations_changed: usize,
    maybe_denied: usize,
    maybe_allowed: usize,
    indeterminate: usize,
    drift: usize,
    errors: usize,
    oldest: Option<Timestamp>,
    newest: Option<Timestamp>,
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

/// A tool of the log, and whether both sets have the same policies about it.
struct Subject {
    tool: Arc<Tool>,
    same: bool,
}

/// What a replay answers.
pub(super) struct Report {
    pub(super) summary: Value,
    pub(super) by_policy: Vec<Value>,
    pub(super) changes: Vec<Value>,
    pub(super) left_off: usize,
}

/// A replay: its sets and what it has seen.
pub(super) struct Player {
    sets: Sets,
    tools: Arc<ToolTable>,
    org: String,
    known: HashMap<String, Option<Subject>>,
    principals: HashMap<String, Arc<Principal>>,
    summary: Summary,
    kinds: HashMap<Kind, Seen>,
    by_policy: BTreeMap<Arc<str>, (usize, usize)>,
    grouped: bool,
    changed_only: bool,
    max_changes: usize,
    sample: Option<f64>,
    late: bool,
    reached: Option<i64>,
}

/// What one event came to.
struct Outcome {
    change: Change,
    before: Brief,
    after: Brief,
    missing: Vec<String>,
}

impl Player {
    pub(super) fn new(
        sets: Sets,
        tools: Arc<ToolTable>,
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
            summary: Summary::default(),
            kinds: HashMap::new(),
            by_policy: BTreeMap::new(),
            grouped: options.group,
            changed_only: options.changed_only,
            max_changes: options.max_changes,
            sample,
            late: false,
            reached: None,
        }
    }

    /// Whether the time was up before the end.
    pub(super) const fn is_late(&self) -> bool {
        self.late
    }

    /// The place in the log of the last event that was judged.
    pub(super) const fn reached(&self) -> Option<i64> {
        self.reached
    }

    /// Judges these events, as far as the time suffices.
    pub(super) fn judge_all(&mut self, events: &[EventRecord], deadline: Instant) {
        for stride in events.chunks(STRIDE) {
            if Instant::now() > deadline {
                self.late = true;
                return;
            }
            for event in stride {
                self.reached = event.seal.as_ref().map(|seal| seal.sequence).or(self.reached);
                if self.sample.is_none_or(|share| is_sampled(&event.id.to_string(), share)) {
                    self.judge(event);
                }
            }
        }
    }

    fn judge(&mut self, event: &EventRecord) {
        self.summary.scanned += 1;
        self.summary.oldest = self.summary.oldest.or(Some(event.occurred_at));
        self.summary.newest = Some(event.occurred_at);
        let Ok(core) = serde_json::from_str::<Core<'_>>(&event.core) else {
            self.summary.errors += 1;
            return;
        };
        let detached = event.detached.as_deref().unwrap_or("{}");
        let Ok(detached) = serde_json::from_str::<Detached<'_>>(detached) else {
            self.summary.errors += 1;
            return;
        };
        let Some(recorded) = recorded(&core) else {
            self.summary.undecided += 1;
            return;
        };
        let tool = core.target.as_ref().and_then(|target| target.id.as_deref()).unwrap_or_default();
        self.look_up(tool);
        let outcome = self.outcome(event, &core, &detached, recorded, tool);
        self.add(event, &core, tool, outcome);
    }

    fn look_up(&mut self, tool: &str) {
        if self.known.contains_key(tool) {
            return;
        }
        let baseline = self.sets.baseline();
        let same =
            |tool: &Tool| baseline.is_some_and(|it| self.sets.candidate.is_same_for(it, tool));
        let found = self.tools.get(tool);
        let found = found.map(|(tool, _)| Subject { same: same(tool), tool: Arc::clone(tool) });
        self.known.insert(tool.to_owned(), found);
    }

    /// `None` when the decision stays as it is.
    fn outcome(
        &mut self,
        event: &EventRecord,
        core: &Core<'_>,
        detached: &Detached<'_>,
        recorded: Brief,
        tool: &str,
    ) -> Option<Outcome> {
        // What decided stands outside the policy files.
        let builtin = [DLP_DEFAULT, TOKEN_SCOPES, TOOL_PINNING];
        let outside = recorded.decision == Some("deny")
            && recorded.policy.as_deref().is_some_and(|policy| builtin.contains(&policy));
        if outside {
            self.summary.evaluated += 1;
            return None;
        }
        let known = self.known.get(tool).and_then(Option::as_ref);
        let (Some(known), Some(inputs)) = (known, &detached.decision_inputs) else {
            let missing = if known.is_none() { tool } else { "decision_inputs" };
            return Some(untellable(recorded, vec![missing.to_owned()]));
        };
        self.summary.evaluated += 1;
        let same_set = core.governance.as_ref().and_then(|it| it.policy_set.as_deref())
            == self.sets.baseline().map(PolicySet::version);
        if known.same && same_set {
            return None;
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
        let call = Call {
            principal,
            tool: &known.tool,
            time: event.occurred_at,
            detached,
            inputs,
            known: inputs.known(),
            answered: core.outcome.executed == "yes",
        };
        let before = self.sets.baseline().map(|set| call.decide(set));
        if let Some(before) = before.as_ref().filter(|before| before.unknown.is_none()) {
            let said = before.judged.decision.map(RecordedDecision::as_str);
            self.summary.drift += usize::from(said != recorded.decision);
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

    fn add(&mut self, event: &EventRecord, core: &Core<'_>, tool: &str, outcome: Option<Outcome>) {
        let change = outcome.as_ref().map_or(Change::None, |outcome| outcome.change);
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
        let Some(outcome) = outcome else { return };
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

/// What a set says, and what it does not know of the call that could turn it.
#[derive(Clone)]
struct Said {
    judged: Judged,
    unknown: Option<Indeterminate>,
}

/// What a decision is compared with.
enum Before {
    /// What the other set says.
    Asked(Box<Said>),
    /// What was recorded.
    Recorded(Brief),
}

/// One recorded call, ready to be decided again.
struct Call<'a> {
    principal: &'a Principal,
    tool: &'a Tool,
    time: Timestamp,
    detached: &'a Detached<'a>,
    inputs: &'a Inputs<'a>,
    known: Known,
    /// Whether the tool answered, so that response policies were asked.
    answered: bool,
}

impl Call<'_> {
    /// What a set says to it, in both phases.
    fn decide(&self, set: &PolicySet) -> Said {
        let request = self.ask(set, Phase::Request);
        if !self.answered || request.judged.decision != Some(RecordedDecision::Allow) {
            return request;
        }
        let response = self.ask(set, Phase::Response);
        match response.judged.decision {
            Some(RecordedDecision::Deny) => response,
            Some(RecordedDecision::Allow) | None => {
                let Said { judged: mut both, unknown } = request;
                both.obligations.extend(response.judged.obligations);
                Said { judged: both, unknown: unknown.or(response.unknown) }
            }
        }
    }

    fn ask(&self, set: &PolicySet, phase: Phase) -> Said {
        let Self { principal, tool, inputs, .. } = *self;
        let nothing = Value::Object(serde_json::Map::new());
        let names = |facts: &Facts| -> Vec<String> { facts.findings.clone() };
        let (input_names, output_names) =
            (names(&inputs.dlp), inputs.dlp_output.as_ref().map(names).unwrap_or_default());
        let input_refs: Vec<&str> = input_names.iter().map(String::as_str).collect();
        let output_refs: Vec<&str> = output_names.iter().map(String::as_str).collect();
        let empty = Facts::default();
        let output_facts = inputs.dlp_output.as_ref().unwrap_or(&empty);
        let question = Question {
            principal,
            tool,
            input: inputs.input.as_ref().unwrap_or(&nothing),
            // Never computed anew: not all that they are made of is kept.
            facts: Some(inputs.facts.as_ref().unwrap_or(&nothing)),
            phase,
            dlp: facts(&inputs.dlp, &input_refs),
            output: inputs.output.as_ref().filter(|_| phase == Phase::Response),
            dlp_output: (phase == Phase::Response).then(|| facts(output_facts, &output_refs)),
            time: self.time,
            source_ip: self.detached.source_ip,
            bytes: inputs.request.bytes,
            mfa: inputs.request.mfa,
        };
        let examined = set.examine(&question, &self.known, Explain::Determining);
        Said { judged: heard(examined.decision, &[]).0, unknown: examined.indeterminate }
    }
}

fn facts<'a>(facts: &Facts, detectors: &'a [&'a str]) -> DlpFacts<'a> {
    DlpFacts { detectors, count: facts.count, max_severity: facts.max_severity }
}

/// The decision that was recorded, if policies made one.
fn recorded(core: &Core<'_>) -> Option<Brief> {
    let governance = core.governance.as_ref()?;
    let decision = match governance.decision.as_deref()? {
        "allow" => "allow",
        "deny" => "deny",
        _ => return None,
    };
    let policy = governance.policy.as_deref()?;
    if policy == TOKEN_SCOPES {
        return None;
    }
    Some(Brief { decision: Some(decision), cause: None, policy: Some(policy.into()), reason: None })
}

fn untellable(before: Brief, missing: Vec<String>) -> Outcome {
    let after = Brief { decision: None, cause: None, policy: None, reason: None };
    Outcome { change: Change::Indeterminate, before, after, missing }
}

fn compare(sets: &Sets, before: Before, after: Said) -> Option<Outcome> {
    let (change, before, unknown_before) = match before {
        Before::Asked(said) => {
            let Said { judged, unknown } = *said;
            (Change::between(&judged, &after.judged), Brief::of(&judged), unknown)
        }
        Before::Recorded(recorded) => (since(&recorded, &after.judged), recorded, None),
    };
    let turned = |unknown: Option<&Indeterminate>| unknown.is_some_and(|it| could_differ(sets, it));
    let change = match (turned(after.unknown.as_ref()), turned(unknown_before.as_ref())) {
        (false, false) => change,
        (true, false) if before.decision == Some("allow") => Change::MaybeDenied,
        (true, false) => Change::MaybeAllowed,
        (_, true) => Change::Indeterminate,
    };
    if change == Change::None {
        return None;
    }
    let missing = after.unknown.or(unknown_before).map(|unknown| unknown.missing);
    let missing = missing.unwrap_or_default();
    Some(Outcome { change, before, after: Brief::of(&after.judged), missing })
}

/// Whether a policy that cannot be told is another in the two sets: one that is the same in both
/// says the same in both, whatever it says.
fn could_differ(sets: &Sets, unknown: &Indeterminate) -> bool {
    let version =
        |set: &PolicySet, id: &str| set.find(id).and_then(|record| record.version.clone());
    let Some(baseline) = sets.baseline() else { return true };
    unknown.policies.iter().any(|id| version(baseline, id) != version(&sets.candidate, id))
}

/// What became of a recorded decision, of which the obligations are not known.
fn since(recorded: &Brief, after: &Judged) -> Change {
    match (recorded.decision, after.decision.map(RecordedDecision::as_str)) {
        (Some("allow"), Some("deny")) => Change::NewlyDenied,
        (Some("deny"), Some("allow")) => Change::NewlyAllowed,
        _ if recorded.policy != after.policy => Change::PolicyChanged,
        _ => Change::None,
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

/// Whether an event belongs to the sample: always the same ones (FNV-1a of the id).
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
