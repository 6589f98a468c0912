//! `x-mcp-header`: arguments that clients of the stateless era mirror into HTTP headers.

use std::borrow::Cow;

use serde_json::Value;

use super::header::{self, PARAM_PREFIX};
use crate::json::{self, JsonValue, Kind, Node};

/// One argument that is mirrored: where it stands, and the header it goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamHeader {
    header: String,
    path: Vec<String>,
}

/// The schema has an annotation that the specification forbids, so the tool is unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadAnnotation;

const ANNOTATION: &str = "x-mcp-header";
const MAX_HEADERS: usize = 32;

impl ParamHeader {
    /// Name of the header in lower case.
    #[must_use]
    pub fn header(&self) -> &str {
        &self.header
    }

    /// The argument as text; an absent or `null` argument has none.
    #[must_use]
    pub fn text<'a>(&self, arguments: Node<'a>) -> Option<&'a str> {
        let value = self.path.iter().try_fold(arguments, |value, step| value.get(step))?;
        match value.kind() {
            Kind::Text(text) => Some(text),
            Kind::Number(literal) => Some(literal),
            Kind::Bool(true) => Some("true"),
            Kind::Bool(false) => Some("false"),
            Kind::Null | Kind::Array(_) | Kind::Object(_) => None,
        }
    }

    /// The argument as the value of its header.
    #[must_use]
    pub fn value<'a>(&self, arguments: Node<'a>) -> Option<Cow<'a, str>> {
        self.text(arguments).map(header::encode)
    }

    /// Returns true if `value` of the header says the same as the argument. Numbers are compared
    /// by their value.
    #[must_use]
    pub fn agrees(&self, arguments: Node<'_>, value: Option<&str>) -> bool {
        match (self.text(arguments), value) {
            (None, None) => true,
            (Some(text), Some(value)) => {
                header::decode(value).is_some_and(|told| told == text || same_number(&told, text))
            }
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

fn same_number(one: &str, other: &str) -> bool {
    let number = |text: &str| {
        let parsed = json::parse(text.as_bytes(), json::Bounds::REQUEST).ok()?;
        parsed.is_number().then(|| json::normal(&parsed))
    };
    number(one).is_some_and(|one| Some(one) == number(other))
}

/// The mirrored arguments of an input schema.
pub fn find(schema: &Value) -> Result<Vec<ParamHeader>, BadAnnotation> {
    let mut found = Vec::new();
    walk(schema, Some(&mut Vec::new()), &mut found)?;
    Ok(found)
}

/// Walks a schema; `path` is the chain of `properties` from the root, if that is how we came.
fn walk(
    node: &Value,
    mut path: Option<&mut Vec<String>>,
    found: &mut Vec<ParamHeader>,
) -> Result<(), BadAnnotation> {
    if let Value::Array(items) = node {
        return items.iter().try_for_each(|item| walk(item, None, found));
    }
    let Value::Object(members) = node else { return Ok(()) };
    if let Some(annotation) = members.get(ANNOTATION) {
        let path = path.as_deref().filter(|path| !path.is_empty()).ok_or(BadAnnotation)?;
        found.push(accept(annotation, members.get("type"), path, found)?);
    }
    for (name, member) in members {
        match name.as_str() {
            ANNOTATION | "enum" | "const" | "default" | "examples" => {}
            "properties" => walk_properties(member, path.as_deref_mut(), found)?,
            _ => walk(member, None, found)?,
        }
    }
    Ok(())
}

fn walk_properties(
    properties: &Value,
    mut path: Option<&mut Vec<String>>,
    found: &mut Vec<ParamHeader>,
) -> Result<(), BadAnnotation> {
    for (name, schema) in properties.as_object().into_iter().flatten() {
        let Some(path) = path.as_deref_mut() else {
            walk(schema, None, found)?;
            continue;
        };
        path.push(name.clone());
        walk(schema, Some(path), found)?;
        path.pop();
    }
    Ok(())
}

fn accept(
    annotation: &Value,
    kind: Option<&Value>,
    path: &[String],
    found: &[ParamHeader],
) -> Result<ParamHeader, BadAnnotation> {
    let name = annotation.as_str().filter(|name| is_token(name)).ok_or(BadAnnotation)?;
    let primitive = matches!(kind.and_then(Value::as_str), Some("string" | "integer" | "boolean"));
    let header = format!("{PARAM_PREFIX}{}", name.to_ascii_lowercase());
    let taken = found.iter().any(|other| other.header == header);
    if !primitive || taken || found.len() >= MAX_HEADERS {
        return Err(BadAnnotation);
    }
    Ok(ParamHeader { header, path: path.to_vec() })
}

/// Returns true for a field name (RFC 9110 §5.1).
fn is_token(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.len() <= 256 && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {
                "n": {"type": "integer", "x-mcp-header": "N"},
            }},
            "flag": {"type": "boolean", "x-mcp-header": "Flag"},
            "gone": {"type": "string", "x-mcp-header": "Gone"},
            "x-mcp-header": {"type": "string"},
        }})
    }

    #[test]
    fn arguments_are_mirrored_as_the_specification_shows() {
        let arguments =
            json!({"region": "us-west1", "deep": {"n": 42}, "flag": true, "gone": null});

        let params = find(&schema()).unwrap();

        let arguments = crate::testing::node(&arguments);
        let mut told: Vec<_> = params
            .iter()
            .filter_map(|it| Some((it.header(), it.value(arguments)?.into_owned())))
            .collect();
        told.sort();
        let all =
            [("mcp-param-flag", "true"), ("mcp-param-n", "42"), ("mcp-param-region", "us-west1")];
        assert_eq!(told, all.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn a_header_says_the_same_as_its_argument_or_is_absent_with_it() {
        let params = find(&schema()).unwrap();
        let agrees = |name: &str, arguments: Value, value: Option<&str>| {
            let param = params.iter().find(|it| it.header() == format!("mcp-param-{name}"));
            param.unwrap().agrees(crate::testing::node(&arguments), value)
        };

        assert!(agrees("region", json!({"region": "é"}), Some("=?base64?w6k=?=")));
        assert!(agrees("n", json!({"deep": {"n": 42}}), Some("42.0")));
        assert!(agrees("gone", json!({"gone": null}), None) && agrees("gone", json!({}), None));
        assert!(!agrees("region", json!({"region": "a"}), None));
        assert!(!agrees("region", json!({"region": "a"}), Some("A")));
        assert!(!agrees("region", json!({}), Some("a")));
        assert!(!agrees("flag", json!({"flag": true}), Some("false")));
        assert!(!agrees("region", json!({"region": "a"}), Some("=?base64?!?=")));
    }

    #[test]
    fn forbidden_annotations_make_the_tool_unusable() {
        let in_property = |schema: Value| json!({"properties": {"a": schema}});
        for schema in [
            json!({"type": "object", "x-mcp-header": "Root"}),
            in_property(json!({"type": "string", "x-mcp-header": ""})),
            in_property(json!({"type": "string", "x-mcp-header": "a b"})),
            in_property(json!({"type": "string", "x-mcp-header": "a\r\nHost: x"})),
            in_property(json!({"type": "string", "x-mcp-header": 1})),
            in_property(json!({"type": "number", "x-mcp-header": "A"})),
            in_property(json!({"type": "object", "x-mcp-header": "A"})),
            in_property(json!({"items": {"type": "string", "x-mcp-header": "A"}})),
            in_property(json!({"anyOf": [{"type": "string", "x-mcp-header": "A"}]})),
            json!({"$defs": {"d": {"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}}}),
            json!({"properties": {
                "a": {"type": "string", "x-mcp-header": "Same"},
                "b": {"type": "string", "x-mcp-header": "sAME"},
            }}),
        ] {
            assert_eq!(find(&schema), Err(BadAnnotation), "{schema}");
        }
    }
}
