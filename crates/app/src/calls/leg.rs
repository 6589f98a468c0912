//! The leg of a conversation that a call is: what its caller brought from the legs before.

use portcullis_core::{
    call::{Cleared, Round, StateOwner, Use},
    idempotency::fingerprint,
    json::JsonValue,
    mcp::interaction::ClientCapabilities,
    refusal::{Refusal, Violation},
};
use serde_json::{Map, Value};

use super::{
    Calls,
    conversation::{Conversation, Questions},
};
use crate::{catalogue::Visible, request::Ctx};

/// Leg of a conversation that a call is.
#[derive(Debug)]
pub(crate) struct Leg {
    /// The legs before it.
    pub(super) before: u32,
    /// Digest of the input that it has to have.
    input: Option<String>,
    pub(super) capabilities: ClientCapabilities,
    questions: Questions,
}

impl Leg {
    /// True if the gateway waits for the end of a task on behalf of the caller, who cannot ask for it.
    pub(super) fn waits_for_tasks(&self) -> bool {
        self.questions == Questions::All
    }

    /// Refuses another input than that of the legs before.
    pub(super) fn continues(&self, call: &Cleared<Use>) -> Result<(), Refusal> {
        match &self.input {
            Some(digest) if *digest != digest_of(call) => Err(foreign()),
            Some(_) | None => Ok(()),
        }
    }

    /// Capabilities that the caller has to declare to be given questions that need so much.
    pub(super) fn lacks(&self, needed: ClientCapabilities) -> Option<ClientCapabilities> {
        match self.questions {
            Questions::All => None,
            Questions::Refused => Some(needed),
            Questions::Declared => {
                let beyond = needed.beyond(self.capabilities);
                (!beyond.is_empty()).then_some(beyond)
            }
        }
    }
}

/// Digest of the input as it is sent, which is after masking.
pub(super) fn digest_of(call: &Cleared<Use>) -> String {
    fingerprint(&call.input().canonical())
}

/// One answer to each state that is not this caller's for this call, whatever is wrong with it.
fn foreign() -> Refusal {
    let problem = "was changed, is over its time, or belongs to another call or caller";
    let message = format!("The state of the interaction {problem}; make the call anew without it.");
    misfit("state", problem, message)
}

/// The refusal of a member of the interaction.
fn misfit(name: &str, problem: &str, message: String) -> Refusal {
    let path = format!("/interaction/{name}");
    let violation = Violation { path, keyword: None, message: problem.to_owned() };
    Refusal::InvalidRequest { message, parameter: None, violations: vec![violation] }
}

pub(super) fn owner<'a>(ctx: &Ctx, visible: &'a Visible) -> StateOwner<'a> {
    let caller = ctx.caller();
    StateOwner {
        org: caller.org_id,
        principal: caller.principal_id,
        via: caller.via,
        tool: &visible.tool,
        connection: visible.connection.id,
    }
}

impl Calls {
    /// The leg that a call is, its turn, and the answers that were asked for. Others are left out, as
    /// are all that come without a state, unless it is about a task. Refuses a state that is not of this call and caller.
    pub(super) fn leg(
        &self,
        ctx: &Ctx,
        visible: &Visible,
        conversation: Conversation,
        is_of_task: bool,
    ) -> Result<(Leg, Round, Map<String, Value>), Refusal> {
        let Conversation { capabilities, questions, state, mut responses } = conversation;
        let Some(sealed) = state else {
            let leg = Leg { before: 0, input: None, capabilities, questions };
            let round = Round { capabilities, state: None };
            return Ok((leg, round, if is_of_task { responses } else { Map::new() }));
        };
        let opened = self.state_key.open(owner(ctx, visible), &sealed, self.base.now());
        let state = opened.ok_or_else(foreign)?;
        responses.retain(|name, _| state.asked.iter().any(|asked| asked == name));
        if !responses.values().all(Value::is_object) {
            let problem = "may hold objects only";
            let message = format!("The member `interaction.responses` {problem}.");
            return Err(misfit("responses", problem, message));
        }
        // Over REST the capabilities of a conversation are declared once.
        let capabilities = match questions {
            Questions::All if capabilities.is_empty() => state.capabilities,
            Questions::All | Questions::Declared | Questions::Refused => capabilities,
        };
        let leg = Leg { before: state.legs, input: Some(state.input), capabilities, questions };
        Ok((leg, Round { capabilities, state: state.upstream }, responses))
    }
}
