//! The authorization server for MCP clients in the words of OAuth: `/oauth` and `/.well-known`. Its errors are
//! those of RFC 6749 §5.2, not the envelope.

pub(crate) mod authorize;
mod challenge;
mod consent_page;
pub(crate) mod introspect;
pub(crate) mod metadata;
pub(crate) mod register;
pub(crate) mod revoke;
pub(crate) mod token;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use portcullis_app::{Authorization, Origin};
use portcullis_core::{
    authorization::{OAuthError, OAuthErrorCode, OAuthForm},
    refusal::Refusal,
};
use serde_json::{Value, json};

pub(crate) use self::challenge::complete as complete_challenge;
use super::{Gateway, body::RequestBody, outcome::Outcome};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An answer in JSON.
fn json_answer(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response.headers_mut().insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
    response
}

/// An error of OAuth (RFC 6749 §5.2).
fn error_answer(error: &OAuthError) -> Response {
    let status = StatusCode::from_u16(error.code.http_status());
    let status = status.unwrap_or(StatusCode::BAD_REQUEST);
    let body = json!({"error": error.code.as_str(), "error_description": error.description});
    let mut response = json_answer(status, &body);
    if error.code == OAuthErrorCode::InvalidToken {
        let challenge = HeaderValue::from_static("Bearer error=\"invalid_token\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// A refusal of the gateway in the words of OAuth. Status and headers follow from the refusal.
pub(crate) fn error_body(refusal: &Refusal) -> Vec<u8> {
    let code = match refusal.http_status() {
        401 => OAuthErrorCode::InvalidToken,
        403 => OAuthErrorCode::InsufficientScope,
        429 | 503 => OAuthErrorCode::TemporarilyUnavailable,
        500..=599 => OAuthErrorCode::ServerError,
        _ => OAuthErrorCode::InvalidRequest,
    };
    let error = OAuthError::new(code, refusal.to_string());
    let body = json!({"error": error.code.as_str(), "error_description": error.description});
    body.to_string().into_bytes()
}

/// The authorization server and its issuer; 404 where clients are not authorized.
fn offered(gateway: &Gateway) -> Result<(&Authorization, &str), Response> {
    let authorization = &*gateway.app.authorization;
    let issuer = authorization.issuer().ok_or_else(|| {
        let refusal = Refusal::not_found("path", "authorization server");
        Outcome::from(refusal).into_response()
    })?;
    Ok((authorization, issuer))
}

/// The form of a caller of whom nothing is known. One that cannot be read is charged to its source.
async fn form(
    gateway: &Gateway,
    request: RequestBody,
    origin: &Origin,
) -> Result<OAuthForm, Response> {
    let refused = |refusal| {
        let refused = gateway.app.quotas.charge_source(refusal, origin);
        Outcome::from(refused.refusal).into_response()
    };
    let bytes = gateway.strangers.form(request, origin).await.map_err(refused)?;
    OAuthForm::parse(bytes.as_ref()).map_err(|error| malformed(gateway, &error, origin))
}

/// The answer to a malformed request, which is charged to its source.
fn malformed(gateway: &Gateway, error: &OAuthError, origin: &Origin) -> Response {
    match gateway.app.authorization.admit_stranger(origin) {
        Ok(()) => error_answer(error),
        Err(refusal) => Outcome::from(refusal).into_response(),
    }
}

/// Rejects clients that show a secret: there are none.
///
/// # Errors
/// `invalid_client`.
fn without_secret(headers: &HeaderMap, form: &OAuthForm) -> Result<(), OAuthError> {
    if headers.contains_key(header::AUTHORIZATION) || form.get("client_secret").is_some() {
        let told = "clients have no secrets here: send client_id in the form";
        return Err(OAuthError::client(told));
    }
    Ok(())
}
