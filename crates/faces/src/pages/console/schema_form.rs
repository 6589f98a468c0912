//! A form for the input of a tool, made from its JSON Schema, and the input that a form was filled in to.
//!
//! Values that a form has no field for are written as JSON: long lists of objects, anything deep. The gateway
//! checks the input against the whole schema afterwards, as it does with every call.

use std::collections::BTreeMap;

use portcullis_core::hidden::{is_hidden, spelled};
use serde_json::{Map, Number, Value};

use super::schema::Schema;
use crate::pages::form::Form;

/// Fields of a form, which may have 64 in all; the rest of a larger schema is written as JSON.
const MOST_FIELDS: usize = 56;
/// Members that are looked at for them.
const MOST_STEPS: usize = 600;
/// Levels of objects whose members have fields of their own.
const DEEPEST: usize = 3;
/// Objects of a list that have fields of their own.
pub(super) const MOST_ROWS: usize = 8;
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
    /// A list of numbers, one on each line.
    Numbers,
    Json,
}

/// A field of the form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    /// `in:` and a JSON Pointer, where `~@` and a number follow what has several forms, and `~#` and a number is a
    /// row of a list.
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
    /// Begins the rows of a list of objects; what is sent as `rows` says how many there are.
    Rows {
        rows: String,
        label: String,
        description: String,
        required: bool,
        number: usize,
    },
    /// Begins the fields of one of them.
    Row,
    EndRow,
    EndRows,
}

impl Field {
    pub(super) fn holds(&self, choice: &str) -> bool {
        self.value == choice
    }

    /// Returns true if a browser may insist that the field is filled in: it does with fields that are not seen, too.
    pub(super) fn has_to_be_filled(&self) -> bool {
        self.required && !self.name.contains("~@") && !self.is_in_row()
    }

    /// Returns true if it is of a row of a list, which is left out if nothing is filled in.
    fn is_in_row(&self) -> bool {
        self.name.contains("~#")
    }

    fn path(&self) -> &str {
        self.name.strip_prefix("in:").unwrap_or_default()
    }
}

/// The parts for the input that a schema describes, as they are filled in.
pub(super) fn parts(schema: &Value, filled: FormValues<'_>) -> Vec<Part> {
    let mut builder = Builder { parts: Vec::new(), fields: MOST_FIELDS, steps: MOST_STEPS, filled };
    let schema = Schema::of(schema);
    builder.add_members(schema, "", DEEPEST);
    if !schema.forms().is_empty() {
        builder.add_forms(schema, "", "Input", true, DEEPEST);
    }
    builder.parts
}

/// From where a form has its values and the number of its rows.
#[derive(Debug, Clone, Copy)]
pub(super) enum FormValues<'a> {
    /// An input.
    By(Option<&'a Value>),
    /// Values that a person sent.
    As(&'a Form),
}

impl<'a> FormValues<'a> {
    fn value(self, path: &str) -> Option<&'a Value> {
        let Self::By(input) = self else { return None };
        input.and_then(|input| input.pointer(&pointer(path)))
    }

    /// The number of rows for the list at this path: one more than it has objects. None if it does not fit in.
    fn rows(self, path: &str) -> Option<usize> {
        let number = match self {
            Self::As(form) => form.field(&rows_of(path))?.parse().ok()?,
            Self::By(_) => match self.value(path) {
                Some(list) => {
                    let list = list.as_array().filter(|list| list.iter().all(Value::is_object))?;
                    MOST_ROWS.min(list.len() + 1).max(list.len())
                }
                None => 1,
            },
        };
        (1..=MOST_ROWS).contains(&number).then_some(number)
    }
}

struct Builder<'a> {
    parts: Vec<Part>,
    /// Fields and members that there is still room for.
    fields: usize,
    steps: usize,
    filled: FormValues<'a>,
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
        let rows = schema.items().filter(|items| items.has_members() && deeper > 0);
        if let Some((items, number)) = rows.zip(self.filled.rows(path)) {
            self.fields = self.fields.saturating_sub(1);
            self.parts.push(Part::Rows {
                rows: rows_of(path),
                label: label(path),
                description,
                required,
                number,
            });
            for row in 0..number {
                self.parts.push(Part::Row);
                self.add_members(items, &format!("{path}/~#{row}"), deeper - 1);
                self.parts.push(Part::EndRow);
            }
            return self.parts.push(Part::EndRows);
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
        let forms = schema.forms();
        let group = format!("of:{path}");
        let meant = match self.filled {
            FormValues::As(form) => form.field(&group).and_then(|number| number.parse().ok()),
            FormValues::By(_) => {
                let value = self.filled.value(path);
                value.and_then(|value| forms.iter().position(|form| form.may_be(value)))
            }
        };
        let meant = meant.or_else(|| required.then_some(0));
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
        if let FormValues::As(form) = self.filled {
            return form.field(&format!("in:{path}")).unwrap_or_default().to_owned();
        }
        let Some(value) = self.filled.value(path) else { return String::new() };
        let lines = |line: fn(&Value) -> Option<String>| {
            let lines = value.as_array()?.iter().map(line).collect::<Option<Vec<_>>>();
            lines.map(|lines| lines.join("\n"))
        };
        let text = match (kind, value) {
            (Kind::Lines, _) => lines(|it| it.as_str().map(str::to_owned)).unwrap_or_default(),
            (Kind::Numbers, _) => {
                lines(|it| it.is_number().then(|| it.to_string())).unwrap_or_default()
            }
            (Kind::Json, _) => value.to_string(),
            (_, Value::String(text)) => text.clone(),
            (_, Value::Array(_) | Value::Object(_)) => String::new(),
            (_, other) => other.to_string(),
        };
        // What cannot be seen is not sent again by a field; the input as JSON shows it.
        if text.contains(is_hidden) { String::new() } else { text }
    }
}

/// Name under which a form says how many rows the list at this path has.
fn rows_of(path: &str) -> String {
    format!("rows:{path}")
}

/// A path without the numbers of forms, and with those of rows as places.
fn pointer(path: &str) -> String {
    let tokens = path.split('/').map(|token| token.split("~@").next().unwrap_or_default());
    let tokens = tokens.map(|token| token.trim_start_matches("~#"));
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
        "array" => match schema.items().map(Schema::kind) {
            Some("string") => Kind::Lines,
            Some("number" | "integer") => Kind::Numbers,
            _ => Kind::Json,
        },
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
    let mut rows = Rows::default();
    for part in parts(schema, FormValues::As(form)) {
        let Part::Field(field) = part else { continue };
        let sent = form.field(&field.name).unwrap_or_default();
        let has_text = field.required && field.kind == Kind::Text && !field.is_in_row();
        if (has_text || !sent.is_empty()) && is_chosen(field.path(), form) {
            let value = value(&field, sent)?;
            put(&mut input, &rows.placed(field.path()), value);
        }
    }
    Ok(input)
}

/// Places of rows in their lists, in which rows without a value have none.
#[derive(Default)]
struct Rows {
    places: BTreeMap<String, usize>,
    /// The number of rows of each list that have one.
    lengths: BTreeMap<String, usize>,
}

impl Rows {
    /// The pointer of a path, with the places of its rows behind `~#`.
    fn placed(&mut self, path: &str) -> String {
        let mut walked = String::new();
        let mut placed = String::new();
        for token in path.split('/').skip(1) {
            let list = walked.clone();
            walked = format!("{walked}/{token}");
            if token.starts_with("~#") {
                let length = self.lengths.entry(list).or_default();
                let place = *self.places.entry(walked.clone()).or_insert_with(|| {
                    *length += 1;
                    *length - 1
                });
                placed = format!("{placed}/~#{place}");
            } else {
                placed = format!("{placed}/{}", token.split("~@").next().unwrap_or_default());
            }
        }
        placed
    }
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
        Kind::Numbers => {
            let lines = sent.lines().map(str::trim).filter(|line| !line.is_empty());
            let numbers: Result<Vec<Number>, _> = lines.map(str::parse).collect();
            let numbers = numbers.map(|numbers| numbers.into_iter().map(Value::Number).collect());
            numbers.map_err(|_| format!("`{label}` has to be numbers, one on each line."))
        }
        Kind::Json => serde_json::from_str(sent).map_err(|_| format!("`{label}` has to be JSON.")),
    }
}

/// Puts a value where a pointer says, in objects that are made for it, and in lists where `~#` is in front of a
/// place.
pub(super) fn put(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for token in pointer.split('/').skip(1) {
        at = if let Some(place) = token.strip_prefix("~#") {
            let Ok(place) = place.parse::<usize>() else { return };
            if at.is_null() {
                *at = Value::Array(Vec::new());
            }
            let Value::Array(items) = at else { return };
            if place == items.len() {
                items.push(Value::Null);
            }
            let Some(item) = items.get_mut(place) else { return };
            item
        } else {
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
            let Value::Object(members) = at else { return };
            members.entry(token.replace("~1", "/").replace("~0", "~")).or_insert(Value::Null)
        };
    }
    *at = value;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const EMPTY: FormValues<'_> = FormValues::By(None);

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
                "sizes": {"type": "array", "items": {"type": "integer"}},
                "rooms": {"type": "array", "items": {"type": "object", "required": ["name"],
                    "properties": {"name": {"type": "string"}, "doors": {"type": "array", "items":
                        {"type": "object", "properties": {"wide": {"type": "boolean"}}}}}}},
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
            "sizes": [1, 2.5], "rooms": [{"name": "hall", "doors": [{"wide": true}]}], "target": {"kind": "room", "number": 4}});
        let parts = parts(&schema(), FormValues::By(Some(&input)));
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
        let sizes = field("in:/sizes");
        assert_eq!((&sizes.kind, &*sizes.value), (&Kind::Numbers, "1\n2.5"));
        assert_eq!(field("in:/rooms/~#0/name").value, "hall");
        assert_eq!(field("in:/rooms/~#0/doors/~#0/wide").value, "true");
        assert_eq!(field("in:/rooms/~#1/name").value, "");
        assert!(!field("in:/rooms/~#1/name").has_to_be_filled());
        let numbers = parts.iter().filter_map(|part| {
            let Part::Rows { rows, number, .. } = part else { return None };
            Some((&**rows, *number))
        });
        let expected =
            [("rows:/rooms", 2), ("rows:/rooms/~#0/doors", 2), ("rows:/rooms/~#1/doors", 1)];
        assert_eq!(numbers.collect::<Vec<_>>(), expected);
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
            ("in:/sizes", " 4\r\n5"),
            ("rows:/rooms", "3"),
            ("in:/rooms/~#0/name", ""),
            ("in:/rooms/~#1/name", "hall"),
            ("rows:/rooms/~#1/doors", "2"),
            ("in:/rooms/~#1/doors/~#1/wide", "true"),
            ("rows:/rooms/~#2/doors", "1"),
            ("in:/rooms/~#2/doors/~#0/wide", "false"),
        ]);

        let expected = json!({"title": "", "open": false, "state": "b", "tags": ["y", "z"],
            "where": {"a/b": "z"}, "target": {"kind": "person", "mail": "a@b.example"}, "limit": "3",
            "sizes": [4, 5],
            "rooms": [{"name": "hall", "doors": [{"wide": true}]}, {"doors": [{"wide": false}]}]});
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
    fn a_form_that_was_wrong_comes_back_as_it_was_sent() {
        let sent = [
            ("in:/count", "many"),
            ("of:/target", "1"),
            ("in:/target~@1/number", "x"),
            ("rows:/rooms", "2"),
            ("in:/rooms/~#1/name", "hall"),
        ];
        let form = Form::of(sent);

        let parts = parts(&schema(), FormValues::As(&form));

        for name in ["in:/count", "in:/target~@1/number", "in:/rooms/~#1/name"] {
            assert_eq!(Some(&*field(&parts, name).value), form.field(name));
        }
        let [group, number, label] = ["of:/target", "1", "a room"].map(str::to_owned);
        assert!(parts.contains(&Part::Alternative { group, number, label, chosen: true }));
    }

    #[test]
    fn a_field_that_is_wrong_is_named() {
        for (name, text) in [("in:/count", "many"), ("in:/parts", "["), ("in:/sizes", "1\nx")] {
            let wrong = input(&schema(), &Form::of([("in:/title", "x"), (name, text)]));

            assert!(wrong.unwrap_err().contains(name.strip_prefix("in:/").unwrap()));
        }
    }

    #[test]
    fn a_large_or_deep_schema_has_a_bounded_form() {
        let wide: Map<String, Value> =
            (0..500).map(|n| (format!("m{n}"), json!({"type": "string"}))).collect();
        assert_eq!(parts(&json!({"properties": wide}), EMPTY).len(), MOST_FIELDS);

        let mut deep = json!({"type": "string"});
        for _ in 0..20 {
            deep = json!({"type": "object", "properties": {"a": deep}});
        }
        let parts_of_deep = parts(&deep, EMPTY);
        assert_eq!(parts_of_deep.len(), 1);
        assert_eq!(field(&parts_of_deep, "in:/a/a/a/a").kind, Kind::Json);

        let long = json!({"rooms": vec![json!({}); MOST_ROWS + 1]});
        assert_eq!(
            field(&parts(&schema(), FormValues::By(Some(&long))), "in:/rooms").kind,
            Kind::Json
        );
        let many = json!({"properties": {"a": {"type": "array", "items": {"$ref": "#"}}}});
        let rows = json!({"a": vec![json!({"a": vec![json!({}); MOST_ROWS]}); MOST_ROWS]});
        assert!(parts(&many, FormValues::By(Some(&rows))).len() < 250);

        let many: Map<String, Value> =
            (0..500).map(|n| (format!("m{n}"), json!({"$ref": "#"}))).collect();
        let many = json!({"properties": many, "oneOf": [{"$ref": "#"}, {"$ref": "#"}]});
        assert!(parts(&many, EMPTY).len() < 100);
    }
}
