//! JSON Schemas of tools, as forms and readers walk them. They come from strangers: a walk has a number of
//! steps, beyond which the rest is shown as JSON only.

use std::collections::BTreeSet;

use portcullis_core::hidden::spelled;
use serde_json::Value;

/// References that are followed from one place.
const MOST_REFERENCES: usize = 8;
/// Forms of a value, of which a reader is shown a choice.
const MOST_FORMS: usize = 10;

/// A member of objects, as the schema describes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member<'a> {
    pub(super) name: &'a str,
    /// The member itself; what it refers to is behind `resolved`.
    pub(super) schema: Schema<'a>,
    pub(super) required: bool,
}

/// A place in a schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schema<'a> {
    root: &'a Value,
    at: &'a Value,
}

impl<'a> Schema<'a> {
    pub(super) fn of(root: &'a Value) -> Self {
        Self { root, at: root }.resolved()
    }

    fn at(self, at: &'a Value) -> Self {
        Self { root: self.root, at }.resolved()
    }

    /// The schema that a reference within the document names, or the only form beside `null`.
    pub(super) fn resolved(self) -> Self {
        let mut at = self.at;
        for _ in 0..MOST_REFERENCES {
            let named = at.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix('#'));
            let next = named.and_then(|pointer| self.root.pointer(pointer));
            let Some(next) = next.or_else(|| only_form(at)) else { break };
            at = next;
        }
        Self { root: self.root, at }
    }

    /// The members of objects.
    pub(super) fn members(self) -> impl Iterator<Item = Member<'a>> {
        let required = self.at.get("required").and_then(Value::as_array);
        let required: BTreeSet<&str> =
            required.into_iter().flatten().filter_map(Value::as_str).collect();
        let members = self.at.get("properties").and_then(Value::as_object);
        members.into_iter().flatten().map(move |(name, member)| {
            let schema = Self { root: self.root, at: member };
            Member { name, schema, required: required.contains(name.as_str()) }
        })
    }

    pub(super) fn has_members(self) -> bool {
        self.at.get("properties").and_then(Value::as_object).is_some_and(|it| !it.is_empty())
    }

    /// The schema of the items of a list.
    pub(super) fn items(self) -> Option<Self> {
        self.at.get("items").filter(|it| it.is_object()).map(|items| self.at(items))
    }

    /// The forms that a value may have, if there are several that say what it is.
    pub(super) fn forms(self) -> Vec<Self> {
        let forms: Vec<Self> = listed_forms(self.at).map(|form| self.at(form)).collect();
        let tell = |form: &Self| {
            ["type", "properties", "const", "enum"].iter().any(|name| form.at.get(name).is_some())
        };
        if (2..=MOST_FORMS).contains(&forms.len()) && forms.iter().all(tell) {
            forms
        } else {
            Vec::new()
        }
    }

    /// The values that alone are allowed.
    pub(super) fn choices(self) -> Option<Vec<&'a Value>> {
        if let Some(value) = self.at.get("const") {
            return Some(vec![value]);
        }
        if let Some(values) = self.at.get("enum").and_then(Value::as_array) {
            return Some(values.iter().collect());
        }
        let forms = self.forms();
        let values: Option<Vec<_>> = forms.iter().map(|form| form.at.get("const")).collect();
        values.filter(|values| !values.is_empty())
    }

    /// A text of the schema, with hidden characters spelled out.
    pub(super) fn text(self, name: &str) -> String {
        let text = self.at.get(name).and_then(Value::as_str).unwrap_or_default();
        spelled(text).into_owned()
    }

    /// The description of the place itself, or else of what it refers to.
    pub(super) fn description(self) -> String {
        let own = self.text("description");
        if own.is_empty() { self.resolved().text("description") } else { own }
    }

    /// A value of the schema as JSON, with hidden characters spelled out; empty without one.
    pub(super) fn json(self, name: &str) -> String {
        self.at.get(name).map(|value| spelled(&value.to_string()).into_owned()).unwrap_or_default()
    }

    /// The type that values have, `null` aside; empty if there are several or none.
    pub(super) fn kind(self) -> &'a str {
        let named = self.at.get("type");
        match named.and_then(Value::as_array) {
            Some(kinds) => {
                let mut kinds = kinds.iter().filter_map(Value::as_str).filter(|it| *it != "null");
                kinds.next().filter(|_| kinds.next().is_none()).unwrap_or_default()
            }
            None => named.and_then(Value::as_str).unwrap_or_default(),
        }
    }

    /// Returns true if a value may be meant by this form: by its type, its fixed members, and those it needs.
    pub(super) fn may_be(self, value: &Value) -> bool {
        let has_kind = match self.kind() {
            "string" => value.is_string(),
            "number" | "integer" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => true,
        };
        let is_chosen = self.choices().is_none_or(|choices| choices.contains(&value));
        let fits = |member: Member<'_>| match value.get(member.name) {
            Some(value) => member.schema.resolved().choices().is_none_or(|it| it.contains(&value)),
            None => !member.required,
        };
        has_kind && is_chosen && (!self.has_members() || self.members().all(fits))
    }
}

fn listed_forms(schema: &Value) -> impl Iterator<Item = &Value> {
    let forms = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array);
    let is_null = |form: &&Value| form.get("type").and_then(Value::as_str) == Some("null");
    forms.into_iter().flatten().filter(move |form| !is_null(form))
}

fn only_form(schema: &Value) -> Option<&Value> {
    let mut forms = listed_forms(schema);
    forms.next().filter(|_| forms.next().is_none())
}

/// A line of a schema that is read as a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SchemaRow {
    pub(super) depth: usize,
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) required: bool,
    pub(super) description: String,
    /// Bounds of values beside their type.
    pub(super) bounds: String,
}

/// Lines of a tree.
const MOST_ROWS: usize = 150;
/// Levels of a tree.
const DEEPEST: usize = 6;
/// Letters of a bound.
const LONGEST: usize = 200;
/// Members that bound values.
const BOUNDS: [&str; 12] = [
    "const", "enum", "default", "format", "pattern", "minimum", "maximum", "minLength",
    "maxLength", "minItems", "maxItems", "additionalProperties",
];

/// The lines of a schema: its members, those within them, and the forms of each.
pub(super) fn rows(root: &Value) -> Vec<SchemaRow> {
    let mut rows = Vec::new();
    add_rows(Schema::of(root), 0, &mut rows);
    rows
}

fn add_rows(schema: Schema<'_>, depth: usize, rows: &mut Vec<SchemaRow>) {
    if depth >= DEEPEST {
        return;
    }
    for member in schema.members() {
        let name = spelled(member.name).into_owned();
        add_row(name, member.schema, member.required, depth, rows);
    }
    if schema.choices().is_none() {
        for (number, form) in (1..).zip(schema.forms()) {
            add_row(format!("form {number}"), form, false, depth, rows);
        }
    }
    if let Some(items) = schema.items().filter(|it| it.has_members() || !it.forms().is_empty()) {
        add_row("each item".to_owned(), items, false, depth, rows);
    }
}

fn add_row(name: String, own: Schema<'_>, required: bool, depth: usize, rows: &mut Vec<SchemaRow>) {
    if rows.len() >= MOST_ROWS {
        return;
    }
    let schema = own.resolved();
    let bounds = BOUNDS.iter().filter_map(|bound| {
        let value = own.json(bound);
        let value = if value.is_empty() { schema.json(bound) } else { value };
        let cut: String = value.chars().take(LONGEST).collect();
        (!cut.is_empty()).then(|| format!("{bound} {cut}"))
    });
    rows.push(SchemaRow {
        depth,
        name,
        kind: named_kind(schema),
        required,
        description: own.description(),
        bounds: bounds.collect::<Vec<_>>().join(" \u{b7} "),
    });
    add_rows(schema, depth + 1, rows);
}

fn named_kind(schema: Schema<'_>) -> String {
    let items = schema.items().map(Schema::kind).filter(|kind| !kind.is_empty());
    match (schema.kind(), items) {
        ("array", Some(items)) => format!("list of {items}"),
        ("array", None) => "list".to_owned(),
        ("", _) if !schema.forms().is_empty() => "one of several forms".to_owned(),
        ("", _) if schema.has_members() => "object".to_owned(),
        ("", _) => "any value".to_owned(),
        (kind, _) => spelled(kind).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn a_schema_is_read_as_lines() {
        let schema = json!({
            "required": ["where"],
            "properties": {
                "where": {"$ref": "#/$defs/Place", "description": "Where it is"},
                "count": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": null},
                "tags": {"type": "array", "items": {"type": "string"}},
                "target": {"oneOf": [
                    {"type": "object", "properties": {"id": {"type": "string"}}},
                    {"type": "string"},
                ]},
                "sneaky\u{202e}": {"type": ["string", "null"]},
            },
            "$defs": {"Place": {"type": "object", "description": "A place", "properties": {
                "city": {"type": "string", "maxLength": 9},
                "next": {"$ref": "#/$defs/Place"},
            }}},
        });

        let rows = rows(&schema);
        let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap();

        let place = row("where");
        assert_eq!((&*place.kind, place.required), ("object", true));
        assert_eq!(place.description, "Where it is");
        assert_eq!((row("city").depth, &*row("city").bounds), (1, "maxLength 9"));
        assert_eq!(row("next").description, "A place");
        assert_eq!(rows.iter().map(|row| row.depth).max(), Some(DEEPEST - 1));
        assert_eq!(
            (&*row("count").kind, &*row("count").bounds),
            ("integer", "default null \u{b7} minimum 1")
        );
        assert_eq!(row("tags").kind, "list of string");
        assert_eq!(row("target").kind, "one of several forms");
        assert_eq!((row("id").depth, &*row("form 2").kind), (2, "string"));
        assert_eq!(row("sneaky[U+202E]").kind, "string");
    }

    #[test]
    fn a_schema_of_a_stranger_has_a_bounded_tree() {
        let wide: Map<String, Value> =
            (0..900).map(|n| (format!("m{n}"), json!({"$ref": "#"}))).collect();
        assert_eq!(rows(&json!({"properties": wide})).len(), MOST_ROWS);
        let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
        assert_eq!(rows(&circle), Vec::new());
        let long = json!({"properties": {"a": {"pattern": "x".repeat(5_000)}}});
        assert!(rows(&long)[0].bounds.len() < 300);
    }
}
