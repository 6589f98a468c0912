//! Permits that nearly applied to a call that no permit allows.

use std::sync::Arc;

use cedar_policy::EntityUid;

use crate::policy::{
    bind::slot::{Candidate, Slot},
    call::question::Question,
    decide::order::Frame,
    engine::{Closeness, EntityScope, RuleScope},
    explain::{
        examine::{Examination, ExaminedCandidate},
        known_context::KnownContext,
        outcome::{Explain, MissedPart, MissedPermit, NearMiss, Outcome},
    },
    language::entity_types::HINTS,
    load::compiled::Compiled,
    set::PolicySet,
    terms::{Effect, Status},
};

/// Heads that are told.
const MAX_HEADS: usize = 5;
/// Permits that are named for each head.
const MAX_PERMITS: usize = 5;

/// One permit that nearly applied.
struct Miss {
    policy: Arc<Compiled>,
    part: MissedPart,
    /// Distance from the call, among the misses of the same part.
    distance: u8,
    permit: MissedPermit,
}

impl PolicySet {
    /// Permits that nearly apply to `question`, of which `known` is known, by their heads: first
    /// those whose head matches, then those for other principals, then those for other tools. Those
    /// for which `is_shown` is false are left out.
    #[must_use]
    pub fn near_misses(
        &self,
        question: &Question<'_>,
        known: &KnownContext,
        is_shown: &dyn Fn(&str) -> bool,
    ) -> Vec<NearMiss> {
        self.put(question, |frame| {
            let slot = frame.slot;
            let others = other_principals(slot, question);
            let elsewhere = self.other_actions(slot, question);
            let mut misses: Vec<Miss> = others.chain(elsewhere).collect();
            misses.extend(failed_conditions(frame, known));
            misses.retain(|miss| is_shown(&miss.policy.id));
            misses.sort_by(|a, b| {
                let place = |miss: &Miss| (miss.part, miss.distance);
                place(a).cmp(&place(b)).then_with(|| a.policy.id.cmp(&b.policy.id))
            });
            by_head(misses)
        })
    }

    /// Permits for the principal that are about other tools: of the same provider or with the same
    /// kind of hint, or of any provider if they name the principal.
    fn other_actions(&self, slot: &Slot, question: &Question<'_>) -> impl Iterator<Item = Miss> {
        let principal = question.principal;
        let provider = question.tool.id.provider();
        self.policies.iter().filter_map(move |placed| {
            let policy = &placed.policy;
            let scope = &policy.rule.scope;
            let is_close = is_near(scope, provider);
            let is_theirs = scope.principal.means(principal.party.uid(), &principal.entities)
                && (is_close || scope.principal != EntityScope::Any);
            let applies = permits(policy) && is_theirs && slot.find(&policy.id).is_none();
            applies.then(|| Miss::of(policy, MissedPart::Action, u8::from(!is_close), None))
        })
    }
}

/// Permits of which the head matches and a condition does not hold.
fn failed_conditions(frame: Frame<'_>, known: &KnownContext) -> Vec<Miss> {
    let active = &frame.stage.active;
    let examination = Examination { frame, known, explain: Explain::Candidates };
    // What cannot be shown to the policies is no matter of their conditions.
    let Ok(said) = examination.answers_of(active) else { return Vec::new() };
    let miss = |said: &ExaminedCandidate<'_>| {
        let (part, outcome) = said.clauses.iter().find(|(_, o)| *o != Outcome::True)?;
        let Candidate { policy, fit, .. } = said.candidate;
        let failed = Some((part.text.clone(), *outcome));
        permits(policy).then(|| Miss::of(policy, MissedPart::Condition, distance(*fit), failed))
    };
    said.iter().filter_map(miss).collect()
}

/// Permits for calls of the tool by other principals.
fn other_principals(slot: &Slot, question: &Question<'_>) -> impl Iterator<Item = Miss> {
    let principal = question.principal;
    slot.candidates.iter().filter(|one| one.is_valid() && permits(&one.policy)).filter_map(
        move |Candidate { policy, fit, .. }| {
            let scope = &policy.rule.scope.principal;
            let is_theirs = scope.means(principal.party.uid(), &principal.entities);
            let miss = || Miss::of(policy, MissedPart::Principal, distance(*fit), None);
            (!is_theirs).then(miss)
        },
    )
}

impl Miss {
    fn of(
        policy: &Arc<Compiled>,
        part: MissedPart,
        distance: u8,
        failed: Option<(String, Outcome)>,
    ) -> Self {
        let (clause, outcome) = failed.unzip();
        let permit = MissedPermit { policy: Arc::clone(&policy.id), clause, outcome };
        Self { policy: Arc::clone(policy), part, distance, permit }
    }
}

/// The misses in their order, those with the same head together.
fn by_head(misses: Vec<Miss>) -> Vec<NearMiss> {
    let mut heads: Vec<(Arc<Compiled>, NearMiss)> = Vec::new();
    for Miss { policy, part, permit, .. } in misses {
        let scope = &policy.rule.scope;
        let is_same = |(first, near): &(Arc<Compiled>, NearMiss)| {
            near.differs == part && first.rule.scope == *scope
        };
        let known = heads.iter().position(is_same);
        let has_room = heads.len() < MAX_HEADS;
        match known.and_then(|at| heads.get_mut(at)) {
            Some((_, near)) if near.permits.len() < MAX_PERMITS => near.permits.push(permit),
            Some((_, near)) => near.more += 1,
            None if has_room => {
                let near = NearMiss {
                    differs: part,
                    principal: scope.principal.written("principal"),
                    action: scope.action.written(),
                    resource: scope.resource.written("resource"),
                    permits: vec![permit],
                    more: 0,
                };
                heads.push((policy, near));
            }
            None => {}
        }
    }
    heads.into_iter().map(|(_, near)| near).collect()
}

fn permits(policy: &Compiled) -> bool {
    policy.effect == Effect::Permit && policy.annotations.status == Status::Active
}

const fn distance(fit: Closeness) -> u8 {
    match fit {
        Closeness::Itself => 0,
        Closeness::Near => 1,
        Closeness::Far => 2,
    }
}

/// Returns true if a scope names a tool of this provider, the provider, or a hint of tools.
fn is_near(scope: &RuleScope, provider: &str) -> bool {
    let is_of_provider = |uid: &EntityUid| {
        let id = uid.id().unescaped();
        let slug = id.split_once(':').map_or(id, |(slug, _)| slug);
        slug == provider || HINTS.contains(&id)
    };
    let (resource, _) = scope.resource.parts();
    scope.action.uids().iter().chain(resource).any(is_of_provider)
}
