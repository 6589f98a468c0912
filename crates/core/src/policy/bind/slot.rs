//! Everything about one tool that does not change from call to call: which policies can apply to
//! it, in which order they count, and what of a call they read.
//!
//! A slot does not know its set: two sets whose policies about a tool are the same share its slot.

use std::{collections::HashMap, sync::Arc};

use cedar_policy::Entities;

use crate::capability::Capability;
use crate::policy::{
    bind::{
        check::{self, ToolCheck},
        index::Policies,
    },
    call::{
        identity::Principal,
        question::{self, Question},
    },
    engine::{Closeness, Plain, PrincipalKeys, RequestEntity, Situation, Slice},
    language::context_paths::Paths,
    load::compiled::Compiled,
    terms::{Effect, Phase, Status},
    tool::{catalogue::ToolFacts, facts::Declared, schema::Shapes, values::Unreadable},
    watch::Watch,
};

/// A policy that can apply to the tool.
#[derive(Debug, Clone)]
pub(in crate::policy) struct Candidate {
    pub(in crate::policy) policy: Arc<Compiled>,
    pub(in crate::policy) fit: Closeness,
    pub(in crate::policy) finding: Arc<ToolCheck>,
}

impl Candidate {
    /// Returns true if it may be evaluated for this tool.
    pub(in crate::policy) fn is_valid(&self) -> bool {
        self.finding.problems.is_empty()
    }
}

/// One tool and the policies that can apply to it.
pub(in crate::policy) struct Slot {
    pub(in crate::policy) tool_version: String,
    labels: Vec<String>,
    pub(in crate::policy) shapes: Shapes,
    /// Ordered by name.
    pub(in crate::policy) candidates: Vec<Candidate>,
    /// Paths that the policies read, in either phase and whatever their status.
    pub(in crate::policy) reads: Paths,
    pub(in crate::policy) listing: Arc<[String]>,
    request: Stage,
    response: Stage,
    action: RequestEntity,
    resource: RequestEntity,
    base: Entities,
}

impl Slot {
    /// Finds the candidates, validates them against the tool and sorts them into lanes. What `was`
    /// known about the same tool is taken over; when all of it is the same, `was` itself is given.
    pub(in crate::policy) fn build<W: Watch>(
        policies: &Policies,
        declared: &Declared,
        tool: &Capability,
        was: Option<&Arc<Self>>,
        keys: &mut PrincipalKeys,
        watch: &W,
    ) -> Result<Arc<Self>, W::Stop> {
        let labels = declared.labels_of(&tool.id);
        let computed = declared.facts_of(&tool.id);
        let was = was.filter(|slot| {
            slot.tool_version == tool.slot_version()
                && slot.labels == labels
                && slot.shapes.facts == computed
        });
        let facts = ToolFacts::of(tool, &labels);
        let mut fitting = policies.fitting(&facts.place);
        if tool.id.is_unlisted() {
            // A policy permits them only if it says so.
            fitting.retain(|(policy, _)| {
                policy.effect == Effect::Forbid || reads_listed(&policy.paths)
            });
        }
        if let Some(same) = was.filter(|slot| slot.has_the_same(&fitting)) {
            return Ok(Arc::clone(same));
        }
        let shapes = Shapes::of(tool, computed);
        let candidates = candidates(fitting, &facts, &shapes, was.map(|slot| &**slot), watch)?;
        let stage = |phase, keys: &mut PrincipalKeys| Stage::of(&candidates, phase, keys);
        let request = stage(Phase::Request, keys);
        let response = stage(Phase::Response, keys);
        let mut reads = Paths::default();
        for candidate in &candidates {
            reads.merge(&candidate.policy.paths);
        }
        Ok(Arc::new(Self {
            listing: reads.listing().into(),
            reads,
            labels: labels.into_iter().map(str::to_owned).collect(),
            tool_version: tool.slot_version().to_owned(),
            base: facts.entities(),
            action: RequestEntity::new(facts.place.action.uid),
            resource: RequestEntity::new(facts.place.resource.uid),
            shapes,
            candidates,
            request,
            response,
        }))
    }

    fn has_the_same(&self, fitting: &[(Arc<Compiled>, Closeness)]) -> bool {
        let pairs = self.candidates.iter().zip(fitting);
        self.candidates.len() == fitting.len()
            && pairs.into_iter().all(|(known, (new, _))| Arc::ptr_eq(&known.policy, new))
    }

    pub(in crate::policy) fn stage(&self, phase: Phase) -> &Stage {
        match phase {
            Phase::Request => &self.request,
            Phase::Response => &self.response,
        }
    }

    /// The candidate of this name.
    pub(in crate::policy) fn find(&self, id: &str) -> Option<&Candidate> {
        let at = self.candidates.binary_search_by(|one| (*one.policy.id).cmp(id)).ok()?;
        self.candidates.get(at)
    }

    pub(in crate::policy) fn candidate(&self, number: u32) -> Option<&Candidate> {
        self.candidates.get(usize::try_from(number).ok()?)
    }

    /// The question as it is evaluated, with this part of the context.
    pub(in crate::policy) fn situation(
        &self,
        principal: &Principal,
        context: Plain<'_>,
    ) -> Result<Situation, Unreadable> {
        let parties = [&principal.party, &self.action, &self.resource];
        Situation::new(parties, &principal.entity, &self.base, context)
            .map_err(|_| Unreadable::unbuildable("context"))
    }

    /// The part of the context that `reads` names.
    pub(in crate::policy) fn context<'a>(
        &'a self,
        question: &'a Question<'_>,
        reads: &'a Paths,
    ) -> Result<Plain<'a>, Unreadable> {
        question::context(question, &self.shapes, reads)
    }
}

/// True for a policy that reads whether a resource is listed.
pub(in crate::policy) fn reads_listed(paths: &Paths) -> bool {
    paths.member("resource").is_some_and(|resource| resource.member("listed").is_some())
}

/// Validates those that were not validated against the same tool before.
fn candidates<W: Watch>(
    fitting: Vec<(Arc<Compiled>, Closeness)>,
    facts: &ToolFacts,
    shapes: &Shapes,
    was: Option<&Slot>,
    watch: &W,
) -> Result<Vec<Candidate>, W::Stop> {
    let known: HashMap<*const Compiled, &Arc<ToolCheck>> = was
        .into_iter()
        .flat_map(|slot| &slot.candidates)
        .map(|candidate| (Arc::as_ptr(&candidate.policy), &candidate.finding))
        .collect();
    let is_new = |policy: &Arc<Compiled>| !known.contains_key(&Arc::as_ptr(policy));
    let new: Vec<&Compiled> =
        fitting.iter().map(|(policy, _)| policy).filter(|p| is_new(p)).map(|p| &**p).collect();
    let mut findings = check::against_tool(&new, facts, shapes, watch)?.into_iter().map(Arc::new);
    let candidate = |(policy, fit): (Arc<Compiled>, Closeness)| {
        let finding = match known.get(&Arc::as_ptr(&policy)) {
            Some(finding) => Arc::clone(finding),
            None => findings.next().unwrap_or_default(),
        };
        Candidate { policy, fit, finding }
    };
    Ok(fitting.into_iter().map(candidate).collect())
}

/// The candidates of one phase.
#[derive(Debug, Default)]
pub(in crate::policy) struct Stage {
    pub(in crate::policy) active: CandidateGroup,
    pub(in crate::policy) shadow: CandidateGroup,
    /// Active forbids that do not validate against the tool any more, as candidates.
    pub(in crate::policy) unfit: Vec<u32>,
}

impl Stage {
    fn of(candidates: &[Candidate], phase: Phase, keys: &mut PrincipalKeys) -> Self {
        let in_phase = (0..).zip(candidates);
        let in_phase = in_phase.filter(|(_, one)| one.policy.annotations.phase == phase);
        let mut active = Vec::new();
        let mut shadow = Vec::new();
        let mut unfit = Vec::new();
        for (number, candidate) in in_phase {
            match (candidate.policy.annotations.status, candidate.is_valid()) {
                (Status::Active, true) => active.push((number, candidate)),
                (Status::Active, false) if candidate.policy.effect == Effect::Forbid => {
                    unfit.push(number);
                }
                (Status::Shadow, true) => shadow.push((number, candidate)),
                (Status::Active | Status::Shadow, false) | (Status::Disabled, _) => {}
            }
        }
        let [active, shadow] = [active, shadow].map(|group| CandidateGroup::of(&group, keys));
        Self { active, shadow, unfit }
    }

    /// Returns true if no policy, neither active nor shadow nor unfit, has to be looked at.
    pub(in crate::policy) fn has_nothing_to_say(&self) -> bool {
        self.active.slice.is_empty() && self.shadow.slice.is_empty() && self.unfit.is_empty()
    }
}

/// Candidates that are evaluated together.
#[derive(Debug, Default)]
pub(in crate::policy) struct CandidateGroup {
    /// Rules by the numbers of their candidates.
    pub(in crate::policy) slice: Slice,
    pub(in crate::policy) reads: Paths,
}

impl CandidateGroup {
    fn of(members: &[(u32, &Candidate)], keys: &mut PrincipalKeys) -> Self {
        let mut reads = Paths::default();
        for (_, candidate) in members {
            reads.merge(&candidate.policy.paths);
        }
        let rules = members.iter().map(|(number, candidate)| (*number, &*candidate.policy.rule));
        Self { slice: Slice::new(rules, keys), reads }
    }
}
