//! What the gateway says about itself to OAuth clients (RFC 9728, RFC 8414).

use std::sync::Arc;

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use portcullis_core::{authorization::Face, refusal::Refusal};
use serde_json::{Value, json};

use super::{json_answer, offered};
use crate::{
    Gateway,
    caller::Stranger,
    exchange::Exchange,
    outcome::Outcome,
    segment::{Segment, segment},
};

/// The scopes that clients are told of; the order in which people think of them.
const SCOPES: [&str; 2] = ["mcps:read", "mcps:invoke"];

/// The protected resource `/mcp` (RFC 9728).
#[utoipa::path(
    get, path = "/.well-known/oauth-protected-resource", tag = "oauth", operation_id = "protected_resource",
    responses(
        (status = 200, description = "metadata of the protected resource", body = Object),
        (status = 404, description = "clients are not authorized here", body = Object),
        (status = 429, description = "too many requests from this address", body = Object),
    )
)]
pub(crate) async fn resource(
    Stranger(exchange): Stranger,
    State(gateway): State<Arc<Gateway>>,
) -> Response {
    protected(&gateway, &exchange, "/mcp")
}

/// The protected resource `/mcp`, at its path form.
#[utoipa::path(
    get, path = "/.well-known/oauth-protected-resource/mcp", tag = "oauth", operation_id = "protected_resource_mcp",
    responses(
        (status = 200, description = "metadata of the protected resource", body = Object),
        (status = 404, description = "clients are not authorized here", body = Object),
        (status = 429, description = "too many requests from this address", body = Object),
    )
)]
pub(crate) async fn resource_all(
    Stranger(exchange): Stranger,
    State(gateway): State<Arc<Gateway>>,
) -> Response {
    protected(&gateway, &exchange, "/mcp")
}

/// The protected resource `/mcp/`, as clients name it that compare addresses to the letter.
#[utoipa::path(
    get, path = "/.well-known/oauth-protected-resource/mcp/", tag = "oauth", operation_id = "protected_resource_folder",
    responses(
        (status = 200, description = "metadata of the protected resource", body = Object),
        (status = 404, description = "clients are not authorized here", body = Object),
        (status = 429, description = "too many requests from this address", body = Object),
    )
)]
pub(crate) async fn resource_folder(
    Stranger(exchange): Stranger,
    State(gateway): State<Arc<Gateway>>,
) -> Response {
    protected(&gateway, &exchange, "/mcp/")
}

/// The protected resource of one provider.
#[utoipa::path(
    get, path = "/.well-known/oauth-protected-resource/mcp/{slug}", tag = "oauth", operation_id = "protected_resource_provider",
    params(("slug" = String, Path, description = "slug of a provider; the answer is the same whether there is one")),
    responses(
        (status = 200, description = "metadata of the protected resource", body = Object),
        (status = 404, description = "clients are not authorized here, or this is no slug", body = Object),
        (status = 429, description = "too many requests from this address", body = Object),
    )
)]
pub(crate) async fn resource_one(
    Stranger(exchange): Stranger,
    State(gateway): State<Arc<Gateway>>,
    slug: Segment,
) -> Response {
    match Face::one(&segment(slug)) {
        Some(face) => protected(&gateway, &exchange, &face.path()),
        None => Outcome::from(Refusal::not_found("path", "no slug")).into_response(),
    }
}

fn protected(gateway: &Gateway, exchange: &Exchange, path: &str) -> Response {
    told(gateway, exchange, |issuer| {
        json!({
            "resource": format!("{issuer}{path}"),
            "authorization_servers": [issuer],
            "scopes_supported": SCOPES,
            "bearer_methods_supported": ["header"],
            "resource_name": "Portcullis",
        })
    })
}

/// The authorization server (RFC 8414).
#[utoipa::path(
    get, path = "/.well-known/oauth-authorization-server", tag = "oauth", operation_id = "authorization_server",
    responses(
        (status = 200, description = "metadata of the authorization server", body = Object),
        (status = 404, description = "clients are not authorized here", body = Object),
        (status = 429, description = "too many requests from this address", body = Object),
    )
)]
pub(crate) async fn server(
    Stranger(exchange): Stranger,
    State(gateway): State<Arc<Gateway>>,
) -> Response {
    told(&gateway, &exchange, server_metadata)
}

/// The authorization server, at the path form of `/mcp`.
#[utoipa::path(
    get, path = "/.well-known/oauth-authorization-server/mcp", tag = "oauth", operation_id = "authorization_server_mcp",
    responses(
        (status = 200, description = "metadata of the authorization server", body = Object),
        (status = 404, description = "clients are not authorized here", body = Object),
        (status = 429, description = "too many requests from this address", body = Object),
    )
)]
pub(crate) async fn server_all(
    Stranger(exchange): Stranger,
    State(gateway): State<Arc<Gateway>>,
) -> Response {
    told(&gateway, &exchange, server_metadata)
}

/// The authorization server, at the path form of one provider.
#[utoipa::path(
    get, path = "/.well-known/oauth-authorization-server/mcp/{slug}", tag = "oauth", operation_id = "authorization_server_provider",
    params(("slug" = String, Path, description = "slug of a provider; the answer is the same for each")),
    responses(
        (status = 200, description = "metadata of the authorization server", body = Object),
        (status = 404, description = "clients are not authorized here", body = Object),
        (status = 429, description = "too many requests from this address", body = Object),
    )
)]
pub(crate) async fn server_one(
    Stranger(exchange): Stranger,
    State(gateway): State<Arc<Gateway>>,
) -> Response {
    told(&gateway, &exchange, server_metadata)
}

fn server_metadata(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/oauth/authorize"),
        "token_endpoint": format!("{issuer}/oauth/token"),
        "registration_endpoint": format!("{issuer}/oauth/register"),
        "revocation_endpoint": format!("{issuer}/oauth/revoke"),
        "introspection_endpoint": format!("{issuer}/oauth/introspect"),
        "scopes_supported": SCOPES,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": super::token::GRANT_TYPES,
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
        "token_endpoint_auth_signing_alg_values_supported": ["RS256", "PS256", "ES256", "EdDSA"],
        "authorization_grant_profiles_supported": ["urn:ietf:params:oauth:grant-profile:id-jag"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "client_id_metadata_document_supported": true,
        "authorization_response_iss_parameter_supported": true,
    })
}

fn told(gateway: &Gateway, exchange: &Exchange, document: impl Fn(&str) -> Value) -> Response {
    let (authorization, issuer) = match offered(gateway) {
        Ok(offered) => offered,
        Err(answer) => return answer,
    };
    match authorization.admit_stranger(&exchange.origin) {
        Ok(()) => json_answer(StatusCode::OK, &document(issuer)),
        Err(refusal) => Outcome::from(refusal).into_response(),
    }
}
