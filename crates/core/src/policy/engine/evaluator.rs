//! Evaluation of rules, by the evaluator inside the policy library. That is several times faster than its
//! authorizer, by an interface that it does not promise to keep: the version is pinned, and tests and the Cedar
//! corpus compare the two.

use std::sync::{Arc, LazyLock};

use cedar_policy::{Entities, EntityUid, EvaluationError, Request};
use cedar_policy_core::{
    ast::{self, Expr, Literal, Name, PartialValue, SlotEnv, Value, ValueKind},
    entities::{NoEntitiesSchema, TCComputation},
    evaluator::Evaluator,
    extensions::Extensions,
};

use super::{Key, Plain, Slice, slice::SliceEntry, value::decimal};

/// One of the entities a request names, ready to be put into requests.
#[derive(Debug, Clone)]
pub struct RequestEntity {
    uid: EntityUid,
    entry: ast::EntityUIDEntry,
}

impl RequestEntity {
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

impl Situation {
    /// Puts a request of a principal, an action and a resource together. `entity` is the principal with its
    /// attributes and all its ancestors as parents, `entities` is everything else that is known. Fails when a
    /// value cannot be represented.
    pub fn new(
        [principal, action, resource]: [&RequestEntity; 3],
        entity: &Arc<ast::Entity>,
        entities: &Entities,
        context: Plain<'_>,
    ) -> Result<Self, Unbuildable> {
        let Value { value: ValueKind::Record(context), .. } = value(context)? else {
            return Err(Unbuildable);
        };
        let request = ast::Request::new_unchecked(
            principal.entry.clone(),
            action.entry.clone(),
            resource.entry.clone(),
            Some(ast::Context::Value(context)),
        );
        let entities: &cedar_policy_core::entities::Entities = entities.as_ref();
        let entities = entities.clone().add_entities(
            [Arc::clone(entity)],
            None::<&NoEntitiesSchema>,
            TCComputation::AssumeAlreadyComputed,
            Extensions::all_available(),
        );
        let entities = Entities::from(entities.map_err(|_| Unbuildable)?);
        Ok(Self { request: Request::from(request), entities })
    }
}

/// Numbers of the rules that are true, and of those that could not be evaluated; each in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleResults {
    pub satisfied: Vec<u32>,
    /// Rules that failed, each with the reason in fixed words.
    pub errored: Vec<(u32, &'static str)>,
}

impl Slice {
    /// Evaluates the rules that the principal's `keys` pick.
    #[must_use]
    pub fn evaluate(&self, keys: &[Key], situation: &Situation) -> RuleResults {
        let insight = Insight::into(situation);
        let mut found = RuleResults::default();
        for SliceEntry { number, condition } in self.entries(keys) {
            match condition.as_ref().map_or(Ok(true), |condition| insight.holds(condition)) {
                Ok(true) => found.satisfied.push(*number),
                Ok(false) => {}
                Err(why) => found.errored.push((*number, why)),
            }
        }
        found.satisfied.sort_unstable();
        found.errored.sort_unstable();
        found
    }
}

/// A situation in which single expressions can be evaluated.
pub(crate) struct Insight<'a> {
    evaluator: Evaluator<'a>,
}

static NO_SLOTS: LazyLock<SlotEnv> = LazyLock::new(SlotEnv::new);

impl<'a> Insight<'a> {
    pub(crate) fn into(situation: &'a Situation) -> Self {
        let request: &ast::Request = situation.request.as_ref();
        let extensions = Extensions::all_available();
        let evaluator = Evaluator::new(request.clone(), situation.entities.as_ref(), extensions);
        Self { evaluator }
    }

    /// Evaluates the expression to true or false; fails with an error in fixed words.
    pub(crate) fn holds(&self, expression: &Expr) -> Result<bool, &'static str> {
        let value = self.evaluator.interpret(expression, &NO_SLOTS);
        match value.map_err(|error| why(&error))?.value {
            ValueKind::Lit(Literal::Bool(flag)) => Ok(flag),
            ValueKind::Lit(_)
            | ValueKind::Set(_)
            | ValueKind::Record(_)
            | ValueKind::ExtensionValue(_) => Err("a value is of another type than expected"),
        }
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

fn value(plain: Plain<'_>) -> Result<Value, Unbuildable> {
    Ok(match plain {
        Plain::Text(text) => Value::from(&*text),
        Plain::Long(number) => Value::from(number),
        Plain::Bool(flag) => Value::from(flag),
        Plain::Decimal(scaled) => construct(&NAMES.decimal, &decimal(scaled))?,
        Plain::Time(text) => construct(&NAMES.datetime, &text)?,
        Plain::Ip(ip) => construct(&NAMES.ip, &ip.to_string())?,
        Plain::Set(items) => {
            let items: Result<Vec<Value>, _> = items.into_iter().map(value).collect();
            Value::set(items?, None)
        }
        Plain::Record(members) => {
            let members: Result<Vec<(String, Value)>, _> = members
                .into_iter()
                .map(|(name, member)| Ok((name.into_owned(), value(member)?)))
                .collect();
            Value::record(members?, None)
        }
    })
}

/// The functions that make a value of text.
struct ConstructorNames {
    decimal: Name,
    datetime: Name,
    ip: Name,
}

static NAMES: LazyLock<ConstructorNames> = LazyLock::new(|| ConstructorNames {
    decimal: name("decimal"),
    datetime: name("datetime"),
    ip: name("ip"),
});

#[expect(clippy::expect_used, reason = "only the constants above come here")]
fn name(text: &str) -> Name {
    text.parse().expect("a function name")
}

fn construct(function: &Name, text: &str) -> Result<Value, Unbuildable> {
    let function = Extensions::all_available().func(function).map_err(|_| Unbuildable)?;
    match function.call(&[Value::from(text)]) {
        Ok(PartialValue::Value(value)) => Ok(value),
        Ok(PartialValue::Residual(_)) | Err(_) => Err(Unbuildable),
    }
}
