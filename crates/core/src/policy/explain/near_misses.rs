//! Permits that nearly applied to a call that no permit allows.

use std::sync::Arc;

use cedar_policy::EntityUid;

use crate::policy::{
    bind::slot::Candidate,
    call::identity::Principal,
    decide::decision::{Cause, Decision, Verdict},
    engine::{Closeness, EntityScope, RuleScope},
    explain::{
        examine::{Examination, ExaminedCandidate},
        explanation::{Explain, MissedPart, MissedPermit, NearMiss, Outcome},
    },
    language::entity_types::{HINTS, provider_of},
    load::compiled::Compiled,
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

impl Examination<'_> {
    /// Permits that nearly apply to what is denied by default, by their heads: first those whose head
    /// matches, then those for other principals, then those for other tools.
    pub(super) fn near_misses(
        &self,
        decision: &Decision,
        active: &[ExaminedCandidate<'_>],
    ) -> Vec<NearMiss> {
        let by_default =
            matches!(&decision.verdict, Verdict::Deny { cause: Cause::DefaultDeny, .. });
        if !by_default || self.explain == Explain::Decision {
            return Vec::new();
        }
        let conditions = active.iter().filter_map(failed_condition);
        let misses = conditions.chain(self.other_principals()).chain(self.other_actions());
        let mut misses: Vec<Miss> = misses.filter(|miss| self.names(&miss.policy)).collect();
        misses.sort_by(|a, b| {
            let place = |miss: &Miss| (miss.part, miss.distance);
            place(a).cmp(&place(b)).then_with(|| a.policy.id.cmp(&b.policy.id))
        });
        by_head(misses)
    }

    fn is_for_the_caller(&self, policy: &Compiled) -> bool {
        let Principal { party, entities, .. } = self.frame.question.principal;
        policy.rule.scope.principal.means(party.uid(), entities)
    }

    /// Permits for calls of the tool by other principals.
    fn other_principals(&self) -> impl Iterator<Item = Miss> {
        let permits = self.frame.slot.candidates.iter();
        let permits = permits.filter(|one| one.is_valid() && permits_now(&one.policy));
        permits.filter(|one| !self.is_for_the_caller(&one.policy)).map(
            |Candidate { policy, fit, .. }| {
                Miss::of(policy, MissedPart::Principal, distance(*fit), None)
            },
        )
    }

    /// Permits for the principal that are about other tools: of the same provider or with the same
    /// kind of hint, or of any provider if they name the principal.
    fn other_actions(&self) -> impl Iterator<Item = Miss> {
        let provider = self.frame.question.tool.id.provider();
        self.set.policies.iter().filter_map(move |placed| {
            let policy = &placed.policy;
            let scope = &policy.rule.scope;
            let is_close = is_near(scope, provider);
            let applies = permits_now(policy)
                && self.is_for_the_caller(policy)
                && (is_close || scope.principal != EntityScope::Any)
                && self.frame.slot.find(&policy.id).is_none();
            applies.then(|| Miss::of(policy, MissedPart::Action, u8::from(!is_close), None))
        })
    }
}

/// A permit of which the head matches and a condition does not hold.
fn failed_condition(said: &ExaminedCandidate<'_>) -> Option<Miss> {
    let (part, outcome) = said.clauses.iter().find(|(_, outcome)| *outcome != Outcome::True)?;
    let Candidate { policy, fit, .. } = said.candidate;
    let failed = Some((part.text.clone(), *outcome));
    permits_now(policy).then(|| Miss::of(policy, MissedPart::Condition, distance(*fit), failed))
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

fn permits_now(policy: &Compiled) -> bool {
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
        id == provider || HINTS.contains(&id) || provider_of(id) == Some(provider)
    };
    let (resource, _) = scope.resource.parts();
    scope.action.uids().iter().chain(resource).any(is_of_provider)
}
