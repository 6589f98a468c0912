//! A definition as JSON, what two of them differ in, and names that look like one another.

use serde_json::{Value, json};

use super::{ToolDefinition, ToolName};

/// The members of a definition, in the order in which they are told.
const MEMBERS: [&str; 6] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];
/// The most places of a difference that are told.
const MAX_DIFFERENCES: usize = 1_000;

/// One place in which two definitions differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// JSON Pointer into the definition.
    pub path: String,
    /// The value before, if any.
    pub old: Option<Value>,
    /// The value now, if any.
    pub new: Option<Value>,
}

impl ToolDefinition {
    /// The definition as JSON; [`Self::from_json`] reads it back.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name.as_str(),
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": self.annotations,
        })
    }

    /// Reads what [`Self::to_json`] wrote; `None` for anything else.
    #[must_use]
    pub fn from_json(mut value: Value) -> Option<Self> {
        let mut take = |name: &str| value.get_mut(name).map(Value::take);
        let name = take("name")?;
        let title = take("title")?;
        let description = take("description")?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(Self {
            name: name.as_str()?.parse().ok()?,
            title: text(&title),
            description: text(&description),
            input_schema: take("inputSchema").filter(Value::is_object)?,
            output_schema: take("outputSchema").filter(|schema| !schema.is_null()),
            annotations: take("annotations")?,
        })
    }

    /// The members in which it differs from `other`: names of members, and nothing that an upstream
    /// wrote.
    #[must_use]
    pub fn members_that_differ(&self, other: &Self) -> Vec<&'static str> {
        let (one, other) = (self.to_json(), other.to_json());
        MEMBERS.into_iter().filter(|name| one.get(name) != other.get(name)).collect()
    }

    /// The places in which `new` differs from it, at most 1,000 of them.
    #[must_use]
    pub fn differences(&self, new: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        compare(&self.to_json(), &new.to_json(), &mut String::new(), &mut found);
        found
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
        let (one, other) = (before.get(name), after.get(name));
        compare(one.unwrap_or(&Value::Null), other.unwrap_or(&Value::Null), path, found);
        path.truncate(length);
    }
}

impl ToolName {
    /// The name with letters that look alike folded into one: case, `-`, `.` and `_`, `0` and `o`,
    /// `1`, `i` and `l`. Two tools of one provider with the same rest are twins.
    #[must_use]
    pub fn skeleton(&self) -> String {
        let letters = self.as_str().chars().map(|letter| match letter.to_ascii_lowercase() {
            '-' | '.' => '_',
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

    fn definition(description: &str, schema: Value) -> ToolDefinition {
        ToolDefinition {
            name: "list_items".parse().unwrap(),
            title: None,
            description: Some(description.to_owned()),
            input_schema: schema,
            output_schema: None,
            annotations: Value::Null,
        }
    }

    #[test]
    fn a_definition_reads_back_as_it_was() {
        let mut one = definition("Lists.", json!({"type": "object", "maximum": 10}));
        assert_eq!(ToolDefinition::from_json(one.to_json()), Some(one.clone()));

        one.title = Some("T".to_owned());
        one.output_schema = Some(json!({"type": "object"}));
        one.annotations = json!({"readOnlyHint": true});
        assert_eq!(ToolDefinition::from_json(one.to_json()), Some(one));
        assert_eq!(ToolDefinition::from_json(json!({"name": "x"})), None);
        assert_eq!(ToolDefinition::from_json(json!([])), None);
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
    fn names_that_look_alike_have_one_skeleton() {
        let skeleton = |text: &str| text.parse::<ToolName>().unwrap().skeleton();

        for twin in ["List-Items", "list.items", "LIST_ITEMS", "1ist_items", "Iist_items"] {
            assert_eq!(skeleton(twin), skeleton("list_items"), "{twin}");
        }
        for other in ["list_item", "list__items", "lists_items"] {
            assert_ne!(skeleton(other), skeleton("list_items"), "{other}");
        }
    }
}
