//! Attributes of a call's trace about its tool, in the terms of OpenTelemetry's conventions for MCP
//! and generative AI.

use portcullis_core::{
    call::Aim,
    capability::{Capability, CapabilityKind},
};
use portcullis_upstream::{CallAnswer, CallError};

use crate::{request::Ctx, telemetry::traces::recording::Attribute};

/// The attribute that names what is used; URIs of resources are in none.
const fn name_of(kind: CapabilityKind) -> Option<&'static str> {
    match kind {
        CapabilityKind::Tool => Some("gen_ai.tool.name"),
        CapabilityKind::Prompt => Some("gen_ai.prompt.name"),
        CapabilityKind::Resource | CapabilityKind::Template | CapabilityKind::Skill => None,
    }
}

impl Ctx {
    /// Traces the tool of the call, which is a known one and not text of the caller.
    pub(crate) fn trace_tool(&self, tool: &Capability) {
        if let Some(recording) = self.origin.stages.traced() {
            let name = name_of(tool.id.kind());
            recording.tell(name.map(|name| Attribute::text(name, tool.id.short())));
            recording.tell([Attribute::text("portcullis.tool.version", tool.version.as_str())]);
            if tool.id.kind() == CapabilityKind::Tool {
                recording.tell([Attribute::text("gen_ai.operation.name", "execute_tool")]);
            }
        }
    }

    /// The stage is a call of this tool by its server.
    pub(crate) fn trace_call(&self, tool: &Capability, aim: &Aim, network: &'static str) {
        if let Some(recording) = self.origin.stages.traced() {
            let name = tool.definition.name.as_str();
            let method = aim.method(tool.id.kind()).as_str();
            let named = name_of(tool.id.kind());
            let mut attributes = vec![
                Attribute::text("mcp.method.name", method),
                Attribute::text("network.transport", network),
                Attribute::text("portcullis.provider", tool.id.provider()),
            ];
            if tool.id.kind() == CapabilityKind::Tool {
                attributes.push(Attribute::text("gen_ai.operation.name", "execute_tool"));
            }
            attributes.extend(named.map(|named| Attribute::text(named, name)));
            let span = named.map_or_else(|| method.to_owned(), |_| format!("{method} {name}"));
            recording.calls(span, attributes);
        }
    }

    /// Marks the trace as failed if the tool or the call failed.
    pub(crate) fn trace_answer(&self, answered: &Result<CallAnswer, CallError>) {
        let Some(recording) = self.origin.stages.traced() else { return };
        match answered {
            Ok(CallAnswer::Result(result)) if result.is_error => recording.fail("tool_error"),
            Ok(_) => {}
            Err(error) => recording.fail(error.kind.as_str()),
        }
    }
}
