//! Definitions as the server lists them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Hostile, HostileTool, Script, Shared};

impl Hostile {
    /// Lists these tools in place of those before, and answers by them. Clients are not told.
    pub fn replace(&self, tools: Vec<HostileTool>) {
        *self.shared.tools.lock().expect("the tools") = Arc::new(tools);
    }
}

impl Shared {
    pub(super) fn tools(&self) -> Arc<Vec<HostileTool>> {
        Arc::clone(&self.tools.lock().expect("the tools"))
    }
}

impl HostileTool {
    pub(super) fn is_tool(&self) -> bool {
        let is_more = self.is_list() || self.name.contains(['?', '#']);
        self.prompt.is_none() && self.resource.is_none() && self.skill.is_none() && !is_more
    }

    /// True if it stands for the answer to the method of its name, which is that of a list.
    pub(super) fn is_list(&self) -> bool {
        ["prompts/list", "resources/list", "resources/templates/list", "skills/list"]
            .contains(&&*self.name)
    }

    pub(super) const fn is_skill(&self) -> bool {
        self.skill.is_some()
    }

    /// The entry of a skill in lists.
    fn entry(&self) -> Option<Value> {
        let mut entry = self.skill.clone()?;
        entry.as_object_mut()?.insert("uri".to_owned(), json!(self.name));
        Some(entry)
    }

    /// The script of the answer to a request for a skill: its entry in place of an echo.
    pub(super) fn entry_script(&self) -> Script {
        match (&self.script, self.entry()) {
            (Script::Echo, Some(entry)) => Script::Result(json!({ "skill": entry }).to_string()),
            (script, _) => script.clone(),
        }
    }

    /// True for the resource of this URI, and for a template that begins like it.
    pub(super) fn reads(&self, uri: &str) -> bool {
        let literal = self.name.split('{').next().unwrap_or_default();
        self.resource.is_some()
            && (self.name == uri || (literal != self.name && uri.starts_with(literal)))
    }
}

/// The member of the answer to a list of this method, and what stands in it.
pub(super) fn listed(tools: &[HostileTool], method: &str) -> (&'static str, Vec<Value>) {
    match method {
        "prompts/list" => ("prompts", tools.iter().filter_map(define_prompt).collect()),
        "resources/list" => ("resources", define_resources(tools, "uri")),
        "skills/list" => ("skills", tools.iter().filter_map(HostileTool::entry).collect()),
        "resources/templates/list" => ("resourceTemplates", define_resources(tools, "uriTemplate")),
        _ => ("tools", tools.iter().filter(|it| it.is_tool()).map(define).collect()),
    }
}

fn define(tool: &HostileTool) -> Value {
    let mut defined = json!({
        "name": tool.name, "description": tool.description, "inputSchema": tool.schema,
    });
    let more = [("outputSchema", &tool.output), ("_meta", &tool.meta)];
    for (name, value) in more.into_iter().filter_map(|(name, it)| Some((name, it.clone()?))) {
        defined.as_object_mut().expect("an object").insert(name.to_owned(), value);
    }
    defined
}

fn define_prompt(tool: &HostileTool) -> Option<Value> {
    let arguments = tool.prompt.as_ref()?;
    Some(json!({"name": tool.name, "description": tool.description, "arguments": arguments}))
}

/// The resources, or the templates, whose names stand in this member.
fn define_resources(tools: &[HostileTool], member: &str) -> Vec<Value> {
    let of_list = |it: &&HostileTool| it.name.contains('{') == (member == "uriTemplate");
    let define = |it: &HostileTool| {
        let mut defined = it.resource.clone()?;
        let members = defined.as_object_mut()?;
        members.insert(member.to_owned(), json!(it.name));
        members.insert("description".to_owned(), json!(it.description));
        Some(defined)
    };
    tools.iter().filter(of_list).filter_map(define).collect()
}
