//! A decision with its reasons, also when not all of the call is known.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value, json};

use crate::policy::{
    bind::slot::{Candidate, CandidateGroup},
    call::question::Question,
    decide::{
        decision::{Cause, Decision, Verdict},
        order::{self, Answers, Frame},
    },
    engine::{Insight, Situation},
    explain::{
        known_context::{KnownContext, parse},
        outcome::{Clause, Considered, Examined, Explain, Indeterminate, Outcome, ReadValue},
    },
    language::context_paths::TAGS,
    load::compiled::ConditionClause,
    set::PolicySet,
    terms::Effect,
};

impl PolicySet {
    /// Decides `question`, of which `known` is known, and gives the reasons.
    #[must_use]
    pub fn examine(
        &self,
        question: &Question<'_>,
        known: &KnownContext,
        explain: Explain,
    ) -> Examined {
        self.put(question, |frame| {
            let covered = known.is_everything()
                || known.missing(&frame.stage.active.reads).is_empty()
                    && known.missing(&frame.stage.shadow.reads).is_empty();
            if covered && explain == Explain::Determining {
                return Examined::of(order::decide(&frame));
            }
            Examination { frame, known, explain }.run()
        })
    }
}

impl Examined {
    fn of(decision: Decision) -> Self {
        Self { decision, indeterminate: None, considered: 0, candidates: Vec::new() }
    }
}

/// Longest value that an explanation shows, in bytes of JSON.
const MAX_VALUE: usize = 1_000;

/// A question before the policies of its tool, and how far their answers are explained.
pub(super) struct Examination<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) known: &'a KnownContext,
    pub(super) explain: Explain,
}

/// One candidate with what it said, and the clauses that were reached.
pub(super) struct ExaminedCandidate<'a> {
    number: u32,
    pub(super) candidate: &'a Candidate,
    pub(super) outcome: Outcome,
    pub(super) clauses: Vec<(&'a ConditionClause, Outcome)>,
    missing: Vec<String>,
}

impl<'a> Examination<'a> {
    fn run(&self) -> Examined {
        let stage = self.frame.stage;
        let decided = order::decide(&self.frame);
        if self.frame.unfit_denial().is_some() {
            return Examined::of(decided);
        }
        // What cannot be shown to the policies decides by itself.
        let Ok(active) = self.answers_of(&stage.active) else { return Examined::of(decided) };
        let shadow = self.answers_of(&stage.shadow).unwrap_or_default();
        let unknown = active.iter().any(|said| said.outcome == Outcome::Unknown);
        let decision = if unknown { self.leaning(&active, decided) } else { decided };
        let indeterminate = indeterminate(&active, &decision);
        let mut examined = Examined {
            indeterminate,
            considered: active.len() + shadow.len(),
            ..Examined::of(decision)
        };
        if self.explain != Explain::Determining {
            let all = active.iter().chain(&shadow);
            examined.candidates = all.map(|said| self.consider(said)).collect();
            examined.candidates.sort_by(|a, b| a.policy.cmp(&b.policy));
        }
        examined
    }

    /// Answer of every policy of the group whose scope matches.
    pub(super) fn answers_of(
        &self,
        group: &'a CandidateGroup,
    ) -> Result<Vec<ExaminedCandidate<'a>>, crate::policy::tool::values::Unreadable> {
        let numbers = group.slice.matching(self.frame.keys);
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let situation = self.frame.situation(group)?;
        let said = numbers.into_iter().filter_map(|rule| {
            let number = group.member(rule)?;
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
        let mut answers = Answers::default();
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
