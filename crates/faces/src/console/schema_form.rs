//! A form for the input of a tool, made from its JSON Schema, and the input that a form was filled in to.
//!
//! Values that a form has no field for are written as JSON: lists, choices of several forms, anything deep.
//! The gateway checks the input against the whole schema afterwards, as it does with every call.

use portcullis_core::hidden::{is_hidden, spelled};
use serde_json::{Map, Number, Value};

use crate::form::Form;

/// Fields of a form; the rest of a larger schema is written as JSON.
const MOST_FIELDS: usize = 60;
/// Levels of objects whose members have fields of their own.
const DEEPEST: usize = 3;
/// Choices of a list.
const MOST_CHOICES: usize = 200;

/// The kind of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    /// One of these.
    Choice(Vec<String>),
    /// JSON.
    Json,
}

/// A field of the form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    /// Its name in the form: `in:` and a JSON Pointer.
    pub(super) name: String,
    pub(super) label: String,
    pub(super) description: String,
    pub(super) kind: Kind,
    pub(super) required: bool,
    /// Value that the person filled in.
    pub(super) value: String,
}

impl Field {
    pub(super) fn choices(&self) -> &[String] {
        match &self.kind {
            Kind::Choice(choices) => choices,
            Kind::Text | Kind::Number | Kind::Json => &[],
        }
    }

    pub(super) fn holds(&self, choice: &str) -> bool {
        self.value == choice
    }

    pub(super) fn is_json(&self) -> bool {
        self.kind == Kind::Json
    }

    pub(super) fn is_number(&self) -> bool {
        self.kind == Kind::Number
    }
}

/// The fields for the input that a schema describes, filled in with what stands in `input`.
pub(super) fn fields(schema: &Value, input: Option<&Value>) -> Vec<Field> {
    let mut fields = Vec::new();
    add_members(schema, "", DEEPEST, &mut fields);
    for field in &mut fields {
        let pointer = field.name.strip_prefix("in:").unwrap_or_default();
        if let Some(value) = input.and_then(|input| input.pointer(pointer)) {
            let text = value.as_str().filter(|_| field.kind != Kind::Json);
            let text = text.map_or_else(|| value.to_string(), str::to_owned);
            // What cannot be seen is not sent again by a field; the input as JSON shows it.
            field.value = if text.contains(is_hidden) { String::new() } else { text };
        }
    }
    fields
}

fn add_members(schema: &Value, pointer: &str, deeper: usize, fields: &mut Vec<Field>) {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let members = schema.get("properties").and_then(Value::as_object);
    for (name, member) in members.into_iter().flatten() {
        let token = name.replace('~', "~0").replace('/', "~1");
        let pointer = format!("{pointer}/{token}");
        let is_object = member.get("properties").is_some_and(Value::is_object);
        if is_object && deeper > 0 {
            add_members(member, &pointer, deeper - 1, fields);
        } else if fields.len() < MOST_FIELDS {
            fields.push(Field {
                name: format!("in:{pointer}"),
                label: spelled(pointer.trim_start_matches('/')).into_owned(),
                description: spelled(text(member, "description")).into_owned(),
                kind: kind(member),
                required: required.contains(&name.as_str()),
                value: String::new(),
            });
        }
    }
}

fn text<'a>(schema: &'a Value, name: &str) -> &'a str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn kind(schema: &Value) -> Kind {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let texts: Option<Vec<String>> =
            choices.iter().map(|choice| choice.as_str().map(str::to_owned)).collect();
        return match texts {
            Some(texts) if texts.len() <= MOST_CHOICES => Kind::Choice(texts),
            Some(_) => Kind::Text,
            None => Kind::Json,
        };
    }
    match text(schema, "type") {
        "string" => Kind::Text,
        "number" | "integer" => Kind::Number,
        "boolean" => Kind::Choice(vec!["true".to_owned(), "false".to_owned()]),
        _ => Kind::Json,
    }
}

/// The input that a form was filled in to. Empty fields are left out, unless an empty text is the
/// only way to fill in a required one.
///
/// # Errors
/// A sentence about the field that is wrong.
pub(super) fn input(schema: &Value, form: &Form) -> Result<Value, String> {
    let mut input = Value::Object(Map::new());
    for field in fields(schema, None) {
        let sent = form.field(&field.name).unwrap_or_default();
        if sent.is_empty() && !(field.required && field.kind == Kind::Text) {
            continue;
        }
        let value = value(schema, &field, sent)?;
        let pointer = field.name.strip_prefix("in:").unwrap_or_default();
        put(&mut input, pointer, value);
    }
    Ok(input)
}

fn value(schema: &Value, field: &Field, sent: &str) -> Result<Value, String> {
    let label = &field.label;
    match &field.kind {
        Kind::Text => Ok(Value::String(sent.replace("\r\n", "\n"))),
        Kind::Number => {
            let number: Result<Number, _> = sent.trim().parse();
            number.map(Value::Number).map_err(|_| format!("`{label}` has to be a number."))
        }
        Kind::Choice(_) if is_boolean(schema, field) => Ok(Value::Bool(sent == "true")),
        Kind::Choice(_) => Ok(Value::String(sent.to_owned())),
        Kind::Json => serde_json::from_str(sent).map_err(|_| format!("`{label}` has to be JSON.")),
    }
}

fn is_boolean(schema: &Value, field: &Field) -> bool {
    let pointer = field.name.strip_prefix("in:/").unwrap_or_default();
    let mut at = Some(schema);
    for token in pointer.split('/') {
        let name = token.replace("~1", "/").replace("~0", "~");
        at = at.and_then(|schema| schema.get("properties")?.get(&name));
    }
    at.is_some_and(|schema| text(schema, "type") == "boolean" && schema.get("enum").is_none())
}

/// Puts a value where a pointer says, in objects that are made for it.
fn put(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    let tokens: Vec<String> = pointer
        .split('/')
        .skip(1)
        .map(|token| token.replace("~1", "/").replace("~0", "~"))
        .collect();
    let Some((last, path)) = tokens.split_last() else { return };
    for name in path {
        let Value::Object(members) = at else { return };
        at = members.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
    }
    if let Value::Object(members) = at {
        members.insert(last.clone(), value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "required": ["title"],
            "properties": {
                "title": {"type": "string", "description": "Name of it"},
                "count": {"type": "integer"},
                "open": {"type": "boolean"},
                "state": {"type": "string", "enum": ["a", "b"]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "where": {"type": "object", "properties": {"a/b": {"type": "string"}}},
            },
        })
    }

    #[test]
    fn each_member_has_a_field_of_its_kind() {
        let input = json!({"title": "x", "count": 3, "tags": ["y"]});
        let fields = fields(&schema(), Some(&input));
        let field = |name: &str| fields.iter().find(|field| field.name == name).unwrap();

        assert_eq!(field("in:/title").kind, Kind::Text);
        assert!(field("in:/title").required && !field("in:/count").required);
        assert_eq!(field("in:/title").value, "x");
        assert_eq!((&field("in:/count").kind, &*field("in:/count").value), (&Kind::Number, "3"));
        assert_eq!(field("in:/open").choices(), ["true", "false"]);
        assert_eq!(field("in:/state").choices(), ["a", "b"]);
        assert_eq!((field("in:/tags").is_json(), &*field("in:/tags").value), (true, r#"["y"]"#));
        assert_eq!(field("in:/where/a~1b").label, "where/a~1b");
    }

    #[test]
    fn what_was_filled_in_becomes_the_input_with_its_types() {
        let form = Form::of([
            ("in:/title", ""),
            ("in:/count", "1e2"),
            ("in:/open", "false"),
            ("in:/state", "b"),
            ("in:/tags", r#"["y"]"#),
            ("in:/where/a~1b", "z"),
            ("in:/other", "not asked"),
        ]);

        let expected = json!({"title": "", "open": false, "state": "b", "tags": ["y"],
            "where": {"a/b": "z"}});
        let mut made = input(&schema(), &form).unwrap();
        let count = made.as_object_mut().unwrap().remove("count").unwrap();

        assert_eq!((made, count.as_f64()), (expected, Some(100.0)));
    }

    #[test]
    fn a_field_that_is_wrong_is_named() {
        for (name, text) in [("in:/count", "many"), ("in:/tags", "[")] {
            let wrong = input(&schema(), &Form::of([("in:/title", "x"), (name, text)]));

            assert!(wrong.unwrap_err().contains(name.strip_prefix("in:/").unwrap()));
        }
    }

    #[test]
    fn a_large_or_deep_schema_has_a_bounded_form() {
        let wide: Map<String, Value> =
            (0..500).map(|n| (format!("m{n}"), json!({"type": "string"}))).collect();
        assert_eq!(fields(&json!({"properties": wide}), None).len(), MOST_FIELDS);

        let mut deep = json!({"type": "string"});
        for _ in 0..20 {
            deep = json!({"type": "object", "properties": {"a": deep}});
        }
        let fields = fields(&deep, None);
        assert_eq!((fields.len(), fields[0].is_json()), (1, true));
    }
}
