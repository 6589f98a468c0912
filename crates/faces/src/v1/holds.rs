//! `/v1/audit/holds`: legal holds on the log of the caller's org.

use portcullis_app::{HoldRequest, HoldView};
use portcullis_core::{
    clock::Timestamp,
    id::{HoldId, OrgId},
    refusal::Refusal,
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Segment, segment};
use crate::exchange::{
    ErrorAnswer, HandlerResult, Items, Listing, NoQuery, One, Outcome, Paged, RequestBody,
    WithQuery, body,
};

/// Bytes of a text member at most, so that a reason of any letters fits.
const LONGEST: usize = 2_048;

/// Lists the holds on the org's log, oldest first, also those that were lifted.
#[utoipa::path(
    get, path = "/v1/audit/holds", tag = "admin", operation_id = "list_holds",
    params(
        ("limit" = Option<u32>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "from `meta.pagination.next_cursor`"),
    ),
    responses(
        (status = 200, description = "a page of holds", body = Paged<Items<HoldView>>),
    )
)]
pub(crate) async fn list(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let list = Listing::read(&gateway, &ctx, "holds", &[], raw.as_deref())?;
    let after = list.after.as_deref().and_then(|text| text.parse().ok());
    let page = gateway.app.administration.holds(&ctx, after, list.limit).await?;
    Ok(list.answer(&Items { items: page.items }, page.end.as_ref()))
}

/// Lays a hold: nothing that it covers is erased or pruned until it is lifted.
#[utoipa::path(
    post, path = "/v1/audit/holds", tag = "admin", operation_id = "lay_hold",
    request_body = HoldAsked,
    responses(
        (status = 201, description = "laid", body = One<HoldView>),
        (status = 409, description = "the org has 100 holds in force", body = ErrorAnswer),
    )
)]
pub(crate) async fn lay(NoQuery(ctx, gateway): NoQuery, request: RequestBody) -> HandlerResult {
    let asked = hold(ctx.caller().org_id, request.optional_object().await?)?;
    Ok(Outcome::created(&gateway.app.administration.lay_hold(&ctx, asked).await?))
}

/// Lifts a hold that is in force.
#[utoipa::path(
    delete, path = "/v1/audit/holds/{id}", tag = "admin", operation_id = "lift_hold",
    params(("id" = String, Path, description = "the hold")),
    responses(
        (status = 200, description = "lifted", body = One<LiftedHold>),
    )
)]
pub(crate) async fn lift(NoQuery(ctx, gateway): NoQuery, path: Segment) -> HandlerResult {
    let id = gateway.app.administration.lift_hold(&ctx, &segment(path)).await?;
    Ok(Outcome::data(&LiftedHold { id, lifted: true }))
}

/// A hold that is not in force any more.
#[derive(Serialize, ToSchema)]
pub(crate) struct LiftedHold {
    #[schema(value_type = String)]
    id: HoldId,
    /// Always `true`.
    lifted: bool,
}

fn hold(org: OrgId, mut members: Map<String, Value>) -> Result<HoldRequest, Refusal> {
    body::only(&members, &["reason", "actor", "from", "to"])?;
    let members = &mut members;
    let reason = body::text(members, "reason", LONGEST)?;
    let actor = body::text(members, "actor", LONGEST)?;
    let unknown = |text: String| text.parse().map_err(|_| Refusal::not_found("principal", &text));
    Ok(HoldRequest {
        org,
        reason: reason.ok_or_else(|| body::wrong_member("reason", "is missing"))?,
        actor: actor.map(unknown).transpose()?,
        from: time(members, "from")?,
        to: time(members, "to")?,
    })
}

fn time(members: &mut Map<String, Value>, name: &str) -> Result<Option<Timestamp>, Refusal> {
    let Some(text) = body::text(members, name, LONGEST)? else { return Ok(None) };
    let problem = "has to be an RFC 3339 time such as 2026-11-20T11:02:15Z";
    let parsed = Timestamp::parse_rfc3339(&text);
    parsed.map(Some).ok_or_else(|| body::wrong_member(name, problem))
}

/// The body that lays a hold. It covers what matches every member given.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the body is parsed strictly above")]
pub(crate) struct HoldAsked {
    /// Reason, which is recorded.
    #[schema(
        example = "case 4711",
        min_length = 1,
        max_length = 500,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    reason: String,
    /// Only what this principal did, or what was done on its behalf.
    #[schema(example = "usr_01M754BKTKX1YB8Q05NMW9TP4G")]
    actor: Option<String>,
    /// Only what was recorded at this moment or later.
    #[schema(format = DateTime)]
    from: Option<String>,
    /// Only what was recorded before this moment.
    #[schema(format = DateTime)]
    to: Option<String>,
}
