//! Members of SCIM objects, whose names are compared without regard to case (RFC 7643 §2.1).

use serde_json::{Map, Value};

use super::{ScimError, ScimType};

/// Schema of users.
pub const USER_SCHEMA: &str = "urn:ietf:params:scim:schemas:core:2.0:User";
/// Schema of groups.
pub const GROUP_SCHEMA: &str = "urn:ietf:params:scim:schemas:core:2.0:Group";
/// Schema of lists.
pub const LIST_SCHEMA: &str = "urn:ietf:params:scim:api:messages:2.0:ListResponse";

/// Bytes of an attribute's name at most.
const LONGEST_NAME: usize = 128;
/// Characters of a text at most.
const MAX_TEXT: usize = 256;

/// The member of this name, in any case. Fails if it stands there twice.
pub(super) fn member<'a>(
    object: &'a Map<String, Value>,
    name: &str,
) -> Result<Option<&'a Value>, ScimError> {
    let mut found = object.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
    let first = found.next().map(|(_, value)| value);
    if found.next().is_some() {
        let detail = format!("`{name}` stands there more than once.");
        return Err(ScimError::new(ScimType::InvalidSyntax, detail));
    }
    Ok(first.filter(|value| !value.is_null()))
}

/// A short text that can be shown, without spaces around it; `None` if it is absent or empty.
pub(super) fn text(name: &str, value: &Value) -> Result<Option<String>, ScimError> {
    let text = match value {
        Value::Null => return Ok(None),
        Value::String(text) => text.trim(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            return Err(invalid(format!("`{name}` has to be a text.")));
        }
    };
    if text.chars().count() > MAX_TEXT || text.chars().any(char::is_control) {
        let detail = format!(
            "`{name}` has {MAX_TEXT} characters at most, none of them a control character."
        );
        return Err(invalid(detail));
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

/// A flag; Microsoft Entra ID sends it as a text.
pub(super) fn flag(name: &str, value: &Value) -> Result<Option<bool>, ScimError> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(flag) => Ok(Some(*flag)),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
        Value::String(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(invalid(format!("`{name}` has to be true or false.")))
        }
    }
}

/// The name of an attribute in lower case, without the URN of a core schema; `None` if it is none.
pub(super) fn attribute_name(text: &str) -> Option<String> {
    let name = without_core_schema(text);
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b".-_$".contains(&byte);
    let is_name = name.len() <= LONGEST_NAME
        && name.bytes().all(is_letter)
        && name.split('.').all(|part| part.starts_with(|it: char| it.is_ascii_alphabetic()));
    is_name.then(|| name.to_ascii_lowercase())
}

/// The text without the URN of a core schema before it.
pub(super) fn without_core_schema(text: &str) -> &str {
    let stripped = [USER_SCHEMA, GROUP_SCHEMA].into_iter().find_map(|schema| {
        let head = text.get(..schema.len()).filter(|head| head.eq_ignore_ascii_case(schema))?;
        text.get(head.len()..)?.strip_prefix(':')
    });
    stripped.unwrap_or(text)
}

pub(super) fn invalid(detail: impl Into<String>) -> ScimError {
    ScimError::new(ScimType::InvalidValue, detail)
}
