//! Keywords of which the validator's own implementation takes more than linear time: `enum` and `const`
//! compare with every value there is, bounds and `multipleOf` calculate with as many digits as an
//! exponent stands for, and `pattern` may take time for each letter and state.

mod numbers;

pub(super) use self::numbers::{Bound, bounded, multiple_of};

use std::{collections::HashSet, fmt::Write as _, sync::Arc};

use jsonschema::{Keyword, ValidationError};
use serde_json::Value;

use super::{
    instance::{Instance, Metered},
    meter::spend,
    patterns::Pattern,
};
use crate::json;

/// Values of an `enum` that its message names.
const NAMED: usize = 3;

/// A keyword as the validator takes it.
pub(super) type Compiled = Box<dyn for<'i> Keyword<'i, Metered>>;

/// `enum` and `const`: all values that are allowed.
struct AllowedValues {
    texts: HashSet<String>,
    /// Bytes of the longest of the texts.
    longest: usize,
    /// Normal forms of the values that are no texts.
    forms: HashSet<String>,
    message: String,
}

/// `enum`; `None` unless it is a list.
pub(super) fn one_of(values: &Value) -> Option<Compiled> {
    let values = values.as_array()?;
    let mut message = "the value is not one of ".to_owned();
    // All of them, or two and the number of the others.
    let named = if values.len() > NAMED { NAMED - 1 } else { values.len() };
    for (index, value) in values.iter().take(named).enumerate() {
        let before = match index {
            0 => "",
            last if last + 1 == values.len() => " or ",
            _ => ", ",
        };
        // Writing to a string cannot fail.
        let _ = write!(message, "{before}{value}");
    }
    if named < values.len() {
        let _ = write!(message, " or {} other candidates", values.len() - named);
    }
    Some(Box::new(AllowedValues::new(values, message)))
}

/// `const`.
pub(super) fn exactly(value: &Value) -> Compiled {
    Box::new(AllowedValues::new(std::slice::from_ref(value), format!("{value} was expected")))
}

impl AllowedValues {
    fn new(values: &[Value], message: String) -> Self {
        let texts = values.iter().filter_map(Value::as_str);
        let longest = texts.clone().map(str::len).max().unwrap_or(0);
        let texts = texts.map(str::to_owned).collect();
        let forms = values.iter().filter(|value| !value.is_string()).map(json::normal).collect();
        Self { texts, longest, forms, message }
    }

    fn contains(&self, instance: Instance<'_>) -> bool {
        match instance.text() {
            Some(text) if text.len() > self.longest => false,
            Some(text) => instance.spend_whole() && self.texts.contains(text),
            None => instance.normal().is_some_and(|form| self.forms.contains(&form)),
        }
    }
}

impl<'i> Keyword<'i, Metered> for AllowedValues {
    fn validate(&self, instance: Instance<'i>) -> Result<(), ValidationError<'i>> {
        check(self.contains(instance), instance, &self.message)
    }

    fn is_valid(&self, instance: Instance<'i>) -> bool {
        self.contains(instance)
    }
}

/// The validator copies the value of an error that is not its own, so that takes steps as well.
fn check<'i>(
    is_valid: bool,
    instance: Instance<'i>,
    message: &str,
) -> Result<(), ValidationError<'i>> {
    if is_valid || !instance.spend_whole() {
        return Ok(());
    }
    Err(ValidationError::custom(message))
}

/// `pattern`.
struct Matching {
    pattern: Arc<Pattern>,
    message: String,
}

/// `pattern`, compiled before.
pub(super) fn matching(text: &str, pattern: Arc<Pattern>) -> Compiled {
    Box::new(Matching { pattern, message: format!("the value does not match \"{text}\"") })
}

impl Matching {
    fn holds(&self, instance: Instance<'_>) -> bool {
        let Some(text) = instance.text() else { return true };
        spend(self.pattern.cost(text)) && self.pattern.is_match(text)
    }
}

impl<'i> Keyword<'i, Metered> for Matching {
    fn validate(&self, instance: Instance<'i>) -> Result<(), ValidationError<'i>> {
        check(self.holds(instance), instance, &self.message)
    }

    fn is_valid(&self, instance: Instance<'i>) -> bool {
        self.holds(instance)
    }
}
