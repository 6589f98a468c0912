//! `POST /v1/policies/check`: errors and warnings of policies that are not in force.

use portcullis_app::{Draft, PolicyCheck};
use serde_json::Value;
use utoipa::ToSchema;

use crate::exchange::{ErrorAnswer, HandlerResult, NoQuery, One, Outcome, RequestBody};

/// Loads a draft as a simulation does, and tells its errors and warnings at their lines.
///
/// No call is judged and nothing is recorded, so an editor may ask at each pause of typing.
#[utoipa::path(
    post, path = "/v1/policies/check", tag = "policies", operation_id = "check_policies",
    request_body = CheckRequest,
    responses(
        (status = 200, description = "the errors and warnings; a draft that does not load is no error here", body = One<PolicyCheck>),
        (status = 400, description = "not understood, or a draft of more checks than are made", body = ErrorAnswer),
        (status = 503, description = "the gateway is busy simulating", body = ErrorAnswer),
    )
)]
pub(crate) async fn check(NoQuery(ctx, gateway): NoQuery, request: RequestBody) -> HandlerResult {
    let read = |members| Draft::of_body(&Value::Object(members));
    let draft = request.object(&gateway.app, ctx.caller().org_id, read).await?;
    Ok(Outcome::data(&gateway.app.simulations.check(&ctx, draft).await?))
}

/// The body of a check.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the body is parsed strictly by the app")]
pub(crate) struct CheckRequest {
    /// `{base?, upsert?, remove?, set_status?}`, as in a simulation.
    #[schema(value_type = Object)]
    policies: Value,
}
