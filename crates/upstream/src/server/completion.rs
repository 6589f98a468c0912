//! Values that a server suggests for an argument.

use portcullis_core::{
    call::Completion,
    capability::{Capability, CapabilityKind},
    id::OrgId,
    mcp::Method,
};
use tokio::time::Instant;

use super::{BESIDE_TOOLS, Server, Trace};
use crate::{
    answer::CallAnswer,
    error::{CallError, CallErrorKind},
    mcp::outgoing::{Outgoing, Reference},
};

impl Server {
    /// Asks for values of an argument, for five seconds at most. A server that makes no suggestions has none. The end
    /// says nothing of the prompt or template itself, so it opens and closes no circuit.
    pub(super) async fn complete(
        &self,
        org: OrgId,
        of: &Capability,
        completion: Completion<'_>,
        trace: Trace<'_>,
    ) -> Result<CallAnswer, CallError> {
        let after = self.0.call_timeout.min(BESIDE_TOOLS);
        let deadline = Instant::now() + after;
        self.check(org, &of.id)?;
        let _slot = self.0.slots.take(org).await.ok_or(CallError::overloaded())?;
        let name = of.definition.name.as_str();
        let reference = match of.id.kind() {
            CapabilityKind::Tool | CapabilityKind::Prompt => Reference::Prompt(name),
            CapabilityKind::Resource | CapabilityKind::Template | CapabilityKind::Skill => {
                Reference::Template(name)
            }
        };
        let request = Outgoing {
            completion: Some((reference, completion)),
            traceparent: trace.traceparent,
            tracestate: trace.tracestate,
            live: trace.live,
            said: trace.said,
            peer: trace.peer,
            ..Outgoing::bare(Method::Complete)
        };
        match self.0.link.exchange(&request, deadline).await {
            Ok(reply) => CallAnswer::of_completion(of.id.kind(), &reply),
            Err(error) if error == CallError::not_offered() => {
                Ok(CallAnswer::without_suggestions(of.id.kind()))
            }
            Err(CallError { kind: CallErrorKind::Timeout { .. }, executed }) => {
                Err(CallError { kind: CallErrorKind::Timeout { after }, executed })
            }
            Err(error) => Err(error),
        }
    }
}
