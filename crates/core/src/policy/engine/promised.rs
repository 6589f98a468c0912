//! Evaluation through what the policy library promises to keep: small policy sets, one for each
//! key and effect, and its authorizer.

use std::sync::LazyLock;

use cedar_policy::{
    AuthorizationError, Authorizer, Context, Effect, Request, RestrictedExpression,
};

use super::{
    Evaluator, Key, Plain, RuleResults, Situation, Slice, Unbuildable, World, evaluator::why,
    slice::Buckets, value::decimal,
};

/// The evaluator that needs nothing but the promised interface.
#[derive(Debug, Clone, Copy)]
pub struct Public;

static AUTHORIZER: LazyLock<Authorizer> = LazyLock::new(Authorizer::new);

impl Buckets {
    fn of(slice: &Slice) -> Self {
        let mut buckets = Self::default();
        for (key, numbers) in slice.lanes() {
            for number in numbers {
                let Some(rule) = slice.rule(number) else { continue };
                let forbids = rule.cedar.effect() == Effect::Forbid;
                let set = buckets.sets.entry((key, forbids)).or_default();
                // Names are unique in a set, which is the only reason to refuse a static policy.
                let added = set.add(rule.cedar.clone());
                debug_assert!(added.is_ok(), "policy names are unique");
                buckets.numbers.insert(rule.cedar.id().to_string(), number);
            }
        }
        buckets
    }

    fn number(&self, id: &str) -> Option<u32> {
        self.numbers.get(id).copied()
    }
}

impl Evaluator for Public {
    fn situation(&self, world: World<'_>, context: Plain<'_>) -> Result<Situation, Unbuildable> {
        let Plain::Record(members) = context else { return Err(Unbuildable) };
        let context = Context::from_pairs(fields(members)?).map_err(|_| Unbuildable)?;
        let [principal, action, resource] =
            [world.principal, world.action, world.resource].map(|party| party.uid.clone());
        let request = Request::new(principal, action, resource, context, None);
        let entities = world.entities.clone().add_entities([world.principal_entity()], None);
        Ok(Situation {
            request: request.map_err(|_| Unbuildable)?,
            entities: entities.map_err(|_| Unbuildable)?,
        })
    }

    fn evaluate(&self, slice: &Slice, keys: &[Key], situation: &Situation) -> RuleResults {
        let buckets = slice.buckets.get_or_init(|| Buckets::of(slice));
        let lanes = keys.iter().flat_map(|key| [(*key, false), (*key, true)]);
        let mut found = RuleResults::default();
        for set in lanes.filter_map(|lane| buckets.sets.get(&lane)) {
            let response = AUTHORIZER.is_authorized(&situation.request, set, &situation.entities);
            let reasons = response.diagnostics().reason();
            found.satisfied.extend(reasons.filter_map(|id| buckets.number(id.as_ref())));
            for error in response.diagnostics().errors() {
                let AuthorizationError::PolicyEvaluationError(error) = error;
                let number = buckets.number(error.policy_id().as_ref());
                found.errored.extend(number.map(|number| (number, why(error.inner()))));
            }
        }
        found.sorted()
    }
}

type PromisedFields = Vec<(String, RestrictedExpression)>;

fn fields(
    members: Vec<(std::borrow::Cow<'_, str>, Plain<'_>)>,
) -> Result<PromisedFields, Unbuildable> {
    members.into_iter().map(|(name, value)| Ok((name.into_owned(), expression(value)?))).collect()
}

fn expression(value: Plain<'_>) -> Result<RestrictedExpression, Unbuildable> {
    Ok(match value {
        Plain::Text(text) => RestrictedExpression::new_string(text.into_owned()),
        Plain::Long(number) => RestrictedExpression::new_long(number),
        Plain::Bool(flag) => RestrictedExpression::new_bool(flag),
        Plain::Decimal(scaled) => RestrictedExpression::new_decimal(decimal(scaled)),
        Plain::Time(text) => RestrictedExpression::new_datetime(text),
        Plain::Ip(ip) => RestrictedExpression::new_ip(ip.to_string()),
        Plain::Set(items) => {
            let items: Result<Vec<_>, _> = items.into_iter().map(expression).collect();
            RestrictedExpression::new_set(items?)
        }
        Plain::Record(members) => {
            RestrictedExpression::new_record(fields(members)?).map_err(|_| Unbuildable)?
        }
    })
}
