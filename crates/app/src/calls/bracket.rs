//! The bracket around an effect: the intent is durable before it, the outcome before the answer.
//!
//! The bracket knows neither tools nor policies nor upstreams: an effect is a future.

use std::{panic::AssertUnwindSafe, pin::Pin};

use futures_util::FutureExt;
use portcullis_core::{
    audit::Outcome,
    refusal::{Executed, Refusal, Unavailable},
};
use portcullis_lanes::is_offloaded;
use portcullis_store::{ApprovalUse, Began, KeyEnd, NewEvent, StoreError};

use super::{
    Answered, Calls, GovernanceView, Invoked, Stopped,
    event::{CallEvent, CallOutcome},
    idempotency::KeptAnswer,
};
use crate::{
    audit::{events::patience, outcome::outcome_of},
    base::claim::Claim,
    telemetry::{counters, stages::Stage},
};

/// End of a bracket.
pub(super) enum Bracketed {
    /// The call has ended, and its event is durable or kept for later.
    Ended(Result<Answered, Box<Stopped>>),
    /// There was no effect: another request took the key before.
    KeyTaken(Box<CallEvent>),
    /// There was no effect: an approval was used up or ended before.
    NotApproved(Box<CallEvent>),
}

impl Calls {
    /// Has the effect between a durable intent, which takes the key and the approvals, and a durable
    /// outcome.
    ///
    /// A crash after the intent leaves an open intent, which the next start closes as `unknown`; a
    /// crash after the outcome loses nothing. A panic ends the effect, not its record.
    pub(super) async fn bracket(
        &self,
        mut event: Box<CallEvent>,
        claim: Option<&Claim>,
        approvals: Vec<ApprovalUse>,
        effect: Pin<&mut (dyn Future<Output = CallOutcome> + Send)>,
    ) -> Bracketed {
        self.enter_stage(&event.ctx, Stage::Intent);
        let mut intent = event.intent(self);
        let request = event.ctx.origin.request_id;
        intent.key = claim.map(|claim| claim.row(request, self.base.now()));
        intent.approvals = approvals;
        match self.audit.writer.intent(intent, patience()).await {
            Ok(Began::Begun) => {}
            Ok(Began::KeyTaken) => return Bracketed::KeyTaken(event),
            Ok(Began::NotApproved) => return Bracketed::NotApproved(event),
            Err(error) => {
                tracing::error!(%error, event = %event.id, "an intent could not be recorded");
                let stopped = self.fail_unrecorded(&mut event, Executed::No, claim);
                return Bracketed::Ended(Err(stopped));
            }
        }
        let outcome = AssertUnwindSafe(effect).catch_unwind().await.unwrap_or_else(|_| {
            CallOutcome::new(event.governance.clone(), Err((Refusal::Internal, Executed::Unknown)))
        });
        Bracketed::Ended(self.end(event, outcome, claim).await)
    }

    /// Records the outcome of a call, then answers.
    async fn end(
        &self,
        mut event: Box<CallEvent>,
        mut ended: CallOutcome,
        claim: Option<&Claim>,
    ) -> Result<Answered, Box<Stopped>> {
        self.enter_stage(&event.ctx, Stage::Outcome);
        let _at_work = self.audit.writer.at_work();
        let outcome = ended.recorded();
        event.take(self, &mut ended);
        let governance = GovernanceView::of(event.governance.as_deref(), event.id);
        let key = claim.map(|claim| {
            let end = ended.end.as_ref().map(|(result, _)| result).map_err(|(refusal, _)| refusal);
            let kept = KeptAnswer::new(event.id, end, governance.clone(), &outcome);
            self.key_end(event.org(), &kept, claim.keeps_every_end())
        });
        if let Err(error) = self.finish(event.row(&outcome), key).await {
            tracing::error!(%error, event = %event.id, "an outcome could not be recorded");
            return Err(self.fail_unrecorded(&mut event, outcome.executed, claim));
        }
        self.leave_stages(&event.ctx);
        counters::invocation(&outcome);
        let large = is_offloaded();
        if large {
            counters::offloaded();
        }
        match (ended.end, governance) {
            (Err((refusal, executed)), _) => Err(event.stopped(refusal, executed, outcome.status)),
            (Ok((result, outcome)), Some(governance)) => {
                let notes = Vec::new();
                Ok(Answered::Invoked(Invoked { result, governance, outcome, large, notes }))
            }
            (Ok(_), None) => Err(self.fail_unrecorded(&mut event, outcome.executed, None)),
        }
    }

    async fn finish(&self, event: NewEvent, key: Option<KeyEnd>) -> Result<(), StoreError> {
        match key {
            None => self.audit.writer.finish(event, patience()).await,
            Some(end) => self.audit.writer.finish_keyed(event, end, patience()).await,
        }
    }

    /// Records a call that had no effect, then refuses it.
    pub(super) async fn refuse(
        &self,
        mut event: Box<CallEvent>,
        refusal: Refusal,
        outcome: Outcome,
    ) -> Box<Stopped> {
        self.enter_stage(&event.ctx, Stage::Outcome);
        match self.audit.writer.append(event.row(&outcome), patience()).await {
            Ok(()) => {
                self.leave_stages(&event.ctx);
                counters::invocation(&outcome);
                event.stopped(refusal, outcome.executed, outcome.status)
            }
            Err(error) => {
                tracing::error!(%error, event = %event.id, "a refusal could not be recorded");
                self.fail_unrecorded(&mut event, outcome.executed, None)
            }
        }
    }

    /// The answer when the log cannot be written: it says nothing of the decision, for no event
    /// stands behind it yet. The event is recorded as soon as the log takes it, and the key of the
    /// call, if it has one, ends with that event.
    pub(super) fn fail_unrecorded(
        &self,
        event: &mut CallEvent,
        executed: Executed,
        key: Option<&Claim>,
    ) -> Box<Stopped> {
        let refusal = Refusal::Unavailable { reason: Unavailable::Audit };
        let outcome = outcome_of(&refusal, executed);
        counters::invocation(&outcome);
        let kept = KeptAnswer::new(event.id, Err(&refusal), None, &outcome);
        let end = key.map(|_| self.key_end(event.org(), &kept, false));
        self.audit.late_events.keep(event.row(&outcome), end);
        Box::new(Stopped { refusal, executed, governance: None, outcome: None })
    }
}
