//! The request of a call, as far as it can be read and the caller may make it.

use portcullis_core::{
    audit::Target, call::Denial, json::Document, principal::Scope, refusal::Refusal, tool::ToolId,
};

use super::{Calls, Invocation, View, conversation::Conversation, event::CallEvent};
use crate::{base::claim::Claim, catalogue::Visible, request::Ctx, telemetry::stages::Stage};

/// A call of a tool that the caller sees.
pub(super) struct ParsedCall {
    pub(super) visible: Visible,
    pub(super) view: View,
    pub(super) claim: Option<Claim>,
    pub(super) input: Document,
    pub(super) bytes: u64,
    pub(super) conversation: Conversation,
}

impl Calls {
    /// Reads the request: scope, key, body, visible tool.
    pub(super) fn parse(
        &self,
        ctx: &Ctx,
        invocation: Invocation,
        event: &mut CallEvent,
    ) -> Result<ParsedCall, Refusal> {
        self.enter_stage(ctx, Stage::Validate);
        event.set_target(self.target_of(invocation.tool.as_ref().ok()));
        ctx.require(Scope::McpsInvoke).map_err(|_| {
            let denial = Denial::unscoped(Scope::McpsInvoke);
            denial.policy().into_iter().for_each(|policy| self.tally_outright(ctx, policy));
            event.deny(&denial, self.policies.current_of(ctx.caller().org_id).version())
        })?;
        let key = invocation.key?;
        event.set_idempotent(key.is_some() || invocation.task.is_some());
        if let (Some(terms), Ok(tool)) = (invocation.task, &invocation.tool) {
            let claim = Claim::of_task(ctx.caller(), tool, terms.approval, terms.ends_at);
            event.task = Some((claim, terms));
        }
        let view = invocation.view?;
        let (input, bytes) = invocation.body?;
        event.commit_input(self, input.root());
        let visible = self.catalogue.visible(&ctx.session.connections, &invocation.tool?)?;
        event.set_target(visible.target());
        ctx.trace_tool(&visible.tool);
        let conversation = invocation.conversation;
        let of_key = key.map(|key| {
            let id = &visible.tool.id;
            let leg = conversation.fingerprint();
            Claim::of_call(ctx.caller(), &key, id, view.as_str(), input.root(), &leg)
        });
        let claim = event.task.as_ref().map(|(claim, _)| claim.clone()).or(of_key);
        Ok(ParsedCall { visible, view, claim, input, bytes, conversation })
    }

    /// The target of a call as far as its path names one. What is no tool id is not recorded, nor an
    /// unknown id in which DLP finds something: it may be a secret in the wrong place.
    fn target_of(&self, tool: Option<&ToolId>) -> Target {
        let id = tool.map(ToString::to_string);
        let id = id.filter(|id| {
            self.catalogue.tools.load().contains_key(id) || self.screening.is_clean(id)
        });
        Target { credential: None, id, provider_id: None, kind: "mcp", version: None }
    }
}
