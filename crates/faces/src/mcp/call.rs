//! `tools/call`, `prompts/get`, `resources/read`, `skills/get` and `completion/complete`: a message becomes the governed call that REST
//! makes as well.

mod completion;

use std::{collections::BTreeMap, sync::Arc};

use axum::{http::HeaderMap, response::Response};
use portcullis_app::{
    Attendance, Conversation, Ctx, Invocation, Offered, View, not_found, parse_id,
};
use portcullis_core::{
    call::Aim,
    capability::{CapabilityId, CapabilityKind},
    idempotency::IdempotencyKey,
    json::{Document, JsonValue as _, Node},
    mcp::{
        Era, Method, Mirror, ProtocolError, Request as Asking, apps, meta, mismatch, names, uris,
    },
    refusal::Refusal,
    trace::TraceParent,
};
use serde_json::json;

pub(super) use self::completion::completed;
use self::completion::{no_argument, wanted_values};
use super::{
    Face, mirror,
    question::{self, AddressReply},
    search, stream, task,
};
use crate::{
    exchange::{
        Exchange, NamedBy, Outcome, Wait, idempotency_key,
        message::{McpMessage, Read},
        waiting,
    },
    gateway::Gateway,
};

/// The HTTP request that a message came with.
pub(super) struct MessageRequest {
    pub(super) headers: HeaderMap,
    pub(super) bytes: usize,
}

/// A call as it was asked for.
#[derive(Clone)]
struct WantedCall {
    /// The id of the tool or prompt without its kind, or what was sent instead of one.
    tool: String,
    of: CapabilityKind,
    kind: Name,
    input: Document,
    aim: Aim,
}

/// Name and input of a call as they were sent.
struct AskedUse {
    of: CapabilityKind,
    name: String,
    input: Document,
    /// The argument that values are suggested for, with all as far as they are written.
    completion: Option<(String, BTreeMap<String, String>)>,
}

impl AskedUse {
    fn of(
        method: Option<Method>,
        of: CapabilityKind,
        params: Node<'_>,
        arguments: Option<Document>,
    ) -> Result<Self, ProtocolError> {
        if method == Some(Method::Complete) {
            return Self::of_completion(of, params);
        }
        let text = |member| params.get(member).and_then(Node::text).map(str::to_owned);
        if matches!(of, CapabilityKind::Resource | CapabilityKind::Skill) {
            let name =
                text("uri").ok_or_else(|| ProtocolError::bad_params("`uri` has to be a text."))?;
            return Ok(Self { of, name, input: Document::default(), completion: None });
        }
        let name =
            text("name").ok_or_else(|| ProtocolError::bad_params("`name` has to be a text."))?;
        let input = arguments.unwrap_or_else(|| Document::of(&json!({})));
        if !input.root().is_object() {
            return Err(ProtocolError::bad_params("`arguments` has to be an object."));
        }
        Ok(Self { of, name, input, completion: None })
    }
}

/// Kind of the name that a call was made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    /// The id of a tool, or of none.
    Id,
    /// A text under which no tool is listed here, whatever tool has it for an id.
    Unlisted,
}

impl WantedCall {
    /// The tool that is called. A name that is not listed names none: it may have been another tool's when
    /// the caller read the list.
    fn capability_id(&self) -> Result<CapabilityId, Refusal> {
        match self.kind {
            Name::Id => parse_id(self.of, &self.tool),
            Name::Unlisted => Err(not_found(self.of, &self.tool)),
        }
    }

    /// The call of it. Suggestions answer no questions, and ask none; asked for once more, they are made once more.
    fn invoke(
        self,
        key: Result<Option<IdempotencyKey>, Refusal>,
        bytes: u64,
        conversation: Conversation,
    ) -> Invocation {
        let is_use = self.aim == Aim::Use;
        let key = if is_use { key } else { Ok(None) };
        Invocation {
            tool: self.capability_id(),
            aim: self.aim,
            view: Ok(View::Mcp),
            key,
            body: Ok((self.input, bytes)),
            conversation: if is_use { conversation } else { Conversation::default() },
            task: None,
        }
    }
}

/// Calls a tool, or one of those that find others.
pub(super) async fn call(
    gateway: &Arc<Gateway>,
    ctx: Ctx,
    face: &Face,
    of: CapabilityKind,
    asking: Asking,
    exchange: &Arc<Exchange>,
    arrived: MessageRequest,
) -> Result<Response, Outcome> {
    let Asking { params, arguments, meta, era, method, .. } = asking;
    let shown = AddressReply::of(params.root());
    let read = conversation(gateway, &ctx, face, &params, &meta, era, &arrived).await;
    let conversation = match read {
        Ok(conversation) => conversation,
        Err(answer) => return Err(super::refused(gateway, &ctx, answer).await),
    };
    let asked = AskedUse::of(method, of, params.root(), arguments).map_err(Outcome::from);
    let wanted = match asked {
        Ok(asked) => resolve_call(gateway, &ctx, face, asked, era, &arrived.headers).await,
        Err(answer) => Err(answer),
    };
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(answer) => return Err(super::refused(gateway, &ctx, answer).await),
    };
    let token = match stream::Token::of(meta.root()) {
        Ok(token) => token,
        Err(error) => return Err(super::refused(gateway, &ctx, error.into()).await),
    };
    let opens_urls = question::may_open_urls(&conversation);
    let waits = of == CapabilityKind::Tool
        && task::is_wanted(meta.root(), era, &conversation, opens_urls && shown.is_none());
    if let Some(asked) = exchange.message() {
        tell(gateway, asked, face, &wanted, &params);
        if opens_urls && shown.is_none() {
            asked.may_open_urls();
        }
    }
    let ctx = traced(ctx, meta.root());
    let MessageRequest { headers, bytes } = arrived;
    let waits = waits.then(|| task::WaitingCall::of(&ctx, &wanted.tool, &wanted.input, bytes));
    let waits = waits.flatten();
    let held = waits.is_none() && opens_urls && shown == Some(AddressReply::Opened);
    let wait = held.then(|| Wait::lasting(gateway.mcp.approval_wait, &headers));
    let size = u64::try_from(bytes).unwrap_or(u64::MAX);
    let invocation = move || wanted.invoke(key(&headers, meta.root()), size, conversation);
    let by = named_by(face);
    let Some(token) = token else {
        let outcome = waiting::invoke(gateway, ctx, by, wait, bytes, invocation).await;
        return Err(task::offered(gateway, exchange, waits, outcome).await);
    };
    let (attendance, attending) = Attendance::new();
    let app = Arc::clone(gateway);
    let ctx = Ctx { attendance: Some(attendance), ..ctx };
    let call = async move { waiting::invoke(&app, ctx, by, wait, bytes, invocation).await };
    match stream::open(gateway, exchange, token, attending, call).await {
        Ok(streamed) => Ok(streamed),
        Err(outcome) => Err(task::offered(gateway, exchange, waits, outcome).await),
    }
}

/// Tells the writer of the answer what is used.
fn tell(
    gateway: &Gateway,
    asked: &McpMessage,
    face: &Face,
    wanted: &WantedCall,
    params: &Document,
) {
    asked.uses(wanted.of, &wanted.tool);
    let params = params.root();
    if let Some(uri) = params.get("uri").and_then(Node::text)
        && matches!(wanted.of, CapabilityKind::Resource | CapabilityKind::Skill)
    {
        // What depends on answers to questions is not kept.
        let goes_on =
            ["inputResponses", "requestState"].into_iter().any(|it| params.get(it).is_some());
        let ttl_ms = if goes_on { 0 } else { gateway.mcp.ttl_ms };
        let _ = asked.read.set(Read { uri: uri.to_owned(), ttl_ms });
    }
    if let Some((slug, _)) = wanted.tool.split_once(':') {
        asked.carries(face.provider().is_none(), slug);
    }
}

fn named_by(face: &Face) -> NamedBy {
    match face {
        Face::All(_) => NamedBy::Name,
        Face::One(slug) => NamedBy::OwnName(slug.clone()),
    }
}

/// Answers and state of the call for questions of the tool. Large answers do not keep the thread that serves.
async fn conversation(
    gateway: &Gateway,
    ctx: &Ctx,
    face: &Face,
    params: &Document,
    meta: &Document,
    era: Era,
    arrived: &MessageRequest,
) -> Result<Conversation, Outcome> {
    let params = params.clone();
    let meta = meta.clone();
    let org = ctx.caller().org_id;
    let taken = move || question::take_conversation(params.root(), meta.root(), era);
    let mut conversation = gateway.app.base.worked(org, arrived.bytes, taken).await??;
    // Pages of apps are shown at the addresses of their providers.
    conversation.capabilities.ui &= face.provider().is_some();
    Ok(conversation)
}

/// The tool that is called and its input. What is answered here already is no call.
async fn resolve_call(
    gateway: &Gateway,
    ctx: &Ctx,
    face: &Face,
    asked: AskedUse,
    era: Era,
    headers: &HeaderMap,
) -> Result<WantedCall, Outcome> {
    let AskedUse { of, name, input, completion } = asked;
    match (of, &completion) {
        (CapabilityKind::Skill, _) => {
            let wanted = wanted_read(face, name);
            return Ok(WantedCall { of, aim: Aim::Describe, ..wanted });
        }
        (CapabilityKind::Resource, _) => {
            let mut wanted = wanted_read(face, name);
            let slug = wanted.tool.split(':').next().unwrap_or_default();
            let tools = &gateway.app.tools;
            // Of the resources of such a provider files of skills are read here.
            let is_page = |id: &str| id.split_once(':').is_some_and(|(_, uri)| apps::is_page(uri));
            let has_skills = tools.exposes(ctx, Some(slug), CapabilityKind::Skill);
            if face.provider().is_none()
                && tools.exposes_pages_alone(ctx, slug)
                && (!has_skills || is_page(&wanted.tool))
            {
                wanted.kind = Name::Unlisted;
            }
            return Ok(wanted);
        }
        (CapabilityKind::Template, Some((argument, values))) => {
            return Ok(wanted_values(face, name, argument, values)?);
        }
        (CapabilityKind::Tool | CapabilityKind::Prompt | CapabilityKind::Template, _) => {}
    }
    let aim = completion.map_or(Aim::Use, |(argument, _)| Aim::Complete(argument));
    if let (Face::All(_), CapabilityKind::Tool) = (face, of)
        && let Some(called) = find_called(gateway, ctx, face, &name, &input, era).await?
    {
        return Ok(called);
    }
    let found = gateway.app.tools.named_tool(ctx, face.provider(), of, &name).await?;
    let seen = |it: &&Offered| match of {
        // Pages of apps call where these are.
        CapabilityKind::Tool => face.provider().is_some() || !it.tool.is_for_pages_alone(),
        CapabilityKind::Prompt
        | CapabilityKind::Resource
        | CapabilityKind::Template
        | CapabilityKind::Skill => gateway.app.tools.seen(ctx, &it.tool.id).is_ok(),
    };
    let (tool, kind) = match found.as_ref().and_then(|it| it.get()).filter(seen) {
        Some(found) => {
            if let Aim::Complete(argument) = &aim
                && !found.tool.listed_definition().takes(argument)
            {
                return Err(no_argument().into());
            }
            mirrored(found, input.root(), era, headers)?;
            (found.tool.id.short().to_owned(), Name::Id)
        }
        None => unlisted(gateway, ctx, face, of, name),
    };
    Ok(WantedCall { tool, of, kind, input, aim })
}

/// The call that `call_tool` makes of this input; `None` if it is not the tool of this name. The other tools that find
/// tools are answered.
async fn find_called(
    gateway: &Gateway,
    ctx: &Ctx,
    face: &Face,
    name: &str,
    input: &Document,
    era: Era,
) -> Result<Option<WantedCall>, Outcome> {
    match name {
        search::FIND => return Err(answer(search::find(gateway, ctx, input, era).await)),
        search::DESCRIBE => return Err(answer(search::describe(gateway, ctx, input, era).await)),
        search::CALL => {}
        _ => return Ok(None),
    }
    let problem = "call_tool takes `id`, a text, and `input`, an object.";
    let (id, input) = search::called(input).ok_or_else(|| search::wrong(problem, era))?;
    let (tool, kind) = if id.contains(':') {
        let is_for_pages = gateway.app.tools.is_for_pages_alone(ctx, &id);
        (id, if is_for_pages { Name::Unlisted } else { Name::Id })
    } else {
        find_id(gateway, ctx, face, id).await?
    };
    Ok(Some(WantedCall { tool, of: CapabilityKind::Tool, kind, input, aim: Aim::Use }))
}

/// The resource that is read. Where URIs carry their provider, one that carries none names no resource.
fn wanted_read(face: &Face, uri: String) -> WantedCall {
    let of = CapabilityKind::Resource;
    let (tool, kind, uri) = match inner_of(face, &uri) {
        Some((slug, uri)) => (format!("{slug}:{uri}"), Name::Id, uri),
        None => (uri.clone(), Name::Unlisted, uri),
    };
    WantedCall { tool, of, kind, input: Document::of(&json!({ "uri": uri })), aim: Aim::Use }
}

/// The provider, and the URI or template as it knows it.
pub(super) fn inner_of(face: &Face, uri: &str) -> Option<(String, String)> {
    match face {
        Face::One(slug) => Some((slug.clone(), uri.to_owned())),
        Face::All(_) => uris::inner(uri).map(|(slug, uri)| (slug.to_owned(), uri.into_owned())),
    }
}

fn answer(answered: Result<Outcome, Outcome>) -> Outcome {
    answered.unwrap_or_else(|answer| answer)
}

/// The id behind a name that a model wrote where an id belongs.
async fn find_id(
    gateway: &Gateway,
    ctx: &Ctx,
    face: &Face,
    name: String,
) -> Result<(String, Name), Outcome> {
    let found = gateway.app.tools.named_tool(ctx, None, CapabilityKind::Tool, &name).await?;
    let found = found.as_ref().and_then(|it| it.get()).filter(|it| !it.tool.is_for_pages_alone());
    let id = found.map(|it| (it.tool.id.to_string(), Name::Id));
    Ok(id.unwrap_or_else(|| unlisted(gateway, ctx, face, CapabilityKind::Tool, name)))
}

/// Target of a name without a tool: the id that it would have, under which the call is refused and
/// recorded, unless a tool of another name has that id.
fn unlisted(
    gateway: &Gateway,
    ctx: &Ctx,
    face: &Face,
    of: CapabilityKind,
    name: String,
) -> (String, Name) {
    let id = guessed(face, name.clone());
    let tool = parse_id(of, &id).and_then(|id| gateway.app.tools.seen(ctx, &id));
    if tool.is_ok() { (name, Name::Unlisted) } else { (id, Name::Id) }
}

/// The id that a name would have.
fn guessed(face: &Face, name: String) -> String {
    match face {
        Face::One(slug) => format!("{slug}:{name}"),
        Face::All(_) => match names::slug_of(&name) {
            Some((slug, tool)) => format!("{slug}:{tool}"),
            None => name,
        },
    }
}

/// Rejects headers that differ from the arguments which they mirror.
fn mirrored(
    tool: &Offered,
    input: Node<'_>,
    era: Era,
    headers: &HeaderMap,
) -> Result<(), ProtocolError> {
    for param in &tool.params {
        let told = match mirror(headers, param.header()) {
            Mirror::Absent if era != Era::Modern => continue,
            Mirror::Absent => None,
            Mirror::Once(told) => Some(told),
            Mirror::Unclear => return Err(mismatch(param.header(), "is not one plain text")),
        };
        if !param.agrees(input, told) {
            return Err(mismatch(param.header(), "differs from the body"));
        }
    }
    Ok(())
}

/// The idempotency key, told in the header or in `_meta`.
fn key(headers: &HeaderMap, meta: Node<'_>) -> Result<Option<IdempotencyKey>, Refusal> {
    let in_header = idempotency_key(headers)?;
    let Some(value) = meta.get(meta::IDEMPOTENCY_KEY) else { return Ok(in_header) };
    let in_meta = value.text().and_then(IdempotencyKey::parse).ok_or_else(|| {
        let form = "has 1 to 255 visible ASCII characters, bare or in quotes";
        Refusal::bad_request(format!("`_meta[\"{}\"]` {form}.", meta::IDEMPOTENCY_KEY))
    })?;
    if in_header.is_some_and(|key| key != in_meta) {
        return Err(Refusal::bad_request("Header and `_meta` hold different idempotency keys."));
    }
    Ok(Some(in_meta))
}

/// The trace that the message continues, unless a header says one.
fn traced(mut ctx: Ctx, meta: Node<'_>) -> Ctx {
    if ctx.origin.traceparent.is_none() {
        let told = meta.get(meta::TRACEPARENT).and_then(Node::text);
        if let Some(parent) = told.and_then(|text| TraceParent::parse(text.as_bytes())) {
            Arc::make_mut(&mut ctx.origin).traceparent = Some(parent);
        }
    }
    ctx
}
