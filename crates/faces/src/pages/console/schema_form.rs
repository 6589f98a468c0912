//! A form for the input of a tool, made from its JSON Schema, and the input that a form was filled in to.
//!
//! Values that a form has no field for are written as JSON: long lists of objects, anything deep. The gateway
//! checks the input against the whole schema afterwards, as it does with every call.

mod input;

use portcullis_core::hidden::{is_hidden, spelled};
use serde_json::Value;

pub(super) use self::input::input;
use super::{
    form::{Control, Field, note, star},
    schema::Schema,
};
use crate::pages::{
    form::Form,
    html::{Html, html, markup},
};

/// Fields of a form, which may have 64 in all; the rest of a larger schema is written as JSON.
const MOST_FIELDS: usize = 56;
/// Members that are looked at for them.
const MOST_STEPS: usize = 600;
/// Levels of objects whose members have fields of their own.
const DEEPEST: usize = 3;
/// Objects of a list that have fields of their own.
const MOST_ROWS: usize = 8;
/// Choices of a list.
const MOST_CHOICES: usize = 200;

/// The kind of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
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

/// A field for a value of the input.
#[derive(Debug, Clone)]
struct InputField {
    /// `in:` and a JSON Pointer, where `~@` and a number follow what has several forms, and `~#` and a number is a
    /// row of a list.
    name: String,
    label: String,
    description: String,
    kind: Kind,
    required: bool,
    /// The default of the schema, or an example.
    hint: String,
    /// Value that the person filled in.
    value: String,
}

/// A part of a form, in the order in which it is shown.
#[derive(Debug)]
enum Part {
    Field(InputField),
    /// Markup around fields: the forms that a value may have, or the rows of a list.
    Frame(Html),
}

impl Part {
    fn show(self) -> Html {
        match self {
            Self::Field(field) => field.show(),
            Self::Frame(frame) => frame,
        }
    }
}

impl InputField {
    fn show(&self) -> Html {
        let hint = &*self.hint;
        let (control, attributes, placeholder) = match &self.kind {
            Kind::Text => (Control::Area, "data-kind=\"text\" rows=\"1\"", hint),
            Kind::Number => (Control::Line, "data-kind=\"number\" inputmode=\"decimal\"", hint),
            Kind::Boolean => (Control::Option(vec!["true", "false"]), "data-kind=\"boolean\"", ""),
            Kind::Choice(texts) => {
                let texts = texts.iter().map(String::as_str).collect();
                (Control::Option(texts), "data-kind=\"choice\"", "")
            }
            Kind::Lines => (Control::Area, "data-kind=\"lines\" rows=\"3\"", "one on each line"),
            Kind::Numbers => {
                let numbers = "data-kind=\"numbers\" rows=\"3\" inputmode=\"decimal\"";
                (Control::Area, numbers, "one on each line")
            }
            Kind::Json => {
                let json = "data-kind=\"json\" rows=\"3\" spellcheck=\"false\" class=\"code\"";
                (Control::Area, json, if hint.is_empty() { "JSON" } else { hint })
            }
        };
        // Browsers cannot tell an empty text from one that was not filled in.
        let required = self.has_to_be_filled() && !matches!(control, Control::Area);
        let mut field = Field::new(&self.name, &self.label, control, Some(&self.value));
        field.required = required;
        field.has_star = self.required;
        field.attributes = attributes;
        field.placeholder = placeholder;
        field.help = html("{}", &[&self.description]);
        field.show()
    }

    /// Returns true if a browser may insist that the field is filled in: it does with fields that are not seen, too.
    fn has_to_be_filled(&self) -> bool {
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

/// The fields for the input that a schema describes, as they are filled in; empty if it describes none.
pub(super) fn fields(schema: &Value, filled: FormValues<'_>) -> Html {
    parts(schema, filled).into_iter().map(Part::show).collect()
}

fn parts(schema: &Value, filled: FormValues<'_>) -> Vec<Part> {
    let mut builder = Builder { parts: Vec::new(), fields: MOST_FIELDS, steps: MOST_STEPS, filled };
    let schema = Schema::of(schema);
    builder.add_members(schema, "", DEEPEST);
    if !schema.forms().is_empty() {
        builder.open_group("", "Input", true);
        builder.add_forms(schema, "", true, DEEPEST);
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
        if schema.has_members() && deeper > 0 {
            return self.add_members(schema, path, deeper - 1);
        }
        let description = own.description();
        if schema.choices().is_none() && !schema.forms().is_empty() && deeper > 0 {
            self.open_group(path, &description, required);
            return self.add_forms(schema, path, required, deeper - 1);
        }
        let rows = schema.items().filter(|items| items.has_members() && deeper > 0);
        if let Some((items, number)) = rows.zip(self.filled.rows(path)) {
            self.open_group(path, &description, required);
            return self.add_rows(items, path, number, deeper - 1);
        }
        self.fields -= 1;
        let kind = kind(schema);
        let hint = [own.json("default"), schema.json("default")];
        let value = self.filled_in(path, &kind);
        self.parts.push(Part::Field(InputField {
            name: format!("in:{path}"),
            label: label(path),
            description,
            kind,
            required,
            hint: hint.into_iter().find(|it| !matches!(&**it, "" | "null")).unwrap_or_default(),
            value,
        }));
    }

    fn frame(&mut self, frame: Html) {
        self.parts.push(Part::Frame(frame));
    }

    /// Begins what a label stands above: forms of a value, or rows of a list.
    fn open_group(&mut self, path: &str, description: &str, required: bool) {
        self.fields = self.fields.saturating_sub(1);
        let group = "<fieldset><legend>{}{}</legend>{}";
        self.frame(html(group, &[&label(path), &star(required), &note(&description)]));
    }

    /// Adds the rows of a list of objects, and a hidden field that says how many there are.
    fn add_rows(&mut self, items: Schema<'_>, path: &str, number: usize, deeper: usize) {
        let counter = "<input type=\"hidden\" name=\"{}\" value=\"{}\" data-rows=\"{}\">";
        let texts = [rows_of(path), number.to_string(), MOST_ROWS.to_string()];
        let [rows, count, most] = &texts;
        self.frame(html(counter, &[rows, count, most]));
        for row in 0..number {
            self.frame(markup("<div class=\"fields item\">"));
            self.add_members(items, &format!("{path}/~#{row}"), deeper);
            self.frame(markup("</div>"));
        }
        self.frame(markup("</fieldset>"));
    }

    /// Adds the forms that a value may have, of which one is chosen.
    fn add_forms(&mut self, schema: Schema<'_>, path: &str, required: bool, deeper: usize) {
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
        if !required {
            self.open_alternative(&group, "", "left out", meant.is_none());
            self.frame(markup("</div></div>"));
        }
        for (number, form) in forms.into_iter().enumerate() {
            let label = match (form.text("title"), form.kind()) {
                (title, _) if !title.is_empty() => title,
                (_, "") => format!("form {}", number + 1),
                (_, kind) => format!("form {}: {}", number + 1, spelled(kind)),
            };
            self.open_alternative(&group, &number.to_string(), &label, meant == Some(number));
            self.add(form, &format!("{path}~@{number}"), true, deeper);
            self.frame(markup("</div></div>"));
        }
        self.frame(markup("</fieldset>"));
    }

    fn open_alternative(&mut self, group: &str, number: &str, label: &str, is_chosen: bool) {
        let checked = markup(if is_chosen { " checked" } else { "" });
        let alternative = "<div class=\"alternative\"><label class=\"row\"><input type=\"radio\" name=\"{}\" \
                           value=\"{}\"{}> {}</label><div class=\"fields\">";
        self.frame(html(alternative, &[&group, &number, &checked, &label]));
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

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    const EMPTY: FormValues<'_> = FormValues::By(None);

    pub(super) fn schema() -> Value {
        json!({
            "type": "object",
            "required": ["title", "count", "target"],
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
                        {"type": "object", "required": ["wide"], "properties": {"wide": {"type": "boolean"}}}}}}},
                "where": {"type": "object", "properties": {"a/b": {"type": "string"}}},
                "target": {"oneOf": [
                    {"title": "a person", "type": "object", "required": ["kind", "mail"], "properties": {
                        "kind": {"const": "person"}, "mail": {"type": "string"}}},
                    {"title": "a room", "type": "object", "required": ["kind", "number"], "properties": {
                        "kind": {"const": "room"}, "number": {"type": "integer"}}},
                ]},
                "limit": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            },
            "$defs": {"State": {"type": "string", "enum": ["a", "b"]}},
        })
    }

    fn field(parts: &[Part], name: &str) -> InputField {
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

        for (name, kind, value) in [
            ("in:/state", Kind::Choice(vec!["a".to_owned(), "b".to_owned()]), ""),
            ("in:/tags", Kind::Lines, "y\nz"),
            ("in:/parts", Kind::Json, ""),
            ("in:/sizes", Kind::Numbers, "1\n2.5"),
            ("in:/rooms/~#0/name", Kind::Text, "hall"),
            ("in:/rooms/~#0/doors/~#0/wide", Kind::Boolean, "true"),
        ] {
            let field = field(&parts, name);
            assert_eq!((field.kind, &*field.value), (kind, value), "{name}");
        }
        let shown = fields(&schema(), FormValues::By(Some(&input))).into_visible();
        for expected in [
            "<label><span>title <b title=\"required\">*</b></span><textarea name=\"in:/title\" data-kind=\"text\" \
             rows=\"1\">\nx</textarea><small>Name of it</small></label>",
            "<label><span>count <b title=\"required\">*</b></span><input name=\"in:/count\" value=\"3\" \
             data-kind=\"number\" inputmode=\"decimal\" placeholder=\"5\" required></label>",
            "data-kind=\"boolean\"><option value=\"\"></option><option>true</option><option selected>false</option></select>",
            "name=\"in:/rooms/~#1/doors/~#0/wide\" data-kind=\"boolean\"><option",
            "name=\"in:/target~@1/number\" value=\"4\" data-kind=\"number\" inputmode=\"decimal\">",
            "<small>Its state</small>",
            "<span>where/a~1b</span>",
            "name=\"rows:/rooms\" value=\"2\" data-rows=\"8\">",
            "name=\"rows:/rooms/~#0/doors\" value=\"2\"",
            "<span>rooms/1/name <b title=\"required\">*</b></span>",
            "name=\"of:/target\" value=\"1\" checked> a room</label>",
            "name=\"of:/limit\" value=\"\" checked> left out</label>",
        ] {
            assert!(shown.contains(expected), "{expected}: {shown}");
        }
    }

    #[test]
    fn a_form_that_was_wrong_comes_back_as_it_was_sent() {
        let form = Form::of([
            ("in:/count", "many"),
            ("of:/target", "1"),
            ("in:/target~@1/number", "x"),
            ("rows:/rooms", "2"),
            ("in:/rooms/~#1/name", "hall"),
        ]);

        let parts = parts(&schema(), FormValues::As(&form));

        for name in ["in:/count", "in:/target~@1/number", "in:/rooms/~#1/name"] {
            assert_eq!(Some(&*field(&parts, name).value), form.field(name));
        }
        let shown = fields(&schema(), FormValues::As(&form)).into_visible();
        assert!(shown.contains("name=\"of:/target\" value=\"1\" checked>"), "{shown}");
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
        let parts_of_long = parts(&schema(), FormValues::By(Some(&long)));
        assert_eq!(field(&parts_of_long, "in:/rooms").kind, Kind::Json);
        let many = json!({"properties": {"a": {"type": "array", "items": {"$ref": "#"}}}});
        let rows = json!({"a": vec![json!({"a": vec![json!({}); MOST_ROWS]}); MOST_ROWS]});
        assert!(parts(&many, FormValues::By(Some(&rows))).len() < 260);

        let many: Map<String, Value> =
            (0..500).map(|n| (format!("m{n}"), json!({"$ref": "#"}))).collect();
        let many = json!({"properties": many, "oneOf": [{"$ref": "#"}, {"$ref": "#"}]});
        assert!(parts(&many, EMPTY).len() < 100);
    }
}
