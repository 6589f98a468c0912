//! The decision about one recorded call, explained: what the policies in force say of it clause by
//! clause, and a permit that would allow it.

mod summary;
mod view;

use std::{sync::Arc, time::Duration};

use portcullis_core::{
    capability::Capability,
    policy::{
        Considered, Explain, OrgView, Outcome, Phase, PolicySet, Principal, suggested_permit,
    },
    principal::Scope,
    refusal::Refusal,
};
use portcullis_store::EventRecord;
use tokio::time::Instant;

use self::summary::RecordedSummary;
pub use self::view::{EventExplanation, ExplainedEvent, ExplainedSet};
use super::{
    compare::Call,
    recorded::{Core, Detached},
};
use crate::{
    base::admission::overloaded,
    request::Ctx,
    simulation::{Simulations, request::Options},
};

/// Type of the events that can be explained.
const INVOCATION: &str = "mcp.invocation";
/// Policies that are listed.
const MAX_POLICIES: usize = 100;

/// Policies and tools that an explanation is made with, and the org that it is for; `None` for the
/// operator.
pub(crate) struct Explainer<'a> {
    pub(crate) set: &'a PolicySet,
    pub(crate) tools: &'a dyn Fn(&str) -> Option<Arc<Capability>>,
    pub(crate) org: Option<&'a OrgView>,
}

impl Simulations {
    /// One event with the explanation of its decision; without one if it is not about a call. Needs
    /// `policies:read`.
    pub async fn explained_event(
        self: &Arc<Self>,
        ctx: &Ctx,
        id: &str,
    ) -> Result<ExplainedEvent, Refusal> {
        ctx.require(Scope::PoliciesRead)?;
        let (record, event) = self.audit.stored_event(ctx, id).await?;
        if record.kind != INVOCATION {
            return Ok(ExplainedEvent { event, explanation: None });
        }
        let caller = ctx.caller().org_id;
        let set = self.policies.current_of(caller);
        let org = self.policies.org_view_of(caller, &set).await?;
        let deadline = Instant::now() + Duration::from_millis(Options::default().timeout_ms);
        let turn = self.work.turn(Some(caller), deadline).await;
        let turn = turn.ok_or_else(overloaded)?;
        let table = self.catalogue.tools.load_full();
        let explained = turn.run(move |_| {
            let tools = |id: &str| table.get(id).map(|(tool, _)| Arc::clone(tool));
            Explainer { set: &set, tools: &tools, org: Some(&org) }.explain(&record)
        });
        let explanation = explained.await?.ok_or_else(|| {
            tracing::error!(event = id, "a stored event cannot be read");
            Refusal::Internal
        })?;
        Ok(ExplainedEvent { event, explanation: Some(explanation) })
    }
}

impl Explainer<'_> {
    /// Explains the decision of an event about a call; `None` if it is none or cannot be read.
    pub(crate) fn explain(&self, event: &EventRecord) -> Option<EventExplanation> {
        if event.kind != INVOCATION {
            return None;
        }
        let core: Core<'_> = serde_json::from_str(&event.core).ok()?;
        let kept = event.detached.as_deref().unwrap_or("{}");
        let mut detached: Detached<'_> = serde_json::from_str(kept).ok()?;
        let recorded = RecordedSummary::of(&core);
        let mut explanation = EventExplanation {
            policy_set: ExplainedSet {
                in_force: self.set.version().to_owned(),
                recorded: recorded.policy_set.map(str::to_owned),
            },
            ..EventExplanation::default()
        };
        let tool = (self.tools)(recorded.tool);
        if let (Some(tool), true) = (&tool, recorded.is_decided()) {
            let inputs = detached.decision_inputs.take();
            let is_kept = inputs.is_some();
            let mut inputs = inputs.unwrap_or_default();
            if let (Some(captured), Some(governance)) = (detached.input, &core.governance) {
                inputs.add_captured(captured, &governance.dlp_findings, tool);
            }
            let principal = Principal::new(inputs.identity(&core.actor, &core.org_id));
            let call = Call::new(event, &core, (&detached, &inputs), &principal, tool);
            if is_kept {
                self.judge(&call, &mut explanation);
            }
            explanation.permit_helps = recorded.lacks_a_permit(explanation.decision.as_ref());
            if explanation.permit_helps {
                let about = event.id.to_string();
                explanation.suggested_permit = call.ask(Phase::Request, |question| {
                    suggested_permit(tool, question, &call.known, &about)
                });
            }
        }
        recorded.conclude(tool.as_deref(), &mut explanation);
        Some(explanation)
    }

    /// Asks the set about the call and, if that passes and was answered, about its answer.
    fn judge(&self, call: &Call<'_>, explanation: &mut EventExplanation) {
        let (request, answer) = call.judge(self.set, Explain::Values, self.org);
        for judged in std::iter::once(request).chain(answer) {
            // The answer of the tool decides only if it is withheld.
            if explanation.decision.is_none() || !judged.permits() {
                explanation.decision = Some(judged.summarize());
            }
            explanation.obligations.extend(judged.obligations);
            let Some(why) = judged.explanation else { continue };
            explanation.considered += why.considered.unwrap_or_default();
            explanation.policies.extend(why.candidates.into_iter().flatten());
            explanation.near_misses.extend(why.near_misses);
            explanation.missing.extend(why.indeterminate.into_iter().flat_map(|it| it.missing));
        }
        let rank = |policy: &Considered| match policy.outcome {
            Outcome::True => 0,
            Outcome::Error(_) => 1,
            Outcome::Unknown => 2,
            Outcome::False => 3,
        };
        explanation.policies.sort_by_key(rank);
        explanation.policies.truncate(MAX_POLICIES);
    }
}
