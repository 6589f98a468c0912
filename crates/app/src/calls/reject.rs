//! Calls that end before anything is sent.

use std::{future::ready, pin::pin};

use portcullis_core::{
    limits::Resource,
    refusal::{Executed, Refusal},
};

use super::{
    Answered, Calls, Replayed, Stopped,
    bracket::Bracketed,
    event::{CallEvent, CallOutcome},
    idempotency::KeyMeaning,
};
use crate::{audit::outcome::outcome_of, base::claim::Claim, request::Ctx};

/// Reason that a call goes no further.
pub(super) enum Rejection {
    Refused(Refusal),
    /// No invocation: the plan allows no further request, or the count is not known.
    Uncounted(Refusal),
    Replayed(Box<Replayed>),
}

impl Rejection {
    /// Beyond the invocations it is a refused invocation; before that it is none.
    pub(super) fn of_limit(refusal: Refusal) -> Self {
        if let Refusal::RateLimited { resource: Resource::Invocations, .. } = refusal {
            Self::Refused(refusal)
        } else {
            Self::Uncounted(refusal)
        }
    }
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Calls {
    /// Answers a call that goes no further.
    pub(super) async fn reject(
        &self,
        ctx: &Ctx,
        event: Box<CallEvent>,
        rejection: Rejection,
    ) -> Result<Answered, Box<Stopped>> {
        match rejection {
            Rejection::Replayed(replayed) => self.replay(ctx, replayed).await,
            Rejection::Uncounted(refusal) => {
                self.quotas.note_throttled(ctx, &refusal);
                Err(Stopped::uncounted(refusal))
            }
            Rejection::Refused(refusal) => self.refuse_call(event, refusal).await,
        }
    }

    /// Refuses a call before anything was sent. If that is the answer of its task, it holds for every
    /// later attempt, as the key of the task then stands for it.
    pub(super) async fn refuse_call(
        &self,
        mut event: Box<CallEvent>,
        refusal: Refusal,
    ) -> Result<Answered, Box<Stopped>> {
        let ending = event.task.take().filter(|(_, terms)| terms.end_with(&refusal));
        let Some((claim, _)) = ending else {
            let outcome = outcome_of(&refusal, Executed::No);
            return Err(self.refuse(event, refusal, outcome).await);
        };
        let outcome = CallOutcome::new(event.governance.clone(), Err((refusal, Executed::No)));
        let effect = pin!(ready(outcome));
        match self.bracket(event, Some(&claim), Vec::new(), effect).await {
            Bracketed::Ended(end) => end,
            Bracketed::KeyTaken(event) => self.lose_key_race(event, Some(&claim)).await,
            // It takes none.
            Bracketed::NotApproved(mut event) => {
                Err(self.fail_unrecorded(&mut event, Executed::No, None))
            }
        }
    }

    /// Answers a call whose key another request took while this one was judged.
    pub(super) async fn lose_key_race(
        &self,
        mut event: Box<CallEvent>,
        claim: Option<&Claim>,
    ) -> Result<Answered, Box<Stopped>> {
        let Some(claim) = claim else {
            return Err(self.fail_unrecorded(&mut event, Executed::No, None));
        };
        let refusal = match self.find_meaning(event.org(), claim).await {
            Ok(KeyMeaning::Answered(replayed)) => return self.replay(&event.ctx, replayed).await,
            // Its holder has let go of it since: a further attempt can begin.
            Ok(KeyMeaning::Free) => {
                Refusal::IdempotencyInProgress { first: event.ctx.origin.request_id }
            }
            Ok(KeyMeaning::UnderWay(first)) => Refusal::IdempotencyInProgress { first },
            Ok(KeyMeaning::Reused(first)) => Refusal::IdempotencyKeyReused { first },
            Err(refusal) => refusal,
        };
        let outcome = outcome_of(&refusal, Executed::No);
        Err(self.refuse(event, refusal, outcome).await)
    }
}
