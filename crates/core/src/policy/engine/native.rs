//! Evaluation inside the policy library: several times faster, by an interface that the library
//! does not promise to keep. Its version is pinned together with the library's.

use std::sync::LazyLock;

use cedar_policy::{Entities, Request};
use cedar_policy_core::{
    ast::{self, Expr, ExprKind, Literal, Name, PartialValue, SlotEnv, Value, ValueKind},
    entities::{NoEntitiesSchema, TCComputation},
    evaluator::Evaluator as Interpreter,
    extensions::Extensions,
};

use super::{
    Evaluator, Key, Plain, RuleResults, Situation, Slice, Unbuildable, World, evaluator::why,
    slice::SliceEntry, value::decimal,
};

/// The evaluator inside the policy library.
#[derive(Debug, Clone, Copy)]
pub struct Core;

impl Evaluator for Core {
    fn situation(&self, world: World<'_>, context: Plain<'_>) -> Result<Situation, Unbuildable> {
        let Value { value: ValueKind::Record(context), .. } = value(context)? else {
            return Err(Unbuildable);
        };
        let request = ast::Request::new_unchecked(
            world.principal.entry.clone(),
            world.action.entry.clone(),
            world.resource.entry.clone(),
            Some(ast::Context::Value(context)),
        );
        let entities: &cedar_policy_core::entities::Entities = world.entities.as_ref();
        let entities = entities.clone().add_entities(
            [std::sync::Arc::clone(world.entity)],
            None::<&NoEntitiesSchema>,
            TCComputation::AssumeAlreadyComputed,
            Extensions::all_available(),
        );
        let entities = Entities::from(entities.map_err(|_| Unbuildable)?);
        Ok(Situation { request: Request::from(request), entities })
    }

    fn evaluate(&self, slice: &Slice, keys: &[Key], situation: &Situation) -> RuleResults {
        let insight = Insight::into(situation);
        let mut found = RuleResults::default();
        for SliceEntry { number, condition } in slice.entries(keys) {
            match condition.as_ref().map_or(Ok(true), |condition| insight.holds(condition)) {
                Ok(true) => found.satisfied.push(*number),
                Ok(false) => {}
                Err(why) => found.errored.push((*number, why)),
            }
        }
        found.sorted()
    }
}

/// A situation in which single expressions can be evaluated.
pub(crate) struct Insight<'a> {
    interpreter: Interpreter<'a>,
}

static NO_SLOTS: LazyLock<SlotEnv> = LazyLock::new(SlotEnv::new);

impl<'a> Insight<'a> {
    pub(crate) fn into(situation: &'a Situation) -> Self {
        let request: &ast::Request = situation.request.as_ref();
        let extensions = Extensions::all_available();
        let interpreter =
            Interpreter::new(request.clone(), situation.entities.as_ref(), extensions);
        Self { interpreter }
    }

    /// Evaluates the expression to true or false; fails with an error in fixed words.
    pub(crate) fn holds(&self, expression: &Expr) -> Result<bool, &'static str> {
        let value = self.interpreter.interpret(expression, &NO_SLOTS);
        match value.map_err(|error| why(&error))?.value {
            ValueKind::Lit(Literal::Bool(flag)) => Ok(flag),
            ValueKind::Lit(_)
            | ValueKind::Set(_)
            | ValueKind::Record(_)
            | ValueKind::ExtensionValue(_) => Err("a value is of another type than expected"),
        }
    }
}

/// The conditions that all have to hold, in the order in which they are evaluated.
pub(crate) struct Clauses;

impl Clauses {
    pub(crate) fn of(condition: &Expr) -> Vec<&Expr> {
        let mut open = vec![condition];
        let mut found = Vec::new();
        while let Some(expression) = open.pop() {
            if let ExprKind::And { left, right } = expression.expr_kind() {
                open.extend([&**right, &**left]);
            } else {
                found.push(expression);
            }
        }
        found
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
