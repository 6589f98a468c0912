//! `x-mcp-header`: arguments that the modern era mirrors into HTTP headers.

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// One argument that is mirrored: where it stands and the header it goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParamHeader {
    header: HeaderName,
    path: Vec<String>,
}

/// The schema has an annotation that the specification forbids, so the tool is unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadAnnotation;

const ANNOTATION: &str = "x-mcp-header";
const MAX_HEADERS: usize = 32;

/// The mirrored arguments of an input schema.
pub(crate) fn find(schema: &Value) -> Result<Vec<ParamHeader>, BadAnnotation> {
    let mut found = Vec::new();
    walk(schema, Some(&mut Vec::new()), &mut found)?;
    Ok(found)
}

/// Walks a schema; `path` is the way of `properties` from the root, if that is how we came.
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
    let name = annotation.as_str().filter(|name| !name.is_empty()).ok_or(BadAnnotation)?;
    let primitive = matches!(kind.and_then(Value::as_str), Some("string" | "integer" | "boolean"));
    let header: HeaderName = format!("mcp-param-{name}").parse().map_err(|_| BadAnnotation)?;
    let taken = found.iter().any(|other| other.header == header);
    if !primitive || taken || found.len() >= MAX_HEADERS {
        return Err(BadAnnotation);
    }
    Ok(ParamHeader { header, path: path.to_vec() })
}

/// Adds the headers for these arguments. An absent or `null` argument has none.
pub(crate) fn mirror(params: &[ParamHeader], arguments: &Value, headers: &mut HeaderMap) {
    for param in params {
        let mut value = Some(arguments);
        for step in &param.path {
            value = value.and_then(|value| value.get(step));
        }
        let text = match value {
            Some(Value::String(text)) => encode(text),
            Some(Value::Number(number)) => encode(number.as_str()),
            Some(Value::Bool(true)) => encode("true"),
            Some(Value::Bool(false)) => encode("false"),
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => None,
        };
        if let Some(mut text) = text {
            text.set_sensitive(true);
            headers.insert(param.header.clone(), text);
        }
    }
}

/// The text as a header value, in base64 where it would not survive as it is.
fn encode(text: &str) -> Option<HeaderValue> {
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
        && text.trim_ascii() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if plain {
        return HeaderValue::from_str(text).ok();
    }
    HeaderValue::from_str(&format!("=?base64?{}?=", BASE64_STANDARD.encode(text))).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_mirrored_as_the_specification_shows() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {
                "n": {"type": "integer", "x-mcp-header": "N"},
            }},
            "flag": {"type": "boolean", "x-mcp-header": "Flag"},
            "gone": {"type": "string", "x-mcp-header": "Gone"},
            "x-mcp-header": {"type": "string"},
        }});
        let params = find(&schema).unwrap();
        let mut headers = HeaderMap::new();

        mirror(
            &params,
            &json!({"region": "us-west1", "deep": {"n": 42}, "flag": true, "gone": null}),
            &mut headers,
        );

        assert_eq!(headers["mcp-param-region"], "us-west1");
        assert_eq!(headers["mcp-param-n"], "42");
        assert_eq!(headers["mcp-param-flag"], "true");
        assert_eq!(headers.len(), 3);
    }

    #[test]
    fn values_that_are_no_plain_text_travel_in_base64() {
        for (text, expected) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encode(text).unwrap(), expected, "{text}");
        }
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
