//! A tool, prompt, resource, template or skill as its page names it, shows it and uses it.

use std::collections::BTreeMap;

use percent_encoding::utf8_percent_encode;
use portcullis_app::{Ctx, capability_named, parse_id};
use portcullis_core::{
    capability::{CapabilityId, CapabilityKind},
    json::{Document, JsonValue as _, Node},
    mcp::uris::Template,
    principal::Scope,
    refusal::Refusal,
};
use serde_json::{Map, Value, json};

use super::{
    api::Problem,
    json::{Json, PLAIN},
    schema_form,
    signed_in::Guest,
};
use crate::{
    exchange::body,
    gateway::Gateway,
    pages::form::Form,
    v1::{self, PromptPath, SkillPath, ToolPath},
};

/// The address of the list.
pub(super) const PATH: &str = "/console/tools";

/// The subject of a page.
#[derive(Debug)]
pub(super) struct Capability {
    pub(super) id: CapabilityId,
    /// Answer of the API about it. `input_schema` describes the fields of its form, if it has any, and `read_by` names
    /// what a resource is read by that is in no list.
    pub(super) view: Json,
}

/// The address of the pages of a kind, up to the ids without the kind.
pub(super) fn pages_of(kind: CapabilityKind) -> String {
    format!("{PATH}/{}", utf8_percent_encode(kind.prefix(), PLAIN))
}

impl Capability {
    /// Asks the API for what this id names.
    pub(super) async fn find(guest: &Guest, text: &str) -> Result<Self, Problem> {
        let named = capability_named(text);
        let kind = named.as_ref().map_or(CapabilityKind::Tool, CapabilityId::kind);
        let short = text.strip_prefix(kind.prefix()).unwrap_or(text);
        let get = async |caller| match kind {
            CapabilityKind::Tool => v1::mcps::get(caller, ToolPath::of(short)).await,
            CapabilityKind::Prompt => v1::prompts::get(caller, PromptPath::of(short)).await,
            CapabilityKind::Skill => v1::skills::get(caller, SkillPath::of(short)).await,
            CapabilityKind::Resource | CapabilityKind::Template => {
                Ok(v1::resources::get(&caller, parse_id(kind, short))?)
            }
        };
        let mut view = guest.ask(Some(Scope::McpsRead), get).await?.data;
        let id = named.map_err(Problem::of)?;
        if view.0.get("id").and_then(Value::as_str) != Some(id.short()) {
            let [read_by, access, status] = ["/id", "/access", "/status"].map(|it| view.at(it).0);
            view = Json(json!({ "read_by": read_by, "access": access, "status": status }));
        }
        let schema = match kind {
            CapabilityKind::Prompt => Some(schema_of_arguments(&view)),
            CapabilityKind::Template => Some(schema_of_variables(id.name())),
            CapabilityKind::Tool | CapabilityKind::Resource | CapabilityKind::Skill => None,
        };
        if let (Some(schema), Value::Object(members)) = (schema, &mut view.0) {
            members.insert("input_schema".to_owned(), schema);
        }
        Ok(Self { id, view })
    }

    /// The address of its page.
    pub(super) fn page(&self) -> String {
        format!("{PATH}/{}", utf8_percent_encode(self.id.as_str(), PLAIN))
    }

    /// The input of a use as JSON, before anything is filled in.
    pub(super) fn empty_input(&self) -> String {
        match self.id.kind() {
            CapabilityKind::Tool | CapabilityKind::Prompt => "{}".to_owned(),
            CapabilityKind::Template => json!({ "uri": "" }).to_string(),
            CapabilityKind::Resource | CapabilityKind::Skill => self.own_uri(),
        }
    }

    fn own_uri(&self) -> String {
        json!({ "uri": self.id.name() }).to_string()
    }

    /// The input that a form was filled in to, as JSON; or a sentence about the field that is wrong.
    pub(super) fn input(&self, form: &Form) -> Result<String, String> {
        let kind = self.id.kind();
        if matches!(kind, CapabilityKind::Resource | CapabilityKind::Skill) {
            return Ok(self.own_uri());
        }
        if let Some(raw) = form.field("raw") {
            return Ok(raw.trim().replace("\r\n", "\n"));
        }
        let mut input = schema_form::input(&self.view.at("/input_schema").0, form)?;
        if kind == CapabilityKind::Template {
            input = json!({ "uri": self.expanded(&input)? });
        }
        Ok(serde_json::to_string_pretty(&input).unwrap_or_default())
    }

    /// The URI that the template gives with these variables.
    fn expanded(&self, variables: &Value) -> Result<String, String> {
        let variables = variables.as_object().into_iter().flatten();
        let values: BTreeMap<String, String> = variables
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect();
        let template = Template::parse(self.id.name()).map_err(|error| error.to_string())?;
        template.fill(&values).ok_or_else(|| "The URI is too long.".to_owned())
    }

    /// The id that a use with this input names: that of a resource is made of its URI.
    pub(super) fn used_id(
        id: CapabilityId,
        gateway: &Gateway,
        ctx: &Ctx,
        input: Result<&Document, &Refusal>,
    ) -> Result<CapabilityId, Refusal> {
        match id.kind() {
            CapabilityKind::Tool | CapabilityKind::Prompt => Ok(id),
            CapabilityKind::Resource | CapabilityKind::Template | CapabilityKind::Skill => {
                let uri = input.map_err(Clone::clone)?.root().get("uri").and_then(Node::text);
                let uri = uri.ok_or_else(|| body::wrong_member("uri", "has to be a text"))?;
                gateway.app.tools.resource_at(ctx, Some(id.provider()), uri)
            }
        }
    }
}

/// The schema of the arguments of a prompt, each of which is a text.
fn schema_of_arguments(prompt: &Json) -> Value {
    let all = prompt.items("/arguments");
    let text = |it: &Json, name| it.0.get(name).and_then(Value::as_str).map(str::to_owned);
    let member = |it: &Json| {
        let description = text(it, "description").or_else(|| text(it, "title"));
        Some((text(it, "name")?, json!({ "type": "string", "description": description })))
    };
    let properties: Map<String, Value> = all.iter().filter_map(member).collect();
    let required = all.iter().filter(|it| it.is("/required", "true"));
    let required: Value = required.filter_map(|it| text(it, "name")).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// The schema of the variables of a template.
fn schema_of_variables(template: &str) -> Value {
    let template = Template::parse(template).ok();
    let names = template.iter().flat_map(Template::variables);
    let properties: Map<String, Value> =
        names.map(|name| (name.to_owned(), json!({ "type": "string" }))).collect();
    json!({ "type": "object", "properties": properties })
}
