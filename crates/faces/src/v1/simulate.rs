//! `POST /v1/policies/simulate`: decisions on calls that are not made.

use portcullis_app::{Simulation, SimulationReport};
use serde_json::Value;
use utoipa::ToSchema;

use crate::exchange::{ErrorAnswer, HandlerResult, NoQuery, One, Outcome, RequestBody};

/// Says what policies and DLP would say to hypothetical calls, or to recorded ones, with drafts in
/// place of or beside the policies in force. Nothing is executed and no invocation is spent.
#[utoipa::path(
    post, path = "/v1/policies/simulate", tag = "policies", operation_id = "simulate_policies",
    request_body = SimulateRequest,
    responses(
        (status = 200, description = "what they would say; a denial is no error here", body = One<SimulationReport>),
        (status = 400, description = "not understood, or a draft that does not load", body = ErrorAnswer),
        (status = 403, description = "the token lacks `policies:read`, or `admin` to ask as somebody else", body = ErrorAnswer),
        (status = 503, description = "the gateway cannot record, or is busy simulating", body = ErrorAnswer),
    )
)]
pub(crate) async fn simulate(
    NoQuery(ctx, gateway): NoQuery,
    request: RequestBody,
) -> HandlerResult {
    let read = |members| Simulation::read(&Value::Object(members));
    let simulation = request.object(&gateway.app, ctx.caller().org_id, read).await?;
    Ok(Outcome::data(&gateway.app.simulations.simulate(&ctx, simulation).await?))
}

/// The body of a simulation: `requests`, or one call with `tool`, or `replay`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the body is parsed strictly by the app")]
pub(crate) struct SimulateRequest {
    /// Hypothetical calls: `{id?, principal?, agent?, tool, input, phase?, output?, context?, dlp?,
    /// expect?}`; at most 1,000.
    #[schema(value_type = Option<Vec<Object>>)]
    requests: Option<Value>,
    /// One call instead of `requests`: the tool's id.
    tool: Option<String>,
    /// One call instead of `requests`: its arguments.
    #[schema(value_type = Option<Object>)]
    input: Option<Value>,
    /// One call instead of `requests`: who calls; asking as another principal needs `admin`.
    #[schema(value_type = Option<Object>)]
    principal: Option<Value>,
    /// Recorded calls: `{from?, to?, filter?, event_ids?, sample?, limit?, cursor?}`.
    #[schema(value_type = Option<Object>)]
    replay: Option<Value>,
    /// The policies to ask: `{base?, upsert?, remove?, set_status?}`; those in force by default.
    #[schema(value_type = Option<Object>)]
    policies: Option<Value>,
    /// The baseline: `live`, `sha256:…` or, of a replay, `recorded`.
    baseline: Option<String>,
    /// `{explain?, include_shadow?, changed_only?, group?, max_changes?, timeout_ms?}`.
    #[schema(value_type = Option<Object>)]
    options: Option<Value>,
}
