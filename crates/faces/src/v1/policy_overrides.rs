//! `/v1/policies/{id}/override`: policies that an org switches off for itself, for a while.

use axum::http::HeaderMap;
use portcullis_app::{OverrideRequest, OverrideView};
use portcullis_core::refusal::Refusal;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Segment, segment};
use crate::exchange::{
    ErrorAnswer, HandlerResult, NoQuery, One, Outcome, RequestBody, body, if_match,
};

/// Bytes of a reason at most, so that one of any letters fits.
const LONGEST: usize = 2_000;

/// Switches a policy off for the org of the caller until `ttl` seconds are over, whatever its file says.
///
/// Set again, it counts from now on. Never a locked policy or one that is built in; one that forbids only for a person,
/// who alone can also set one that permits to end earlier.
/// An override of a policy that forbids ends early when the policy changes. Takes effect on this node before the answer
/// leaves, everywhere within two seconds.
#[utoipa::path(
    put, path = "/v1/policies/{id}/override", tag = "admin", operation_id = "set_policy_override",
    params(
        ("id" = String, Path, description = "the policy's `@id`"),
        ("If-Match" = Option<String>, Header, description = "the `ETag` of the policy that was read: refused with 412 if it changed since"),
    ),
    request_body = OverrideAsked,
    responses(
        (status = 200, description = "switched off", body = One<OverrideView>),
        (status = 400, description = "not understood", body = ErrorAnswer),
        (status = 409, description = "the policy is locked, 20 others are off, or only a person does this", body = ErrorAnswer),
        (status = 412, description = "it changed since the `ETag` was read", body = ErrorAnswer),
    )
)]
pub(crate) async fn set(
    NoQuery(ctx, gateway): NoQuery,
    path: Segment,
    headers: HeaderMap,
    request: RequestBody,
) -> HandlerResult {
    let precondition = if_match(&headers)?;
    let asked = parse_override(request.optional_object().await?)?;
    let administration = &gateway.app.administration;
    let set = administration.switch_policy_off(&ctx, &segment(path), &precondition, asked).await?;
    Ok(Outcome::data(&set))
}

/// Takes back that a policy is switched off for the org of the caller. What the operator switched off stays off.
#[utoipa::path(
    delete, path = "/v1/policies/{id}/override", tag = "admin", operation_id = "remove_policy_override",
    params(
        ("id" = String, Path, description = "the policy's `@id`"),
        ("If-Match" = Option<String>, Header, description = "the `ETag` of the policy that was read: refused with 412 if it changed since"),
    ),
    responses(
        (status = 200, description = "the policy counts again", body = One<RemovedOverride>),
        (status = 404, description = "no such policy for this org, or it did not switch it off", body = ErrorAnswer),
        (status = 409, description = "the policy is locked, or it permits and the caller is no person", body = ErrorAnswer),
        (status = 412, description = "it changed since the `ETag` was read", body = ErrorAnswer),
    )
)]
pub(crate) async fn remove(
    NoQuery(ctx, gateway): NoQuery,
    path: Segment,
    headers: HeaderMap,
) -> HandlerResult {
    let id = segment(path);
    let precondition = if_match(&headers)?;
    gateway.app.administration.switch_policy_on(&ctx, &id, &precondition).await?;
    Ok(Outcome::data(&RemovedOverride { policy_id: id, removed: true }))
}

fn parse_override(mut members: Map<String, Value>) -> Result<OverrideRequest, Refusal> {
    body::only(&members, &["ttl", "reason"])?;
    let problem = "has to be a whole number of seconds from 1 to 604800 (7 days)";
    let ttl_seconds = members.remove("ttl").and_then(|value| value.as_i64());
    let reason = body::text(&mut members, "reason", LONGEST)?;
    Ok(OverrideRequest {
        ttl_seconds: ttl_seconds.ok_or_else(|| body::wrong_member("ttl", problem))?,
        reason: reason.ok_or_else(|| body::wrong_member("reason", "is missing"))?,
    })
}

/// The body that switches a policy off.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the body is parsed strictly above")]
pub(crate) struct OverrideAsked {
    /// Seconds until the policy counts again.
    #[schema(example = 3600, minimum = 1, maximum = 604_800)]
    ttl: u32,
    /// Reason, which is recorded and shown.
    #[schema(
        example = "incident 4711",
        min_length = 1,
        max_length = 500,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    reason: String,
}

/// A policy that counts again.
#[derive(Serialize, ToSchema)]
#[schema(as = RemovedPolicyOverride)]
pub(crate) struct RemovedOverride {
    policy_id: String,
    /// Always `true`.
    removed: bool,
}
