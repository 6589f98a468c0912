//! `POST /oauth/token`: one function for each grant type.

use std::sync::Arc;

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use portcullis_app::{
    CodeRequest, GrantRequest, Granted, PresentedClient, RefreshRequest, TokenAnswer, TokenClient,
};
use portcullis_core::{
    authorization::{OAuthError, OAuthErrorCode, OAuthForm},
    principal::{Scope, ScopeSet},
    secret::Secret,
};
use serde_json::{Value, json};

use super::{error_answer, form, json_answer, malformed, offered, without_secret};
use crate::{Gateway, body::RequestBody, caller::Stranger, exchange::Exchange, outcome::Outcome};

/// The grant types that this endpoint knows, as metadata names them.
pub(super) const GRANT_TYPES: [&str; 4] =
    ["authorization_code", "refresh_token", "client_credentials", JWT_BEARER];
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// The type of a client's assertion (RFC 7523 §2.2).
const CLIENT_ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Gives a client tokens for a code, a refresh token, an assertion or its signature (RFC 6749 §3.2).
#[utoipa::path(
    post, path = "/oauth/token", tag = "oauth", operation_id = "oauth_token",
    request_body(content = Object, content_type = "application/x-www-form-urlencoded", description = "`grant_type`, `client_id` and what the grant type asks for; `resource` names the MCP endpoint"),
    responses(
        (status = 200, description = "`access_token`, `refresh_token`, `expires_in`, `scope`; shown this once", body = Object),
        (status = 400, description = "an error of RFC 6749 §5.2", body = Object),
        (status = 401, description = "`invalid_client`", body = Object),
        (status = 404, description = "clients are not authorized here", body = Object),
        (status = 429, description = "too many requests", body = Object),
        (status = 503, description = "nothing can be recorded at the moment", body = Object),
    )
)]
pub(crate) async fn token(
    Stranger(exchange): Stranger,
    State(gateway): State<Arc<Gateway>>,
    headers: HeaderMap,
    request: RequestBody,
) -> Response {
    let origin = &exchange.origin;
    if let Err(answer) = offered(&gateway) {
        return answer;
    }
    let form = match form(&gateway, request, origin).await {
        Ok(form) => form,
        Err(answer) => return answer,
    };
    let granted = match form.get("grant_type") {
        Some("authorization_code") => {
            authorization_code(&gateway, &exchange, &headers, &form).await
        }
        Some("refresh_token") => refresh_token(&gateway, &exchange, &headers, &form).await,
        Some("client_credentials") => {
            client_credentials(&gateway, &exchange, &headers, &form).await
        }
        Some(JWT_BEARER) => jwt_bearer(&gateway, &exchange, &headers, &form).await,
        Some(_) => Err(OAuthError::new(
            OAuthErrorCode::UnsupportedGrantType,
            "grant_type is not one of those that the metadata names",
        )),
        None => Err(OAuthError::request("grant_type is missing")),
    };
    match granted {
        Ok(TokenAnswer::Granted(granted)) => tokens(&granted, None),
        Ok(TokenAnswer::GrantedFor { granted, resource }) => tokens(&granted, Some(&resource)),
        Ok(TokenAnswer::Refused(error)) => error_answer(&error),
        Ok(TokenAnswer::Unavailable(refusal)) => Outcome::from(refusal).into_response(),
        Err(error) => malformed(&gateway, &error, origin),
    }
}

/// RFC 6749 §4.1.3 with PKCE (RFC 7636 §4.5).
async fn authorization_code(
    gateway: &Gateway,
    exchange: &Exchange,
    headers: &HeaderMap,
    form: &OAuthForm,
) -> Result<TokenAnswer, OAuthError> {
    let client = match client(gateway, exchange, headers, form).await? {
        Ok(client) => client,
        Err(answer) => return Ok(answer),
    };
    let secret = |name| form.required(name).map(|text| Secret::new(text.to_owned()));
    let request = CodeRequest {
        client_id: client.id()?.to_owned(),
        code: secret("code")?,
        verifier: secret("code_verifier")?,
        redirect_uri: form.get("redirect_uri").map(str::to_owned),
        resource: form.get("resource").map(str::to_owned),
    };
    let known = |account| exchange.set_account(account);
    Ok(gateway.app.authorization.redeem(&request, known, &exchange.origin).await)
}

/// RFC 6749 §6.
async fn refresh_token(
    gateway: &Gateway,
    exchange: &Exchange,
    headers: &HeaderMap,
    form: &OAuthForm,
) -> Result<TokenAnswer, OAuthError> {
    let client = match client(gateway, exchange, headers, form).await? {
        Ok(client) => client,
        Err(answer) => return Ok(answer),
    };
    let request = RefreshRequest {
        client_id: client.id()?.to_owned(),
        refresh_token: Secret::new(form.required("refresh_token")?.to_owned()),
        resource: form.get("resource").map(str::to_owned),
        scope: form.get("scope").map(scopes).transpose()?,
    };
    let known = |account| exchange.set_account(account);
    Ok(gateway.app.authorization.refresh(request, known, &exchange.origin).await)
}

/// RFC 7523 §2.1. Names of scopes that are not of this gateway count for nothing here.
async fn jwt_bearer(
    gateway: &Gateway,
    exchange: &Exchange,
    headers: &HeaderMap,
    form: &OAuthForm,
) -> Result<TokenAnswer, OAuthError> {
    let assertion = Secret::new(form.required("assertion")?.to_owned());
    let client = match client(gateway, exchange, headers, form).await? {
        Ok(client) => client,
        Err(answer) => return Ok(answer),
    };
    let request = grant_request(form);
    let known = |account| exchange.set_account(account);
    let authorization = &gateway.app.authorization;
    let origin = &exchange.origin;
    Ok(authorization.jwt_bearer(&assertion, &client, request, known, origin).await)
}

/// RFC 6749 §4.4 for service accounts that prove themselves with a key.
async fn client_credentials(
    gateway: &Gateway,
    exchange: &Exchange,
    headers: &HeaderMap,
    form: &OAuthForm,
) -> Result<TokenAnswer, OAuthError> {
    without_secret(headers, form)?;
    let assertion = client_assertion(form)?.ok_or_else(|| {
        OAuthError::client("client_credentials is for service accounts, by private_key_jwt")
    })?;
    let named = form.get("client_id");
    let request = grant_request(form);
    let known = |account| exchange.set_account(account);
    let authorization = &gateway.app.authorization;
    let origin = &exchange.origin;
    Ok(authorization.client_credentials(&assertion, named, request, known, origin).await)
}

fn grant_request(form: &OAuthForm) -> GrantRequest {
    let scope = form.get("scope").map(|text| {
        text.split(' ').filter_map(|name| name.parse::<Scope>().ok()).collect::<ScopeSet>()
    });
    GrantRequest { resource: form.get("resource").map(str::to_owned), scope }
}

/// The client of a request, or the answer that it gets instead of a token.
pub(super) async fn client(
    gateway: &Gateway,
    exchange: &Exchange,
    headers: &HeaderMap,
    form: &OAuthForm,
) -> Result<Result<TokenClient, TokenAnswer>, OAuthError> {
    without_secret(headers, form)?;
    let presented = PresentedClient {
        id: form.get("client_id").map(str::to_owned),
        assertion: client_assertion(form)?,
    };
    Ok(gateway.app.authorization.token_client(presented, &exchange.origin).await)
}

/// The assertion by which a client proves itself.
fn client_assertion(form: &OAuthForm) -> Result<Option<Secret>, OAuthError> {
    match (form.get("client_assertion_type"), form.get("client_assertion")) {
        (None, None) => Ok(None),
        (Some(CLIENT_ASSERTION), Some(assertion)) => Ok(Some(Secret::new(assertion.to_owned()))),
        (Some(_), _) | (None, Some(_)) => {
            Err(OAuthError::client("client_assertion has to be of the type jwt-bearer of RFC 7523"))
        }
    }
}

fn scopes(text: &str) -> Result<ScopeSet, OAuthError> {
    let told = "scope names what is no scope here";
    text.parse().map_err(|_| OAuthError::new(OAuthErrorCode::InvalidScope, told))
}

/// The tokens as they leave, the one time they do (RFC 6749 §5.1).
fn tokens(granted: &Granted, resource: Option<&str>) -> Response {
    let Granted { access, refresh, record, scopes, now } = granted;
    let left = record.expires_at.as_micros() - now.as_micros();
    let refresh = refresh.as_ref().map(|(token, _)| token.secret().expose());
    let members = [
        ("access_token", json!(access.secret().expose())),
        ("token_type", json!("Bearer")),
        ("expires_in", json!(left.div_euclid(1_000_000).max(0))),
        ("scope", json!(scopes.to_string())),
    ];
    let optional = [
        refresh.map(|token| ("refresh_token", json!(token))),
        resource.map(|resource| ("resource", json!(resource))),
    ];
    let members = members.into_iter().chain(optional.into_iter().flatten());
    let body: Value = members.map(|(member, value)| (member.to_owned(), value)).collect();
    json_answer(StatusCode::OK, &body)
}
