//! Everything about one tool that does not change from call to call: which policies can apply to
//! it, in which order they count, and what of a call they read.
//!
//! A policy outside a tool's slot, or outside the lane keys of a principal, has a scope that is
//! false; leaving it out changes neither the decision nor its reasons nor its errors.

use std::{collections::HashMap, sync::LazyLock};

use cedar_policy::{
    AuthorizationError, Authorizer, Entities, EntityUid, EvaluationError, PolicySet, Request,
};

use super::{
    Effect, Phase,
    annotations::Status,
    catalogue::{Catalogue, ToolFacts},
    check::{self, Finding},
    identity::Principal,
    names::names,
    question::{self, Question},
    reads::Paths,
    schema::Shapes,
    scope::{EntityScope, Specificity},
    source::Compiled,
    values::Unreadable,
};
use crate::tool::Tool;

/// The policies of a set, ordered by name; a policy's number is its place here.
#[derive(Debug)]
pub(super) struct Policies {
    all: Vec<Compiled>,
    numbers: HashMap<String, usize>,
}

impl Policies {
    pub(super) fn new(all: Vec<Compiled>) -> Self {
        let number = |(number, policy): (usize, &Compiled)| (policy.id.to_string(), number);
        let numbers = all.iter().enumerate().map(number).collect();
        Self { all, numbers }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Compiled> {
        self.all.iter()
    }

    pub(super) fn get(&self, number: usize) -> Option<&Compiled> {
        self.all.get(number)
    }

    pub(super) fn find(&self, id: &str) -> Option<&Compiled> {
        self.get(*self.numbers.get(id)?)
    }
}

/// A policy that can apply to the tool.
pub(super) struct Candidate {
    pub(super) number: usize,
    pub(super) fit: Specificity,
    pub(super) finding: Finding,
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
    pub(super) facts: ToolFacts,
    pub(super) shapes: Shapes,
    /// Ordered by number.
    pub(super) candidates: Vec<Candidate>,
    request: Stage,
    response: Stage,
    base: Entities,
}

impl Slot {
    /// Finds the candidates, validates them against the tool and sorts them into lanes.
    pub(super) fn build(policies: &Policies, tool: &Tool) -> Self {
        let (facts, shapes) = (ToolFacts::of(tool), Shapes::of(tool));
        let reserved = tool.id.provider() == Catalogue::RESERVED_PROVIDER;
        let fits = policies.iter().enumerate().filter(|_| !reserved);
        let fits = fits.filter_map(|(number, policy)| {
            policy.scope.fit(&facts).map(|fit| (number, fit, policy))
        });
        let fits: Vec<_> = fits.collect();
        let fitting: Vec<&Compiled> = fits.iter().map(|(_, _, policy)| *policy).collect();
        let findings = check::against_tool(&fitting, &facts, &shapes);
        let candidates = fits.iter().zip(findings);
        let candidates = candidates
            .map(|((number, fit, _), finding)| Candidate { number: *number, fit: *fit, finding })
            .collect();
        let base = Entities::from_entities(facts.entities(), None);
        let mut slot = Self {
            tool_version: tool.version.clone(),
            facts,
            shapes,
            candidates,
            request: Stage::default(),
            response: Stage::default(),
            // Two different entities never collide; without them nothing is permitted.
            base: base.unwrap_or_else(|_| Entities::empty()),
        };
        slot.fill(policies);
        slot
    }

    fn fill(&mut self, policies: &Policies) {
        for candidate in &self.candidates {
            let Some(policy) = policies.get(candidate.number) else { continue };
            let stage = match policy.annotations.phase {
                Phase::Request => &mut self.request,
                Phase::Response => &mut self.response,
            };
            stage.add(candidate, policy);
        }
    }

    pub(super) fn stage(&self, phase: Phase) -> &Stage {
        match phase {
            Phase::Request => &self.request,
            Phase::Response => &self.response,
        }
    }

    /// How closely the policy of this number names the tool.
    pub(super) fn fit(&self, number: usize) -> Specificity {
        let at = self.candidates.binary_search_by_key(&number, |candidate| candidate.number);
        let found = at.ok().and_then(|at| self.candidates.get(at));
        found.map_or(Specificity::Any, |candidate| candidate.fit)
    }

    /// The entities of one question: its principal beside the tool's own.
    pub(super) fn entities(&self, asker: &Principal) -> Result<Entities, Unreadable> {
        let entities = self.base.clone().add_entities([asker.entity.clone()], None);
        entities.map_err(|_| Unreadable::unbuildable("principal"))
    }

    /// The question as the evaluator takes it, with the part of the context that `reads` names.
    pub(super) fn request(
        &self,
        asker: &Principal,
        question: &Question<'_>,
        reads: &Paths,
    ) -> Result<Request, Unreadable> {
        let context = question::context(question, &self.shapes, reads)?;
        let (action, resource) = (self.facts.action.clone(), self.facts.resource.clone());
        let request = Request::new(asker.uid.clone(), action, resource, context, None);
        request.map_err(|_| Unreadable::unbuildable("context"))
    }
}

/// The candidates of one phase.
#[derive(Default)]
pub(super) struct Stage {
    pub(super) permit: Lane,
    pub(super) forbid: Lane,
    /// Forbids with an obligation.
    pub(super) conditional: Lane,
    pub(super) reads: Paths,
    pub(super) shadow_permit: Lane,
    pub(super) shadow_forbid: Lane,
    pub(super) shadow_reads: Paths,
    /// Active forbids that do not validate against the tool any more.
    pub(super) unfit: Vec<usize>,
}

impl Stage {
    fn add(&mut self, candidate: &Candidate, policy: &Compiled) {
        let shadow = match policy.annotations.status {
            Status::Disabled => return,
            Status::Active => false,
            Status::Shadow => true,
        };
        if !candidate.is_valid() {
            if !shadow && policy.effect == Effect::Forbid {
                self.unfit.push(candidate.number);
            }
            return;
        }
        let reads = if shadow { &mut self.shadow_reads } else { &mut self.reads };
        reads.merge(&policy.paths);
        let lane = match (policy.effect, shadow) {
            (Effect::Permit, false) => &mut self.permit,
            (Effect::Forbid, false) if policy.annotations.redact.is_some() => &mut self.conditional,
            (Effect::Forbid, false) => &mut self.forbid,
            (Effect::Permit, true) => &mut self.shadow_permit,
            (Effect::Forbid, true) => &mut self.shadow_forbid,
        };
        lane.add(policy);
    }

    /// Whether no active policy has to be evaluated.
    pub(super) fn is_empty(&self) -> bool {
        self.permit.is_empty() && self.forbid.is_empty() && self.conditional.is_empty()
    }

    /// Whether no policy, neither active nor shadow nor unfit, has to be looked at.
    pub(super) fn has_nothing_to_say(&self) -> bool {
        self.is_empty() && self.has_no_shadow() && self.unfit.is_empty()
    }

    /// Whether no shadow policy has to be evaluated.
    pub(super) fn has_no_shadow(&self) -> bool {
        self.shadow_permit.is_empty() && self.shadow_forbid.is_empty()
    }
}

/// Policies of one effect, by what their scope asks of the principal.
#[derive(Default)]
pub(super) struct Lane {
    any: Option<PolicySet>,
    users: Option<PolicySet>,
    services: Option<PolicySet>,
    entities: HashMap<EntityUid, PolicySet>,
}

/// Which policies of a lane are true, and which could not be evaluated, by number.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) satisfied: Vec<usize>,
    pub(super) errored: Vec<(usize, &'static str)>,
}

static AUTHORIZER: LazyLock<Authorizer> = LazyLock::new(Authorizer::new);

impl Lane {
    fn is_empty(&self) -> bool {
        let by_type = [&self.any, &self.users, &self.services];
        self.entities.is_empty() && by_type.into_iter().all(Option::is_none)
    }

    fn add(&mut self, policy: &Compiled) {
        let set = match &policy.scope.principal {
            EntityScope::Any => self.any.get_or_insert_default(),
            EntityScope::Eq(uid) | EntityScope::In(uid) | EntityScope::IsIn(_, uid) => {
                self.entities.entry(uid.clone()).or_default()
            }
            EntityScope::Is(kind) if *kind == names().user => self.users.get_or_insert_default(),
            EntityScope::Is(kind) if *kind == names().service => {
                self.services.get_or_insert_default()
            }
            // No principal is of another type.
            EntityScope::Is(_) => return,
        };
        // Names are unique in a set, which is the only reason to refuse a static policy.
        let added = set.add(policy.cedar.clone());
        debug_assert!(added.is_ok(), "policy names are unique");
    }

    /// Evaluates the policies whose scope can match this principal.
    pub(super) fn evaluate(
        &self,
        policies: &Policies,
        asker: &Principal,
        request: &Request,
        entities: &Entities,
    ) -> Found {
        let typed = if *asker.kind == names().user { &self.users } else { &self.services };
        let fixed = [self.any.as_ref(), typed.as_ref()].into_iter().flatten();
        let named = asker.entities.iter().filter_map(|entity| self.entities.get(entity));
        let mut found = Found::default();
        for set in fixed.chain(named) {
            let response = AUTHORIZER.is_authorized(request, set, entities);
            let reasons = response.diagnostics().reason();
            let number = |id: &str| policies.numbers.get(id).copied();
            found.satisfied.extend(reasons.filter_map(|id| number(id.as_ref())));
            for error in response.diagnostics().errors() {
                let AuthorizationError::PolicyEvaluationError(error) = error;
                let text = why(error.inner());
                found.errored.extend(number(error.policy_id().as_ref()).map(|at| (at, text)));
            }
        }
        found
    }
}

/// Fixed texts: the library's own quote values.
fn why(error: &EvaluationError) -> &'static str {
    match error {
        EvaluationError::EntityDoesNotExist(_) => "it reads an entity that is not there",
        EvaluationError::EntityAttrDoesNotExist(_) => {
            "it reads an attribute or tag that is not there"
        }
        EvaluationError::RecordAttrDoesNotExist(_) => "it reads a member that is not there",
        EvaluationError::TypeError(_) => "a value is of another type than expected",
        EvaluationError::IntegerOverflow(_) => "a number became too large",
        EvaluationError::FailedExtensionFunctionExecution(_) => {
            "a function could not use its argument"
        }
        EvaluationError::RecursionLimit(_) => "it is nested too deeply",
        EvaluationError::FailedExtensionFunctionLookup(_)
        | EvaluationError::WrongNumArguments(_)
        | EvaluationError::UnlinkedSlot(_)
        | EvaluationError::NonValue(_) => "it is not a policy that can be evaluated",
    }
}
