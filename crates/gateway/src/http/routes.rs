//! The route table, the fallbacks, and the OpenAPI document that is made from both.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    extract::{FromRequestParts, Request, State},
    http::{Method, header},
    middleware,
    response::{IntoResponse, Response},
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

use super::{Gateway, answer::Answer, caller::Known, exchange, health, v1};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Portcullis",
        description = "A governed MCP gateway: MCP tools over REST, under policy, DLP, limits and \
                       a tamper-evident audit log.",
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
        .routes(routes!(v1::auth::revoke))
        .routes(routes!(v1::mcps::list))
        .routes(routes!(v1::mcps::get))
        .routes(routes!(v1::invoke::invoke))
        .routes(routes!(v1::providers::list))
        .routes(routes!(v1::providers::get))
        .routes(routes!(v1::policies::list))
        .routes(routes!(v1::policies::get))
        .routes(routes!(v1::events::list))
        .routes(routes!(v1::events::get))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::document))
}

/// The OpenAPI 3.1 document as JSON.
pub(crate) fn openapi() -> String {
    let (_, document) = table().split_for_parts();
    document.to_pretty_json().unwrap_or_default()
}

/// Everything Portcullis answers, framed.
pub(crate) fn router(gateway: Arc<Gateway>) -> Router {
    let (router, document) = table().split_for_parts();
    let methods = Methods(Arc::new(methods(&document)));
    router
        .fallback(no_such_path)
        .method_not_allowed_fallback(move |state, request| {
            let methods = methods.clone();
            wrong_method(methods, state, request)
        })
        .layer(CatchPanicLayer::custom(|_| Answer::Refused(Refusal::Internal).into_response()))
        .layer(middleware::from_fn_with_state(Arc::clone(&gateway), exchange::frame))
        .with_state(gateway)
}

/// Under `/v1` nobody learns which paths exist without a token.
async fn admitted(gateway: &Arc<Gateway>, request: Request) -> Result<Request, Answer> {
    let (mut parts, body) = request.into_parts();
    if parts.uri.path() == "/v1" || parts.uri.path().starts_with("/v1/") {
        Known::from_request_parts(&mut parts, gateway).await?;
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
