//! Everything about one tool that does not change from call to call: which policies can apply to
//! it, in which order they count, and what of a call they read.
//!
//! A slot does not know its set: two sets whose policies about a tool are the same share its slot.

use std::{collections::HashMap, sync::Arc};

use cedar_policy::Entities;

use super::{
    Effect, Phase,
    annotations::Status,
    catalogue::{Catalogue, ToolFacts},
    check::{self, Finding},
    engine::{Closeness, Evaluator, Keys, Party, Plain, Situation, Slice, World},
    facts::Declared,
    identity::Principal,
    policies::Policies,
    question::{self, Question},
    reads::Paths,
    schema::Shapes,
    source::Compiled,
    values::Unreadable,
};
use crate::tool::Tool;

/// A policy that can apply to the tool.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) policy: Arc<Compiled>,
    pub(super) fit: Closeness,
    pub(super) finding: Arc<Finding>,
}

impl Candidate {
    /// Whether it may be evaluated for this tool.
    pub(super) fn is_valid(&self) -> bool {
        self.finding.problems.is_empty()
    }
}

/// One tool and the policies that can apply to it.
pub(super) struct Slot {
    pub(super) tool_version: String,
    labels: Vec<String>,
    pub(super) shapes: Shapes,
    /// Ordered by name.
    pub(super) candidates: Vec<Candidate>,
    /// What the policies read, in either phase and whatever their status.
    pub(super) reads: Paths,
    pub(super) listing: Arc<[String]>,
    request: Stage,
    response: Stage,
    action: Party,
    resource: Party,
    base: Entities,
}

impl Slot {
    /// Finds the candidates, validates them against the tool and sorts them into lanes. What `was`
    /// known about the same tool is taken over; when all of it is the same, `was` itself is given.
    pub(super) fn build(
        policies: &Policies,
        declared: &Declared,
        tool: &Tool,
        was: Option<&Arc<Self>>,
        keys: &mut Keys,
    ) -> Arc<Self> {
        let labels = declared.labels_of(&tool.id);
        let computed = declared.facts_of(&tool.id);
        let was = was.filter(|slot| {
            slot.tool_version == tool.version
                && slot.labels == labels
                && slot.shapes.facts == computed
        });
        let facts = ToolFacts::of(tool, &labels);
        let reserved = tool.id.provider() == Catalogue::RESERVED_PROVIDER;
        let fitting = if reserved { Vec::new() } else { policies.fitting(&facts.place) };
        if let Some(same) = was.filter(|slot| slot.has_the_same(&fitting)) {
            return Arc::clone(same);
        }
        let shapes = Shapes::of(tool, computed);
        let candidates = candidates(fitting, &facts, &shapes, was.map(|slot| &**slot));
        let stage = |phase, keys: &mut Keys| Stage::of(&candidates, phase, keys);
        let (request, response) = (stage(Phase::Request, keys), stage(Phase::Response, keys));
        let mut reads = Paths::default();
        for candidate in &candidates {
            reads.merge(&candidate.policy.paths);
        }
        Arc::new(Self {
            listing: reads.listing().into(),
            reads,
            labels: labels.into_iter().map(str::to_owned).collect(),
            tool_version: tool.version.clone(),
            base: facts.entities(),
            action: Party::new(facts.place.action.uid),
            resource: Party::new(facts.place.resource.uid),
            shapes,
            candidates,
            request,
            response,
        })
    }

    fn has_the_same(&self, fitting: &[(Arc<Compiled>, Closeness)]) -> bool {
        let pairs = self.candidates.iter().zip(fitting);
        self.candidates.len() == fitting.len()
            && pairs.into_iter().all(|(known, (new, _))| Arc::ptr_eq(&known.policy, new))
    }

    pub(super) fn stage(&self, phase: Phase) -> &Stage {
        match phase {
            Phase::Request => &self.request,
            Phase::Response => &self.response,
        }
    }

    /// The candidate of this name.
    pub(super) fn find(&self, id: &str) -> Option<&Candidate> {
        let at = self.candidates.binary_search_by(|one| (*one.policy.id).cmp(id)).ok()?;
        self.candidates.get(at)
    }

    pub(super) fn candidate(&self, number: u32) -> Option<&Candidate> {
        self.candidates.get(usize::try_from(number).ok()?)
    }

    /// The question as `evaluator` takes it, with the part of the context that `reads` names.
    pub(super) fn situation(
        &self,
        evaluator: &dyn Evaluator,
        principal: &Principal,
        context: Plain<'_>,
    ) -> Result<Situation, Unreadable> {
        let world = World {
            principal: &principal.party,
            action: &self.action,
            resource: &self.resource,
            entity: &principal.entity,
            entities: &self.base,
        };
        evaluator.situation(world, context).map_err(|_| Unreadable::unbuildable("context"))
    }

    /// The part of the context that `reads` names.
    pub(super) fn context<'a>(
        &'a self,
        question: &'a Question<'_>,
        reads: &'a Paths,
    ) -> Result<Plain<'a>, Unreadable> {
        question::context(question, &self.shapes, reads)
    }
}

/// Validates those that were not validated against the same tool before.
fn candidates(
    fitting: Vec<(Arc<Compiled>, Closeness)>,
    facts: &ToolFacts,
    shapes: &Shapes,
    was: Option<&Slot>,
) -> Vec<Candidate> {
    let known: HashMap<*const Compiled, &Arc<Finding>> = was
        .into_iter()
        .flat_map(|slot| &slot.candidates)
        .map(|candidate| (Arc::as_ptr(&candidate.policy), &candidate.finding))
        .collect();
    let is_new = |policy: &Arc<Compiled>| !known.contains_key(&Arc::as_ptr(policy));
    let new: Vec<&Compiled> =
        fitting.iter().map(|(policy, _)| policy).filter(|p| is_new(p)).map(|p| &**p).collect();
    let mut findings = check::against_tool(&new, facts, shapes).into_iter().map(Arc::new);
    let candidate = |(policy, fit): (Arc<Compiled>, Closeness)| {
        let finding = match known.get(&Arc::as_ptr(&policy)) {
            Some(finding) => Arc::clone(finding),
            None => findings.next().unwrap_or_default(),
        };
        Candidate { policy, fit, finding }
    };
    fitting.into_iter().map(candidate).collect()
}

/// The candidates of one phase.
#[derive(Debug, Default)]
pub(super) struct Stage {
    pub(super) active: Bench,
    pub(super) shadow: Bench,
    /// Active forbids that do not validate against the tool any more, as candidates.
    pub(super) unfit: Vec<u32>,
}

impl Stage {
    fn of(candidates: &[Candidate], phase: Phase, keys: &mut Keys) -> Self {
        let in_phase = (0..).zip(candidates);
        let in_phase = in_phase.filter(|(_, one)| one.policy.annotations.phase == phase);
        let (mut active, mut shadow, mut unfit) = (Vec::new(), Vec::new(), Vec::new());
        for (number, candidate) in in_phase {
            match (candidate.policy.annotations.status, candidate.is_valid()) {
                (Status::Active, true) => active.push(number),
                (Status::Active, false) if candidate.policy.effect == Effect::Forbid => {
                    unfit.push(number);
                }
                (Status::Shadow, true) => shadow.push(number),
                (Status::Active | Status::Shadow, false) | (Status::Disabled, _) => {}
            }
        }
        let bench = |members, keys: &mut Keys| Bench::of(candidates, members, keys);
        Self { active: bench(active, keys), shadow: bench(shadow, keys), unfit }
    }

    /// Whether no policy, neither active nor shadow nor unfit, has to be looked at.
    pub(super) fn has_nothing_to_say(&self) -> bool {
        self.active.slice.is_empty() && self.shadow.slice.is_empty() && self.unfit.is_empty()
    }
}

/// Candidates that are evaluated together.
#[derive(Debug, Default)]
pub(super) struct Bench {
    pub(super) slice: Slice,
    /// Which candidate each rule of the slice is.
    members: Vec<u32>,
    pub(super) reads: Paths,
}

impl Bench {
    fn of(candidates: &[Candidate], members: Vec<u32>, keys: &mut Keys) -> Self {
        let mut reads = Paths::default();
        let mut rules = Vec::with_capacity(members.len());
        for number in &members {
            let candidate = usize::try_from(*number).ok().and_then(|at| candidates.get(at));
            let Some(candidate) = candidate else { continue };
            reads.merge(&candidate.policy.paths);
            rules.push(Arc::clone(&candidate.policy.rule));
        }
        Self { slice: Slice::new(rules, keys), members, reads }
    }

    /// The candidate that the rule of this number is.
    pub(super) fn member(&self, rule: u32) -> Option<u32> {
        self.members.get(usize::try_from(rule).ok()?).copied()
    }
}
