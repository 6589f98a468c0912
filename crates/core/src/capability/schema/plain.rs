//! Schemas as servers write them, made such as validators and clients read them: what is meant stays.
//!
//! | written | read |
//! |---|---|
//! | `true`, `false` or `null` among the schemas of members | `{}`, `{"not": {}}`, `{}` |
//! | `null` as the value of a keyword, a title that is no text | the keyword is left out |
//! | `exclusiveMinimum: true` beside a `minimum`, of draft-04 | the bound itself |
//! | a name twice in `required` | once |
//! | a `$ref` that begins with the schema's own `$id` | one that begins with `#` |
//! | `$id`, `id` | left out: clients keep schemas by them, of all tools together |
//! | `[\w-.]` in a pattern | `[\w\-.]`, which all flavours of regular expressions read |

use serde_json::{Map, Value, json};

/// Keywords with a schema for each name.
const MAPS: [&str; 5] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/// Keywords with a list of schemas.
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords with a schema.
const SINGLE: [&str; 12] = [
    "items", "additionalItems", "additionalProperties", "contains", "else", "if", "not",
    "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties", "contentSchema",
];

/// The schema as validators and clients read it.
pub(in crate::capability) fn plain(schema: &Value) -> Value {
    let mut plain = schema.clone();
    let id = schema.get("$id").or(schema.get("id")).and_then(Value::as_str);
    mend_one(&mut plain, id.unwrap_or_default());
    plain
}

fn mend(schema: &mut Value, id: &str) {
    let Value::Object(members) = schema else { return };
    members.retain(|name, value| match name.as_str() {
        "const" | "default" => true,
        "title" | "description" | "$comment" => value.is_string(),
        "examples" => value.is_array(),
        _ => !value.is_null(),
    });
    for name in ["$id", "id"] {
        if members.get(name).is_some_and(Value::is_string) {
            members.remove(name);
        }
    }
    mend_bound(members, "exclusiveMinimum", "minimum");
    mend_bound(members, "exclusiveMaximum", "maximum");
    if let Some(Value::Array(names)) = members.get_mut("required") {
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| name.as_str().is_none_or(|name| seen.insert(name.to_owned())));
    }
    if let Some(Value::String(target)) = members.get_mut("$ref")
        && let Some(within) = within(target, id)
    {
        *target = within;
    }
    if let Some(Value::String(pattern)) = members.get_mut("pattern") {
        *pattern = with_plawithin_bracketses(pattern);
    }
    for name in MAPS {
        if let Some(Value::Object(schemas)) = members.get_mut(name) {
            schemas.values_mut().for_each(|schema| mend_one(schema, id));
        }
    }
    for name in LISTS {
        if let Some(Value::Array(schemas)) = members.get_mut(name) {
            for schema in schemas {
                mend_one(schema, id);
            }
        }
    }
    for name in SINGLE {
        match members.get_mut(name) {
            // Of draft-07.
            Some(Value::Array(schemas)) => schemas.iter_mut().for_each(|it| mend_one(it, id)),
            Some(schema) => mend(schema, id),
            None => {}
        }
    }
}

fn mend_one(schema: &mut Value, id: &str) {
    match schema {
        Value::Bool(true) | Value::Null => *schema = json!({}),
        Value::Bool(false) => *schema = json!({"not": {}}),
        Value::Object(_) | Value::Array(_) | Value::String(_) | Value::Number(_) => {
            mend(schema, id);
        }
    }
}

/// Draft-04 says beside a bound whether it is excluded.
fn mend_bound(members: &mut Map<String, Value>, exclusive: &str, bound: &str) {
    let Some(Value::Bool(excluded)) = members.get(exclusive) else { return };
    let excluded = *excluded;
    members.remove(exclusive);
    if excluded && let Some(limit) = members.remove(bound) {
        members.insert(exclusive.to_owned(), limit);
    }
}

/// A reference that names its own schema by its id, as one within it.
fn within(target: &str, id: &str) -> Option<String> {
    let id = id.strip_suffix('#').unwrap_or(id);
    let last = id.rsplit('/').next().unwrap_or_default();
    let rest = [id, last]
        .into_iter()
        .filter(|it| !it.is_empty())
        .find_map(|id| target.strip_prefix(id))?;
    match rest {
        "" => Some("#".to_owned()),
        rest if rest.starts_with('#') => Some(rest.to_owned()),
        _ => None,
    }
}

/// Within brackets, a hyphen beside a class such as `\w` stands for itself; not all flavours of regular
/// expressions allow that without a backslash.
fn with_plawithin_bracketses(pattern: &str) -> String {
    let mut plain = String::with_capacity(pattern.len());
    let mut within_brackets = false;
    let mut after_named = false;
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        let mut names_class = false;
        match letter {
            '\\' => {
                let escaped = letters.next();
                names_class = within_brackets && escaped.is_some_and(|it| "dDsSwW".contains(it));
                plain.push(letter);
                plain.extend(escaped);
            }
            '[' if !within_brackets => {
                within_brackets = true;
                plain.push(letter);
            }
            ']' => {
                within_brackets = false;
                plain.push(letter);
            }
            '-' if after_named && letters.peek().is_some_and(|next| *next != ']') => {
                plain.push_str("\\-");
            }
            letter => plain.push(letter),
        }
        after_named = names_class;
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_written_as_it_is_read() {
        for (written, read) in [
            (
                json!({"properties": {"a": true, "b": false, "c": null}}),
                json!({"properties": {"a": {}, "b": {"not": {}}, "c": {}}}),
            ),
            (json!({"properties": null, "required": null, "description": null}), json!({})),
            (json!({"const": null, "default": null}), json!({"const": null, "default": null})),
            (json!({"minimum": 1, "exclusiveMinimum": true}), json!({"exclusiveMinimum": 1})),
            (json!({"maximum": 1, "exclusiveMaximum": false}), json!({"maximum": 1})),
            (json!({"exclusiveMinimum": true}), json!({})),
            (json!({"exclusiveMinimum": 3}), json!({"exclusiveMinimum": 3})),
            (json!({"required": ["a", "b", "a"]}), json!({"required": ["a", "b"]})),
            (
                json!({"items": {"anyOf": [true, {"required": ["x", "x"]}]}}),
                json!({"items": {"anyOf": [{}, {"required": ["x"]}]}}),
            ),
            (
                json!({"additionalProperties": false, "items": true}),
                json!({"additionalProperties": false, "items": true}),
            ),
            (
                json!({"properties": {"id": {"type": "string"}, "required": {"enum": [null]}}}),
                json!({"properties": {"id": {"type": "string"}, "required": {"enum": [null]}}}),
            ),
        ] {
            assert_eq!(plain(&written), read, "{written}");
            assert_eq!(plain(&read), read, "{read}");
        }
    }

    #[test]
    fn a_reference_to_the_schema_itself_stays_within_it() {
        let id = "https://x.example/schemas/a.json";
        for (target, read) in [
            (id, "#"),
            ("https://x.example/schemas/a.json#/$defs/b", "#/$defs/b"),
            ("a.json#/$defs/b", "#/$defs/b"),
            ("#/$defs/b", "#/$defs/b"),
            ("b.json#/$defs/b", "b.json#/$defs/b"),
            ("https://x.example/schemas/a.json5", "https://x.example/schemas/a.json5"),
        ] {
            let written = json!({"$id": id, "properties": {"a": {"$ref": target}}});
            assert_eq!(plain(&written), json!({"properties": {"a": {"$ref": read}}}), "{target}");
        }
    }

    #[test]
    fn a_hyphen_beside_a_class_is_one() {
        for (written, read) in [
            ("^[\\w-.]+$", "^[\\w\\-.]+$"),
            ("[\\d-\\s]", "[\\d\\-\\s]"),
            ("[\\w-]", "[\\w-]"),
            ("[a-z\\d]", "[a-z\\d]"),
            ("\\w-.", "\\w-."),
            ("[\\]-a]", "[\\]-a]"),
            ("[\\\\w-z]", "[\\\\w-z]"),
        ] {
            assert_eq!(with_plawithin_bracketses(written), read);
        }
    }
}
