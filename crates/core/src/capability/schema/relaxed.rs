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

/// Keywords whose values are no schemas.
const VALUES: [&str; 4] = ["const", "default", "enum", "examples"];
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
        relax(&mut relaxed);
        Self { schema: Some(relaxed), unenforced }
    }
}

/// Keywords with a schema for each name.
const MAPS: [&str; 5] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

fn find(schema: &Value, path: &mut String, found: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members {
                let is_beyond =
                    name == "pattern" && value.as_str().is_some_and(Pattern::is_beyond_us);
                if is_beyond {
                    at(name, path, |path| note(path, found));
                } else if let Some(schemas) = map_of(name, value) {
                    at(name, path, |path| find_in_map(name, schemas, path, found));
                } else if !VALUES.contains(&name.as_str()) {
                    at(name, path, |path| find(value, path, found));
                }
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                at(&place.to_string(), path, |path| find(item, path, found));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The schemas of such a keyword.
fn map_of<'a>(name: &str, value: &'a Value) -> Option<&'a Map<String, Value>> {
    value.as_object().filter(|_| MAPS.contains(&name))
}

fn find_in_map(
    keyword: &str,
    schemas: &Map<String, Value>,
    path: &mut String,
    found: &mut Vec<String>,
) {
    for (name, schema) in schemas {
        at(name, path, |path| {
            if keyword == "patternProperties" && Pattern::is_beyond_us(name) {
                note(path, found);
            }
            find(schema, path, found);
        });
    }
}

/// Does something one step further.
fn at(name: &str, path: &mut String, then: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    path.push_str(&name.replace('~', "~0").replace('/', "~1"));
    then(path);
    path.truncate(length);
}

fn note(path: &str, found: &mut Vec<String>) {
    if found.len() < MAX_NAMED {
        found.push(path.to_owned());
    }
}

/// Returns true if something was taken out of the schema, or of one that it may refer to.
fn relax(schema: &mut Value) -> bool {
    let members = match schema {
        Value::Object(members) => members,
        Value::Array(items) => return items.iter_mut().fold(false, |any, it| relax(it) | any),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return false,
    };
    // Where a reference leads is not looked at.
    let mut relaxed = members.contains_key("$ref");
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
            touched |= members.get_mut(*name).is_some_and(relax);
        }
        if touched {
            for name in turned {
                members.remove(*name);
            }
            relaxed = true;
        }
    }
    for (name, value) in members {
        let is_map = map_of(name, value).is_some();
        if let Value::Object(schemas) = value
            && is_map
        {
            relaxed = schemas.values_mut().fold(relaxed, |any, it| relax(it) | any);
        } else if !VALUES.contains(&name.as_str()) {
            relaxed |= relax(value);
        }
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
            (
                json!({"properties": {"a": odd, "b": {"not": {"$ref": "#/properties/a"}}}}),
                json!({"properties": {"a": {}, "b": {}}}),
            ),
            (
                json!({"properties": {"enum": odd, "pattern": odd}}),
                json!({"properties": {"enum": {}, "pattern": {}}}),
            ),
            (json!({"items": odd, "enum": [odd]}), json!({"items": {}, "enum": [odd]})),
        ] {
            assert_eq!(Relaxed::of(&written).schema.unwrap(), left, "{written}");
        }
        assert!(Relaxed::of(&json!({"not": plain})).schema.is_none());
        assert!(Relaxed::of(&json!({"const": odd})).unenforced.is_empty());
    }
}
