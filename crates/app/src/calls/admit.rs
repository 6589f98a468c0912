//! Admission of a call by its limits and its idempotency key.

use portcullis_core::refusal::Refusal;
use portcullis_store::Cost;

use super::{Calls, idempotency::KeyMeaning, parse::ParsedCall, reject::Rejection};
use crate::{request::Ctx, telemetry::stages::Stage};

impl Calls {
    /// Charges the call and looks at its key. A request that is refused already costs a request, as
    /// does one that was answered before: it is given that answer, also without invocations left.
    pub(super) async fn admit_call(
        &self,
        ctx: &Ctx,
        parsed: Result<ParsedCall, Refusal>,
    ) -> Result<ParsedCall, Rejection> {
        self.enter_stage(ctx, Stage::Limits);
        let known = match parsed.as_ref().map(|parsed| &parsed.claim) {
            Ok(Some(claim)) => self.find_meaning(ctx.caller().org_id, claim).await,
            Ok(None) | Err(_) => Ok(KeyMeaning::Free),
        };
        let cost = match (&parsed, &known) {
            (Err(_), _) | (_, Err(_) | Ok(KeyMeaning::Answered(_))) => Cost::Request,
            (Ok(_), Ok(KeyMeaning::Free | KeyMeaning::UnderWay(_) | KeyMeaning::Reused(_))) => {
                Cost::Call
            }
        };
        self.quotas.charge_invoker(ctx, cost).await.map_err(Rejection::of_limit)?;
        let parsed = parsed?;
        match known? {
            KeyMeaning::Answered(replayed) => Err(Rejection::Replayed(replayed)),
            known @ (KeyMeaning::Free | KeyMeaning::UnderWay(_) | KeyMeaning::Reused(_)) => {
                known.free()?;
                Ok(parsed)
            }
        }
    }
}
