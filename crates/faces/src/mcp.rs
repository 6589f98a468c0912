//! `POST /mcp` and `POST /mcp/{slug}`: the server that MCP clients speak to.
//!
//! Nothing is kept between requests: each says who asks, and in which version. A use of a tool,
//! prompt or resource is the same use case as over REST; only its answer is written in other words, by [`reply`].

mod call;
pub(crate) mod card;
mod directory;
mod list;
pub(crate) mod listen;
mod parts;
mod question;
pub(crate) mod reply;
mod search;
mod stream;
mod task;

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request as HttpRequest, State},
    http::HeaderMap,
    response::Response,
    routing::{MethodRouter, post},
};
use bytes::Bytes;
use portcullis_app::{Ctx, Stage};
use portcullis_core::{
    authorization::Face as GrantedFace,
    capability::CapabilityKind,
    json::{Bounds, Document, JsonValue as _, Node},
    mcp::{
        Era, Message, Method, Mirror, MirroredHeaders, OFFERED, ProtocolError, Request as Asking,
        apps, code, header, meta, skills, tasks,
    },
    principal::Scope,
    refusal::Refusal,
    secret::Secret,
};
use serde_json::{Map, Value, json};

use self::list::Listing;
pub use self::list::MOST_LISTED;
use crate::{
    exchange::{
        Caller, Exchange, Outcome, Query, RequestBody, Segment, caller, host,
        message::{McpMessage, Reply},
        segment,
    },
    gateway::{Gateway, mcp_settings::ListForm},
};

/// For how long a client may keep what `server/discover` says.
const DISCOVERY_TTL_MS: u64 = 3_600_000;

/// Two levels of a message lie around the arguments of a call, one around its input over REST.
const MESSAGE: Bounds = Bounds { depth: Bounds::REQUEST.depth + 1, ..Bounds::REQUEST };

/// The tools that an address offers.
#[derive(Debug, Clone)]
enum Face {
    All(ListForm),
    One(String),
}

impl Face {
    fn provider(&self) -> Option<&str> {
        match self {
            Self::All(_) => None,
            Self::One(slug) => Some(slug),
        }
    }
}

/// Addresses at which MCP clients are answered: about the tools of all providers, and of one.
pub(crate) const ALL: &str = "/mcp";
pub(crate) const ONE: &str = "/mcp/{slug}";
/// The first of these as some clients write it.
pub(crate) const ALL_AS_A_FOLDER: &str = "/mcp/";

/// A route of JSON-RPC, which OpenAPI does not describe; every message is a POST.
pub(crate) type MessageRoute = (&'static str, MethodRouter<Arc<Gateway>>);

/// The routes of these addresses.
pub(crate) fn routes() -> [MessageRoute; 3] {
    [(ALL, post(answer_all)), (ALL_AS_A_FOLDER, post(answer_all)), (ONE, post(answer_one))]
}

/// Answers a message about the tools of all providers.
async fn answer_all(
    State(gateway): State<Arc<Gateway>>,
    Extension(exchange): Extension<Arc<Exchange>>,
    request: HttpRequest,
) -> Result<Response, Outcome> {
    answer(&gateway, &exchange, None, request).await
}

/// Answers a message about the tools of one provider.
async fn answer_one(
    State(gateway): State<Arc<Gateway>>,
    Extension(exchange): Extension<Arc<Exchange>>,
    slug: Segment,
    request: HttpRequest,
) -> Result<Response, Outcome> {
    answer(&gateway, &exchange, Some(segment(slug)), request).await
}

async fn answer(
    gateway: &Arc<Gateway>,
    exchange: &Arc<Exchange>,
    slug: Option<String>,
    request: HttpRequest,
) -> Result<Response, Outcome> {
    if let Some(forbidden) = forbidden(&request, gateway, exchange) {
        return Err(forbidden);
    }
    let Caller(ctx) = Caller::of(exchange, request.headers(), gateway).await?;
    let granted = slug.as_deref().map_or(Some(GrantedFace::All), GrantedFace::one);
    // What is no slug is no face that a token was granted for.
    let granted = granted.unwrap_or_else(|| GrantedFace::One(String::new()));
    gateway.app.access.admit_at(&ctx, &granted).map_err(|refused| refused.refusal)?;
    let face = match face(gateway, slug, request.uri().query()) {
        Ok(face) => face,
        Err(refusal) => return Err(refused(gateway, &ctx, refusal.into()).await),
    };
    let (parts, body) = request.into_parts();
    let request = RequestBody::of(exchange, parts.headers, body, gateway);
    message_answered(gateway, ctx, face, exchange, request).await
}

/// The answer to a request that a page of a stranger may have sent: 403, before its token is looked
/// at.
fn forbidden(request: &HttpRequest, gateway: &Gateway, exchange: &Exchange) -> Option<Outcome> {
    let host = host::named(request.headers(), request.uri());
    let message = gateway.mcp.guard.check(host, request.headers()).err()?;
    let refusal = Refusal::bad_request(message);
    let charged = gateway.app.quotas.charge_source(refusal.clone(), &exchange.origin).refusal;
    if charged != refusal {
        return Some(charged.into());
    }
    let forbidden = ProtocolError::bad(code::INVALID_REQUEST, message);
    Some(ProtocolError { http_status: 403, ..forbidden }.into())
}

/// The tools that an address offers.
fn face(gateway: &Gateway, slug: Option<String>, query: Option<&str>) -> Result<Face, Refusal> {
    match slug {
        None => listed(query, gateway.mcp.tools).map(Face::All),
        Some(slug) => {
            Query::parse(query, &[])?;
            Ok(Face::One(slug))
        }
    }
}

fn listed(raw: Option<&str>, configured: ListForm) -> Result<ListForm, Refusal> {
    let query = Query::parse(raw, &["tools"])?;
    Ok(match query.choice("tools", &["auto", "list", "search"])? {
        Some("auto") => ListForm::Auto,
        Some("list") => ListForm::List,
        Some("search") => ListForm::Search,
        Some(_) | None => configured,
    })
}

/// Refuses a message, which costs a request as well.
async fn refused(gateway: &Gateway, ctx: &Ctx, answer: Outcome) -> Outcome {
    match gateway.app.quotas.charge_request(ctx).await {
        Ok(()) => answer,
        Err(refusal) => refusal.into(),
    }
}

async fn message_answered(
    gateway: &Arc<Gateway>,
    ctx: Ctx,
    face: Face,
    exchange: &Arc<Exchange>,
    request: RequestBody,
) -> Result<Response, Outcome> {
    ctx.origin.stages.enter(Stage::Body, gateway.app.base.now());
    let (headers, read) = request.read_beside_headers().await;
    let (message, bytes) = match read {
        Ok(read) => (message(gateway, &ctx, &headers, &read).await, read.len()),
        Err(refusal) => (Err(refusal.into()), 0),
    };
    let asking = match message {
        Err(answer) => return Err(refused(gateway, &ctx, answer).await),
        Ok(Message::Notification) => {
            return Err(refused(gateway, &ctx, Outcome::message(Reply::Accepted)).await);
        }
        Ok(Message::Request(asking)) => *asking,
    };
    exchange.set_message(McpMessage::new(&asking));
    let used = match asking.method {
        Some(Method::Complete) => call::completed(asking.params.root()),
        method => method.and_then(Method::used),
    };
    let is_answered = |kind: &CapabilityKind| match asking.method {
        Some(Method::Complete) => offers(gateway, &ctx, &face, *kind),
        _ => answers(gateway, &ctx, &face, asking.era, *kind),
    };
    if let Some(kind) = used.filter(is_answered) {
        let arrived = call::MessageRequest { headers, bytes };
        return call::call(gateway, ctx, &face, kind, asking, exchange, arrived).await;
    }
    gateway.app.quotas.charge_request(&ctx).await?;
    ctx.origin.stages.leave(gateway.app.base.now());
    if let Some(slug) = face.provider().filter(|slug| !gateway.app.tools.reaches(&ctx, slug)) {
        return Err(Refusal::not_found("provider", slug).into());
    }
    if task::is_about(&asking) {
        return Err(task::answer(gateway, ctx, &face, &asking, exchange).await?);
    }
    if asking.method == Some(Method::Listen) && asking.era == Era::Modern {
        task::may_listen(&asking)?;
        ctx.require(Scope::McpsRead)?;
        let bearer = caller::token(&headers).unwrap_or_default().to_owned();
        return Ok(listen::open(gateway, ctx, face, &asking, Secret::new(bearer))?);
    }
    Err(answer_method(gateway, &ctx, &face, &asking).await.unwrap_or_else(|answer| answer))
}

/// The message in a body. A large one does not keep the thread that serves.
async fn message(
    gateway: &Gateway,
    ctx: &Ctx,
    headers: &HeaderMap,
    bytes: &Bytes,
) -> Result<Message, Outcome> {
    let text = bytes.clone();
    let org = ctx.caller().org_id;
    let parsed =
        gateway.app.base.worked(org, bytes.len(), move || Document::parse(&text, MESSAGE)).await?;
    let body = parsed.map_err(|error| ProtocolError::unreadable(&error))?;
    let mirrored = MirroredHeaders {
        version: mirror(headers, header::PROTOCOL_VERSION),
        method: mirror(headers, header::METHOD),
        name: mirror(headers, header::NAME),
    };
    Ok(Message::read(&body, &mirrored)?)
}

/// The one value of a header.
fn mirror<'a>(headers: &'a HeaderMap, name: &str) -> Mirror<'a> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Mirror::Absent,
        (Some(value), None) => value.to_str().map_or(Mirror::Unclear, Mirror::Once),
        (Some(_), Some(_)) => Mirror::Unclear,
    }
}

/// The answer to everything but a call.
async fn answer_method(
    gateway: &Arc<Gateway>,
    ctx: &Ctx,
    face: &Face,
    asking: &Asking,
) -> Result<Outcome, Outcome> {
    let modern = asking.era == Era::Modern;
    let listed = asking.method.and_then(Method::listed);
    if let Some(kind) = listed.filter(|kind| answers(gateway, ctx, face, asking.era, *kind)) {
        let listing = Listing { gateway, ctx, face, asking, kind };
        return Ok(Outcome::message(Reply::List(listing.page().await?)));
    }
    let result = match asking.method {
        Some(Method::Ping) if !modern => json!({}),
        Some(Method::Discover) if modern => {
            discovered(gateway, &capabilities(Era::Modern, gateway, ctx, face))
        }
        Some(Method::Initialize) if !modern => {
            initialized(gateway, asking, &capabilities(asking.era, gateway, ctx, face))?
        }
        Some(Method::ReadDirectory)
            if answers(gateway, ctx, face, asking.era, CapabilityKind::Skill) =>
        {
            return directory::read(gateway, ctx, face, asking).await;
        }
        Some(Method::Complete) if completes(gateway, ctx, face) => {
            let kinds = "`ref` has to name a prompt (`ref/prompt`) or a template (`ref/resource`) of those that are listed.";
            return Err(ProtocolError::bad_params(kinds).into());
        }
        Some(
            Method::Discover
            | Method::Initialize
            | Method::Ping
            | Method::ListTools
            | Method::CallTool
            | Method::ListResources
            | Method::ListTemplates
            | Method::ReadResource
            | Method::ListPrompts
            | Method::GetPrompt
            | Method::ListSkills
            | Method::GetSkill
            | Method::ReadDirectory
            | Method::Subscribe
            | Method::Unsubscribe
            | Method::Complete
            | Method::Listen
            | Method::GetTask
            | Method::UpdateTask
            | Method::CancelTask,
        )
        | None => {
            return Err(ProtocolError::method_not_found(asking.era).into());
        }
    };
    Ok(Outcome::message(Reply::Result(reply::text_of(result, asking.era))))
}

/// Name and version of this server.
fn server_info() -> Value {
    json!({"name": "portcullis", "title": "Portcullis", "version": env!("CARGO_PKG_VERSION")})
}

/// Changes are announced where there is a stream to announce them on. Tasks need what only the stateless
/// era says with each request.
fn capabilities(era: Era, gateway: &Gateway, ctx: &Ctx, face: &Face) -> Value {
    let announced = json!({"listChanged": era == Era::Modern});
    let mut extensions = Map::new();
    if era == Era::Modern {
        extensions.insert(tasks::EXTENSION.to_owned(), json!({}));
        extensions.insert(tasks::APPROVAL_EXTENSION.to_owned(), json!({}));
    }
    if answers(gateway, ctx, face, era, CapabilityKind::Skill) {
        extensions.insert(skills::EXTENSION.to_owned(), json!({"directoryRead": true}));
    }
    if face.provider().is_some_and(|slug| gateway.app.tools.exposes_apps(ctx, slug)) {
        extensions.insert(apps::EXTENSION.to_owned(), apps::declaration());
    }
    let all = [
        Some(("tools", announced.clone())),
        offers(gateway, ctx, face, CapabilityKind::Prompt).then_some(("prompts", announced)),
        answers(gateway, ctx, face, era, CapabilityKind::Resource)
            .then(|| ("resources", resources(era, gateway, ctx, face))),
        completes(gateway, ctx, face).then(|| ("completions", json!({}))),
        (!extensions.is_empty()).then(|| ("extensions", Value::Object(extensions))),
    ];
    all.into_iter().flatten().map(|(name, told)| (name.to_owned(), told)).collect()
}

/// The capability of resources. Who hears of changes of one hears them in a stream, too.
fn resources(era: Era, gateway: &Gateway, ctx: &Ctx, face: &Face) -> Value {
    let announces = era == Era::Modern;
    let tells = announces && gateway.app.tools.tells_of_resources(ctx, face.provider());
    let listed = ("listChanged".to_owned(), json!(announces));
    let subscribed = tells.then(|| ("subscribe".to_owned(), json!(true)));
    Value::Object([listed].into_iter().chain(subscribed).collect())
}

/// Returns true where there is something whose arguments values are suggested for.
fn completes(gateway: &Gateway, ctx: &Ctx, face: &Face) -> bool {
    let kinds = [CapabilityKind::Prompt, CapabilityKind::Template];
    kinds.into_iter().any(|kind| offers(gateway, ctx, face, kind))
}

/// Returns true for what can be listed and used here in this era. The files of skills are resources.
fn answers(gateway: &Gateway, ctx: &Ctx, face: &Face, era: Era, kind: CapabilityKind) -> bool {
    let skills = || era == Era::Modern && offers(gateway, ctx, face, CapabilityKind::Skill);
    match kind {
        CapabilityKind::Tool | CapabilityKind::Prompt => offers(gateway, ctx, face, kind),
        CapabilityKind::Resource | CapabilityKind::Template => {
            offers(gateway, ctx, face, kind) || skills()
        }
        CapabilityKind::Skill => skills(),
    }
}

/// Returns true for tools, and for what a provider that the caller reaches here exposes beside them.
fn offers(gateway: &Gateway, ctx: &Ctx, face: &Face, kind: CapabilityKind) -> bool {
    kind == CapabilityKind::Tool || gateway.app.tools.exposes(ctx, face.provider(), kind)
}

fn discovered(gateway: &Gateway, capabilities: &Value) -> Value {
    with_instructions(
        gateway,
        json!({
            "supportedVersions": OFFERED,
            "capabilities": capabilities,
            "ttlMs": DISCOVERY_TTL_MS,
            "cacheScope": "private",
        }),
    )
}

/// No session is opened, so that any node may answer the next request.
fn initialized(
    gateway: &Gateway,
    asking: &Asking,
    capabilities: &Value,
) -> Result<Value, ProtocolError> {
    let Some(wanted) = asking.params.root().get("protocolVersion").and_then(Node::text) else {
        return Err(ProtocolError::bad_params("`protocolVersion` has to be a text."));
    };
    Ok(with_instructions(
        gateway,
        json!({
            "protocolVersion": Era::agreed(wanted),
            "capabilities": capabilities,
            "serverInfo": server_info(),
        }),
    ))
}

fn with_instructions(gateway: &Gateway, mut result: Value) -> Value {
    if let (Some(text), Value::Object(members)) = (&gateway.mcp.instructions, &mut result) {
        members.insert("instructions".to_owned(), json!(text));
    }
    result
}

/// The members that an answer of this era has besides its own.
fn common(era: Era) -> Map<String, Value> {
    if era != Era::Modern {
        return Map::new();
    }
    let info = json!({(meta::SERVER_INFO): server_info()});
    Map::from_iter([("resultType".to_owned(), json!("complete")), (meta::META.to_owned(), info)])
}
