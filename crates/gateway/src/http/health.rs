//! Whether the node lives and whether it can do its work. No token needed, nothing told.

use std::sync::{Arc, atomic::Ordering};

use axum::{
    extract::{Request, State},
    http::{Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use portcullis_core::refusal::{Refusal, Unavailable};
use serde_json::json;

use super::{Gateway, answer::Answer};

/// Tells if a request is one of the probes of load balancers and orchestrators.
pub(super) fn is_probe(request: &Request) -> bool {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    reads && matches!(request.uri().path(), "/healthz" | "/readyz")
}

/// Says that the process lives.
#[utoipa::path(
    get, path = "/healthz", tag = "health",
    responses((status = 200, description = "the process lives")), security(())
)]
pub(super) async fn healthz() -> Answer {
    Answer::Data(json!({ "status": "ok" }))
}

/// Says whether calls can be governed: the audit log writable, the store readable, not draining.
#[utoipa::path(
    get, path = "/readyz", tag = "health",
    responses(
        (status = 200, description = "calls are accepted"),
        (status = 503, description = "calls would be refused; `details.reason` says why; within two seconds, also if the database is locked"),
    ),
    security(())
)]
pub(super) async fn readyz(State(gateway): State<Arc<Gateway>>) -> Answer {
    if gateway.draining.load(Ordering::Acquire) {
        return Refusal::Unavailable { reason: Unavailable::Shutdown }.into();
    }
    match gateway.app.nodes.ready().await {
        Ok(()) => Answer::Data(json!({ "status": "ready" })),
        Err(refusal) => refusal.into(),
    }
}

/// The OpenAPI 3.1 document of this API.
#[utoipa::path(
    get, path = "/openapi.json", tag = "health",
    responses((status = 200, description = "the OpenAPI 3.1 document")), security(())
)]
pub(super) async fn document() -> Response {
    let json = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::OK, json, super::openapi()).into_response()
}
