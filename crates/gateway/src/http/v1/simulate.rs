//! `POST /v1/policies/simulate`: what would policies say?

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{RawQuery, State},
    http::HeaderMap,
};
use portcullis_app::Simulation;
use portcullis_core::principal::Scope;
use serde_json::Value;

use super::shapes::{ErrorAnswer, One, SimulateRequest};
use crate::http::{
    Gateway,
    answer::Answer,
    body::{self, Allowance, INVOKE_LIMIT},
    caller::Known,
    query::Query,
};

/// Says what policies and DLP would say to hypothetical calls, or to recorded ones, with drafts in
/// place of or beside the policies in force. Nothing is executed and no invocation is spent.
#[utoipa::path(
    post, path = "/v1/policies/simulate", tag = "policies",
    request_body = SimulateRequest,
    responses(
        (status = 200, description = "what they would say; a denial is no error here", body = One),
        (status = 400, description = "not understood, or a draft that does not load", body = ErrorAnswer),
        (status = 401, description = "no live token", body = ErrorAnswer),
        (status = 403, description = "the token lacks `policies:read`, or `admin` to ask as somebody else", body = ErrorAnswer),
        (status = 404, description = "no such tool or event for this caller", body = ErrorAnswer),
        (status = 413, description = "the body is over 1 MiB", body = ErrorAnswer),
        (status = 415, description = "the body is not JSON", body = ErrorAnswer),
        (status = 429, description = "the request limit is exceeded", body = ErrorAnswer),
        (status = 503, description = "the gateway cannot record, or is busy simulating", body = ErrorAnswer),
    )
)]
pub(crate) async fn simulate(
    Known(ctx): Known,
    State(gateway): State<Arc<Gateway>>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Answer> {
    ctx.require(Scope::PoliciesRead)?;
    Query::parse(raw.as_deref(), &[])?;
    let allowance = Allowance { bytes: INVOKE_LIMIT, time: gateway.body_time };
    let read = |members| Simulation::read(&Value::Object(members));
    let whose = (&*gateway.app, ctx.caller().org_id);
    let simulation = body::object(whose, &headers, body, allowance, read).await?;
    Ok(Answer::Data(gateway.app.calls.simulate(&ctx, simulation).await?))
}
