//! Schemas of tools: which of them are used, and values held against them in linear time.
//!
//! The validator is a library that looks at a value as its schema tells it to, and some schemas tell it
//! to look again and again: `uniqueItems`, `unevaluatedProperties`, alternatives that each begin
//! anew at every level. So the looks are counted ([`meter`]), and a check ends when it has taken
//!
//! - [`FLAT_STEPS`] steps, or
//! - [`STEPS_PER_BYTE`] steps for each byte of the value as JSON, if that is more.
//!
//! A step is a look at one value or name, or at eight bytes of a text; a few of them take a tenth of a
//! microsecond. Plain schemas take one or two for each byte. A value that is not through by then is
//! refused like one that does not fit.

mod growth;
mod instance;
mod keywords;
mod meter;
mod patterns;
mod plain;
mod relaxed;

pub(super) use self::plain::plain;

use std::sync::Arc;

use jsonschema::{Draft, PatternOptions, Retrieve, ValidationError, ValidationOptions, Validator};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use self::{
    growth::Growth,
    instance::{Instance, Metered},
    keywords::Bound,
    meter::Prices,
    patterns::Patterns,
    relaxed::Relaxed,
};
use crate::json::{
    JsonValue, Kind, Node,
    number::{self, Divisor},
};

/// Steps that any check may take.
pub const FLAT_STEPS: u64 = 250_000;
/// Steps that a check may take for each byte of the value.
pub const STEPS_PER_BYTE: u64 = 16;
/// Steps for finding out what is wrong with a value that does not fit.
const EXPLAINING_STEPS: u64 = 250_000;

/// The largest schema that is compiled, in JSON values.
pub const MAX_SCHEMA_NODES: usize = 5_000;
/// The most that the patterns of all tools of one list count for, in bytes.
pub const MAX_LIST_PATTERN_BYTES: usize = 16 << 20;
const MAX_VIOLATIONS: usize = 20;
/// Schemas that follow from one another, as often as the stack of any thread has room for them at each
/// level of the deepest value.
const MANY_STEPS: usize = 16;
/// Bytes of stack for schemas with more steps than that.
const ROOM: usize = 16 << 20;
/// The longest message or path of a violation, in bytes.
const MAX_TEXT: usize = 1_000;

/// A schema cannot be used: with its input schema, the tool stays out of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// Not an object, or its `type` is something else than `object`.
    #[error("the schema is not a schema of an object")]
    NotAnObject,
    #[error("the schema refers to something outside itself")]
    RemoteReference,
    #[error("the schema has more than {MAX_SCHEMA_NODES} values")]
    TooLarge,
    #[error("the schema applies to itself without end, or too often")]
    Unbounded,
    /// A number beyond the range of a double, or a `multipleOf` of more than 18 digits.
    #[error(
        "the schema has a number beyond the range of a double, or a `multipleOf` of more than \
         18 digits"
    )]
    NumberRange,
    #[error(
        "a pattern of the schema is longer than {} KiB, or takes more than {} KiB once compiled",
        patterns::MAX_TEXT >> 10,
        patterns::MAX_STATES >> 10
    )]
    PatternTooLarge,
    #[error("the patterns of the schema take more than {} KiB", patterns::MAX_TOOL >> 10)]
    PatternsTooLarge,
    /// The patterns of the tools listed before it and its own are too large together.
    #[error("the patterns of all tools in the list take more than {} MiB", MAX_LIST_PATTERN_BYTES >> 20)]
    ListPatternsTooLarge,
    #[error("the schema is not a valid JSON Schema")]
    Invalid,
}

/// One place where a request breaks a rule. Never echoes a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Violation {
    /// JSON Pointer to the place.
    pub path: String,
    /// The schema keyword that was broken, if a schema was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyword: Option<String>,
    /// Description of the problem.
    pub message: String,
}

/// A compiled schema.
#[derive(Debug)]
pub(super) struct Schema {
    validator: Validator<Metered>,
    prices: Prices,
    pattern_bytes: usize,
    /// The most schemas that follow from one another at one place of a value.
    steps: usize,
    unenforced: Vec<String>,
}

impl Schema {
    /// Compiles the schema of an object (JSON Schema 2020-12 unless it declares draft-07; no remote
    /// `$ref`). Rejects schemas that cannot be enforced within bounds; patterns that cannot are
    /// left out and named.
    pub(super) fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let object = schema.as_object().ok_or(SchemaError::NotAnObject)?;
        if object.get("type").is_some_and(|kind| kind != "object") {
            return Err(SchemaError::NotAnObject);
        }
        Self::compile_any(schema)
    }

    /// The same for a schema of anything.
    pub(super) fn compile_any(schema: &Value) -> Result<Self, SchemaError> {
        let mut nodes = 0;
        inspect(schema, &mut nodes)?;
        let Relaxed { schema: relaxed, unenforced } = Relaxed::of(schema);
        let schema = relaxed.as_ref().unwrap_or(schema);
        let growth = growth::check(schema).map_err(|growth::Unbounded| SchemaError::Unbounded)?;
        let patterns = Patterns::of(schema)?;
        let prices = prices(growth, &patterns);
        let pattern_bytes = patterns.bytes();
        let draft = match schema.get("$schema").and_then(Value::as_str) {
            Some(uri) if uri.contains("draft-07") => Draft::Draft7,
            _ => Draft::Draft202012,
        };
        let validator = options(draft, patterns).build(schema);
        let validator = validator.map_err(|_| SchemaError::Invalid)?;
        Ok(Self { validator, prices, pattern_bytes, steps: growth.steps, unenforced })
    }

    /// JSON Pointers to the patterns that are not enforced, because they take more than linear time.
    pub(super) fn unenforced(&self) -> &[String] {
        &self.unenforced
    }

    /// Bytes that its patterns count for.
    pub(super) const fn pattern_bytes(&self) -> usize {
        self.pattern_bytes
    }

    /// Violations of the schema by a value: at most 20, none echoing a value. Empty means it fits.
    /// For a large value possibly only the first one is returned.
    pub(super) fn violations(&self, value: Node<'_>) -> Vec<Violation> {
        self.with_room(|| self.violations_in(value))
    }

    /// Returns true if a value fits, and can be found to within the steps that its size allows.
    pub(super) fn accepts(&self, value: Node<'_>) -> bool {
        self.with_room(|| self.fits(value)) == Some(true)
    }

    /// Checks with a stack for it: each step of a schema is one down the stack, at each level of the value.
    fn with_room<T>(&self, check: impl FnOnce() -> T) -> T {
        if self.steps > MANY_STEPS {
            return stacker::maybe_grow(ROOM, 2 * ROOM, check);
        }
        check()
    }

    fn violations_in(&self, value: Node<'_>) -> Vec<Violation> {
        match self.fits(value) {
            Some(true) => Vec::new(),
            Some(false) => self.explained(value),
            None => vec![whole("the value takes too many steps to be checked against the schema")],
        }
    }

    /// Returns true if a value fits; `None` if the check takes more steps than its size allows.
    fn fits(&self, value: Node<'_>) -> Option<bool> {
        let check = || self.validator.is_valid(Instance(value));
        meter::within(FLAT_STEPS, self.prices, check).or_else(|| {
            let steps = STEPS_PER_BYTE.saturating_mul(bytes(value));
            (steps > FLAT_STEPS).then(|| meter::within(steps, self.prices, check))?
        })
    }

    fn explained(&self, value: Node<'_>) -> Vec<Violation> {
        let all = meter::within(EXPLAINING_STEPS, self.prices, || {
            let errors = self.validator.iter_errors(Instance(value)).take(MAX_VIOLATIONS);
            errors.map(|error| violation(&error)).collect()
        });
        let first = || {
            meter::within(EXPLAINING_STEPS, self.prices, || {
                let error = self.validator.validate(Instance(value)).err()?;
                Some(vec![violation(&error)])
            })?
        };
        all.or_else(first).unwrap_or_else(|| vec![whole("the value does not fit the schema")])
    }
}

/// The validator with our own keywords ([`keywords`]).
fn options(
    draft: Draft,
    patterns: Patterns,
) -> ValidationOptions<'static, Arc<dyn Retrieve>, Metered> {
    let for_names = PatternOptions::regex()
        .size_limit(patterns::MAX_STATES)
        .dfa_size_limit(patterns::MAX_STATES);
    let invalid = || ValidationError::schema("not a value that is understood");
    let mut options = jsonschema::options_for::<Metered>()
        .with_draft(draft)
        .with_pattern_options(for_names)
        .with_keyword("enum", move |_, values, _| keywords::one_of(values).ok_or_else(invalid))
        .with_keyword("const", |_, value, _| Ok(keywords::exactly(value)))
        .with_keyword("multipleOf", move |_, divisor, _| {
            keywords::multiple_of(divisor).ok_or_else(invalid)
        })
        .with_keyword("pattern", move |_, text, _| {
            let compiled = text.as_str().and_then(|text| Some((text, patterns.get(text)?)));
            let compiled = compiled.map(|(text, pattern)| keywords::matching(text, pattern));
            compiled.ok_or_else(invalid)
        });
    for (name, bound) in Bound::ALL {
        options = options.with_keyword(name, move |_, limit, _| {
            keywords::bounded(bound, limit).ok_or_else(invalid)
        });
    }
    options
}

fn violation(error: &ValidationError<'_>) -> Violation {
    Violation {
        path: bounded(error.instance_path().to_string()),
        keyword: Some(error.kind().keyword().to_owned()),
        message: bounded(error.masked_with("the value").to_string()),
    }
}

/// A violation of which no place is known.
fn whole(message: &str) -> Violation {
    Violation { path: String::new(), keyword: None, message: message.to_owned() }
}

/// Names of members stand in paths and messages, and may be long.
fn bounded(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        text.push('…');
    }
    text
}

fn prices(growth: Growth, patterns: &Patterns) -> Prices {
    // Sixteen schemas that ask nothing are a step.
    Prices { visit: growth.applied / 16, name: patterns.name_steps() }
}

fn length(text: &str) -> u64 {
    text.len() as u64
}

/// The least bytes that a value takes as JSON.
fn bytes<'a, T: JsonValue<'a>>(value: T) -> u64 {
    match value.kind() {
        Kind::Null | Kind::Bool(_) => 5,
        Kind::Number(literal) => length(literal) + 1,
        Kind::Text(text) => length(text) + 3,
        Kind::Array(items) => 2 + items.map(bytes).sum::<u64>(),
        Kind::Object(members) => {
            2 + members.map(|(name, it)| length(name) + 4 + bytes(it)).sum::<u64>()
        }
    }
}

/// Walks the schema once: counts its values, and refuses numbers out of range and references that
/// leave it.
fn inspect(schema: &Value, nodes: &mut usize) -> Result<(), SchemaError> {
    *nodes += 1;
    if *nodes > MAX_SCHEMA_NODES {
        return Err(SchemaError::TooLarge);
    }
    match schema {
        Value::Object(members) => {
            for name in ["$ref", "$dynamicRef", "$recursiveRef"] {
                let target = members.get(name).and_then(Value::as_str);
                if target.is_some_and(|target| !target.starts_with('#')) {
                    return Err(SchemaError::RemoteReference);
                }
            }
            let divisor = members.get("multipleOf").and_then(Value::as_number);
            if divisor.is_some_and(|it| has_many_digits(it.as_str())) {
                return Err(SchemaError::NumberRange);
            }
            members.values().try_for_each(|member| inspect(member, nodes))
        }
        Value::Array(items) => items.iter().try_for_each(|item| inspect(item, nodes)),
        Value::Number(literal) if !number::is_in_range(literal.as_str()) => {
            Err(SchemaError::NumberRange)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// Zero is no divisor either, but that is for the validator to say.
fn has_many_digits(divisor: &str) -> bool {
    Divisor::of(divisor).is_none() && number::compare(divisor, "0").is_ne()
}

#[cfg(test)]
mod tests;
