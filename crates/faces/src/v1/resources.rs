//! `/v1/resources`: resources that the caller may read, and reads of them.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
};
use bytes::Bytes;
use portcullis_app::{Conversation, Ctx, ToolStatus, ToolView};
use portcullis_core::{
    capability::{CapabilityId, CapabilityKind},
    clock::Timestamp,
    json::{Document, JsonValue as _, Node},
    policy::Access,
    refusal::Refusal,
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::invoke::{
    self, AskedUse,
    interaction::{self, InteractionRequest},
};
use crate::{
    exchange::{
        Caller, ErrorAnswer, Exchange, HandlerResult, InvokeAnswer, Items, Listing, NoQuery,
        Outcome, Paged, WithQuery, body,
    },
    gateway::Gateway,
};

/// Lists the resources and templates that the caller may read, by id.
#[utoipa::path(
    get, path = "/v1/resources", tag = "resources", operation_id = "list_resources",
    params(
        ("provider" = Option<String>, Query, description = "slugs, comma-separated", pattern = "[^, ]"),
        ("q" = Option<String>, Query, description = "substring of id, title or description", max_length = 100, pattern = "[^, ]"),
        ("limit" = Option<u32>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "from `meta.pagination.next_cursor`"),
    ),
    responses(
        (status = 200, description = "a page of resources and templates", body = Paged<Items<Resource>>),
    )
)]
pub(crate) async fn list(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let list = Listing::read(&gateway, &ctx, "resources", &["provider", "q"], raw.as_deref())?;
    let wanted = list.usable(CapabilityKind::Resource)?;
    let (tools, lists) = (Arc::clone(&gateway.app.tools), ctx.clone());
    // Each may be judged by its URI.
    let work = move || tools.list(&lists, &wanted);
    let org = ctx.caller().org_id;
    let (resources, more) = gateway.app.base.worked(org, usize::MAX, work).await??;
    let end = resources.last().filter(|_| more).map(|view| view.tool.id.as_str());
    Ok(list.answer(&Items { items: resources.iter().map(Resource::of).collect() }, end))
}

/// One template, or what a resource is read by: itself, or a template or skill that has its URI. For pages.
pub(crate) fn get(
    NoQuery(ctx, gateway): &NoQuery,
    id: Result<CapabilityId, Refusal>,
) -> Result<Outcome, Refusal> {
    let view = gateway.app.tools.readable(ctx, &id?)?;
    Ok(Outcome::data(&Resource::of(&view)))
}

/// Reads a resource under policy, DLP, limits and audit.
///
/// `result` holds `contents`, as in MCP. Without `provider` the URI is that of a resource or template that one provider
/// lists. A resource that policies deny in any case is answered as one that does not exist.
#[utoipa::path(
    post, path = "/v1/resources/read", tag = "resources", operation_id = "read_resource",
    params(
        ("Prefer" = Option<String>, Header, description = "`wait=N`: a read that waits for an approval is held for at most N seconds, 1 to 300, until people decided (RFC 7240); anything else is ignored", min_length = 0),
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 255 visible ASCII characters, bare or quoted: for 24 hours the same request with the same key is given the same answer and reaches no provider", pattern = "^(\"[!#-~]{1,253}\"|[!#-~][!-~]{0,254})$"),
    ),
    request_body = ReadRequest,
    responses(
        (status = 200, description = "the contents; with `meta.outcome` `input_required` the provider asks something first: `result.interaction` holds `requests` and `state`", body = InvokeAnswer, headers(("Idempotency-Replayed" = String, description = "`true` when the answer was given before"))),
        (status = 400, description = "bad request, several providers have this URI, or the idempotency key stands for another request", body = ErrorAnswer),
        (status = 404, description = "no such resource", body = ErrorAnswer),
        (status = 409, description = "the provider refuses its credentials, or the request of this idempotency key is under way", body = ErrorAnswer),
        (status = 502, description = "the provider failed", body = ErrorAnswer),
        (status = 504, description = "the provider was too slow", body = ErrorAnswer),
    )
)]
pub(crate) async fn read(
    State(gateway): State<Arc<Gateway>>,
    Extension(exchange): Extension<Arc<Exchange>>,
    Caller(ctx): Caller,
    request: Request,
) -> Outcome {
    let asked = {
        let gateway = Arc::clone(&gateway);
        let ctx = ctx.clone();
        move |body: Result<Bytes, Refusal>| read_use(&gateway, &ctx, body)
    };
    invoke::used(&gateway, &exchange, ctx, request, asked).await
}

fn read_use(gateway: &Gateway, ctx: &Ctx, body: Result<Bytes, Refusal>) -> AskedUse {
    match body.and_then(|bytes| ReadRequest::read(&bytes)) {
        Ok(ReadRequest { uri, provider, interaction }) => AskedUse {
            tool: gateway.app.tools.resource_at(ctx, provider.as_deref(), &uri),
            input: Ok(Document::of(&json!({ "uri": uri }))),
            conversation: interaction::conversation(interaction),
        },
        Err(refusal) => AskedUse {
            tool: Err(refusal.clone()),
            input: Err(refusal),
            conversation: Conversation::default(),
        },
    }
}

/// The body of a read.
#[derive(ToSchema)]
pub(crate) struct ReadRequest {
    /// URI of the resource at its provider.
    #[schema(example = "sample://guide")]
    uri: String,
    /// Slug of its provider.
    provider: Option<String>,
    /// Part of a conversation with the provider.
    interaction: Option<InteractionRequest>,
}

impl ReadRequest {
    fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let body = body::document(bytes)?;
        let names = body.root().members().into_iter().flatten().map(|(name, _)| name);
        body::only_named(names, &["uri", "provider", "interaction"])?;
        let text = |name| match body.root().get(name) {
            None => Ok(None),
            Some(value) => {
                let wrong = || body::wrong_member(name, "has to be a text");
                value.text().map(|text| Some(text.to_owned())).ok_or_else(wrong)
            }
        };
        let uri = text("uri")?.ok_or_else(|| body::wrong_member("uri", "is required"))?;
        let interaction = body.root().get("interaction").map(Node::to_value);
        let interaction = InteractionRequest::read(interaction)?;
        Ok(Self { uri, provider: text("provider")?, interaction })
    }
}

/// A resource or template as the caller sees it.
#[derive(Serialize, ToSchema)]
pub(crate) struct Resource<'a> {
    #[schema(example = "sample:sample://guide")]
    id: &'a str,
    /// Slug of its provider.
    #[schema(example = "sample")]
    provider: &'a str,
    /// Its URI at the provider; absent for a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
    /// The template of its URIs (RFC 6570); absent for a resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    uri_template: Option<&'a str>,
    name: Option<&'a str>,
    title: Option<&'a str>,
    description: Option<&'a str>,
    mime_type: Option<&'a str>,
    /// Bytes, as the provider tells them.
    size: Option<u64>,
    access: Access,
    status: ToolStatus,
    /// SHA-256 of its definition.
    version: &'a str,
    updated_at: Timestamp,
}

impl<'a> Resource<'a> {
    fn of(view: &'a ToolView) -> Self {
        let definition = view.tool.listed_definition();
        let id = &view.tool.id;
        let is_template = id.kind() == CapabilityKind::Template;
        Self {
            id: id.short(),
            provider: id.provider(),
            uri: (!is_template).then(|| id.name()),
            uri_template: is_template.then(|| id.name()),
            name: definition.more.get("name").and_then(Value::as_str),
            title: definition.title.as_deref(),
            description: definition.description.as_deref(),
            mime_type: definition.mime_type(),
            size: definition.more.get("size").and_then(Value::as_u64),
            access: view.access,
            status: view.status,
            version: &view.tool.version,
            updated_at: view.tool.updated_at,
        }
    }
}
