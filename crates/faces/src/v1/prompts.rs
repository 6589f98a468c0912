//! `/v1/prompts`: prompts that the caller may use, and their use.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
};
use portcullis_app::{ToolStatus, ToolView};
use portcullis_core::{capability::CapabilityKind, clock::Timestamp, policy::Access};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    PromptPath,
    invoke::{self, AskedUse, InvokeRequest},
};
use crate::{
    exchange::{
        Caller, ErrorAnswer, Exchange, HandlerResult, InvokeAnswer, Items, Listing, NamedBy,
        NoQuery, One, Outcome, Paged, WithQuery, nearest,
    },
    gateway::Gateway,
};

/// Lists the prompts that the caller may use, by id.
#[utoipa::path(
    get, path = "/v1/prompts", tag = "prompts", operation_id = "list_prompts",
    params(
        ("provider" = Option<String>, Query, description = "slugs, comma-separated", pattern = "[^, ]"),
        ("q" = Option<String>, Query, description = "substring of id, title or description", max_length = 100, pattern = "[^, ]"),
        ("limit" = Option<u32>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "from `meta.pagination.next_cursor`"),
    ),
    responses(
        (status = 200, description = "a page of prompts", body = Paged<Items<Prompt>>),
    )
)]
pub(crate) async fn list(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let list = Listing::read(&gateway, &ctx, "prompts", &["provider", "q"], raw.as_deref())?;
    let wanted = list.usable(CapabilityKind::Prompt)?;
    let (prompts, more) = gateway.app.tools.list(&ctx, &wanted)?;
    let end = prompts.last().filter(|_| more).map(|view| view.tool.id.as_str());
    Ok(list.answer(&Items { items: prompts.iter().map(Prompt::of).collect() }, end))
}

/// One prompt with its arguments.
#[utoipa::path(
    get, path = "/v1/prompts/{id}", tag = "prompts", operation_id = "get_prompt",
    params(("id" = String, Path, description = "`<provider>:<prompt_name>`")),
    responses(
        (status = 200, description = "the prompt", body = One<Prompt>),
    )
)]
pub(crate) async fn get(
    NoQuery(ctx, gateway): NoQuery,
    PromptPath(id): PromptPath,
) -> HandlerResult {
    match id.and_then(|id| gateway.app.tools.seen(&ctx, &id)) {
        Ok(view) => Ok(Outcome::data(&Prompt::of(&view))),
        Err(refusal) => Err(nearest::told(&gateway, &ctx, &NamedBy::Id, refusal.into()).await),
    }
}

/// Gets the messages of a prompt under policy, DLP, limits and audit.
///
/// `result` holds `messages` and perhaps `description`, as in MCP. A prompt that policies deny whatever its arguments
/// is answered as one that does not exist.
#[utoipa::path(
    post, path = "/v1/prompts/{id}/get", tag = "prompts", operation_id = "use_prompt",
    params(
        ("id" = String, Path, description = "`<provider>:<prompt_name>`"),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: a use that waits for an approval is held for at most N seconds, 1 to 300, until people decided (RFC 7240); anything else is ignored", min_length = 0),
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 255 visible ASCII characters, bare or quoted: for 24 hours the same request with the same key is given the same answer and reaches no provider", pattern = "^(\"[!#-~]{1,253}\"|[!#-~][!-~]{0,254})$"),
    ),
    request_body = InvokeRequest,
    responses(
        (status = 200, description = "the messages; with `meta.outcome` `input_required` the provider asks something first: `result.interaction` holds `requests` and `state`", body = InvokeAnswer, headers(("Idempotency-Replayed" = String, description = "`true` when the answer was given before"))),
        (status = 400, description = "bad request or bad arguments, or the idempotency key stands for another request", body = ErrorAnswer),
        (status = 409, description = "the provider refuses its credentials, or the request of this idempotency key is under way", body = ErrorAnswer),
        (status = 502, description = "the provider failed", body = ErrorAnswer),
        (status = 504, description = "the provider was too slow", body = ErrorAnswer),
    )
)]
pub(crate) async fn get_messages(
    State(gateway): State<Arc<Gateway>>,
    Extension(exchange): Extension<Arc<Exchange>>,
    Caller(ctx): Caller,
    PromptPath(prompt): PromptPath,
    request: Request,
) -> Outcome {
    invoke::used(&gateway, &exchange, ctx, request, |read| AskedUse::of(prompt, read)).await
}

/// A prompt as the caller sees it.
#[derive(Serialize, ToSchema)]
pub(crate) struct Prompt<'a> {
    #[schema(example = "crm:weekly_report")]
    id: &'a str,
    /// Slug of its provider.
    #[schema(example = "crm")]
    provider: &'a str,
    /// Its name at the provider.
    #[schema(example = "weekly_report")]
    name: &'a str,
    title: Option<&'a str>,
    description: Option<&'a str>,
    /// Arguments, each a text: objects with `name`, and `title`, `description` and `required` where they are known.
    #[schema(value_type = Vec<Object>)]
    arguments: &'a Value,
    access: Access,
    status: ToolStatus,
    /// SHA-256 of its definition.
    version: &'a str,
    updated_at: Timestamp,
}

impl<'a> Prompt<'a> {
    fn of(view: &'a ToolView) -> Self {
        let definition = view.tool.listed_definition();
        Self {
            id: view.tool.id.short(),
            provider: view.tool.id.provider(),
            name: view.tool.id.name(),
            title: definition.title.as_deref(),
            description: definition.description.as_deref(),
            arguments: &definition.more,
            access: view.access,
            status: view.status,
            version: &view.tool.version,
            updated_at: view.tool.updated_at,
        }
    }
}
