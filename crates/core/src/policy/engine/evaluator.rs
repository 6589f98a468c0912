//! The seam between the index and what evaluates.

use std::sync::Arc;

use cedar_policy::{Entities, Entity, EntityUid, EvaluationError, Request};
use cedar_policy_core::ast;

use super::{Key, Plain, Slice};

/// Says what rules mean for a request.
pub trait Evaluator: Send + Sync {
    /// Puts a request together. Fails when a value cannot be represented.
    fn situation(&self, world: World<'_>, context: Plain<'_>) -> Result<Situation, Unbuildable>;

    /// Evaluates the rules of `slice` that the principal's `keys` pick.
    fn evaluate(&self, slice: &Slice, keys: &[Key], situation: &Situation) -> RuleResults;
}

/// One of the entities a request names, ready to be put into requests.
#[derive(Debug, Clone)]
pub struct Party {
    pub(super) uid: EntityUid,
    pub(super) entry: ast::EntityUIDEntry,
}

impl Party {
    /// Makes the entity ready.
    #[must_use]
    pub fn new(uid: EntityUid) -> Self {
        let entry = ast::EntityUIDEntry::from(ast::EntityUID::from(uid.clone()));
        Self { uid, entry }
    }

    /// The entity.
    #[must_use]
    pub const fn uid(&self) -> &EntityUid {
        &self.uid
    }
}

/// Entities of a request, and the facts about them.
#[derive(Debug, Clone, Copy)]
pub struct World<'a> {
    pub principal: &'a Party,
    pub action: &'a Party,
    pub resource: &'a Party,
    /// The principal with its attributes; its parents are all its ancestors.
    pub entity: &'a Arc<ast::Entity>,
    /// Everything else that is known.
    pub entities: &'a Entities,
}

impl World<'_> {
    pub(super) fn principal_entity(&self) -> Entity {
        Entity::from(ast::Entity::clone(self.entity))
    }
}

/// A request that can be evaluated.
#[derive(Debug)]
pub struct Situation {
    /// Principal, action, resource and context.
    pub request: Request,
    /// Entities of the request with their attributes.
    pub entities: Entities,
}

/// A value cannot be represented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a value cannot be represented")]
pub struct Unbuildable;

/// Numbers of the rules that are true, and of those that could not be evaluated; each in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleResults {
    pub satisfied: Vec<u32>,
    /// Rules that failed, each with the reason in fixed words.
    pub errored: Vec<(u32, &'static str)>,
}

impl RuleResults {
    pub(super) fn sorted(mut self) -> Self {
        self.satisfied.sort_unstable();
        self.errored.sort_unstable();
        self
    }
}

/// Fixed texts: the library's own quote values.
pub(super) fn why(error: &EvaluationError) -> &'static str {
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
