//! `POST /oauth/revoke` (RFC 7009).

use axum::{http::StatusCode, response::Response};
use portcullis_core::authorization::OAuthError;
use serde_json::json;

use super::{ClientForm, denied, json_answer};

/// Revokes a token of a client, and all of its grant with it. One that is not known is as good as revoked.
#[utoipa::path(
    post, path = "/oauth/revoke", tag = "oauth", operation_id = "oauth_revoke",
    request_body(content = Object, content_type = "application/x-www-form-urlencoded", description = "`token` and `client_id`"),
    responses(
        (status = 200, description = "the token is worth nothing", body = Object),
        (status = 400, description = "the token is that of another client", body = Object),
        (status = 401, description = "`invalid_client`", body = Object),
        (status = 404, description = "clients are not authorized here", body = Object),
        (status = 429, description = "too many requests from this address", body = Object),
        (status = 503, description = "nothing can be recorded at the moment", body = Object),
    )
)]
pub(crate) async fn revoke(form: ClientForm) -> Response {
    revoked(&form).await.unwrap_or_else(|error| form.malformed(&error))
}

async fn revoked(form: &ClientForm) -> Result<Response, OAuthError> {
    let done = || json_answer(StatusCode::OK, &json!({}));
    let client = match form.client().await? {
        Ok(client) => client,
        Err(answer) => return Ok(denied(&answer).unwrap_or_else(done)),
    };
    client.id()?;
    let token = form.secret("token")?;
    let revoked = form.authorization().revoke(&client, &token, form.origin()).await;
    Ok(revoked.err().and_then(|answer| denied(&answer)).unwrap_or_else(done))
}
