//! The router of the table: each route in its frame and on its thread, and the fallbacks.

use std::{collections::BTreeMap, panic::resume_unwind, sync::Arc};

use axum::{
    Router,
    extract::{MatchedPath, Request, State},
    http::{HeaderValue, Method, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::MethodRouter,
};
use portcullis_core::refusal::{Refusal, Unavailable};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt as _;

use super::{
    cors, frame,
    prefix::Prefix,
    row::{Row, operations},
    table,
};
use crate::{
    exchange::{Access, Outcome, RouteSpec, Thread, caller},
    gateway::Gateway,
    mcp::{self, MessageRoute},
    scim,
};

/// Everything Portcullis answers.
pub fn router(gateway: Arc<Gateway>) -> Router {
    let unknown = async |State(gateway): State<Arc<Gateway>>, request: Request| {
        let is_scim = request.uri().path().starts_with("/scim/");
        let spec = if is_scim { RouteSpec::UNKNOWN_SCIM } else { RouteSpec::UNKNOWN };
        let answer = |request| no_such_path(Arc::clone(&gateway), request);
        frame::framed(&gateway, spec, request, answer).await
    };
    let prefix = gateway.app.providers.public_url().and_then(Prefix::of);
    let routes = routed(table(), &mcp::routes(), &gateway);
    let strict: Router = routes.clone().fallback(unknown).with_state(Arc::clone(&gateway));
    // A path that is none of these is changed before anything looks at it, and asked for once again.
    let again = async move |mut request: Request| {
        if let Some(uri) = scim::without_empty_segments(request.uri()) {
            *request.uri_mut() = uri;
        }
        let Ok(response) = strict.oneshot(request).await;
        response
    };
    let whole = routes.fallback(again).with_state(gateway);
    match prefix {
        Some(prefix) => prefix.around(whole),
        None => whole,
    }
}

/// The routes of a listener for health probes: `/healthz` and `/readyz`, and nothing else.
pub fn health_router(gateway: Arc<Gateway>) -> Router {
    let probes = table().into_iter().filter(|row| row.spec.access == Access::Probe);
    let unknown = async |State(gateway): State<Arc<Gateway>>, request: Request| {
        let answer = async |request: Request| not_found(&request).into_response();
        frame::framed(&gateway, RouteSpec::UNKNOWN, request, answer).await
    };
    routed(probes.collect(), &[], &gateway).fallback(unknown).with_state(gateway)
}

/// The router of `rows` and `messages`, which also answers wrong methods of their paths.
pub(super) fn routed(
    rows: Vec<Row>,
    messages: &[MessageRoute],
    gateway: &Arc<Gateway>,
) -> Router<Arc<Gateway>> {
    let mut paths = BTreeMap::new();
    let mut router = Router::new();
    for (path, methods) in messages {
        let known = KnownPath { spec: RouteSpec::MCP, allow: vec![Method::POST.to_string()] };
        paths.insert((*path).to_owned(), known);
        router = router.route(path, framed(methods.clone(), RouteSpec::MCP, gateway));
    }
    for Row { spec, routes } in rows {
        let made = routes();
        note(&mut paths, spec, operations(&made));
        let (_, documented, methods) = made;
        let methods = framed(methods, spec, gateway);
        for path in documented.paths.keys() {
            router = router.route(path, methods.clone());
        }
    }
    let paths = Arc::new(paths);
    router.method_not_allowed_fallback(
        async move |State(gateway): State<Arc<Gateway>>, request: Request| {
            let path = request.extensions().get::<MatchedPath>();
            let known = path.and_then(|path| paths.get(path.as_str()));
            let KnownPath { spec, allow } = known.cloned().unwrap_or_default();
            let answer = |request| wrong_method(Arc::clone(&gateway), spec, allow, request);
            frame::framed(&gateway, spec, request, answer).await
        },
    )
}

/// Puts the frame around every answer of a route, and the work on its thread.
#[doc(hidden)]
pub fn framed(
    methods: MethodRouter<Arc<Gateway>>,
    spec: RouteSpec,
    gateway: &Arc<Gateway>,
) -> MethodRouter<Arc<Gateway>> {
    let state = (Arc::clone(gateway), spec);
    let methods = methods.layer(middleware::from_fn_with_state(state, frame));
    match spec.thread {
        Thread::Connection => methods,
        Thread::Shared => {
            methods.layer(middleware::from_fn_with_state(Handle::current(), elsewhere))
        }
    }
}

async fn frame(
    State((gateway, spec)): State<(Arc<Gateway>, RouteSpec)>,
    request: Request,
    next: Next,
) -> Response {
    frame::framed(&gateway, spec, request, |request| next.run(request)).await
}

/// Does the work on a runtime, as long as the client waits for it.
async fn elsewhere(State(runtime): State<Handle>, request: Request, next: Next) -> Response {
    match AbortOnDropHandle::new(runtime.spawn(next.run(request))).await {
        Ok(response) => response,
        Err(error) => match error.try_into_panic() {
            // A panic of the frame itself: there is nothing left to answer with.
            Ok(panic) => resume_unwind(panic),
            Err(_) => Outcome::from(Refusal::Unavailable { reason: Unavailable::Shutdown })
                .into_response(),
        },
    }
}

fn not_found(request: &Request) -> Outcome {
    Refusal::not_found("path", request.uri().path()).into()
}

/// Under `/v1` and `/scim` a client learns which paths exist only with a token.
async fn no_such_path(gateway: Arc<Gateway>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    let needs_token = path == "/v1" || path.starts_with("/v1/") || path.starts_with("/scim/");
    if needs_token && let Err(refused) = caller::charge_unknown_path(&parts, &gateway).await {
        return refused.into_response();
    }
    not_found(&Request::from_parts(parts, body)).into_response()
}

/// A path as its wrong methods are answered.
#[derive(Debug, Clone)]
struct KnownPath {
    /// Of its first operation.
    spec: RouteSpec,
    allow: Vec<String>,
}

impl Default for KnownPath {
    fn default() -> Self {
        Self { spec: RouteSpec::UNKNOWN, allow: Vec::new() }
    }
}

/// Adds operations to the paths that are known.
fn note<'a>(
    paths: &mut BTreeMap<String, KnownPath>,
    spec: RouteSpec,
    operations: impl Iterator<Item = (&'a str, Method)>,
) {
    for (path, method) in operations {
        let known =
            paths.entry(path.to_owned()).or_insert_with(|| KnownPath { spec, allow: Vec::new() });
        if method == Method::GET {
            known.allow.extend([Method::GET, Method::HEAD].map(|it| it.to_string()));
        } else {
            known.allow.push(method.to_string());
        }
    }
}

async fn wrong_method(
    gateway: Arc<Gateway>,
    spec: RouteSpec,
    allow: Vec<String>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    if spec.access == Access::Public && parts.method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let methods = if spec.access == Access::Message { "POST" } else { "GET, POST" };
    let methods = HeaderValue::from_static(methods);
    if spec.is_open_to_pages()
        && let Some(answer) =
            cors::preflight(&gateway.mcp.guard, methods, &parts.method, &parts.headers)
    {
        return answer;
    }
    let authenticated = if spec.access.is_open() {
        Ok(())
    } else {
        caller::charge_unknown_path(&parts, &gateway).await
    };
    let refused = match authenticated {
        Ok(()) => Refusal::MethodNotAllowed { allow }.into(),
        Err(refused) => refused,
    };
    let mut response = refused.into_response();
    response.headers_mut().remove(header::ALLOW);
    response
}
