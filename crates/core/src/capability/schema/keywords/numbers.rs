//! Bounds of numbers and `multipleOf`, exactly and in time linear in the text of a number.

use std::cmp::Ordering;

use jsonschema::{Keyword, ValidationError};
use serde_json::Value;

use super::{Compiled, check};
use crate::{
    capability::schema::{
        instance::{Instance, Metered},
        length,
        meter::spend,
    },
    json::number::{self, Divisor},
};

/// The kind of bound on a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Bound {
    Minimum,
    ExclusiveMinimum,
    Maximum,
    ExclusiveMaximum,
}

impl Bound {
    /// The keywords, by name.
    pub(in super::super) const ALL: [(&'static str, Self); 4] = [
        ("minimum", Self::Minimum),
        ("exclusiveMinimum", Self::ExclusiveMinimum),
        ("maximum", Self::Maximum),
        ("exclusiveMaximum", Self::ExclusiveMaximum),
    ];

    const fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Minimum => order.is_ge(),
            Self::ExclusiveMinimum => order.is_gt(),
            Self::Maximum => order.is_le(),
            Self::ExclusiveMaximum => order.is_lt(),
        }
    }

    const fn broken(self) -> &'static str {
        match self {
            Self::Minimum => "less than the minimum",
            Self::ExclusiveMinimum => "less than or equal to the minimum",
            Self::Maximum => "greater than the maximum",
            Self::ExclusiveMaximum => "greater than or equal to the maximum",
        }
    }
}

/// A test of numbers; other values pass it.
struct Numeric<T> {
    holds: T,
    message: String,
}

impl<T: Fn(&str) -> bool> Numeric<T> {
    fn accepts(&self, instance: Instance<'_>) -> bool {
        let Some(literal) = instance.0.number() else { return true };
        spend(1 + length(literal) / 8) && (self.holds)(literal)
    }
}

impl<'i, T: Fn(&str) -> bool + Send + Sync> Keyword<'i, Metered> for Numeric<T> {
    fn validate(&self, instance: Instance<'i>) -> Result<(), ValidationError<'i>> {
        check(self.accepts(instance), instance, &self.message)
    }

    fn is_valid(&self, instance: Instance<'i>) -> bool {
        self.accepts(instance)
    }
}

/// A bound; `None` unless it is a number.
pub(in super::super) fn bounded(bound: Bound, limit: &Value) -> Option<Compiled> {
    let limit = limit.as_number()?.as_str().to_owned();
    let message = format!("the value is {} of {limit}", bound.broken());
    let holds = move |literal: &str| bound.holds(number::compare(literal, &limit));
    Some(Box::new(Numeric { holds, message }))
}

/// `multipleOf`; `None` unless it is a number of at most 18 digits.
pub(in super::super) fn multiple_of(divisor: &Value) -> Option<Compiled> {
    let message = format!("the value is not a multiple of {divisor}");
    let divisor = Divisor::of(divisor.as_number()?.as_str())?;
    Some(Box::new(Numeric { holds: move |literal: &str| divisor.divides(literal), message }))
}
