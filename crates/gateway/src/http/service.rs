//! Dispatch of the requests of a connection: calls go to their handlers at once, everything else
//! through the router.
//!
//! Routing, extractors and middleware allocate and move much for each request. A call needs little of
//! them: its path, its headers and its body are read once.

use std::{borrow::Cow, convert::Infallible, sync::Arc};

use axum::{Router, extract::Request, http::Method, response::Response};
use percent_encoding::percent_decode_str;
use tower::ServiceExt;

use super::{
    Gateway,
    exchange::{self, Routed},
    mcp,
    metrics::{CallRoute, Route},
    routes::{RouteSpec, router},
    v1::invoke,
};
use crate::connection::Arrival;

static INVOKE: CallRoute = CallRoute::new(invoke::PATH);
static ALL_TOOLS: CallRoute = CallRoute::new(mcp::ALL);
static TOOLS_OF_ONE: CallRoute = CallRoute::new(mcp::ONE);

/// Answers requests.
#[derive(Clone)]
pub(crate) struct Service {
    /// Absent where no calls are made.
    gateway: Option<Arc<Gateway>>,
    router: Router,
}

impl From<Router> for Service {
    /// Answers nothing but what the router does.
    fn from(router: Router) -> Self {
        Self { gateway: None, router }
    }
}

impl Service {
    /// Answers everything.
    pub(crate) fn new(gateway: Arc<Gateway>) -> Self {
        Self { router: router(Arc::clone(&gateway)), gateway: Some(gateway) }
    }

    pub(crate) async fn answer(self, mut request: Request, arrival: Arrival) -> Response {
        let calls = self.gateway.filter(|_| request.method() == Method::POST);
        let path = request.uri().path();
        match (calls, invoke::called(path), mcp::Address::of(path)) {
            // Boxed, so that a connection without a call has no room for one.
            (Some(gateway), Some(_), _) => {
                let counted = Route::call(&INVOKE);
                let routed = Routed { spec: RouteSpec::INVOKE, counted, arrival };
                let answer = async |exchange, request| {
                    invoke::answer(&gateway, exchange, request).await.into()
                };
                Box::pin(exchange::frame(&gateway, routed, request, answer)).await
            }
            (Some(gateway), None, Some(mcp::Address { provider })) => {
                let counted =
                    Route::call(if provider.is_some() { &TOOLS_OF_ONE } else { &ALL_TOOLS });
                let routed = Routed { spec: RouteSpec::MCP, counted, arrival };
                let answer =
                    async |exchange, request| mcp::answer(&gateway, exchange, request).await;
                Box::pin(exchange::frame(&gateway, routed, request, answer)).await
            }
            _ => {
                request.extensions_mut().insert(arrival);
                self.router
                    .oneshot(request)
                    .await
                    .unwrap_or_else(|never: Infallible| match never {})
            }
        }
    }
}

/// The one segment of a path, if it is one; in the middle of a path the router takes an empty one as
/// well.
pub(crate) fn segment(text: &str) -> Option<&str> {
    (!text.contains('/')).then_some(text)
}

/// A segment of a path as text; empty, which names nothing, where that is not UTF-8.
pub(crate) fn decoded(segment: &str) -> Cow<'_, str> {
    percent_decode_str(segment).decode_utf8().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, extract::MatchedPath, http::StatusCode, routing::any};
    use http_body_util::BodyExt;

    use super::*;

    /// The template that a router of all paths beside those of calls finds.
    async fn matched(path: &str) -> Option<String> {
        let template = any(async |path: MatchedPath| path.as_str().to_owned());
        let others = ["/v1/mcps", "/v1/mcps/{id}", "/healthz"];
        let calls = [invoke::PATH, mcp::ALL, mcp::ALL_AS_A_FOLDER, mcp::ONE];
        let paths = calls.into_iter().chain(others);
        let router = paths.fold(Router::new(), |router, path| router.route(path, template.clone()));
        let request = Request::post(path).body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        if response.status() == StatusCode::NOT_FOUND {
            return None;
        }
        let template = response.into_body().collect().await.unwrap().to_bytes();
        Some(String::from_utf8(template.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_call_is_found_where_the_router_finds_it() {
        for path in [
            "/v1/mcps/a:b/invoke",
            "/v1/mcps/a%2Fb/invoke",
            "/v1/mcps//invoke",
            "/v1/mcps/invoke",
            "/v1/mcps/a/b/invoke",
            "/v1/mcps/a:b/invoke/",
            "/v1/mcps/a:b/Invoke",
            "/v1/mcps/a:b",
            "/v1/mcps/invoke/invoke",
            "/v1/mcps",
            "/v1//mcps/a/invoke",
            "/mcp",
            "/mcp/",
            "/mcp/x",
            "/mcp/x/",
            "/mcp//x",
            "/mcp/x/y",
            "/mcps",
            "/mcpx/y",
            "/mcp/%2F",
            "/healthz",
            "/",
            "/V1/mcps/a:b/invoke",
            "/v1/mcps/%/invoke",
            "/v1/mcps/ü/invoke",
        ] {
            let Ok(request) = Request::post(path).body(Body::empty()) else { continue };
            let path = request.uri().path();
            let found = match (invoke::called(path), mcp::Address::of(path)) {
                (Some(_), _) => Some(invoke::PATH),
                (None, Some(mcp::Address { provider: None })) => Some(mcp::ALL),
                (None, Some(_)) => Some(mcp::ONE),
                (None, None) => None,
            };
            let calls = [invoke::PATH, mcp::ALL, mcp::ONE];
            let by_router = matched(path).await;
            let by_router = by_router.as_deref().map(|path| match path {
                mcp::ALL_AS_A_FOLDER => mcp::ALL,
                path => path,
            });

            assert_eq!(found, by_router.filter(|path| calls.contains(path)), "{path}");
        }
    }

    #[test]
    fn a_segment_is_decoded_once() {
        assert_eq!(decoded("a%3Ab"), "a:b");
        assert_eq!(decoded("a%253Ab"), "a%3Ab");
        assert_eq!(decoded("a%2Fb"), "a/b");
        assert_eq!(decoded("%ff"), "");
    }
}
