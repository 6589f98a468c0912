//! `POST /v1/mcps/{id}/invoke`: the governed call.

pub(super) mod interaction;

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
};
use bytes::Bytes;
use portcullis_app::{Conversation, Ctx, Invocation, Stage, View};
use portcullis_core::{
    call::Aim,
    capability::CapabilityId,
    json::{Document, JsonValue, Node},
    refusal::Refusal,
};
use utoipa::ToSchema;

use self::interaction::InteractionRequest;
use super::ToolPath;
use crate::{
    exchange::{
        Caller, ErrorAnswer, Exchange, InvokeAnswer, NamedBy, Outcome, Query, RequestBody, Wait,
        body, idempotency_key, waiting,
    },
    gateway::Gateway,
};

/// Invokes an MCP tool under policy, DLP, limits and audit.
#[utoipa::path(
    post, path = "/v1/mcps/{id}/invoke", tag = "mcps", operation_id = "invoke_tool",
    params(
        ("id" = String, Path, description = "`<provider>:<tool_name>`"),
        ("view" = Option<String>, Query, description = "`structured` (default) or `mcp`", pattern = "^(structured|mcp)$"),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: a call that waits for an approval is held for at most N seconds, 1 to 300, until people decided (RFC 7240); anything else is ignored", min_length = 0),
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 255 visible ASCII characters, bare or quoted: for 24 hours the same request with the same key is given the same answer and reaches no tool", pattern = "^(\"[!#-~]{1,253}\"|[!#-~][!-~]{0,254})$"),
    ),
    request_body = InvokeRequest,
    responses(
        (status = 200, description = "the tool answered; with `meta.outcome` `input_required` it asks something first: `result.interaction` holds `requests` and `state`", body = InvokeAnswer, headers(("Idempotency-Replayed" = String, description = "`true` when the answer was given before"))),
        (status = 400, description = "bad request or bad input, or the idempotency key stands for another request", body = ErrorAnswer),
        (status = 409, description = "the provider refuses its credentials, or the request of this idempotency key is under way", body = ErrorAnswer),
        (status = 502, description = "the provider failed", body = ErrorAnswer),
        (status = 504, description = "the provider was too slow", body = ErrorAnswer),
    )
)]
pub(crate) async fn invoke(
    State(gateway): State<Arc<Gateway>>,
    Extension(exchange): Extension<Arc<Exchange>>,
    Caller(ctx): Caller,
    ToolPath(tool): ToolPath,
    request: Request,
) -> Outcome {
    used(&gateway, &exchange, ctx, request, |read| AskedUse::of(tool, read)).await
}

/// A use as its request asks for it.
pub(super) struct AskedUse {
    pub(super) tool: Result<CapabilityId, Refusal>,
    pub(super) input: Result<Document, Refusal>,
    pub(super) conversation: Conversation,
}

impl AskedUse {
    /// The use of a tool or prompt with the input of this body.
    pub(super) fn of(tool: Result<CapabilityId, Refusal>, body: Result<Bytes, Refusal>) -> Self {
        match body.and_then(|bytes| InvokeRequest::read(&bytes)) {
            Ok(InvokeRequest { input, interaction }) => {
                let conversation = interaction::conversation(interaction);
                Self { tool, input: Ok(input), conversation }
            }
            Err(refusal) => {
                Self { tool, input: Err(refusal), conversation: Conversation::default() }
            }
        }
    }
}

/// The use of a tool, prompt or resource, which `take` reads out of the body.
pub(super) async fn used(
    gateway: &Arc<Gateway>,
    exchange: &Arc<Exchange>,
    ctx: Ctx,
    request: Request,
    take: impl FnOnce(Result<Bytes, Refusal>) -> AskedUse + Clone + Send + 'static,
) -> Outcome {
    let (parts, body) = request.into_parts();
    let raw = parts.uri.query().map(str::to_owned);
    let request = RequestBody::of(exchange, parts.headers, body, gateway);
    ctx.origin.stages.enter(Stage::Body, gateway.app.base.now());
    let key = idempotency_key(&request.headers);
    let wait = Wait::of(&request.headers);
    let read = request.read().await;
    let bytes = read.as_ref().map_or(0, Bytes::len);
    let asked = move || {
        let AskedUse { tool, input, conversation } = take(read);
        let size = u64::try_from(bytes).unwrap_or(u64::MAX);
        let body = input.map(|input| (input, size));
        let view = view(raw.as_deref());
        Invocation { tool, aim: Aim::Use, view, key, body, conversation, task: None }
    };
    waiting::invoke(gateway, ctx, NamedBy::Id, wait, bytes, asked).await
}

fn view(raw: Option<&str>) -> Result<View, Refusal> {
    let query = Query::parse(raw, &["view"])?;
    let mcp = query.choice("view", &["structured", "mcp"])? == Some("mcp");
    Ok(if mcp { View::Mcp } else { View::Structured })
}

/// The body of an invocation.
#[derive(ToSchema)]
pub(crate) struct InvokeRequest {
    /// Arguments of the tool; `{}` for none.
    #[schema(value_type = Object)]
    input: Document,
    /// Part of a conversation with the tool.
    interaction: Option<InteractionRequest>,
}

impl InvokeRequest {
    /// Reads `{"input": {…}}`, perhaps with `interaction`, and nothing else.
    fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let body = body::document(bytes)?;
        let names = body.root().members().into_iter().flatten().map(|(name, _)| name);
        let known = body::only_named(names, &["input", "interaction"]);
        let is_wrapped = body.root().get("input").is_some();
        known.map_err(|refusal| if is_wrapped { refusal } else { unwrapped(refusal) })?;
        let interaction = body.root().get("interaction").map(Node::to_value);
        let interaction = InteractionRequest::read(interaction)?;
        match body.member("input") {
            Some(input) if input.root().is_object() => Ok(Self { input, interaction }),
            None => Err(body::wrong_member("input", "is required; send `{}` for no arguments")),
            Some(_) => Err(body::wrong_member("input", "has to be an object")),
        }
    }
}

/// The refusal of arguments that stand where `input` has to be.
fn unwrapped(mut refusal: Refusal) -> Refusal {
    if let Refusal::InvalidRequest { message, .. } = &mut refusal {
        message.push_str(" Send the arguments of the tool as `{\"input\": {…}}`.");
    }
    refusal
}
