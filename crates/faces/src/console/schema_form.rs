//! A form for the input of a tool, made from its JSON Schema, and the input that a form was filled in to.
//!
//! Values that a form has no field for are written as JSON: lists of objects, anything deep. The gateway checks
//! the input against the whole schema afterwards, as it does with every call.

use portcullis_core::hidden::{is_hidden, spelled};
use serde_json::{Map, Number, Value};

use super::schema::Schema;
use crate::form::Form;

/// Fields of a form, which may have 64 in all; the rest of a larger schema is written as JSON.
const MOST_FIELDS: usize = 56;
/// Members that are looked at for them.
const MOST_STEPS: usize = 600;
/// Levels of objects whose members have fields of their own.
const DEEPEST: usize = 3;
/// Choices of a list.
const MOST_CHOICES: usize = 200;

/// The kind of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Boolean,
    /// One of these texts.
    Choice(Vec<String>),
    /// A list of texts, one on each line.
    Lines,
    Json,
}

/// A field of the form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    /// `in:` and a JSON Pointer, where `~@` and a number follow what has several forms.
    pub(super) name: String,
    pub(super) label: String,
    pub(super) description: String,
    pub(super) kind: Kind,
    pub(super) required: bool,
    /// The default of the schema, or an example.
    pub(super) hint: String,
    /// Value that the person filled in.
    pub(super) value: String,
}

/// A part of a form, in the order in which it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Field(Field),
    /// Begins the forms that a value may have.
    Forms {
        label: String,
        description: String,
        required: bool,
    },
    /// Begins the fields of one of them.
    Alternative {
        /// Name of the buttons of which one is chosen.
        group: String,
        number: String,
        label: String,
        chosen: bool,
    },
    EndAlternative,
    EndForms,
}

impl Field {
    pub(super) fn holds(&self, choice: &str) -> bool {
        self.value == choice
    }

    /// Returns true if a browser may insist that the field is filled in: it does with fields that are not seen, too.
    pub(super) fn has_to_be_filled(&self) -> bool {
        self.required && !self.name.contains("~@")
    }

    fn path(&self) -> &str {
        self.name.strip_prefix("in:").unwrap_or_default()
    }
}

/// The parts for the input that a schema describes, filled in with what stands in `input`.
pub(super) fn parts(schema: &Value, input: Option<&Value>) -> Vec<Part> {
    let mut builder = Builder { parts: Vec::new(), fields: MOST_FIELDS, steps: MOST_STEPS, input };
    let schema = Schema::of(schema);
    builder.add_members(schema, "", DEEPEST);
    if !schema.forms().is_empty() {
        builder.add_forms(schema, "", "Input", true, DEEPEST);
    }
    builder.parts
}

struct Builder<'a> {
    parts: Vec<Part>,
    /// Fields and members that there is still room for.
    fields: usize,
    steps: usize,
    input: Option<&'a Value>,
}

impl Builder<'_> {
    fn add_members(&mut self, schema: Schema<'_>, path: &str, deeper: usize) {
        for member in schema.members() {
            let token = member.name.replace('~', "~0").replace('/', "~1");
            self.add(member.schema, &format!("{path}/{token}"), member.required, deeper);
        }
    }

    /// Adds the parts by which a value at this path is filled in.
    fn add(&mut self, own: Schema<'_>, path: &str, required: bool, deeper: usize) {
        if self.fields == 0 || self.steps == 0 {
            return;
        }
        self.steps -= 1;
        let schema = own.resolved();
        let description = own.text("description");
        let description =
            if description.is_empty() { schema.text("description") } else { description };
        if schema.has_members() && deeper > 0 {
            return self.add_members(schema, path, deeper - 1);
        }
        if schema.choices().is_none() && !schema.forms().is_empty() && deeper > 0 {
            return self.add_forms(schema, path, &description, required, deeper - 1);
        }
        self.fields -= 1;
        let kind = kind(schema);
        let hint = [own.json("default"), schema.json("default")];
        let value = self.filled_in(path, &kind);
        self.parts.push(Part::Field(Field {
            name: format!("in:{path}"),
            label: label(path),
            description,
            kind,
            required,
            hint: hint.into_iter().find(|it| !matches!(&**it, "" | "null")).unwrap_or_default(),
            value,
        }));
    }

    fn add_forms(
        &mut self,
        schema: Schema<'_>,
        path: &str,
        description: &str,
        required: bool,
        deeper: usize,
    ) {
        let sent = self.input.and_then(|input| input.pointer(&pointer(path)));
        let forms = schema.forms();
        let meant = sent.and_then(|value| forms.iter().position(|form| form.may_be(value)));
        let meant = meant.or_else(|| required.then_some(0));
        let group = format!("of:{path}");
        self.fields = self.fields.saturating_sub(1);
        self.parts.push(Part::Forms {
            label: label(path),
            description: description.to_owned(),
            required,
        });
        if !required {
            self.parts.push(Part::Alternative {
                group: group.clone(),
                number: String::new(),
                label: "left out".to_owned(),
                chosen: meant.is_none(),
            });
            self.parts.push(Part::EndAlternative);
        }
        for (number, form) in forms.into_iter().enumerate() {
            let title = form.text("title");
            let kind = form.kind();
            self.parts.push(Part::Alternative {
                group: group.clone(),
                number: number.to_string(),
                label: match (title.is_empty(), kind.is_empty()) {
                    (false, _) => title,
                    (true, false) => format!("form {}: {}", number + 1, spelled(kind)),
                    (true, true) => format!("form {}", number + 1),
                },
                chosen: meant == Some(number),
            });
            self.add(form, &format!("{path}~@{number}"), true, deeper);
            self.parts.push(Part::EndAlternative);
        }
        self.parts.push(Part::EndForms);
    }

    fn filled_in(&self, path: &str, kind: &Kind) -> String {
        let Some(value) = self.input.and_then(|input| input.pointer(&pointer(path))) else {
            return String::new();
        };
        let lines = || value.as_array()?.iter().map(Value::as_str).collect::<Option<Vec<_>>>();
        let text = match (kind, value) {
            (Kind::Lines, _) => lines().map(|lines| lines.join("\n")).unwrap_or_default(),
            (Kind::Json, _) => value.to_string(),
            (_, Value::String(text)) => text.clone(),
            (_, Value::Array(_) | Value::Object(_)) => String::new(),
            (_, other) => other.to_string(),
        };
        // What cannot be seen is not sent again by a field; the input as JSON shows it.
        if text.contains(is_hidden) { String::new() } else { text }
    }
}

/// A path without the numbers of forms.
fn pointer(path: &str) -> String {
    let tokens = path.split('/').map(|token| token.split("~@").next().unwrap_or_default());
    tokens.collect::<Vec<_>>().join("/")
}

fn label(path: &str) -> String {
    let pointer = pointer(path);
    let label = spelled(pointer.trim_start_matches('/')).into_owned();
    if label.is_empty() { "input".to_owned() } else { label }
}

fn kind(schema: Schema<'_>) -> Kind {
    if let Some(choices) = schema.choices() {
        let texts: Option<Vec<String>> =
            choices.iter().map(|choice| choice.as_str().map(str::to_owned)).collect();
        return match texts {
            Some(texts) if texts.len() <= MOST_CHOICES => Kind::Choice(texts),
            Some(_) => Kind::Text,
            None => Kind::Json,
        };
    }
    match schema.kind() {
        "string" => Kind::Text,
        "number" | "integer" => Kind::Number,
        "boolean" => Kind::Boolean,
        "array" if schema.items().is_some_and(|items| items.kind() == "string") => Kind::Lines,
        _ => Kind::Json,
    }
}

/// The input that a form was filled in to. Empty fields are left out, unless an empty text is the
/// only way to fill in a required one, and so are the fields of forms that were not chosen.
///
/// # Errors
/// A sentence about the field that is wrong.
pub(super) fn input(schema: &Value, form: &Form) -> Result<Value, String> {
    let mut input = Value::Object(Map::new());
    for part in parts(schema, None) {
        let Part::Field(field) = part else { continue };
        let sent = form.field(&field.name).unwrap_or_default();
        let is_meant = !sent.is_empty() || field.required && field.kind == Kind::Text;
        if is_meant && is_chosen(field.path(), form) {
            let value = value(&field, sent)?;
            put(&mut input, &pointer(field.path()), value);
        }
    }
    Ok(input)
}

/// Returns true if each form that the path leads through was chosen.
fn is_chosen(path: &str, form: &Form) -> bool {
    path.match_indices("~@").all(|(at, _)| {
        let (group, rest) = path.split_at(at);
        let number = rest.trim_start_matches("~@").split(['/', '~']).next();
        form.field(&format!("of:{group}")) == number
    })
}

fn value(field: &Field, sent: &str) -> Result<Value, String> {
    let label = &field.label;
    match &field.kind {
        Kind::Text => Ok(Value::String(sent.replace("\r\n", "\n"))),
        Kind::Number => {
            let number: Result<Number, _> = sent.trim().parse();
            number.map(Value::Number).map_err(|_| format!("`{label}` has to be a number."))
        }
        Kind::Boolean => Ok(Value::Bool(sent == "true")),
        Kind::Choice(_) => Ok(Value::String(sent.to_owned())),
        Kind::Lines => Ok(sent.lines().filter(|line| !line.is_empty()).collect()),
        Kind::Json => serde_json::from_str(sent).map_err(|_| format!("`{label}` has to be JSON.")),
    }
}

/// Puts a value where a pointer says, in objects that are made for it.
pub(super) fn put(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    let tokens: Vec<String> = pointer
        .split('/')
        .skip(1)
        .map(|token| token.replace("~1", "/").replace("~0", "~"))
        .collect();
    let Some((last, path)) = tokens.split_last() else {
        *at = value;
        return;
    };
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
            "required": ["title", "target"],
            "properties": {
                "title": {"type": "string", "description": "Name of it"},
                "count": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 5},
                "open": {"type": "boolean"},
                "state": {"$ref": "#/$defs/State", "description": "Its state"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "parts": {"type": "array", "items": {"type": "object"}},
                "where": {"type": "object", "properties": {"a/b": {"type": "string"}}},
                "target": {"oneOf": [
                    {"title": "a person", "type": "object", "required": ["kind", "mail"], "properties": {
                        "kind": {"const": "person"}, "mail": {"type": "string"}}},
                    {"title": "a room", "type": "object", "required": ["kind"], "properties": {
                        "kind": {"const": "room"}, "number": {"type": "integer"}}},
                ]},
                "limit": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            },
            "$defs": {"State": {"type": "string", "enum": ["a", "b"]}},
        })
    }

    fn field(parts: &[Part], name: &str) -> Field {
        let is_named = |part: &&Part| matches!(part, Part::Field(field) if field.name == name);
        let Some(Part::Field(field)) = parts.iter().find(is_named) else {
            panic!("no {name}: {parts:?}")
        };
        field.clone()
    }

    #[test]
    fn each_member_has_a_field_of_its_kind() {
        let input = json!({"title": "x", "count": 3, "tags": ["y", "z"], "open": false,
            "target": {"kind": "room", "number": 4}});
        let parts = parts(&schema(), Some(&input));
        let field = |name: &str| field(&parts, name);

        assert_eq!(field("in:/title").kind, Kind::Text);
        assert!(field("in:/title").required && !field("in:/count").required);
        assert_eq!(field("in:/title").value, "x");
        assert_eq!((&field("in:/count").kind, &*field("in:/count").value), (&Kind::Number, "3"));
        assert_eq!(field("in:/count").hint, "5");
        assert_eq!((&field("in:/open").kind, &*field("in:/open").value), (&Kind::Boolean, "false"));
        assert_eq!(field("in:/state").kind, Kind::Choice(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(field("in:/state").description, "Its state");
        assert_eq!((&field("in:/tags").kind, &*field("in:/tags").value), (&Kind::Lines, "y\nz"));
        assert_eq!(field("in:/parts").kind, Kind::Json);
        assert_eq!(field("in:/where/a~1b").label, "where/a~1b");
        assert_eq!(field("in:/target~@1/number").value, "4");
        assert!(!field("in:/target~@0/mail").has_to_be_filled());
        for (group, number, label) in [("of:/target", "1", "a room"), ("of:/limit", "", "left out")]
        {
            let [group, number, label] = [group, number, label].map(str::to_owned);
            let chosen = Part::Alternative { group, number, label, chosen: true };
            assert!(parts.contains(&chosen), "{chosen:?}: {parts:?}");
        }
    }

    #[test]
    fn what_was_filled_in_becomes_the_input_with_its_types() {
        let form = Form::of([
            ("in:/title", ""),
            ("in:/count", "1e2"),
            ("in:/open", "false"),
            ("in:/state", "b"),
            ("in:/tags", "y\r\n\r\nz"),
            ("in:/where/a~1b", "z"),
            ("of:/target", "0"),
            ("in:/target~@0/kind", "person"),
            ("in:/target~@0/mail", "a@b.example"),
            ("in:/target~@1/number", "7"),
            ("of:/limit", "1"),
            ("in:/limit~@0", "3"),
            ("in:/limit~@1", "3"),
            ("in:/other", "not asked"),
        ]);

        let expected = json!({"title": "", "open": false, "state": "b", "tags": ["y", "z"],
            "where": {"a/b": "z"}, "target": {"kind": "person", "mail": "a@b.example"}, "limit": "3"});
        let mut made = input(&schema(), &form).unwrap();
        let count = made.as_object_mut().unwrap().remove("count").unwrap();

        assert_eq!((made, count.as_f64()), (expected, Some(100.0)));
    }

    #[test]
    fn the_input_itself_may_have_several_forms() {
        let schema = json!({"oneOf": [
            {"type": "object", "properties": {"id": {"type": "string"}}},
            {"type": "object", "properties": {"name": {"type": "string"}}},
        ]});
        let form = Form::of([("of:", "1"), ("in:~@0/id", "x"), ("in:~@1/name", "y")]);

        assert_eq!(input(&schema, &form), Ok(json!({"name": "y"})));
    }

    #[test]
    fn a_field_that_is_wrong_is_named() {
        for (name, text) in [("in:/count", "many"), ("in:/parts", "[")] {
            let wrong = input(&schema(), &Form::of([("in:/title", "x"), (name, text)]));

            assert!(wrong.unwrap_err().contains(name.strip_prefix("in:/").unwrap()));
        }
    }

    #[test]
    fn a_large_or_deep_schema_has_a_bounded_form() {
        let wide: Map<String, Value> =
            (0..500).map(|n| (format!("m{n}"), json!({"type": "string"}))).collect();
        assert_eq!(parts(&json!({"properties": wide}), None).len(), MOST_FIELDS);

        let mut deep = json!({"type": "string"});
        for _ in 0..20 {
            deep = json!({"type": "object", "properties": {"a": deep}});
        }
        let parts_of_deep = parts(&deep, None);
        assert_eq!(parts_of_deep.len(), 1);
        assert_eq!(field(&parts_of_deep, "in:/a/a/a/a").kind, Kind::Json);

        let many: Map<String, Value> =
            (0..500).map(|n| (format!("m{n}"), json!({"$ref": "#"}))).collect();
        let many = json!({"properties": many, "oneOf": [{"$ref": "#"}, {"$ref": "#"}]});
        assert!(parts(&many, None).len() < 100);
    }
}
