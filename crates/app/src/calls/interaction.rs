//! Conversations of callers with tools: a tool that asks something ends a leg of its call, and the
//! caller makes the same call again with answers.
//!
//! Nothing is kept between legs. Whatever the next leg needs stands in a sealed state that the caller
//! brings back, so any node continues the call, and a crash between two legs leaves nothing. Each leg is
//! a call of its own: charged, judged, and recorded with intent and outcome.

use portcullis_core::{
    audit::Governance,
    call::{Answer, CallState, Cleared, StateOwner, ToolCall, Turn},
    idempotency::fingerprint,
    json::{Document, JsonValue},
    mcp::interaction::{ClientCapabilities, Interaction},
    refusal::{Executed, Refusal, UpstreamReason, Violation},
};
use serde_json::{Map, Value};

use super::{
    Calls,
    conversation::{Conversation, Questions},
    dispatch::Dispatch,
    event::CallOutcome,
};
use crate::{ctx::Ctx, policies::notices::Went, tools::catalogue::Visible};

/// Legs after which a tool that still asks is given up: its caller would answer for ever.
const MOST_LEGS: u32 = 32;

/// Leg of a conversation that a call is.
#[derive(Debug)]
pub(crate) struct Leg {
    /// The legs before it.
    before: u32,
    /// Digest of the input that it has to have.
    input: Option<String>,
    capabilities: ClientCapabilities,
    questions: Questions,
}

impl Leg {
    /// Refuses another input than that of the legs before.
    pub(super) fn continues(&self, call: &Cleared<ToolCall>) -> Result<(), Refusal> {
        match &self.input {
            Some(digest) if *digest != digest_of(call) => Err(foreign()),
            Some(_) | None => Ok(()),
        }
    }

    /// Capabilities that the caller has to declare to be given questions that need so much.
    fn lacks(&self, needed: ClientCapabilities) -> Option<ClientCapabilities> {
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
fn digest_of(call: &Cleared<ToolCall>) -> String {
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

fn owner<'a>(ctx: &Ctx, visible: &'a Visible) -> StateOwner<'a> {
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
    /// are all that come without a state. Refuses a state that is not of this call and caller.
    pub(super) fn leg(
        &self,
        ctx: &Ctx,
        visible: &Visible,
        conversation: Conversation,
    ) -> Result<(Leg, Turn, Map<String, Value>), Refusal> {
        let Conversation { capabilities, questions, state, mut responses } = conversation;
        let Some(sealed) = state else {
            let leg = Leg { before: 0, input: None, capabilities, questions };
            return Ok((leg, Turn { capabilities, state: None }, Map::new()));
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
        Ok((leg, Turn { capabilities, state: state.upstream }, responses))
    }

    /// The end of a leg in which the tool asked something: the questions leave by the same rules as a
    /// result.
    pub(super) async fn end_leg(
        &self,
        dispatch: &Dispatch,
        mut governance: Governance,
        interaction: Interaction,
    ) -> CallOutcome {
        let Interaction { requests, state, needed } = interaction;
        let provider = || dispatch.visible.connection.provider.declared.slug.clone();
        if let Some(required) = dispatch.leg.lacks(needed) {
            let refusal = Refusal::Unanswerable { provider: provider(), required };
            return CallOutcome::refused(governance, refusal, Executed::Unknown);
        }
        if dispatch.leg.before.saturating_add(1) >= MOST_LEGS {
            let reason = UpstreamReason::InteractionRequired;
            let refusal = Refusal::upstream(provider(), reason);
            return CallOutcome::refused(governance, refusal, Executed::Unknown);
        }
        match self.judge_answer(dispatch, Answer::questions(requests)).await {
            Err(denial) => self.withhold(dispatch, governance, denial),
            Ok(questions) => {
                self.follow_up(
                    &dispatch.ctx,
                    &dispatch.visible.tool,
                    questions.ruling(),
                    Went::Allowed,
                );
                questions.ruling().add_to(&mut governance);
                let (requests, _, ruling) = questions.into_parts();
                let requests = requests.root().to_value();
                let Some(state) = self.sealed(dispatch, &requests, state) else {
                    return CallOutcome::refused(governance, Refusal::Internal, Executed::Unknown);
                };
                let result = Document::of(&Interaction::result(requests, state));
                CallOutcome::questions(governance, result).with_ruling(ruling)
            }
        }
    }

    /// The state by which the caller continues.
    fn sealed(
        &self,
        dispatch: &Dispatch,
        requests: &Value,
        upstream: Option<String>,
    ) -> Option<String> {
        let asked = requests.as_object().into_iter().flatten().map(|(name, _)| name.clone());
        let (input, asked) = (digest_of(&dispatch.call), asked.collect());
        let mut state = CallState::new(self.base.now(), input, dispatch.leg.capabilities, asked);
        state.legs = dispatch.leg.before.saturating_add(1);
        state.upstream = upstream;
        self.state_key.seal(owner(&dispatch.ctx, &dispatch.visible), &state, &*self.base.random)
    }
}
