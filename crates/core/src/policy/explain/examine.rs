//! A decision with its reasons, also when not all of the call is known.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value, json};

use crate::policy::{
    bind::slot::{Candidate, CandidateGroup},
    call::question::Question,
    decide::{
        decision::{Cause, Decision, Verdict},
        order::{self, Frame},
    },
    engine::{Insight, RuleResults, Situation},
    explain::{
        explanation::{
            Clause, Considered, Explain, Explanation, Indeterminate, Outcome, ReadValue,
        },
        known_context::{KnownContext, parse},
    },
    language::context_paths::TAGS,
    load::compiled::{Compiled, ConditionClause},
    set::{PolicySet, tenancy::OrgView},
    terms::Effect,
    tool::values::Unreadable,
};

impl PolicySet {
    /// Decides `question`, of which `known` is known, and gives the reasons. Names the policies that can concern
    /// `org`; without one, all.
    #[must_use]
    pub fn explain(
        &self,
        question: &Question<'_>,
        known: &KnownContext,
        explain: Explain,
        org: Option<&OrgView>,
    ) -> Explanation {
        self.put(question, |frame| Examination { set: self, frame, known, explain, org }.run())
    }
}

/// Longest value that an explanation shows, in bytes of JSON.
const MAX_VALUE: usize = 1_000;

/// A question before the policies of its tool, and how far their answers are explained.
pub(super) struct Examination<'a> {
    pub(super) set: &'a PolicySet,
    pub(super) frame: Frame<'a>,
    known: &'a KnownContext,
    pub(super) explain: Explain,
    org: Option<&'a OrgView>,
}

/// One candidate with what it said, and the clauses that were reached.
pub(super) struct ExaminedCandidate<'a> {
    number: u32,
    pub(super) candidate: &'a Candidate,
    pub(super) outcome: Outcome,
    pub(super) clauses: Vec<(&'a ConditionClause, Outcome)>,
    missing: Vec<String>,
}

impl ExaminedCandidate<'_> {
    fn policy(&self) -> &Compiled {
        &self.candidate.policy
    }
}

impl<'a> Examination<'a> {
    fn run(&self) -> Explanation {
        let stage = self.frame.stage;
        let decided = order::decide(&self.frame);
        let is_known = |group: &CandidateGroup| self.known.missing(&group.reads).is_empty();
        let is_plain =
            self.explain == Explain::Decision && is_known(&stage.active) && is_known(&stage.shadow);
        // Forbids that do not fit the tool, and what cannot be shown to the policies, decide by themselves.
        let is_answered = !is_plain && self.frame.unfit_denial().is_none();
        let active = is_answered.then(|| self.answers_of(&stage.active).ok()).flatten();
        let shadow = active.as_ref().and_then(|_| self.answers_of(&stage.shadow).ok());
        let (active, shadow) = (active.unwrap_or_default(), shadow.unwrap_or_default());
        let unknown = active.iter().any(|said| said.outcome == Outcome::Unknown);
        let decision = if unknown { self.leaning(&active, decided) } else { decided };
        let candidates = (self.explain >= Explain::Candidates).then(|| {
            let all = active.iter().chain(&shadow).filter(|it| self.names(it.policy()));
            let mut considered: Vec<Considered> = all.map(|said| self.consider(said)).collect();
            considered.sort_by(|a, b| a.policy.cmp(&b.policy));
            considered
        });
        Explanation {
            indeterminate: indeterminate(&active, &decision),
            near_misses: self.near_misses(&decision, &active),
            considered: candidates.as_ref().map(Vec::len),
            candidates,
            decision,
        }
    }

    /// Returns true if the explanation may name the policy.
    pub(super) fn names(&self, policy: &Compiled) -> bool {
        self.org.is_none_or(|org| self.set.can_concern(&policy.id, org))
    }

    /// Answer of every policy of the group whose scope matches.
    fn answers_of(
        &self,
        group: &'a CandidateGroup,
    ) -> Result<Vec<ExaminedCandidate<'a>>, Unreadable> {
        let numbers = group.slice.matching(self.frame.keys);
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let situation = self.frame.situation(group)?;
        let said = numbers.into_iter().filter_map(|number| {
            Some(self.ask(number, self.frame.slot.candidate(number)?, &situation))
        });
        Ok(said.collect())
    }

    /// Clause by clause; the first that does not hold settles the outcome. A clause that reads what
    /// is not known may be anything, an error included, so nothing after it settles anything.
    fn ask(
        &self,
        number: u32,
        candidate: &'a Candidate,
        situation: &Situation,
    ) -> ExaminedCandidate<'a> {
        let insight = Insight::into(situation);
        let mut said = ExaminedCandidate {
            number,
            candidate,
            outcome: Outcome::True,
            clauses: Vec::new(),
            missing: Vec::new(),
        };
        for part in candidate.policy.parts() {
            let missing = self.known.missing(&part.paths);
            let outcome = if missing.is_empty() {
                match insight.holds(&part.expression) {
                    Ok(true) => Outcome::True,
                    Ok(false) => Outcome::False,
                    Err(why) => Outcome::Error(why),
                }
            } else {
                Outcome::Unknown
            };
            said.clauses.push((part, outcome));
            if said.outcome == Outcome::True {
                said.missing.extend(missing);
                said.outcome = outcome;
            }
            if said.outcome != Outcome::True && !self.explain.is_by_clause() {
                break;
            }
        }
        said
    }

    /// The decision when what is unknown is taken as not true.
    fn leaning(&self, active: &[ExaminedCandidate<'_>], decided: Decision) -> Decision {
        let mut answers = RuleResults::default();
        for said in active {
            match said.outcome {
                Outcome::True => answers.satisfied.push(said.number),
                Outcome::Error(why) => answers.errored.push((said.number, why)),
                Outcome::False | Outcome::Unknown => {}
            }
        }
        let mut decision = self.frame.weigh(&answers);
        decision.shadow = decided.shadow;
        decision
    }

    fn consider(&self, said: &ExaminedCandidate<'_>) -> Considered {
        let policy = &said.candidate.policy;
        let clause = |(part, outcome): &(&ConditionClause, Outcome)| Clause {
            clause: part.text.clone(),
            outcome: *outcome,
            values: if self.explain == Explain::Values { self.values(part) } else { Vec::new() },
        };
        let clauses = if self.explain.is_by_clause() {
            said.clauses.iter().map(clause).collect()
        } else {
            Vec::new()
        };
        Considered {
            policy: Arc::clone(&policy.id),
            effect: policy.effect,
            status: policy.annotations.status,
            outcome: said.outcome,
            clauses,
        }
    }

    /// The values at the known paths that a clause reads.
    fn values(&self, part: &ConditionClause) -> Vec<ReadValue> {
        let Frame { slot, question, .. } = &self.frame;
        let context = slot.context(question, &part.paths).map(|context| context.to_json());
        let mut context = context.unwrap_or_else(|_| json!({}));
        if let Value::Object(members) = &mut context {
            members.insert(TAGS.to_owned(), json!(question.principal.identity().claims));
        }
        let missing = self.known.missing(&part.paths);
        let known = part.paths.listing().into_iter().filter(|path| !missing.contains(path));
        let value = |path: String| {
            let names = parse(&path)?;
            let value = names.iter().try_fold(&context, |value, name| value.get(name));
            // Of a record that is only asked for, no member is read.
            if value.is_some_and(|value| value.as_object().is_some_and(Map::is_empty)) {
                return None;
            }
            let value = value.filter(|value| value.to_string().len() <= MAX_VALUE).cloned();
            Some(ReadValue { path, value })
        };
        known.filter_map(value).collect()
    }
}

fn indeterminate(active: &[ExaminedCandidate<'_>], leaning: &Decision) -> Option<Indeterminate> {
    let unknown = |effect: Effect| {
        active
            .iter()
            .filter(move |said| said.outcome == Outcome::Unknown)
            .filter(move |said| said.candidate.policy.effect == effect)
    };
    let could_turn: Vec<&ExaminedCandidate<'_>> = match &leaning.verdict {
        Verdict::Allow { .. } => unknown(Effect::Forbid).collect(),
        Verdict::Deny { cause: Cause::DefaultDeny, .. } => unknown(Effect::Permit).collect(),
        Verdict::Deny { cause: Cause::ExplicitDeny | Cause::PolicyError, .. } => Vec::new(),
    };
    if could_turn.is_empty() {
        return None;
    }
    let missing: BTreeSet<&String> = could_turn.iter().flat_map(|said| &said.missing).collect();
    Some(Indeterminate {
        missing: missing.into_iter().cloned().collect(),
        policies: could_turn.iter().map(|s| Arc::clone(&s.candidate.policy.id)).collect(),
    })
}
