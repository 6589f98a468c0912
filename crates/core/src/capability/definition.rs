//! A definition as JSON, what two of them differ in, and names that look like one another.

use serde_json::{Value, json};

use super::{CapabilityKind, CapabilityName, Definition};
use crate::{
    dlp::{Engine, Unshowable},
    json,
    mcp::apps::UI,
};

/// The members of a definition, in the order in which they are told.
const MEMBERS: [&str; 10] = [
    "name", "title", "description", "inputSchema", "outputSchema", "annotations", "arguments",
    "resource", "ui", "skill",
];
/// The most places of a difference that are told.
const MAX_DIFFERENCES: usize = 1_000;

/// One place in which two definitions differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// JSON Pointer into the definition.
    pub path: String,
    pub old: Option<Value>,
    pub new: Option<Value>,
}

impl Definition {
    /// The definition as JSON; [`Self::from_json`] reads it back.
    #[must_use]
    pub fn to_json(&self) -> Value {
        if self.kind == CapabilityKind::Prompt {
            return json!({
                "kind": self.kind,
                "name": self.name.as_str(),
                "title": self.title,
                "description": self.description,
                "arguments": self.more,
            });
        }
        if self.kind.governed() == CapabilityKind::Resource {
            return json!({
                "kind": self.kind,
                "name": self.name.as_str(),
                "title": self.title,
                "description": self.description,
                "annotations": self.annotations,
                "resource": self.more,
            });
        }
        if self.kind == CapabilityKind::Skill {
            let name = self.name.as_str();
            return json!({ "kind": self.kind, "name": name, "title": null, "skill": self.more });
        }
        let mut tool = json!({
            "name": self.name.as_str(),
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": self.annotations,
        });
        if let (Some(ui), Value::Object(members)) = (self.ui(), &mut tool) {
            members.insert(UI.to_owned(), ui.clone());
        }
        tool
    }

    /// Reads what [`Self::to_json`] wrote; `None` for anything else.
    #[must_use]
    pub fn from_json(mut value: Value) -> Option<Self> {
        let mut take = |name: &str| value.get_mut(name).map(Value::take);
        let name = take("name")?;
        let title = take("title")?;
        let kind: CapabilityKind = match take("kind") {
            Some(kind) => CapabilityKind::from_word(kind.as_str()?)?,
            None => CapabilityKind::Tool,
        };
        let name = CapabilityName::of_kind(kind, name.as_str()?).ok()?;
        if kind == CapabilityKind::Skill {
            return Some(Self::skill(name, take("skill")?));
        }
        let description = take("description")?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (title, description) = (text(&title), text(&description));
        match kind {
            CapabilityKind::Tool | CapabilityKind::Skill => {}
            CapabilityKind::Prompt => {
                return Some(Self { title, description, ..Self::prompt(name, take("arguments")?) });
            }
            CapabilityKind::Resource | CapabilityKind::Template => {
                let annotations = take("annotations")?;
                let resource = Self::resource(kind, name, take("resource")?);
                return Some(Self { title, description, annotations, ..resource });
            }
        }
        Some(Self {
            kind: CapabilityKind::Tool,
            more: take(UI).unwrap_or_default(),
            name,
            title,
            description,
            input_schema: take("inputSchema").filter(Value::is_object)?,
            output_schema: take("outputSchema").filter(|schema| !schema.is_null()),
            annotations: take("annotations")?,
        })
    }

    /// The definition as it may be shown, see [`Engine::mask_definition`]. A skill is shown as it is or not at all.
    pub fn cleared(self, engine: &Engine) -> Result<Self, Unshowable> {
        let Some(masked) = engine.mask_definition(&self.to_json())? else { return Ok(self) };
        // Masked in texts only, it always reads back.
        let (detector, path) = ("definition".to_owned(), String::new());
        let masked = Self::from_json(masked).filter(|it| it.kind != CapabilityKind::Skill);
        masked.ok_or(Unshowable::Found { detector, path })
    }

    /// The members in which it differs from `other`: names of members, and nothing that an upstream
    /// wrote.
    #[must_use]
    pub fn members_that_differ(&self, other: &Self) -> Vec<&'static str> {
        let one = self.to_json();
        let other = other.to_json();
        MEMBERS.into_iter().filter(|name| one.get(name) != other.get(name)).collect()
    }

    /// Returns true if the two have the same values, and some of `enum`, `required`, `default` and `examples` in
    /// another order, as programs list them that keep them in sets.
    #[must_use]
    pub fn is_rearrangement_of(&self, other: &Self) -> bool {
        let arranged = |definition: &Self| {
            let mut arranged = definition.to_json();
            arrange(&mut arranged);
            arranged
        };
        self != other && arranged(self) == arranged(other)
    }

    /// The places in which `new` differs from it, at most 1,000 of them.
    #[must_use]
    pub fn differences(&self, new: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        compare(&self.to_json(), &new.to_json(), &mut String::new(), &mut found);
        found
    }
}

/// Sorts the values whose order says nothing, and the parts of texts between commas among them.
fn arrange(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                arrange(member);
                match (name.as_str(), member) {
                    ("enum" | "required" | "default" | "examples", Value::Array(values)) => {
                        values.sort_by_cached_key(|value| json::canonical(value));
                    }
                    ("default", Value::String(text)) if text.contains(',') => {
                        let mut parts: Vec<&str> = text.split(',').map(str::trim).collect();
                        parts.sort_unstable();
                        *text = parts.join(",");
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(arrange),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn compare(old: &Value, new: &Value, path: &mut String, found: &mut Vec<Difference>) {
    if old == new || found.len() >= MAX_DIFFERENCES {
        return;
    }
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        found.push(Difference {
            path: path.clone(),
            old: Some(old).filter(|it| !it.is_null()).cloned(),
            new: Some(new).filter(|it| !it.is_null()).cloned(),
        });
        return;
    };
    let added = after.keys().filter(|name| !before.contains_key(*name));
    for name in before.keys().chain(added) {
        let length = path.len();
        path.push('/');
        path.push_str(&name.replace('~', "~0").replace('/', "~1"));
        let one = before.get(name);
        let other = after.get(name);
        compare(one.unwrap_or(&Value::Null), other.unwrap_or(&Value::Null), path, found);
        path.truncate(length);
    }
}

impl CapabilityName {
    /// The name with letters that look alike folded into one: case, what is no letter and no digit, `0` and `o`,
    /// `1`, `i` and `l`. Two tools of one provider with the same rest are twins.
    #[must_use]
    pub fn skeleton(&self) -> String {
        let letters = self.as_str().chars().map(|letter| match letter.to_ascii_lowercase() {
            '-' | '.' | ':' | '/' | ' ' => '_',
            '0' => 'o',
            '1' | 'i' => 'l',
            other => other,
        });
        letters.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(description: &str, schema: Value) -> Definition {
        Definition {
            description: Some(description.to_owned()),
            ..Definition::new("list_items".parse().unwrap(), schema)
        }
    }

    #[test]
    fn a_definition_reads_back_as_it_was() {
        let mut one = definition("Lists.", json!({"type": "object", "maximum": 10}));
        assert_eq!(Definition::from_json(one.to_json()), Some(one.clone()));

        one.title = Some("T".to_owned());
        one.output_schema = Some(json!({"type": "object"}));
        one.annotations = json!({"readOnlyHint": true});
        assert_eq!(Definition::from_json(one.to_json()), Some(one));
        for (kind, name) in
            [(CapabilityKind::Resource, "notes://a"), (CapabilityKind::Template, "notes://{a}")]
        {
            let name = CapabilityName::of_kind(kind, name).unwrap();
            let one = Definition::resource(kind, name, json!({"mimeType": "text/plain"}));
            assert_eq!(Definition::from_json(one.to_json()), Some(one));
        }
        let prompt = Definition::prompt("a".parse().unwrap(), json!([{"name": "b"}]));
        assert_eq!(Definition::from_json(prompt.to_json()), Some(prompt));
        assert_eq!(Definition::from_json(json!({"name": "x"})), None);
        assert_eq!(Definition::from_json(json!([])), None);
    }

    #[test]
    fn differences_are_named_by_place_and_members_by_name_only() {
        let old = definition("Lists.", json!({"properties": {"a/b": {"maximum": 1}, "c": {}}}));
        let new = definition("Lists!", json!({"properties": {"a/b": {"maximum": 2}, "d": 1}}));

        let found = old.differences(&new);

        let places: Vec<&str> = found.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(
            places,
            [
                "/description",
                "/inputSchema/properties/a~1b/maximum",
                "/inputSchema/properties/c",
                "/inputSchema/properties/d"
            ]
        );
        assert_eq!((&found[2].old, &found[2].new), (&Some(json!({})), &None));
        assert_eq!((&found[3].old, &found[3].new), (&None, &Some(json!(1))));
        assert_eq!(old.members_that_differ(&new), ["description", "inputSchema"]);
        assert!(old.members_that_differ(&old).is_empty() && old.differences(&old).is_empty());
    }

    #[test]
    fn another_order_of_the_same_values_is_told_from_other_values() {
        let of = |schema: Value| definition("Lists.", json!({"properties": {"a": schema}}));
        for (one, other, same) in [
            (json!({"enum": ["a", "b"]}), json!({"enum": ["b", "a"]}), true),
            (json!({"required": ["a", "b"]}), json!({"required": ["b", "a"]}), true),
            (json!({"default": "x, y,z"}), json!({"default": "z,x,y"}), true),
            (json!({"default": ["x", "y"]}), json!({"default": ["y", "x"]}), true),
            (json!({"examples": [[1, 2], 3]}), json!({"examples": [3, [1, 2]]}), true),
            (json!({"examples": [[1, 2]]}), json!({"examples": [[2, 1]]}), false),
            (json!({"default": "x,y"}), json!({"default": "x,y,rm"}), false),
            (json!({"default": "x y"}), json!({"default": "y x"}), false),
            (json!({"description": "a,b"}), json!({"description": "b,a"}), false),
            (json!({"enum": ["a", "b"]}), json!({"enum": ["a", "b", "b"]}), false),
            (json!({"prefixItems": [1, 2]}), json!({"prefixItems": [2, 1]}), false),
            (json!({"enum": ["a"]}), json!({"enum": ["a"]}), false),
        ] {
            assert_eq!(
                of(one.clone()).is_rearrangement_of(&of(other.clone())),
                same,
                "{one} {other}"
            );
            assert_eq!(
                of(other.clone()).is_rearrangement_of(&of(one.clone())),
                same,
                "{other} {one}"
            );
        }
    }

    #[test]
    fn names_that_look_alike_have_one_skeleton() {
        let skeleton = |text: &str| text.parse::<CapabilityName>().unwrap().skeleton();

        for twin in ["List-Items", "list.items", "LIST_ITEMS", "1ist_items", "Iist_items"] {
            assert_eq!(skeleton(twin), skeleton("list_items"), "{twin}");
        }
        for other in ["list_item", "list__items", "lists_items"] {
            assert_ne!(skeleton(other), skeleton("list_items"), "{other}");
        }
    }

    const KEY: &str = concat!("glpat-", "F4k3abcdefghijklmnop");

    fn clear(description: &str, schema: Value) -> Result<Definition, Unshowable> {
        let engine = Engine::new(&crate::dlp::Settings::default()).unwrap();
        Definition {
            description: Some(description.to_owned()),
            ..Definition::new("list".parse().unwrap(), schema)
        }
        .cleared(&engine)
    }

    #[test]
    fn a_secret_in_words_is_masked_and_the_rest_stays() {
        let schema = json!({"properties": {"a": {"description": KEY, "type": "string"}}});

        let cleared = clear(&format!("Use {KEY}, ask ada@example.org."), schema).unwrap();

        assert_eq!(
            cleared.description.as_deref(),
            Some("Use [REDACTED:gitlab_token], ask ada@example.org.")
        );
        assert_eq!(
            cleared.input_schema,
            json!({"properties": {"a": {"description": "[REDACTED:gitlab_token]", "type": "string"}}})
        );
        assert_eq!(cleared.output_schema, None);
    }

    #[test]
    fn a_secret_that_decides_makes_the_tool_unshowable() {
        for schema in [
            json!({"properties": {"a": {"enum": [KEY]}}}),
            json!({"properties": {KEY: {"description": "x"}}}),
        ] {
            let error = clear("Lists.", schema).unwrap_err().to_string();

            assert!(error.contains("gitlab_token") && !error.contains(KEY), "{error}");
        }
    }
}
