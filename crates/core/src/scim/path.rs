//! Paths of PATCH operations (RFC 7644 §3.5.2): an attribute, which of its values, and a part of these.

use super::{
    Comparison, ScimError, ScimType,
    filter::value,
    object::{attribute_name, without_core_schema},
};

/// Bytes of a path at most.
const LONGEST: usize = 1_024;

/// Path of a PATCH operation, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributePath {
    /// The attribute; the whole text for attributes of extensions.
    pub attribute: String,
    /// The values that are meant; all of them when absent.
    pub filter: Option<Comparison>,
    /// The part of each value.
    pub part: Option<String>,
}

impl AttributePath {
    /// Reads a path.
    ///
    /// # Errors
    /// `invalidPath`, for all that is longer or does more.
    pub fn parse(text: &str) -> Result<Self, ScimError> {
        if text.len() > LONGEST {
            return Err(invalid("it is too long"));
        }
        let text = text.trim();
        if is_extension(text) {
            let attribute = text.to_ascii_lowercase();
            return Ok(Self { attribute, filter: None, part: None });
        }
        let (name, rest) = text.split_once('[').map_or((text, None), |(name, it)| (name, Some(it)));
        let name = attribute_name(name).ok_or_else(|| invalid("it names no attribute"))?;
        let (attribute, part) = name
            .split_once('.')
            .map_or((name.as_str(), None), |(name, part)| (name, Some(part.to_owned())));
        let attribute = attribute.to_owned();
        let Some(rest) = rest else {
            return Ok(Self { attribute, filter: None, part });
        };
        if part.is_some() {
            return Err(invalid("a filter follows the attribute, not a part of it"));
        }
        let (filter, rest) = bracketed(rest)?;
        let part = match rest.strip_prefix('.') {
            Some(part) => {
                Some(attribute_name(part).ok_or_else(|| invalid("the part after `]` is no name"))?)
            }
            None if rest.is_empty() => None,
            None => return Err(invalid("after `]` there is a dot or nothing")),
        };
        Ok(Self { attribute, filter: Some(filter), part })
    }
}

/// The comparison up to `]`, and what follows it.
fn bracketed(text: &str) -> Result<(Comparison, &str), ScimError> {
    let wrong =
        || invalid("in brackets there is one comparison, as in `members[value eq \"usr_…\"]`");
    let mut words = text.trim_start().splitn(3, ' ');
    let (Some(name), Some(operator), Some(rest)) = (words.next(), words.next(), words.next())
    else {
        return Err(wrong());
    };
    if !operator.eq_ignore_ascii_case("eq") {
        return Err(wrong());
    }
    let attribute = attribute_name(name).ok_or_else(wrong)?;
    let (value, rest) = value(rest.trim_start()).map_err(|_| wrong())?;
    let rest = rest.trim_start().strip_prefix(']').ok_or_else(wrong)?;
    Ok((Comparison { attribute, value }, rest))
}

/// True for an attribute of a schema that is not one of the core.
fn is_extension(text: &str) -> bool {
    let is_urn = text.get(..4).is_some_and(|head| head.eq_ignore_ascii_case("urn:"));
    is_urn && without_core_schema(text) == text
}

fn invalid(problem: &str) -> ScimError {
    let detail = format!("The path of an operation is not understood: {problem}.");
    ScimError::new(ScimType::InvalidPath, detail)
}
