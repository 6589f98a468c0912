//! `POST /oauth/token`: one function for each grant type.

use axum::{http::StatusCode, response::Response};
use portcullis_app::{
    Account, CodeRequest, GrantRequest, Granted, ProvedKey, RefreshRequest, TokenAnswer,
    proof_error,
};
use portcullis_core::authorization::{OAuthError, OAuthErrorCode};
use serde_json::{Value, json};

use super::{ClientForm, denied, json_answer};

/// The grant types that this endpoint knows, as metadata names them.
pub(super) const GRANT_TYPES: [&str; 4] =
    ["authorization_code", "refresh_token", "client_credentials", JWT_BEARER];
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

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
pub(crate) async fn token(form: ClientForm) -> Response {
    match granted(&form).await {
        Ok(answer) => to_response(&answer),
        Err(error) => form.malformed(&error),
    }
}

async fn granted(form: &ClientForm) -> Result<TokenAnswer, OAuthError> {
    let grant_type = form.fields.required("grant_type")?;
    if !GRANT_TYPES.contains(&grant_type) {
        let told = "grant_type is not one of those that the metadata names";
        return Err(OAuthError::new(OAuthErrorCode::UnsupportedGrantType, told));
    }
    let access = &form.gateway.app.access;
    let proved = access.proved_key(form.exchange.proof(), None, form.origin().arrived);
    let proved = match proved {
        Ok(proved) => proved,
        Err(refusal) => match proof_error(&refusal) {
            Some(error) => return Err(error),
            None => return Ok(refusal.into()),
        },
    };
    match grant_type {
        "authorization_code" => authorization_code(form, proved).await,
        "refresh_token" => refresh_token(form, proved).await,
        "client_credentials" => client_credentials(form, proved).await,
        _ => jwt_bearer(form, proved).await,
    }
}

fn to_response(answer: &TokenAnswer) -> Response {
    if let Some(denied) = denied(answer) {
        return denied;
    }
    match answer {
        TokenAnswer::GrantedFor { granted, resource } => tokens(granted, Some(resource)),
        TokenAnswer::Granted(granted) => tokens(granted, None),
        TokenAnswer::Refused(_) | TokenAnswer::Unavailable(_) => {
            json_answer(StatusCode::OK, &json!({}))
        }
    }
}

/// RFC 6749 §4.1.3 with PKCE (RFC 7636 §4.5).
async fn authorization_code(
    form: &ClientForm,
    proved: Option<ProvedKey>,
) -> Result<TokenAnswer, OAuthError> {
    let client = match form.client().await? {
        Ok(client) => client,
        Err(answer) => return Ok(answer),
    };
    client.id()?;
    let request = CodeRequest {
        client,
        code: form.secret("code")?,
        verifier: form.secret("code_verifier")?,
        redirect_uri: form.field("redirect_uri"),
        resource: form.field("resource"),
        proved,
    };
    Ok(form.authorization().redeem(&request, note(form), form.origin()).await)
}

/// RFC 6749 §6. Scopes are read as at `/oauth/authorize`: a client may repeat what it asked for there.
async fn refresh_token(
    form: &ClientForm,
    proved: Option<ProvedKey>,
) -> Result<TokenAnswer, OAuthError> {
    let client = match form.client().await? {
        Ok(client) => client,
        Err(answer) => return Ok(answer),
    };
    client.id()?;
    let request = RefreshRequest {
        client,
        refresh_token: form.secret("refresh_token")?,
        resource: form.field("resource"),
        scope: form.fields.scopes().filter(|it| !it.is_empty()),
        proved,
    };
    Ok(form.authorization().refresh(request, note(form), form.origin()).await)
}

/// RFC 7523 §2.1. Names of scopes that are not of this gateway count for nothing here.
async fn jwt_bearer(
    form: &ClientForm,
    proved: Option<ProvedKey>,
) -> Result<TokenAnswer, OAuthError> {
    let assertion = form.secret("assertion")?;
    let client = match form.client().await? {
        Ok(client) => client,
        Err(answer) => return Ok(answer),
    };
    let request = grant_request(form, proved);
    let authorization = form.authorization();
    Ok(authorization.jwt_bearer(&assertion, &client, request, note(form), form.origin()).await)
}

/// RFC 6749 §4.4 for service accounts that prove themselves with a key.
async fn client_credentials(
    form: &ClientForm,
    proved: Option<ProvedKey>,
) -> Result<TokenAnswer, OAuthError> {
    let named = form.client_id()?;
    let assertion = form.client_assertion()?.ok_or_else(|| {
        OAuthError::client("client_credentials is for service accounts, by private_key_jwt")
    })?;
    let request = grant_request(form, proved);
    let authorization = form.authorization();
    let origin = form.origin();
    Ok(authorization
        .client_credentials(&assertion, named.as_deref(), request, note(form), origin)
        .await)
}

/// Tells the exchange whose plan pays, once that is known.
fn note(form: &ClientForm) -> impl FnOnce(Account) + Send {
    move |account| form.exchange.set_account(account)
}

fn grant_request(form: &ClientForm, proved: Option<ProvedKey>) -> GrantRequest {
    GrantRequest { resource: form.field("resource"), scope: form.fields.scopes(), proved }
}

/// The tokens as they leave, the one time they do (RFC 6749 §5.1).
fn tokens(granted: &Granted, resource: Option<&str>) -> Response {
    let Granted { access, refresh, record, scopes, now } = granted;
    let left = record.expires_at.as_micros() - now.as_micros();
    let refresh = refresh.as_ref().map(|(token, _)| token.secret().expose());
    let members = [
        ("access_token", json!(access.secret().expose())),
        ("token_type", json!(record.dpop_jkt.map_or("Bearer", |_| "DPoP"))),
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
