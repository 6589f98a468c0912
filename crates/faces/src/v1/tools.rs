//! `/v1/tools`: tools, prompts and resources as they are accepted, and those whose definition waits for it.

use portcullis_app::{AcceptedTool, PinnedTools, ToolPlace, WaitingTool};
use portcullis_core::refusal::Refusal;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Segment, segment};
use crate::exchange::{
    ErrorAnswer, HandlerResult, Items, Listing, NoQuery, One, Outcome, Paged, RequestBody,
    WithQuery, body,
};

/// Bytes of a version at most.
const LONGEST: usize = 100;

/// Lists what the providers of the org ever listed, by id, with the versions that were accepted and that wait.
#[utoipa::path(
    get, path = "/v1/tools", tag = "admin", operation_id = "list_pinned_tools",
    params(
        ("kind" = Option<String>, Query, description = "`tool`, `prompt`, `skill`, `resource`, `resource_template`, comma-separated", pattern = "^(tool|prompt|skill|resource|resource_template)(,(tool|prompt|skill|resource|resource_template))*$"),
        ("limit" = Option<u32>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "from `meta.pagination.next_cursor`"),
    ),
    responses(
        (status = 200, description = "a page of tools, and the providers with more tools than are remembered", body = Paged<PinnedTools>),
    )
)]
pub(crate) async fn list(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let list = Listing::read(&gateway, &ctx, "tools", &["kind"], raw.as_deref())?;
    let kinds = list.kinds()?;
    let after = list.after.as_deref().and_then(place);
    let all = &gateway.app.administration;
    let listed = all.tools(&ctx, &kinds, after.as_ref(), list.limit).await?;
    Ok(list.answer(&listed.page, listed.end.as_ref().map(text_of).as_deref()))
}

/// Lists the tools, prompts and resources of the org that wait to be accepted, by id, each with both definitions.
///
/// A page can hold fewer than `limit` and still have a `next_cursor`.
#[utoipa::path(
    get, path = "/v1/tools/waiting", tag = "admin", operation_id = "list_waiting_tools",
    params(
        ("kind" = Option<String>, Query, description = "`tool`, `prompt`, `skill`, `resource`, `resource_template`, comma-separated", pattern = "^(tool|prompt|skill|resource|resource_template)(,(tool|prompt|skill|resource|resource_template))*$"),
        ("limit" = Option<u32>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "from `meta.pagination.next_cursor`"),
    ),
    responses(
        (status = 200, description = "a page of tools", body = Paged<Items<WaitingTool>>),
    )
)]
pub(crate) async fn waiting(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let list = Listing::read(&gateway, &ctx, "waiting_tools", &["kind"], raw.as_deref())?;
    let kinds = list.kinds()?;
    let after = list.after.as_deref().and_then(place);
    let all = &gateway.app.administration;
    let listed = all.waiting_tools(&ctx, &kinds, after.as_ref(), list.limit).await?;
    Ok(list.answer(&Items { items: listed.page }, listed.end.as_ref().map(text_of).as_deref()))
}

fn text_of(place: &ToolPlace) -> String {
    format!("{}|{}", u8::from(place.shared), place.tool)
}

fn place(text: &str) -> Option<ToolPlace> {
    let (shared, tool) = text.split_once('|')?;
    Some(ToolPlace { tool: tool.parse().ok()?, shared: shared == "1" })
}

/// Accepts the definition of a tool, prompt or resource that waits, if it is the version that was reviewed.
///
/// Running nodes follow within seconds. A tool of a provider that several orgs share is accepted by the operator.
#[utoipa::path(
    post, path = "/v1/tools/{id}/accept", tag = "admin", operation_id = "accept_tool",
    params(("id" = String, Path, description = "`<provider>:<tool_name>`, `prompt:<provider>:<name>` or `resource:<provider>:<uri>`")),
    request_body = AcceptAsked,
    responses(
        (status = 200, description = "accepted", body = One<AcceptedTool>),
        (status = 409, description = "another version waits, or none; or several orgs share the tool", body = ErrorAnswer),
    )
)]
pub(crate) async fn accept(
    NoQuery(ctx, gateway): NoQuery,
    path: Segment,
    request: RequestBody,
) -> HandlerResult {
    let version = version(request.optional_object().await?)?;
    let accepted = gateway.app.administration.accept_tool(&ctx, &segment(path), &version).await?;
    Ok(Outcome::data(&accepted))
}

fn version(mut members: Map<String, Value>) -> Result<String, Refusal> {
    body::only(&members, &["version"])?;
    let version = body::text(&mut members, "version", LONGEST)?;
    version.ok_or_else(|| body::wrong_member("version", "is missing"))
}

/// The body that accepts a tool.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the body is parsed strictly above")]
pub(crate) struct AcceptAsked {
    /// The version that was reviewed, from `GET /v1/tools/waiting`.
    #[schema(example = "sha256:7793fa2d927dc2fa20b9ab42d4fe76a793d56568e68acf3a6c3f8fb5ca991873")]
    version: String,
}
