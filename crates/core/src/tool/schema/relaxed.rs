//! Schemas without the patterns that cannot be matched in linear time: a value that fits the schema fits
//! what is left of it.

use serde_json::{Map, Value};

use super::patterns::Pattern;

/// A schema that can be enforced, and what was taken out of it.
pub(super) struct Relaxed {
    /// `None` if nothing was taken out.
    pub(super) schema: Option<Value>,
    /// JSON Pointers to the patterns.
    pub(super) unenforced: Vec<String>,
}

/// The most patterns that are named.
const MAX_NAMED: usize = 100;

impl Relaxed {
    /// Takes out of a schema the patterns with lookaround or back references, and what would turn the lack
    /// of one into a refusal.
    pub(super) fn of(schema: &Value) -> Self {
        let mut unenforced = Vec::new();
        find(schema, &mut String::new(), &mut unenforced);
        if unenforced.is_empty() {
            return Self { schema: None, unenforced };
        }
        let mut relaxed = schema.clone();
        let by_reference = ["$defs", "definitions"].iter().any(|name| {
            let mut found = Vec::new();
            find(schema.get(name).unwrap_or(&Value::Null), &mut String::new(), &mut found);
            !found.is_empty()
        });
        relax(&mut relaxed, by_reference);
        Self { schema: Some(relaxed), unenforced }
    }
}

fn find(schema: &Value, path: &mut String, found: &mut Vec<String>) {
    let mut within = |name: &str, value: &Value, found: &mut Vec<String>| {
        let length = path.len();
        path.push('/');
        path.push_str(&name.replace('~', "~0").replace('/', "~1"));
        if name == "pattern" && value.as_str().is_some_and(Pattern::is_beyond_us) {
            if found.len() < MAX_NAMED {
                found.push(path.clone());
            }
        } else if name == "patternProperties"
            && let Value::Object(named) = value
        {
            for (pattern, schema) in named {
                let length = path.len();
                path.push('/');
                path.push_str(&pattern.replace('~', "~0").replace('/', "~1"));
                if Pattern::is_beyond_us(pattern) && found.len() < MAX_NAMED {
                    found.push(path.clone());
                }
                find(schema, path, found);
                path.truncate(length);
            }
        } else {
            find(value, path, found);
        }
        path.truncate(length);
    };
    match schema {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| within(name, value, found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(place, it)| within(&place.to_string(), it, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns true if something was taken out of the schema, or of one that it may refer to.
fn relax(schema: &mut Value, by_reference: bool) -> bool {
    let members = match schema {
        Value::Object(members) => members,
        Value::Array(items) => {
            return items.iter_mut().fold(false, |any, it| relax(it, by_reference) | any);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return false,
    };
    let mut relaxed = by_reference && members.contains_key("$ref");
    if members.get("pattern").and_then(Value::as_str).is_some_and(Pattern::is_beyond_us) {
        members.remove("pattern");
        relaxed = true;
    }
    relaxed |= relax_names(members);
    // What holds if another schema does not.
    for turned in [&["not"][..], &["if", "then", "else"], &["oneOf"], &["contains", "maxContains"]]
    {
        let mut touched = false;
        for name in turned {
            touched |= members.get_mut(*name).is_some_and(|it| relax(it, by_reference));
        }
        if touched {
            for name in turned {
                members.remove(*name);
            }
            relaxed = true;
        }
    }
    for value in members.values_mut() {
        relaxed |= relax(value, by_reference);
    }
    relaxed
}

/// Names that a pattern would have taken are no additional ones.
fn relax_names(members: &mut Map<String, Value>) -> bool {
    let Some(Value::Object(named)) = members.get_mut("patternProperties") else { return false };
    let before = named.len();
    named.retain(|pattern, _| !Pattern::is_beyond_us(pattern));
    let relaxed = named.len() < before;
    if relaxed {
        for name in ["additionalProperties", "unevaluatedProperties"] {
            members.remove(name);
        }
    }
    relaxed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BEYOND: &str = "^(?!\\.)(?!.*\\.\\.)[a-z]+@[a-z]+$";

    #[test]
    fn patterns_beyond_linear_time_are_named_and_taken_out() {
        let schema = json!({
            "properties": {
                "email": {"type": "string", "pattern": BEYOND},
                "name": {"pattern": "^[a-z]+$"},
            },
            "patternProperties": {"^(?=x)a/b": {"type": "string"}, "^y": {}},
            "additionalProperties": false,
        });

        let Relaxed { schema, unenforced } = Relaxed::of(&schema);

        assert_eq!(unenforced, ["/properties/email/pattern", "/patternProperties/^(?=x)a~1b"]);
        assert_eq!(
            schema.unwrap(),
            json!({
                "properties": {"email": {"type": "string"}, "name": {"pattern": "^[a-z]+$"}},
                "patternProperties": {"^y": {}},
            })
        );
    }

    #[test]
    fn no_value_is_refused_for_the_lack_of_a_pattern() {
        let odd = json!({"pattern": BEYOND});
        let plain = json!({"pattern": "^a"});
        for (written, left) in [
            (json!({"not": odd}), json!({})),
            (json!({"if": odd, "then": plain, "else": plain}), json!({})),
            (json!({"oneOf": [odd, plain]}), json!({})),
            (json!({"anyOf": [odd, plain]}), json!({"anyOf": [{}, plain]})),
            (json!({"contains": odd, "maxContains": 1}), json!({})),
            (
                json!({"$defs": {"a": odd}, "not": {"$ref": "#/$defs/a"}}),
                json!({"$defs": {"a": {}}}),
            ),
            (json!({"items": {"not": {"items": odd}}}), json!({"items": {}})),
        ] {
            assert_eq!(Relaxed::of(&written).schema.unwrap(), left, "{written}");
        }
        assert!(Relaxed::of(&json!({"not": plain})).schema.is_none());
    }
}
