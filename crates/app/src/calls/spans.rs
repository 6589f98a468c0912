//! Attributes of a call's trace about its tool, in the terms of OpenTelemetry's conventions for MCP
//! and generative AI.

use portcullis_core::capability::Capability;
use portcullis_upstream::{CallAnswer, CallError};

use crate::{request::Ctx, telemetry::traces::recording::Attribute};

impl Ctx {
    /// Traces the tool of the call, which is a known one and not text of the caller.
    pub(crate) fn trace_tool(&self, tool: &Capability) {
        if let Some(recording) = self.origin.stages.traced() {
            recording.tell([
                Attribute::text("gen_ai.operation.name", "execute_tool"),
                Attribute::text("gen_ai.tool.name", tool.id.as_str()),
                Attribute::text("portcullis.tool.version", tool.version.as_str()),
            ]);
        }
    }

    /// The stage is a call of this tool by its server.
    pub(crate) fn trace_call(&self, tool: &Capability, network: &'static str) {
        if let Some(recording) = self.origin.stages.traced() {
            let name = tool.definition.name.as_str();
            let attributes = vec![
                Attribute::text("mcp.method.name", "tools/call"),
                Attribute::text("gen_ai.operation.name", "execute_tool"),
                Attribute::text("gen_ai.tool.name", name),
                Attribute::text("network.transport", network),
                Attribute::text("portcullis.provider", tool.id.provider()),
            ];
            recording.calls(format!("tools/call {name}"), attributes);
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
