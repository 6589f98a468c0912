//! Definitions as the server lists them.

use serde_json::{Value, json};

use super::HostileTool;

impl HostileTool {
    pub(super) fn is_tool(&self) -> bool {
        self.prompt.is_none() && self.resource.is_none()
    }

    /// True for the resource of this URI, and for a template that begins like it.
    pub(super) fn reads(&self, uri: &str) -> bool {
        let literal = self.name.split('{').next().unwrap_or_default();
        self.resource.is_some()
            && (self.name == uri || (literal != self.name && uri.starts_with(literal)))
    }
}

pub(super) fn define(tool: &HostileTool) -> Value {
    let mut defined = json!({
        "name": tool.name, "description": tool.description, "inputSchema": tool.schema,
    });
    if let (Some(output), Some(members)) = (&tool.output, defined.as_object_mut()) {
        members.insert("outputSchema".to_owned(), output.clone());
    }
    defined
}

pub(super) fn define_prompt(tool: &HostileTool) -> Option<Value> {
    let arguments = tool.prompt.as_ref()?;
    Some(json!({"name": tool.name, "description": tool.description, "arguments": arguments}))
}

/// The resources, or the templates, whose names stand in this member.
pub(super) fn define_resources(tools: &[HostileTool], member: &str) -> Vec<Value> {
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
