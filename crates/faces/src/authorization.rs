//! The authorization server for MCP clients in the words of OAuth: `/oauth` and `/.well-known`. Its errors are
//! those of RFC 6749 §5.2, not the envelope.

pub(crate) mod authorize;
mod basic;
mod challenge;
mod consent_page;
pub(crate) mod introspect;
pub(crate) mod metadata;
pub(crate) mod register;
pub(crate) mod revoke;
pub(crate) mod token;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{FromRequest, Request},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use portcullis_app::{
    Authorization, Origin, PresentedClient, TokenAnswer, TokenClient, proof_error,
};
use portcullis_core::{
    authorization::{OAuthError, OAuthErrorCode, OAuthForm},
    refusal::Refusal,
    secret::Secret,
};
use serde_json::{Value, json};

use self::basic::{BasicClient, no_secrets};
pub(crate) use self::challenge::complete as complete_challenge;
use crate::{
    exchange::{Exchange, Outcome, RequestBody},
    gateway::Gateway,
};

/// The type of a client's assertion (RFC 7523 §2.2).
const CLIENT_ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
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
    let error = proof_error(refusal).unwrap_or_else(|| in_words(refusal));
    let body = json!({"error": error.code.as_str(), "error_description": error.description});
    body.to_string().into_bytes()
}

fn in_words(refusal: &Refusal) -> OAuthError {
    let code = match refusal.http_status() {
        401 => OAuthErrorCode::InvalidToken,
        403 => OAuthErrorCode::InsufficientScope,
        429 | 503 => OAuthErrorCode::TemporarilyUnavailable,
        500..=599 => OAuthErrorCode::ServerError,
        _ => OAuthErrorCode::InvalidRequest,
    };
    OAuthError::new(code, refusal.to_string())
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

/// A form of a client of whom nothing is known, where clients are authorized. One that cannot be read
/// is charged to its source.
pub(crate) struct ClientForm {
    gateway: Arc<Gateway>,
    exchange: Arc<Exchange>,
    /// The client that a header names.
    basic: Option<BasicClient>,
    fields: OAuthForm,
    /// The form as it came, which is charged to the budget of its sender for as long as it is kept.
    body: Bytes,
}

impl FromRequest<Arc<Gateway>> for ClientForm {
    type Rejection = Response;

    async fn from_request(request: Request, gateway: &Arc<Gateway>) -> Result<Self, Response> {
        offered(gateway)?;
        let (parts, body) = request.into_parts();
        let exchange = Exchange::of(&parts).map_err(refused)?;
        let exchange = Arc::clone(exchange);
        let basic = BasicClient::of(&parts.headers);
        let origin = &exchange.origin;
        gateway.app.quotas.screen_sender(origin).map_err(refused)?;
        let request = RequestBody::of(&exchange, parts.headers, body, gateway);
        let charged = |refusal| refused(gateway.app.quotas.charge_source(refusal, origin).refusal);
        let bytes = request.read_form().await.map_err(charged)?;
        let fields = OAuthForm::parse(&bytes);
        let fields = fields.map_err(|error| malformed(gateway, &error, origin))?;
        Ok(Self { gateway: Arc::clone(gateway), exchange, basic, fields, body: bytes })
    }
}

impl ClientForm {
    fn origin(&self) -> &Origin {
        &self.exchange.origin
    }

    fn authorization(&self) -> &Arc<Authorization> {
        &self.gateway.app.authorization
    }

    /// A field, if the form has it.
    fn field(&self, name: &str) -> Option<String> {
        self.fields.get(name).map(str::to_owned)
    }

    /// A field that holds a secret.
    ///
    /// # Errors
    /// `invalid_request` without it.
    fn secret(&self, name: &'static str) -> Result<Secret, OAuthError> {
        self.fields.required(name).map(|text| Secret::new(text.to_owned()))
    }

    /// The answer to what cannot be done, which is charged to the source.
    fn malformed(&self, error: &OAuthError) -> Response {
        malformed(&self.gateway, error, self.origin())
    }

    /// The id of the client, from the form or from a header with an empty secret.
    ///
    /// # Errors
    /// `invalid_client` if it shows a secret: there are none.
    fn client_id(&self) -> Result<Option<String>, OAuthError> {
        if self.fields.get("client_secret").is_some() {
            return Err(no_secrets());
        }
        let Some(basic) = &self.basic else { return Ok(self.field("client_id")) };
        let is_known = |id: &str| self.authorization().knows_client(id);
        basic.client_id(self.fields.get("client_id"), is_known).map(Some)
    }

    /// The client of a request, or the answer that it gets.
    async fn client(&self) -> Result<Result<TokenClient, TokenAnswer>, OAuthError> {
        let presented = PresentedClient {
            id: self.client_id()?,
            assertion: self.client_assertion()?,
            held: Box::new(self.body.clone()),
        };
        Ok(self.authorization().token_client(presented, self.origin()).await)
    }

    /// The assertion by which a client proves itself.
    fn client_assertion(&self) -> Result<Option<Secret>, OAuthError> {
        let kind = self.fields.get("client_assertion_type");
        match (kind, self.fields.get("client_assertion")) {
            (None, None) => Ok(None),
            (Some(CLIENT_ASSERTION), Some(text)) => Ok(Some(Secret::new(text.to_owned()))),
            (Some(_), _) | (None, Some(_)) => {
                let told = "client_assertion has to be of the type jwt-bearer of RFC 7523";
                Err(OAuthError::client(told))
            }
        }
    }
}

fn refused(refusal: Refusal) -> Response {
    Outcome::from(refusal).into_response()
}

/// The answer to a client that gets no token.
fn denied(answer: &TokenAnswer) -> Option<Response> {
    match answer {
        TokenAnswer::Granted(_) | TokenAnswer::GrantedFor { .. } => None,
        TokenAnswer::Refused(error) => Some(error_answer(error)),
        TokenAnswer::Unavailable(refusal) => Some(refused(refusal.clone())),
    }
}

/// The answer to a malformed request, which is charged to its source.
fn malformed(gateway: &Gateway, error: &OAuthError, origin: &Origin) -> Response {
    match gateway.app.authorization.charge_stranger(origin) {
        Ok(()) => error_answer(error),
        Err(refusal) => refused(refusal),
    }
}
