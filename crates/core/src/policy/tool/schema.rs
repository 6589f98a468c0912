//! The policy schema of one tool, generated from its definition.
//!
//! Each tool has its own: validating a policy against a schema of all tools costs with their
//! number, and says nothing more.

use std::sync::Arc;

use cedar_policy::{Schema, SchemaError};
use serde_json::{Map, Value, json};

use crate::capability::{Capability, CapabilityKind};
use crate::policy::{
    language::entity_types::{EVERYTHING, HINTS, KINDS, NAMESPACE, PROVIDER, provider_of},
    tool::{
        catalogue::ToolFacts,
        facts::Fact,
        shape::{Member, Members, record_json},
    },
};

/// Types of a tool's input and structured answer, as policies can read them.
pub(in crate::policy) struct Shapes {
    pub(in crate::policy) input: Members,
    /// `None` when the tool declares no structured answer.
    pub(in crate::policy) output: Option<Members>,
    /// Facts that are computed from the input.
    pub(in crate::policy) facts: Vec<Arc<Fact>>,
}

impl Shapes {
    pub(in crate::policy) fn of(tool: &Capability, facts: Vec<Arc<Fact>>) -> Self {
        let definition = tool.listed_definition();
        let output = definition.output_schema.as_ref();
        Self {
            input: crate::policy::tool::shape::of_object(&definition.input_schema),
            output: output.map(crate::policy::tool::shape::of_object),
            facts,
        }
    }
}

/// The schema in which policies that can apply to the tool are validated. `mentioned` are action
/// ids that those policies name beside this tool's.
pub(in crate::policy) fn of_tool<'a>(
    tool: &ToolFacts,
    shapes: &Shapes,
    mentioned: impl IntoIterator<Item = &'a str>,
) -> Result<Schema, Box<SchemaError>> {
    let mut actions = Map::new();
    for id in mentioned {
        actions.insert(id.to_owned(), json!({}));
    }
    add_groups(&mut actions);
    add_tool(&mut actions, tool, shapes);
    Schema::from_json_value(namespace(&actions)).map_err(Box::new)
}

/// The schema of many tools at once, as JSON. Nothing is validated against it here: it is for
/// editors and other tools of people who write policies.
pub(in crate::policy) fn of_tools(tools: impl IntoIterator<Item = (ToolFacts, Shapes)>) -> Value {
    let mut actions = Map::new();
    add_groups(&mut actions);
    for (tool, shapes) in tools {
        add_tool(&mut actions, &tool, &shapes);
    }
    namespace(&actions)
}

fn namespace(actions: &Map<String, Value>) -> Value {
    json!({ NAMESPACE: { "entityTypes": entity_types(), "actions": actions } })
}

/// The groups that capabilities of all providers are in.
fn add_groups(actions: &mut Map<String, Value>) {
    for id in HINTS.into_iter().chain(KINDS).chain([EVERYTHING]) {
        actions.insert(id.to_owned(), json!({}));
    }
}

/// A tool or prompt and the groups of its provider.
fn add_tool(actions: &mut Map<String, Value>, tool: &ToolFacts, shapes: &Shapes) {
    let of_provider = format!("{PROVIDER}{}", provider_of(&tool.id).unwrap_or_default());
    for group in [&tool.provider_group, &of_provider] {
        actions.insert(group.clone(), json!({ "memberOf": [{ "id": EVERYTHING }] }));
    }
    let resource = match tool.kind {
        CapabilityKind::Tool => "Tool",
        CapabilityKind::Prompt => "Prompt",
        CapabilityKind::Resource | CapabilityKind::Template => "Resource",
        CapabilityKind::Skill => "Skill",
    };
    let groups: Vec<Value> = tool.groups.iter().map(|group| json!({ "id": group })).collect();
    let applies_to = json!({
        "principalTypes": ["User", "Service"],
        "resourceTypes": [resource],
        "context": context(shapes, tool.kind),
    });
    actions.insert(tool.id.clone(), json!({ "memberOf": groups, "appliesTo": applies_to }));
}

fn entity_types() -> Value {
    let principal = json!({
        "memberOfTypes": ["Group", "Role", "Scope", "Org"],
        "shape": principal_shape(),
        "tags": { "type": "Set", "element": { "type": "String" } },
    });
    let tool = json!({
        "memberOfTypes": ["Provider", "Label"],
        "shape": record(&[
            ("provider", "String", true),
            ("name", "String", true),
            ("read_only", "Boolean", true),
            ("destructive", "Boolean", true),
            ("idempotent", "Boolean", true),
            ("open_world", "Boolean", true),
            ("risk", "Long", true),
            ("schema_enforced", "Boolean", true),
        ]),
    });
    json!({
        "Org": {}, "Role": {}, "Scope": {}, "Provider": {}, "Label": {},
        "Group": { "memberOfTypes": ["Group", "Org"] },
        "User": principal, "Service": principal,
        "Tool": tool, "Prompt": tool, "Resource": tool, "Skill": tool,
    })
}

/// The attributes of a principal: its id, the OAuth client that its token was granted to, and the level and the
/// methods of its login.
fn principal_shape() -> Value {
    let text = |required: bool| json!({ "type": "String", "required": required });
    let client = json!({ "id": text(true), "kind": text(true), "name": text(true) });
    json!({ "type": "Record", "attributes": {
        "id": text(true),
        "acr": text(false),
        "amr": { "type": "Set", "required": true, "element": { "type": "String" } },
        "client": { "type": "Record", "required": false, "attributes": client },
    } })
}

fn record(members: &[(&str, &str, bool)]) -> Value {
    let attribute = |(name, kind, required): &(&str, &str, bool)| {
        let kind = match *kind {
            "datetime" | "ipaddr" => json!({
                "type": "Extension", "name": kind, "required": required,
            }),
            _ => json!({ "type": kind, "required": required }),
        };
        ((*name).to_owned(), kind)
    };
    let attributes: Map<String, Value> = members.iter().map(attribute).collect();
    json!({ "type": "Record", "attributes": attributes })
}

fn dlp(required: bool) -> Value {
    json!({
        "type": "Record", "required": required,
        "attributes": {
            "findings": { "type": "Set", "element": { "type": "String" } },
            "count": { "type": "Long" },
            "max_severity": { "type": "Long" },
            "media": { "type": "Long" },
        },
    })
}

/// Facts are there as far as policies are concerned: one that is missing is an error, and an error
/// closes.
fn facts(facts: &[Arc<Fact>]) -> Members {
    let member = |fact: &Arc<Fact>| {
        (fact.name.clone(), Member { required: true, shape: fact.shape().clone() })
    };
    facts.iter().map(member).collect()
}

fn context(shapes: &Shapes, kind: CapabilityKind) -> Value {
    let request = record(&[
        ("time", "datetime", true),
        ("hour_utc", "Long", true),
        ("weekday", "Long", true),
        ("ip", "ipaddr", false),
        ("mfa", "Boolean", true),
        ("session", "String", false),
        ("bytes", "Long", true),
    ]);
    let mut agent = record(&[("id", "String", true), ("kind", "String", true)]);
    let optional = |kind: &mut Value| {
        if let Value::Object(kind) = kind {
            kind.insert("required".to_owned(), Value::Bool(false));
        }
    };
    optional(&mut agent);
    let mut attributes = Map::new();
    attributes.insert("input".to_owned(), record_json(&shapes.input));
    attributes.insert("facts".to_owned(), record_json(&facts(&shapes.facts)));
    attributes.insert("dlp".to_owned(), dlp(true));
    attributes.insert("request".to_owned(), request);
    attributes.insert("agent".to_owned(), agent);
    attributes.insert("dlp_output".to_owned(), dlp(false));
    if kind == CapabilityKind::Resource {
        let members = ["uri", "scheme", "host", "path"].map(|name| (name, "String", true));
        let more = [("mime", "String", false), ("listed", "Boolean", true)];
        let resource: Vec<_> = members.into_iter().chain(more).collect();
        attributes.insert("resource".to_owned(), record(&resource));
    }
    if kind == CapabilityKind::Skill {
        let skill = record(&[("uri", "String", true), ("digest", "String", false)]);
        attributes.insert("skill".to_owned(), skill);
    }
    if let Some(output) = &shapes.output {
        let mut output = record_json(output);
        optional(&mut output);
        attributes.insert("output".to_owned(), output);
    }
    json!({ "type": "Record", "attributes": attributes })
}
