//! Calls that are held until people decided about the approval that they wait for: with `Prefer: wait=N`
//! (RFC 7240), and over MCP once a client showed its user the address.
//!
//! Nothing is held meanwhile but the request: the call was judged, recorded as pending, and its permit
//! given back. Once people decided, the token is looked up again and the call is made anew.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::http::HeaderMap;
use portcullis_app::{Answered, Attendance, Ctx, Invocation, Purpose, Stopped};
use portcullis_core::{approval::Status, id::ApprovalId, refusal::Refusal, secret::Secret};
use tokio::time::Instant;

use super::{
    caller::token,
    nearest::{self, NamedBy},
    outcome::Outcome,
};
use crate::gateway::Gateway;

/// Longest wait in seconds; a longer one is cut.
const LONGEST: u64 = 300;
/// Time between two looks at whether this node is about to stop.
const LOOK: Duration = Duration::from_secs(2);

/// Time for which a caller waits for an approval.
pub(crate) struct Wait {
    end: Instant,
    bearer: Option<Secret>,
}

impl Wait {
    /// The wish in these headers. What is malformed is ignored, as RFC 7240 §2 asks.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        Some(Self::lasting(Duration::from_secs(seconds(headers)?), headers))
    }

    /// Waits so long, on behalf of the token in these headers.
    pub(crate) fn lasting(time: Duration, headers: &HeaderMap) -> Self {
        let bearer = token(headers).map(|text| Secret::new(text.to_owned()));
        Self { end: Instant::now() + time, bearer }
    }

    /// Makes the call, and makes it again whenever people decided about an approval that it waited for.
    async fn invoke(
        &self,
        gateway: &Arc<Gateway>,
        mut ctx: Ctx,
        bytes: usize,
        asked: impl FnOnce() -> Invocation + Clone + Send + 'static,
    ) -> Outcome {
        loop {
            let ended = gateway.app.calls.invoke(ctx.clone(), bytes, asked.clone()).await;
            match self.await_decision(gateway, &ctx, &ended).await {
                Ok(Some(again)) => ctx = again,
                Ok(None) => return Outcome::of_call(ended),
                Err(refusal) => return Outcome::from(refusal),
            }
        }
    }

    /// Waits for the decision that the call needs, and gives the context in which it is to be made
    /// again; `None` if it ended otherwise, or undecided. Fails if its token ended meanwhile.
    async fn await_decision(
        &self,
        gateway: &Arc<Gateway>,
        ctx: &Ctx,
        ended: &Result<Answered, Box<Stopped>>,
    ) -> Result<Option<Ctx>, Refusal> {
        let Some(id) = pending(ended) else { return Ok(None) };
        if !self.is_decided(gateway, ctx, id).await? {
            return Ok(None);
        }
        let mut origin = Arc::clone(&ctx.origin);
        Arc::make_mut(&mut origin).arrived = gateway.app.base.now();
        let bearer = self.bearer.as_ref().map(Secret::expose);
        let token = ctx.session.presented_again(bearer);
        let session = gateway.app.access.authenticate(token, Purpose::Access, &origin).await;
        let session = session.map_err(|refused| refused.refusal)?;
        Ok(Some(Ctx { origin, session, attendance: ctx.attendance.clone() }))
    }

    async fn is_decided(
        &self,
        gateway: &Arc<Gateway>,
        ctx: &Ctx,
        id: ApprovalId,
    ) -> Result<bool, Refusal> {
        let left = || ctx.attendance.as_ref().is_some_and(Attendance::is_given_up);
        while Instant::now() < self.end && !gateway.draining.load(Ordering::Acquire) && !left() {
            let part = (Instant::now() + LOOK).min(self.end);
            if gateway.app.approvals.decided(ctx.caller().org_id, id, part).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Makes a call, which is held if its caller waits for people. If its tool is not there, the caller is told of others
/// as it names them.
pub(crate) async fn invoke(
    gateway: &Arc<Gateway>,
    ctx: Ctx,
    by: NamedBy,
    wait: Option<Wait>,
    bytes: usize,
    asked: impl FnOnce() -> Invocation + Clone + Send + 'static,
) -> Outcome {
    let (origin, session) = (Arc::clone(&ctx.origin), Arc::clone(&ctx.session));
    let caller = Ctx { origin, session, attendance: None };
    let outcome = match wait {
        None => Outcome::of_call(gateway.app.calls.invoke(ctx, bytes, asked).await),
        // Boxed, so that calls which are not held carry no room for it.
        Some(wait) => Box::pin(wait.invoke(gateway, ctx, bytes, asked)).await,
    };
    if !matches!(outcome.refusal(), Some(Refusal::NotFound { .. })) {
        return outcome;
    }
    Box::pin(nearest::told(gateway, &caller, &by, outcome)).await
}

fn pending(ended: &Result<Answered, Box<Stopped>>) -> Option<ApprovalId> {
    let Err(stopped) = ended else { return None };
    let Refusal::AwaitsApproval { approval, .. } = &stopped.refusal else { return None };
    (approval.status == Status::Pending).then_some(approval.id)
}

/// Seconds of the preference `wait`, in one of the headers `Prefer`.
fn seconds(headers: &HeaderMap) -> Option<u64> {
    let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    let preferences = values.flat_map(|value| value.split(','));
    let mut waits = preferences.filter_map(|preference| {
        let preference = preference.split(';').next()?;
        let (name, value) = preference.split_once('=')?;
        let is_wait = name.trim().eq_ignore_ascii_case("wait");
        is_wait.then(|| value.trim().trim_matches('"').parse::<u64>().ok())
    });
    // Of several the first counts.
    waits.next()?.filter(|seconds| *seconds > 0).map(|seconds| seconds.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn the_first_wait_counts_and_what_is_malformed_does_not() {
        let read = |values: &[&'static str]| {
            let named = values
                .iter()
                .map(|value| (HeaderName::from_static("prefer"), HeaderValue::from_static(value)));
            seconds(&named.collect())
        };

        for (values, expected) in [
            (&["wait=10"][..], Some(10)),
            (&["respond-async, Wait = \"20\"; x=1"], Some(20)),
            (&["respond-async", "wait=5, wait=7"], Some(5)),
            (&["wait=9999"], Some(300)),
            (&["wait=0"], None),
            (&["wait=-1"], None),
            (&["wait=1.5"], None),
            (&["wait"], None),
            (&["waiting=3"], None),
            (&[], None),
        ] {
            assert_eq!(read(values), expected, "{values:?}");
        }
    }
}
