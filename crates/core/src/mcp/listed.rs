//! Tools, prompts, resources, templates and skills as they stand in the answers to requests for lists.

use serde_json::{Map, Value, json};

use super::{
    Era,
    apps::{AppRules, UI},
    meta, skills, uris,
};
use crate::capability::{Capability, CapabilityKind, Definition};

/// The text of a tool in a list, in two parts: what follows its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTool {
    /// The member that holds its name.
    member: &'static str,
    modern: String,
    /// Text for legacy clients, if it differs.
    legacy: Option<String>,
    /// Text for hosts of apps, if it differs, and that for legacy ones.
    with_ui: Option<[String; 2]>,
    /// Text where URIs carry their provider, if it differs.
    carried: Option<String>,
}

impl ListedTool {
    /// Prepares the text of a tool, which is what was accepted of its definition; of a page what the rules permit.
    #[must_use]
    pub fn new(tool: &Capability, rules: Option<&AppRules>) -> Self {
        let definition = tool.listed_definition();
        let modern = members(tool, definition.output_schema.as_ref(), None);
        let output = definition.output_schema.as_ref();
        let ui = rules.and_then(|rules| ui_of(definition, rules));
        let legacy_output = output.filter(|schema| is_of_objects(schema));
        let with_ui =
            ui.map(|ui| [output, legacy_output].map(|it| members(tool, it, Some(ui.clone()))));
        let legacy = definition.output_schema.as_ref().filter(|schema| !is_of_objects(schema));
        let member = match definition.kind {
            CapabilityKind::Tool | CapabilityKind::Prompt => "name",
            CapabilityKind::Resource | CapabilityKind::Skill => "uri",
            CapabilityKind::Template => "uriTemplate",
        };
        let legacy = legacy.map(|_| members(tool, None, None));
        let is_skill = definition.kind == CapabilityKind::Skill;
        Self { member, modern, legacy, with_ui, carried: is_skill.then(|| carried(tool)) }
    }

    /// Writes the tool under this name, which needs no escape, with its page for a host of apps. Clients of the older era
    /// know `structuredContent` as an object only, so a schema of anything else is left out for them. The name may be one
    /// that is `unique` among providers.
    pub fn write(&self, name: &str, unique: bool, era: Era, hosts_apps: bool, out: &mut String) {
        let with_ui = self.with_ui.as_ref().filter(|_| hosts_apps);
        let carried = self.carried.as_ref().filter(|_| unique);
        let rest = match (era, &self.legacy, with_ui) {
            (Era::Modern, _, Some([modern, _])) => modern,
            (Era::Legacy(_), _, Some([_, legacy])) | (Era::Legacy(_), Some(legacy), None) => legacy,
            (Era::Legacy(_), None, None) | (Era::Modern, _, None) => {
                carried.unwrap_or(&self.modern)
            }
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
        let more = self.legacy.iter().chain(self.with_ui.iter().flatten()).chain(&self.carried);
        self.modern.len() + more.map(String::len).sum::<usize>()
    }
}

/// The members that describe a tool, whatever its name.
#[must_use]
pub fn described(definition: &Definition) -> Map<String, Value> {
    let mut members = Map::new();
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
            let more = more.filter(|(name, _)| *name != UI);
            more.for_each(|(name, value)| add(name, value.clone()));
            add("annotations", definition.annotations.clone());
            return members;
        }
        CapabilityKind::Skill => {
            let entry = skills::entry(&definition.more, str::to_owned);
            return Map::from_iter(entry.map(|(name, value)| (name.to_owned(), value)));
        }
    }
    add("inputSchema", object_schema(definition.input_schema.clone()));
    add("outputSchema", json!(definition.output_schema));
    add("annotations", definition.annotations.clone());
    members
}

/// The `ui` of a tool, or of a page as far as the rules permit it.
fn ui_of(definition: &Definition, rules: &AppRules) -> Option<Value> {
    match definition.kind {
        CapabilityKind::Tool => definition.ui().cloned(),
        CapabilityKind::Prompt | CapabilityKind::Skill => None,
        CapabilityKind::Resource | CapabilityKind::Template => {
            definition.more.get(UI).map(|ui| rules.narrow(ui).0)
        }
    }
}

fn members(tool: &Capability, output: Option<&Value>, ui: Option<Value>) -> String {
    let mut members = described(tool.listed_definition());
    if output.is_none() {
        members.remove("outputSchema");
    }
    let mut meta = json!({(meta::TOOL): tool.id.short()});
    if let (Some(ui), Value::Object(meta)) = (ui, &mut meta) {
        meta.insert(UI.to_owned(), ui);
    }
    members.insert(meta::META.to_owned(), meta);
    text_of(members)
}

/// The same of a skill whose URIs carry their provider.
fn carried(skill: &Capability) -> String {
    let slug = skill.id.provider();
    let entry = skills::entry(&skill.definition.more, |uri| uris::outer(slug, uri));
    let meta = (meta::META, json!({(meta::TOOL): skill.id.short()}));
    let members = entry.into_iter().chain([meta]);
    text_of(members.map(|(name, value)| (name.to_owned(), value)).collect())
}

fn text_of(members: Map<String, Value>) -> String {
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
            more: json!({"resourceUri": "ui://a/b"}),
            ..Definition::new("get.it".parse().unwrap(), input)
        };
        Capability::new(&"a".parse().unwrap(), definition, Timestamp::default()).unwrap()
    }

    fn listed(tool: &Capability, era: Era) -> Value {
        let mut text = String::new();
        ListedTool::new(tool, Some(&AppRules::default()))
            .write("a__get_it", true, era, true, &mut text);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_tool_is_listed_with_all_that_was_accepted_and_its_id() {
        let schema = json!({"properties": {"x": {"type": "integer"}}});
        let tool = tool(schema, Some(json!({"type": "array"})));
        let page = json!({"resourceUri": "ui://a/b"});

        assert_eq!(
            listed(&tool, Era::Modern),
            json!({
                "name": "a__get_it",
                "title": "Get \"it\"",
                "inputSchema": {"type": "object", "properties": {"x": {"type": "integer"}}},
                "outputSchema": {"type": "array"},
                "annotations": {"readOnlyHint": true},
                "_meta": {"dev.portcullis/tool": "a:get.it", "ui": page},
            })
        );
        let mut text = String::new();
        let known = ListedTool::new(&tool, Some(&AppRules::default()));
        known.write("a__get_it", true, Era::Modern, false, &mut text);
        assert!(!text.contains("ui://"), "{text}");
        let legacy = listed(&tool, Era::Legacy("2025-11-25"));
        assert_eq!((legacy.get("outputSchema"), &legacy["_meta"]["ui"]), (None, &page));
    }
}
