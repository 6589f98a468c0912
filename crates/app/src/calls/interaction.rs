//! Conversations of callers with tools: a tool that asks something ends a leg of its call, and the
//! caller makes the same call again with answers.
//!
//! Nothing is kept between legs. Whatever the next leg needs stands in a sealed state that the caller
//! brings back, so any node continues the call, and a crash between two legs leaves nothing. Each leg is
//! a call of its own: charged, judged, and recorded with intent and outcome.

use std::sync::Arc;

use portcullis_core::{
    audit::Governance,
    call::{Answer, CallState},
    json::Document,
    mcp::interaction::Interaction,
    refusal::{Executed, Refusal, UpstreamReason},
};
use serde_json::Value;

use super::{
    Calls,
    dispatch::Dispatch,
    event::CallOutcome,
    leg::{digest_of, owner},
};

/// Legs after which a tool that still asks is given up: its caller would answer for ever.
const MOST_LEGS: u32 = 32;

impl Calls {
    /// The end of a leg in which the tool asked something: the questions leave by the same rules as a
    /// result.
    pub(super) async fn end_leg(
        &self,
        dispatch: &Dispatch,
        mut governance: Arc<Governance>,
        interaction: Interaction,
    ) -> CallOutcome {
        let Interaction { requests, state, needed } = interaction;
        let provider = || dispatch.visible.connection.provider.declared.slug.clone();
        if let Some(required) = dispatch.leg.lacks(needed) {
            let refusal = Refusal::Unanswerable { provider: provider(), required };
            return CallOutcome::of_refusal(governance, refusal, Executed::Unknown);
        }
        if dispatch.leg.before.saturating_add(1) >= MOST_LEGS {
            let reason = UpstreamReason::InteractionRequired;
            let refusal = Refusal::upstream(provider(), reason);
            return CallOutcome::of_refusal(governance, refusal, Executed::Unknown);
        }
        match self.judge_answer(dispatch, Answer::questions(requests)).await {
            Err(denial) => self.withhold(dispatch, governance, denial),
            Ok(questions) => {
                self.follow_answer(&dispatch.ctx, &dispatch.visible.tool, questions.ruling());
                questions.ruling().add_to(&mut governance);
                let (requests, _, ruling) = questions.into_parts();
                let requests = requests.root().to_value();
                let Some(state) = self.sealed(dispatch, &requests, state) else {
                    return CallOutcome::of_refusal(
                        governance,
                        Refusal::Internal,
                        Executed::Unknown,
                    );
                };
                let result = Document::of(&Interaction::result(requests, state));
                CallOutcome::of_questions(governance, result).with_ruling(ruling)
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
        let input = digest_of(&dispatch.call);
        let asked = asked.collect();
        let mut state = CallState::new(self.base.now(), input, dispatch.leg.capabilities, asked);
        state.legs = dispatch.leg.before.saturating_add(1);
        state.upstream = upstream;
        self.state_key.seal(owner(&dispatch.ctx, &dispatch.visible), &state, &*self.base.random)
    }
}
