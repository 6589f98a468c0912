//! The decision, in its order: a forbid that cannot be evaluated, a forbid that is true, no permit
//! that is true, then the obligations. Shadow policies are evaluated beside it and change nothing.

use std::{cmp::Reverse, sync::Arc};

use crate::policy::{
    bind::slot::{Candidate, CandidateGroup, Slot, Stage},
    call::{identity::Principal, question::Question},
    decide::{
        decision::{
            Cause, Decision, Errored, Notice, Obligation, PolicyRef, Shadow, Verdict, Would,
        },
        verdicts::{
            allow, default_deny, explicit_denial, failed_denial, silence, stated, unfit_denial,
            unreadable_denial,
        },
    },
    engine::{Key, RuleResults, Situation},
    load::{builtins::POLICY_ERROR, compiled::Compiled},
    rate::{Per, Rate},
    terms::{Effect, Phase},
    tool::values::Unreadable,
};

/// Decides one question with the candidates of its tool.
pub(in crate::policy) fn decide(frame: &Frame<'_>) -> Decision {
    if frame.stage.has_nothing_to_say() {
        return silence(frame.question.phase);
    }
    let mut decision = frame.active();
    frame.shadow(&mut decision);
    decision
}

/// A question before the policies of its tool.
pub(in crate::policy) struct Frame<'a> {
    pub(in crate::policy) slot: &'a Slot,
    pub(in crate::policy) stage: &'a Stage,
    pub(in crate::policy) question: &'a Question<'a>,
    pub(in crate::policy) keys: &'a [Key],
}

impl<'a> Frame<'a> {
    fn active(&self) -> Decision {
        if let Some(denial) = self.unfit_denial() {
            return denial;
        }
        match self.answers_of(&self.stage.active) {
            Ok(answers) => self.weigh(&answers),
            Err(unreadable) => unreadable_denial(&unreadable),
        }
    }

    /// The denial by forbids that may apply but do not validate against the tool any more.
    pub(in crate::policy) fn unfit_denial(&self) -> Option<Decision> {
        let Principal { party, entities, .. } = self.question.principal;
        let means = |candidate: &&Candidate| {
            candidate.policy.rule.scope.principal.means(party.uid(), entities)
        };
        let unfit: Vec<&Candidate> =
            self.ranked(self.stage.unfit.iter().copied()).into_iter().filter(means).collect();
        let first = unfit.first()?;
        Some(unfit_denial(&first.policy, &unfit))
    }

    /// Evaluates the policies of a group whose scope matches.
    fn answers_of(&self, group: &CandidateGroup) -> Result<RuleResults, Unreadable> {
        if !group.slice.concerns(self.keys) {
            return Ok(RuleResults::default());
        }
        Ok(group.slice.evaluate(self.keys, &self.situation(group)?))
    }

    pub(in crate::policy) fn situation(
        &self,
        group: &CandidateGroup,
    ) -> Result<Situation, Unreadable> {
        let context = self.slot.context(self.question, &group.reads)?;
        self.slot.situation(self.question.principal, context)
    }

    /// The decision that follows from what the active policies said.
    pub(in crate::policy) fn weigh(&self, answers: &RuleResults) -> Decision {
        let errors = self.errored(&answers.errored);
        let failed = answers.errored.iter().map(|(number, _)| *number);
        let failed: Vec<&Candidate> =
            self.ranked(failed).into_iter().filter(|one| forbids(one)).collect();
        let true_ones = self.ranked(answers.satisfied.iter().copied());
        let (permits, forbidding): (Vec<&Candidate>, Vec<&Candidate>) =
            true_ones.into_iter().partition(|one| one.policy.effect == Effect::Permit);
        let (outright, conditional): (Vec<&Candidate>, Vec<&Candidate>) =
            forbidding.into_iter().partition(|one| one.policy.annotations.obligations.is_empty());
        let decision = if let Some(first) = failed.first() {
            failed_denial(&first.policy, &failed, errors)
        } else if let Some(first) = outright.first() {
            explicit_denial(&first.policy, &outright, errors)
        } else {
            self.allowed(&permits, &conditional, errors)
        };
        let asked = conditional.iter().filter_map(|one| one.policy.annotations.obligations.log);
        Decision { notices: notices(&conditional), capture: asked.min(), ..decision }
    }

    /// Nothing forbids outright.
    fn allowed(
        &self,
        permits: &[&Candidate],
        conditional: &[&Candidate],
        errors: Vec<Errored>,
    ) -> Decision {
        let determining: Vec<&Candidate> = permits.iter().chain(conditional).copied().collect();
        match (self.question.phase, determining.first()) {
            (Phase::Request, _) if permits.is_empty() => default_deny(errors),
            (Phase::Request | Phase::Response, Some(first)) => {
                let asked = conditional.iter();
                let asked = asked.flat_map(|one| obligations(&one.policy, self.question));
                allow(PolicyRef::of(&first.policy), asked.collect(), &determining, errors)
            }
            (Phase::Request | Phase::Response, None) => {
                Decision { errors, ..silence(self.question.phase) }
            }
        }
    }

    /// The candidates of these numbers, the one to report first.
    fn ranked(&self, numbers: impl Iterator<Item = u32>) -> Vec<&'a Candidate> {
        let slot = self.slot;
        let mut found: Vec<&Candidate> = numbers.filter_map(|at| slot.candidate(at)).collect();
        let rank = |one: &Candidate| (Reverse(one.policy.annotations.priority), Reverse(one.fit));
        found.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.policy.id.cmp(&b.policy.id)));
        found
    }

    fn errored(&self, found: &[(u32, &'static str)]) -> Vec<Errored> {
        let named = |(number, why): &(u32, &'static str)| {
            let policy = Arc::clone(&self.slot.candidate(*number)?.policy.id);
            Some(Errored { policy, why })
        };
        let mut errors: Vec<Errored> = found.iter().filter_map(named).collect();
        errors.sort_by(|a, b| a.policy.cmp(&b.policy));
        errors
    }

    pub(in crate::policy) fn shadow(&self, decision: &mut Decision) {
        if self.stage.shadow.slice.is_empty() {
            return;
        }
        let Ok(answers) = self.answers_of(&self.stage.shadow) else {
            let flips = matches!(decision.verdict, Verdict::Allow { .. });
            let policy = POLICY_ERROR.into();
            decision.shadow.push(Shadow { policy, would: Would::Deny, flips });
            return;
        };
        decision.errors.extend(self.errored(&answers.errored));
        let candidate = |number: &u32| self.slot.candidate(*number);
        let failed = answers.errored.iter().filter_map(|(number, _)| candidate(number));
        let failed = failed.filter(|one| forbids(one)).map(|one| (&one.policy, Would::Deny));
        let satisfied = answers.satisfied.iter().filter_map(candidate);
        let said = satisfied.map(|one| (&one.policy, would(&one.policy)));
        for (policy, would) in failed.chain(said) {
            let flips = flips(would, &decision.verdict);
            decision.shadow.push(Shadow { policy: Arc::clone(&policy.id), would, flips });
        }
        decision.shadow.sort_by(|a, b| a.policy.cmp(&b.policy));
    }
}

fn forbids(candidate: &Candidate) -> bool {
    candidate.policy.effect == Effect::Forbid
}

fn would(policy: &Compiled) -> Would {
    match policy.effect {
        Effect::Permit => Would::Allow,
        Effect::Forbid if policy.annotations.obligations.is_empty() => Would::Deny,
        Effect::Forbid => Would::Oblige,
    }
}

fn flips(would: Would, verdict: &Verdict) -> bool {
    match (would, verdict) {
        (Would::Deny, Verdict::Allow { .. }) => true,
        (Would::Allow, Verdict::Deny { cause, .. }) => *cause == Cause::DefaultDeny,
        (Would::Deny, Verdict::Deny { .. })
        | (Would::Allow, Verdict::Allow { .. })
        | (Would::Oblige, _) => false,
    }
}

/// Obligations of the policy, the cheapest to fulfil first.
fn obligations(policy: &Compiled, question: &Question<'_>) -> Vec<Obligation> {
    let asked = &policy.annotations.obligations;
    let rate = asked.rate.map(|rate| Obligation::RateLimit {
        policy: PolicyRef::of(policy),
        key: rate_key(policy, rate, question),
        reason: stated(policy).unwrap_or_else(|| rate.to_string()),
        rate,
    });
    let redact = asked.redact.as_ref().map(|redact| Obligation::Redact {
        policy: PolicyRef::of(policy),
        direction: redact.direction,
        detectors: redact.detectors.clone(),
    });
    let approval = asked.approval.as_ref().map(|terms| Obligation::RequireApproval {
        policy: PolicyRef::of(policy),
        terms: Arc::clone(terms),
        reason: stated(policy).unwrap_or_else(|| "people have to approve this call".to_owned()),
    });
    rate.into_iter().chain(redact).chain(approval).collect()
}

/// Key of the calls that are counted together. The rate is part of it, so that a changed rate
/// begins anew.
fn rate_key(policy: &Compiled, rate: Rate, question: &Question<'_>) -> String {
    let identity = question.principal.identity();
    let whose = match (rate.per, &identity.agent) {
        (Per::Agent, Some(agent)) => &agent.id,
        (Per::Principal, _) | (Per::Agent, None) => &identity.id,
        (Per::Org, _) => "",
        (Per::Tool, _) => question.tool.id.action(),
    };
    let Rate { count, period_s, per } = rate;
    format!("{}\n{count}/{period_s}\n{}\n{}\n{whose}", policy.id, identity.org, per.as_str())
}

fn notices(conditional: &[&Candidate]) -> Vec<Notice> {
    let notice = |candidate: &&Candidate| {
        let channel = candidate.policy.annotations.obligations.notify.clone()?;
        Some(Notice { policy: PolicyRef::of(&candidate.policy), channel })
    };
    conditional.iter().filter_map(notice).collect()
}
