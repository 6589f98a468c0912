//! Tools, prompts, resources and templates as they stand in the answers to requests for lists.

use serde_json::{Value, json};

use super::{Era, meta};
use crate::capability::{Capability, CapabilityKind, Definition};

/// The text of a tool in a list, in two parts: what follows its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTool {
    /// The member that holds its name.
    member: &'static str,
    modern: String,
    /// Text for legacy clients, if it differs.
    legacy: Option<String>,
}

impl ListedTool {
    /// Prepares the text of a tool, which is what was accepted of its definition.
    #[must_use]
    pub fn new(tool: &Capability) -> Self {
        let definition = tool.listed_definition();
        let modern = members(tool, definition.output_schema.as_ref());
        let legacy = definition.output_schema.as_ref().filter(|schema| !is_of_objects(schema));
        let member = match definition.kind {
            CapabilityKind::Tool | CapabilityKind::Prompt => "name",
            CapabilityKind::Resource => "uri",
            CapabilityKind::Template => "uriTemplate",
        };
        Self { member, modern, legacy: legacy.map(|_| members(tool, None)) }
    }

    /// Writes the tool under this name, which needs no escape. Clients of the older era know
    /// `structuredContent` as an object only, so a schema of anything else is left out for them.
    pub fn write(&self, name: &str, era: Era, out: &mut String) {
        let rest = match (era, &self.legacy) {
            (Era::Legacy(_), Some(legacy)) => legacy,
            (Era::Legacy(_), None) | (Era::Modern, _) => &self.modern,
        };
        out.push_str("{\"");
        out.push_str(self.member);
        out.push_str("\":\"");
        out.push_str(name);
        out.push_str("\",");
        out.push_str(rest);
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.modern.len() + self.legacy.as_ref().map_or(0, String::len)
    }
}

/// The members that describe a tool, whatever its name.
#[must_use]
pub fn described(definition: &Definition) -> serde_json::Map<String, Value> {
    let mut members = serde_json::Map::new();
    let mut add = |name: &str, value: Value| {
        if !value.is_null() {
            members.insert(name.to_owned(), value);
        }
    };
    add("title", json!(definition.title));
    add("description", json!(definition.description));
    match definition.kind {
        CapabilityKind::Tool => {}
        CapabilityKind::Prompt => {
            add("arguments", definition.more.clone());
            return members;
        }
        CapabilityKind::Resource | CapabilityKind::Template => {
            let more = definition.more.as_object().into_iter().flatten();
            more.for_each(|(name, value)| add(name, value.clone()));
            add("annotations", definition.annotations.clone());
            return members;
        }
    }
    add("inputSchema", object_schema(definition.input_schema.clone()));
    add("outputSchema", json!(definition.output_schema));
    add("annotations", definition.annotations.clone());
    members
}

fn members(tool: &Capability, output: Option<&Value>) -> String {
    let mut members = described(tool.listed_definition());
    if output.is_none() {
        members.remove("outputSchema");
    }
    members.insert(meta::META.to_owned(), json!({(meta::TOOL): tool.id.short()}));
    let text = Value::Object(members).to_string();
    text.strip_prefix('{').map(str::to_owned).unwrap_or_default()
}

/// Arguments are an object in any case, and clients refuse a whole list in which a schema does not
/// say so.
fn object_schema(mut schema: Value) -> Value {
    if let Value::Object(members) = &mut schema {
        members.entry("type").or_insert_with(|| Value::from("object"));
    }
    schema
}

fn is_of_objects(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    fn tool(input: Value, output: Option<Value>) -> Capability {
        let definition = Definition {
            title: Some("Get \"it\"".to_owned()),
            output_schema: output,
            annotations: json!({"readOnlyHint": true}),
            ..Definition::new("get.it".parse().unwrap(), input)
        };
        Capability::new(&"a".parse().unwrap(), definition, Timestamp::default()).unwrap()
    }

    fn listed(tool: &Capability, era: Era) -> Value {
        let mut text = String::new();
        ListedTool::new(tool).write("a__get_it", era, &mut text);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_tool_is_listed_with_all_that_was_accepted_and_its_id() {
        let schema = json!({"properties": {"x": {"type": "integer"}}});
        let tool = tool(schema, Some(json!({"type": "array"})));

        assert_eq!(
            listed(&tool, Era::Modern),
            json!({
                "name": "a__get_it",
                "title": "Get \"it\"",
                "inputSchema": {"type": "object", "properties": {"x": {"type": "integer"}}},
                "outputSchema": {"type": "array"},
                "annotations": {"readOnlyHint": true},
                "_meta": {"dev.portcullis/tool": "a:get.it"},
            })
        );
        assert_eq!(listed(&tool, Era::Legacy("2025-11-25")).get("outputSchema"), None);
    }
}
