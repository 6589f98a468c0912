//! A decision with its reasons, also when not all of the call is known.

use std::{collections::BTreeSet, sync::Arc};

use crate::policy::{
    bind::slot::{Candidate, CandidateGroup},
    call::question::Question,
    decide::{
        decision::{Cause, Decision, Verdict},
        order::{self, Answers, Frame},
    },
    engine::{Insight, Situation},
    explain::{
        known_context::Known,
        outcome::{Clause, Considered, Examined, Explain, Indeterminate, NearMiss, Outcome},
    },
    load::compiled::ConditionClause,
    set::PolicySet,
    terms::{Effect, Status},
};

impl PolicySet {
    /// Decides `question`, of which `known` is known, and gives the reasons.
    #[must_use]
    pub fn examine(&self, question: &Question<'_>, known: &Known, explain: Explain) -> Examined {
        let slot = self.slot(question.tool);
        let keys = question.principal.keys(&self.keys);
        let stage = slot.stage(question.phase);
        let evaluator = self.evaluator;
        let frame = Frame { slot: &slot, stage, question, keys: &keys, evaluator };
        let covered = known.is_everything()
            || known.missing(&stage.active.reads).is_empty()
                && known.missing(&stage.shadow.reads).is_empty();
        if covered && explain == Explain::Determining {
            return Examined::of(order::decide(&frame));
        }
        Examination { frame, known, explain }.run()
    }
}

impl Examined {
    fn of(decision: Decision) -> Self {
        Self {
            decision,
            indeterminate: None,
            considered: 0,
            candidates: Vec::new(),
            near_misses: Vec::new(),
        }
    }
}

struct Examination<'a> {
    frame: Frame<'a>,
    known: &'a Known,
    explain: Explain,
}

/// One candidate with what it said, and the clauses that were reached.
struct Said<'a> {
    number: u32,
    candidate: &'a Candidate,
    outcome: Outcome,
    clauses: Vec<(&'a ConditionClause, Outcome)>,
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
        let near_misses = near_misses(&active, &decision);
        let mut examined = Examined {
            indeterminate,
            considered: active.len() + shadow.len(),
            near_misses,
            ..Examined::of(decision)
        };
        if self.explain != Explain::Determining {
            let all = active.iter().chain(&shadow);
            examined.candidates = all.map(|said| said.shown(self.explain)).collect();
            examined.candidates.sort_by(|a, b| a.policy.cmp(&b.policy));
        }
        examined
    }

    /// Answer of every policy of the group whose scope matches.
    fn answers_of(
        &self,
        group: &'a CandidateGroup,
    ) -> Result<Vec<Said<'a>>, crate::policy::tool::values::Unreadable> {
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
    fn ask(&self, number: u32, candidate: &'a Candidate, situation: &Situation) -> Said<'a> {
        let insight = Insight::into(situation);
        let mut said = Said {
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
            if said.outcome != Outcome::True && self.explain != Explain::Full {
                break;
            }
        }
        said
    }

    /// The decision when what is unknown is taken as not true.
    fn leaning(&self, active: &[Said<'_>], decided: Decision) -> Decision {
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
}

impl Said<'_> {
    fn shown(&self, explain: Explain) -> Considered {
        let policy = &self.candidate.policy;
        let clause = |(part, outcome): &(&ConditionClause, Outcome)| Clause {
            clause: part.text.clone(),
            outcome: *outcome,
        };
        let clauses = match explain {
            Explain::Full => self.clauses.iter().map(clause).collect(),
            Explain::Determining | Explain::Candidates => Vec::new(),
        };
        Considered {
            policy: Arc::clone(&policy.id),
            effect: policy.effect,
            status: policy.annotations.status,
            outcome: self.outcome,
            clauses,
        }
    }
}

fn indeterminate(active: &[Said<'_>], leaning: &Decision) -> Option<Indeterminate> {
    let unknown = |effect: Effect| {
        active
            .iter()
            .filter(move |said| said.outcome == Outcome::Unknown)
            .filter(move |said| said.candidate.policy.effect == effect)
    };
    let could_turn: Vec<&Said<'_>> = match &leaning.verdict {
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

/// Permits that nearly applied, when nothing did.
fn near_misses(active: &[Said<'_>], decision: &Decision) -> Vec<NearMiss> {
    let by_default = matches!(&decision.verdict, Verdict::Deny { cause: Cause::DefaultDeny, .. });
    let permits = active.iter().filter(|said| by_default && permits(said));
    let miss = |said: &Said<'_>| {
        let (part, outcome) = said.clauses.iter().find(|(_, o)| *o != Outcome::True)?;
        Some(NearMiss {
            policy: Arc::clone(&said.candidate.policy.id),
            clause: part.text.clone(),
            outcome: *outcome,
        })
    };
    permits.filter_map(miss).collect()
}

fn permits(said: &Said<'_>) -> bool {
    let policy = &said.candidate.policy;
    policy.effect == Effect::Permit && policy.annotations.status == Status::Active
}
