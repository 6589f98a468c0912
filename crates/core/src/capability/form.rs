//! Forms for a person (`elicitation/create` of MCP) whose answer is in their own defaults (SEP-1034).

use serde_json::{Map, Value};

use super::schema::Schema;
use crate::json::Document;

/// Properties that a form may have.
pub const MOST_PROPERTIES: usize = 64;

/// The defaults of a form, from the parameters of its `elicitation/create`: the whole answer, in which
/// nothing stands that the form does not hold itself.
///
/// `None` if a person has to answer: a required property has no default, a default does not fit the
/// form's own schema, or there is no default at all, so that the form asks for consent alone. Also for
/// what is no form of the protocol: another mode, properties that are no plain values or lists of them,
/// more than [`MOST_PROPERTIES`], and schemas that cannot be enforced.
#[must_use]
pub fn defaults(params: &Map<String, Value>) -> Option<Map<String, Value>> {
    if params.get("mode").is_some_and(|mode| mode != "form") {
        return None;
    }
    let schema = params.get("requestedSchema")?;
    if schema.get("type")? != "object" {
        return None;
    }
    let properties = schema.get("properties")?.as_object()?;
    if properties.len() > MOST_PROPERTIES || !properties.values().all(is_plain) {
        return None;
    }
    let default = |(name, of): (&String, &Value)| Some((name.clone(), of.get("default")?.clone()));
    let answer: Map<String, Value> = properties.iter().filter_map(default).collect();
    if answer.is_empty() {
        return None;
    }
    let schema = Schema::compile(schema).ok()?;
    let answer = Value::Object(answer);
    if !schema.violations(Document::of(&answer).root()).is_empty() {
        return None;
    }
    match answer {
        Value::Object(answer) => Some(answer),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    }
}

/// Returns true if a property is a text, a number, a yes or no, or a choice of several texts.
fn is_plain(property: &Value) -> bool {
    let kind = |of: &Value| of.get("type").and_then(Value::as_str).map(str::to_owned);
    match kind(property).as_deref() {
        Some("string" | "number" | "integer" | "boolean") => true,
        Some("array") => property.get("items").is_some_and(|items| {
            kind(items).is_none_or(|kind| kind == "string")
                && (items.get("enum").is_some() || items.get("anyOf").is_some())
        }),
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(schema: &Value) -> Option<Value> {
        let params = json!({"message": "?", "requestedSchema": schema});
        defaults(params.as_object().unwrap()).map(Value::Object)
    }

    fn form(properties: &Value, required: &[&str]) -> Value {
        json!({"type": "object", "properties": properties, "required": required})
    }

    #[test]
    fn a_form_is_answered_with_exactly_its_defaults() {
        let all = json!({
            "name": {"type": "string", "title": "Name", "default": "John Doe", "maxLength": 8},
            "mail": {"type": "string", "format": "email", "default": "a@b.example"},
            "age": {"type": "integer", "default": 30, "minimum": 0},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive"], "default": "active"},
            "titled": {
                "type": "string", "default": "a", "oneOf": [{"const": "a", "title": "A"}],
            },
            "several": {
                "type": "array", "default": ["x"],
                "items": {"type": "string", "enum": ["x", "y"]}, "maxItems": 2,
            },
            "titles": {
                "type": "array", "default": [], "items": {"anyOf": [{"const": "x", "title": "X"}]},
            },
            "verified": {"type": "boolean", "default": true},
            "empty": {"type": "string", "default": ""},
        });
        let expected = json!({
            "name": "John Doe", "mail": "a@b.example", "age": 30, "score": 95.5, "status": "active",
            "titled": "a", "several": ["x"], "titles": [], "verified": true, "empty": "",
        });
        let some = json!({"a": {"type": "string", "default": "x"}, "b": {"type": "string"}});

        assert_eq!(answer(&form(&all, &["name", "verified"])), Some(expected));
        assert_eq!(answer(&form(&some, &["a"])), Some(json!({"a": "x"})));
        assert_eq!(answer(&form(&some, &[])), Some(json!({"a": "x"})), "optional ones stay out");
        let bare =
            json!({"type": "object", "properties": {"n": {"type": "number", "default": 1.0}}});
        assert_eq!(answer(&bare).unwrap().to_string(), r#"{"n":1.0}"#);
        let mode = json!({"mode": "form", "requestedSchema": bare});
        assert!(defaults(mode.as_object().unwrap()).is_some());
    }

    #[test]
    fn a_form_that_a_person_has_to_answer_is_refused() {
        let text = json!({"type": "string"});
        let given = json!({"type": "string", "default": "x"});
        for (properties, required) in [
            (json!({"a": text}), &["a"][..]),
            (json!({"a": given, "b": text}), &["b"]),
            (json!({"a": given}), &["a", "missing"]),
            (json!({"a": text}), &[]),
            (json!({}), &[]),
        ] {
            assert_eq!(answer(&form(&properties, required)), None, "{properties} {required:?}");
        }
    }

    #[test]
    fn a_default_that_does_not_fit_its_own_schema_is_refused() {
        for property in [
            json!({"type": "string", "default": 1}),
            json!({"type": "string", "default": null}),
            json!({"type": "string", "default": "abc", "maxLength": 2}),
            json!({"type": "string", "default": "abc", "minLength": 4}),
            json!({"type": "string", "default": "abc", "pattern": "^[0-9]+$"}),
            json!({"type": "string", "default": "z", "enum": ["a"]}),
            json!({"type": "string", "default": "z", "oneOf": [{"const": "a", "title": "A"}]}),
            json!({"type": "integer", "default": 1.5}),
            json!({"type": "integer", "default": "1"}),
            json!({"type": "number", "default": 11, "maximum": 10}),
            json!({"type": "boolean", "default": "true"}),
            json!({"type": "array", "default": ["z"], "items": {"type": "string", "enum": ["a"]}}),
            json!({"type": "array", "default": [{}], "items": {"anyOf": [{"const": "a"}]}}),
            json!({"type": "array", "default": "a", "items": {"type": "string", "enum": ["a"]}}),
        ] {
            // Also of a property that need not be answered.
            for required in [&["a"][..], &[]] {
                let schema = form(&json!({"a": property}), required);
                assert_eq!(answer(&schema), None, "{schema}");
            }
        }
    }

    #[test]
    fn what_is_no_form_of_the_protocol_is_refused() {
        let many: Map<String, Value> = (0..=MOST_PROPERTIES)
            .map(|n| (format!("p{n}"), json!({"type": "boolean", "default": true})))
            .collect();
        let good = json!({"a": {"type": "string", "default": "x"}});
        for schema in [
            json!(null),
            json!([]),
            json!({"properties": good}),
            json!({"type": "string", "default": "x"}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": []}),
            json!({"type": "object", "properties": good, "required": "a"}),
            json!({"type": "object", "properties": good, "$ref": "https://a.example/schema"}),
            json!({"type": "object", "properties": good, "not": {}}),
            form(&Value::Object(many), &[]),
            form(&json!({"a": true}), &[]),
            form(&json!({"a": {"default": "x"}}), &[]),
            form(&json!({"a": {"type": ["string"], "default": "x"}}), &[]),
            form(&json!({"a": {"type": "object", "default": {}}}), &[]),
            form(&json!({"a": {"type": "null", "default": null}}), &[]),
            form(&json!({"a": {"type": "array", "default": [1]}}), &[]),
            form(&json!({"a": {"type": "array", "default": [], "items": {"type": "object"}}}), &[]),
        ] {
            assert_eq!(answer(&schema), None, "{schema}");
        }
        for mode in [json!("url"), json!(1), json!(null)] {
            let params = json!({"mode": mode, "requestedSchema": form(&good, &[])});
            assert_eq!(defaults(params.as_object().unwrap()), None, "{params}");
        }
        assert_eq!(defaults(&Map::new()), None);
    }
}
