//! `/oauth/register`: dynamic client registration (RFC 7591, RFC 7592). Nothing is stored.

use std::sync::Arc;

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use portcullis_core::authorization::{ClientRegistration, RedirectUri};
use serde_json::{Map, Value, json};

use super::{json_answer, malformed, offered};
use crate::{
    exchange::{Outcome, RequestBody, Segment, Stranger, caller::token, segment},
    gateway::Gateway,
};

/// Registers a client: its metadata is sealed into its `client_id`, which is good for 90 days.
#[utoipa::path(
    post, path = "/oauth/register", tag = "oauth", operation_id = "register_client",
    request_body(content = Object, description = "client metadata (RFC 7591 §2): `redirect_uris`, `client_name`"),
    responses(
        (status = 201, description = "the client, with `client_id`, `registration_client_uri` and `registration_access_token`", body = Object),
        (status = 400, description = "`invalid_redirect_uri` or `invalid_client_metadata`", body = Object),
        (status = 404, description = "clients are not authorized here", body = Object),
        (status = 429, description = "too many requests from this address", body = Object),
    )
)]
pub(crate) async fn register(
    Stranger(exchange): Stranger,
    State(gateway): State<Arc<Gateway>>,
    request: RequestBody,
) -> Response {
    let origin = &exchange.origin;
    let (authorization, issuer) = match offered(&gateway) {
        Ok(offered) => offered,
        Err(answer) => return answer,
    };
    if let Err(refusal) = authorization.admit_registration(origin) {
        return Outcome::from(refusal).into_response();
    }
    let document = match request.optional_object().await {
        Ok(members) => Value::Object(members),
        Err(refusal) => {
            return Outcome::from(gateway.app.quotas.charge_source(refusal, origin).refusal)
                .into_response();
        }
    };
    match authorization.register(&document) {
        Ok((registration, sealed)) => {
            let mut view = view(&registration, &sealed.client_id, issuer);
            let token = sealed.access_token.expose().into();
            view.insert("registration_access_token".to_owned(), token);
            json_answer(StatusCode::CREATED, &Value::Object(view))
        }
        Err(error) => malformed(&gateway, &error, origin),
    }
}

/// The registration of a client, which shows its `registration_access_token`.
#[utoipa::path(
    get, path = "/oauth/register/{client_id}", tag = "oauth", operation_id = "get_client",
    params(("client_id" = String, Path, description = "as it was given")),
    responses(
        (status = 200, description = "the client", body = Object),
        (status = 401, description = "the token is not that of this client", body = Object),
        (status = 404, description = "clients are not authorized here", body = Object),
        (status = 429, description = "too many requests from this address", body = Object),
    )
)]
pub(crate) async fn show(
    Stranger(exchange): Stranger,
    State(gateway): State<Arc<Gateway>>,
    client_id: Segment,
    headers: HeaderMap,
) -> Response {
    let (authorization, issuer) = match offered(&gateway) {
        Ok(offered) => offered,
        Err(answer) => return answer,
    };
    let client_id = segment(client_id);
    match authorization.registration(&client_id, token(&headers)) {
        Ok(registration) => {
            let view = view(&registration, &client_id, issuer);
            json_answer(StatusCode::OK, &Value::Object(view))
        }
        Err(error) => malformed(&gateway, &error, &exchange.origin),
    }
}

fn view(registration: &ClientRegistration, client_id: &str, issuer: &str) -> Map<String, Value> {
    let uris: Vec<_> = registration.redirect_uris.iter().map(RedirectUri::as_str).collect();
    let members = [
        ("client_id", json!(client_id)),
        ("client_id_issued_at", json!(registration.issued_at.as_seconds())),
        ("redirect_uris", json!(uris)),
        ("grant_types", json!(["authorization_code", "refresh_token"])),
        ("response_types", json!(["code"])),
        ("token_endpoint_auth_method", json!("none")),
        ("registration_client_uri", json!(format!("{issuer}/oauth/register/{client_id}"))),
    ];
    let name = registration.name.as_ref().map(|name| ("client_name", json!(name)));
    members.into_iter().chain(name).map(|(member, value)| (member.to_owned(), value)).collect()
}
