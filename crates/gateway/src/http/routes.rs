//! The route table, the fallbacks, and the OpenAPI document that is made from both.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use axum::{
    Router,
    extract::{Request, State},
    http::{Method, header},
    middleware,
    response::{IntoResponse, Response},
    routing::post,
};
use portcullis_core::refusal::Refusal;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::{
    Modify, OpenApi,
    openapi::{
        OpenApi as Document,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{Gateway, answer::Answer, caller, described, exchange, health, mcp, oauth, v1};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Portcullis",
        description = "A governed MCP gateway: MCP tools over REST, under policy, DLP, limits and \
                       a durable audit log.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    modifiers(&BearerToken),
    security(("token" = [])),
)]
struct Api;

struct BearerToken;

impl Modify for BearerToken {
    fn modify(&self, document: &mut Document) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("mcp_live_… or svc_live_…")
            .build();
        let components = document.components.get_or_insert_with(Default::default);
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

fn table() -> OpenApiRouter<Arc<Gateway>> {
    OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(v1::auth::exchange::exchange, v1::auth::revoke))
        .routes(routes!(v1::auth::refresh::refresh))
        .routes(routes!(v1::mcps::list))
        .routes(routes!(v1::mcps::get))
        .routes(routes!(v1::invoke::invoke))
        .routes(routes!(v1::providers::list))
        .routes(routes!(v1::providers::get, v1::providers::disconnect))
        .routes(routes!(v1::providers::connect))
        .routes(routes!(v1::providers::refresh))
        .routes(routes!(oauth::callback))
        .routes(routes!(oauth::client_metadata))
        .routes(routes!(v1::policies::list))
        .routes(routes!(v1::policies::get))
        .routes(routes!(v1::simulate::simulate))
        .routes(routes!(v1::events::list))
        .routes(routes!(v1::events::get))
        .routes(routes!(v1::exports::create))
        .routes(routes!(v1::exports::get))
        .routes(routes!(v1::exports::file))
        .routes(routes!(v1::checkpoint::proof))
        .routes(routes!(v1::checkpoint::get))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::document))
}

/// The OpenAPI 3.1 document as JSON; written once, for anybody may ask for it.
pub(crate) fn openapi() -> &'static str {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
        let (_, document) = table().split_for_parts();
        let mut document = serde_json::to_value(document).unwrap_or_default();
        described::complete(&mut document);
        serde_json::to_string_pretty(&document).unwrap_or_default()
    });
    &DOCUMENT
}

/// Everything Portcullis answers, framed.
pub(crate) fn router(gateway: Arc<Gateway>) -> Router {
    let (router, document) = table().split_for_parts();
    let mut methods = methods(&document);
    // No REST, and so not in the document.
    for path in ["/mcp", "/mcp/{slug}"] {
        methods.insert(path.to_owned(), vec![Method::POST.to_string()]);
    }
    let methods = Methods(Arc::new(methods));
    let router = router.route("/mcp", post(mcp::all)).route("/mcp/{slug}", post(mcp::one));
    let router =
        router.fallback(no_such_path).method_not_allowed_fallback(move |state, request| {
            let methods = methods.clone();
            wrong_method(methods, state, request)
        });
    framed(router, gateway)
}

/// The routes of a listener for health probes: `/healthz` and `/readyz`, and nothing else.
pub(crate) fn health_router(gateway: Arc<Gateway>) -> Router {
    let (router, _) = OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .split_for_parts();
    let unknown = async |request: Request| {
        Answer::Refused(Refusal::not_found("path", request.uri().path())).into_response()
    };
    framed(router.fallback(unknown), gateway)
}

/// Puts the frame around every answer of `router`, also around that of a handler that panics.
fn framed(router: Router<Arc<Gateway>>, gateway: Arc<Gateway>) -> Router {
    router
        .layer(CatchPanicLayer::custom(|_| Answer::Refused(Refusal::Internal).into_response()))
        .layer(middleware::from_fn_with_state(Arc::clone(&gateway), exchange::frame))
        .with_state(gateway)
}

/// Under `/v1` nobody learns which paths exist without a token.
async fn admitted(gateway: &Arc<Gateway>, request: Request) -> Result<Request, Answer> {
    let (mut parts, body) = request.into_parts();
    if parts.uri.path() == "/v1" || parts.uri.path().starts_with("/v1/") {
        caller::lost(&mut parts, gateway).await?;
    }
    Ok(Request::from_parts(parts, body))
}

async fn no_such_path(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    let refused = match admitted(&gateway, request).await {
        Ok(request) => Refusal::not_found("path", request.uri().path()).into(),
        Err(answer) => answer,
    };
    refused.into_response()
}

/// The methods of each path template, for `Allow`.
#[derive(Debug, Clone)]
struct Methods(Arc<BTreeMap<String, Vec<String>>>);

fn methods(document: &Document) -> BTreeMap<String, Vec<String>> {
    let paths = document.paths.paths.iter();
    paths
        .map(|(path, item)| {
            let known = [
                (Method::GET, item.get.is_some()),
                (Method::HEAD, item.get.is_some()),
                (Method::POST, item.post.is_some()),
                (Method::DELETE, item.delete.is_some()),
            ];
            let allowed = known.into_iter().filter(|(_, exists)| *exists);
            (path.clone(), allowed.map(|(method, _)| method.to_string()).collect())
        })
        .collect()
}

async fn wrong_method(
    Methods(methods): Methods,
    State(gateway): State<Arc<Gateway>>,
    request: Request,
) -> Response {
    let refused = match admitted(&gateway, request).await {
        Ok(request) => {
            let matched = request.extensions().get::<axum::extract::MatchedPath>();
            let allow = matched.and_then(|path| methods.get(path.as_str()).cloned());
            Refusal::MethodNotAllowed { allow: allow.unwrap_or_default() }.into()
        }
        Err(answer) => answer,
    };
    let mut response = refused.into_response();
    response.headers_mut().remove(header::ALLOW);
    response
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::StatusCode, routing::get};
    use http_body_util::BodyExt;
    use portcullis_core::secret::Secret;
    use serde_json::Value;
    use tower::ServiceExt;

    use super::*;
    use crate::{boot, config::Config};

    async fn gateway(folder: &std::path::Path) -> Arc<Gateway> {
        let config = Config { data_dir: folder.to_owned(), ..Config::default() };
        std::fs::create_dir(folder.join("policies")).unwrap();
        boot::new_key(&folder.join("key")).unwrap();
        let looking = boot::Standing::Looking;
        let node = boot::Node::assemble(&config, portcullis_app::Fallback::Refuse, looking).await;
        node.unwrap().gateway
    }

    async fn boom() -> StatusCode {
        panic!("{}", Secret::new("hunter2".to_owned()).expose())
    }

    #[tokio::test]
    async fn a_handler_that_panics_is_answered_like_any_failure_and_tells_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let router = Router::new().route("/boom", get(boom));
        let router = framed(router, gateway(folder.path()).await);

        let request =
            Request::get("/boom").header("host", "localhost").body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();

        assert_eq!(response.status(), 500);
        for name in ["x-ratelimit-limit", "x-ratelimit-reset", "x-request-id", "cache-control"] {
            assert!(response.headers().contains_key(name), "{name}");
        }
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(!String::from_utf8_lossy(&body).contains("hunter2"));
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["error"]["code"], "internal_error");
        assert!(body["meta"]["request_id"].as_str().unwrap().starts_with("req_"));
    }
}
