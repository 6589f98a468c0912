//! Filters (RFC 7644 §3.4.2.2): up to two comparisons with `eq`, joined by `and`. That is all that Okta and
//! Microsoft Entra ID send. Read in one pass.

use serde_json::Value;

use super::{ScimError, ScimType, object::attribute_name};

/// Bytes of a filter at most.
const LONGEST: usize = 2_048;
/// Comparisons of a filter at most.
const MOST: usize = 2;

/// Value that an attribute is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterValue {
    Text(String),
    Flag(bool),
}

/// `attribute eq value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The attribute in lower case, without the URN of its schema.
    pub attribute: String,
    pub value: FilterValue,
}

/// Comparisons that all have to hold; one at least.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    pub comparisons: Vec<Comparison>,
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// `invalidFilter`, for all that is longer or does more.
    pub fn parse(text: &str) -> Result<Self, ScimError> {
        if text.len() > LONGEST {
            return Err(invalid(&format!("a filter has {LONGEST} bytes at most")));
        }
        let mut rest = text.trim();
        let mut comparisons = Vec::new();
        loop {
            let (comparison, after) = comparison(rest)?;
            comparisons.push(comparison);
            rest = after.trim_start();
            if rest.is_empty() {
                return Ok(Self { comparisons });
            }
            let (word, after) = word(rest);
            if !word.eq_ignore_ascii_case("and") || comparisons.len() == MOST {
                return Err(invalid("comparisons with `eq` can be joined by one `and`"));
            }
            rest = after;
        }
    }

    /// The text that the attribute has to equal, if the filter says one.
    #[must_use]
    pub fn text(&self, attribute: &str) -> Option<&str> {
        self.comparisons.iter().find(|it| it.attribute == attribute).and_then(Comparison::text)
    }
}

impl Comparison {
    /// The text that is compared with.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            FilterValue::Text(text) => Some(text),
            FilterValue::Flag(_) => None,
        }
    }
}

/// The comparison at the beginning, and what follows it.
fn comparison(text: &str) -> Result<(Comparison, &str), ScimError> {
    let (attribute, rest) = word(text);
    let attribute = attribute_name(attribute)
        .ok_or_else(|| invalid("a filter begins with the name of an attribute"))?;
    let (operator, rest) = word(rest);
    if !operator.eq_ignore_ascii_case("eq") {
        return Err(invalid("`eq` is the only operator"));
    }
    let (value, rest) = value(rest.trim_start())?;
    Ok((Comparison { attribute, value }, rest))
}

/// The letters up to the next space, and what follows it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_once(' ').unwrap_or((text, ""))
}

/// The text or flag at the beginning, and what follows it.
pub(super) fn value(text: &str) -> Result<(FilterValue, &str), ScimError> {
    let wrong = || invalid("a value is a text in double quotes, `true` or `false`");
    if !text.starts_with(['"', 't', 'f', 'T', 'F']) {
        return Err(wrong());
    }
    if let Some(word) = text.get(..4).filter(|word| word.eq_ignore_ascii_case("true")) {
        return Ok((FilterValue::Flag(true), text.get(word.len()..).unwrap_or_default()));
    }
    if let Some(word) = text.get(..5).filter(|word| word.eq_ignore_ascii_case("false")) {
        return Ok((FilterValue::Flag(false), text.get(word.len()..).unwrap_or_default()));
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match values.next() {
        Some(Ok(Value::String(value))) if !value.contains('\0') => {
            let rest = text.get(values.byte_offset()..).unwrap_or_default();
            Ok((FilterValue::Text(value), rest))
        }
        Some(_) | None => Err(wrong()),
    }
}

fn invalid(problem: &str) -> ScimError {
    let detail = format!(
        "The filter is not understood: {problem}. Known are `userName`, `externalId`, `displayName`, `id` and \
         `active`, as in `userName eq \"ana@example.com\"`."
    );
    ScimError::new(ScimType::InvalidFilter, detail)
}
