//! `POST /oauth/revoke` (RFC 7009).

use std::sync::Arc;

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use portcullis_app::TokenAnswer;
use portcullis_core::{
    authorization::{OAuthError, OAuthForm},
    secret::Secret,
};
use serde_json::json;

use super::{error_answer, form, json_answer, malformed, offered, token::client};
use crate::{Gateway, body::RequestBody, caller::Stranger, exchange::Exchange, outcome::Outcome};

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
pub(crate) async fn revoke(
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
    match revoked(&gateway, &exchange, &headers, &form).await {
        Ok(answer) => answer,
        Err(error) => malformed(&gateway, &error, origin),
    }
}

async fn revoked(
    gateway: &Gateway,
    exchange: &Exchange,
    headers: &HeaderMap,
    form: &OAuthForm,
) -> Result<Response, OAuthError> {
    let client = match client(gateway, exchange, headers, form).await? {
        Ok(client) => client,
        Err(answer) => return Ok(refusal_of(answer)),
    };
    let token = Secret::new(form.required("token")?.to_owned());
    let authorization = &gateway.app.authorization;
    match authorization.revoke(client.id()?, &token, &exchange.origin).await {
        Ok(()) => Ok(json_answer(StatusCode::OK, &json!({}))),
        Err(answer) => Ok(refusal_of(answer)),
    }
}

fn refusal_of(answer: TokenAnswer) -> Response {
    match answer {
        TokenAnswer::Granted(_) | TokenAnswer::GrantedFor { .. } => {
            json_answer(StatusCode::OK, &json!({}))
        }
        TokenAnswer::Refused(error) => error_answer(&error),
        TokenAnswer::Unavailable(refusal) => Outcome::from(refusal).into_response(),
    }
}
