//! `POST /oauth/revoke` (RFC 7009).

use std::sync::Arc;

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use portcullis_app::TokenAnswer;
use portcullis_core::secret::Secret;
use serde_json::json;

use super::{error_answer, form, json_answer, malformed, offered, without_secret};
use crate::{Gateway, body::RequestBody, caller::Stranger, outcome::Outcome};

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
    let parts = without_secret(&headers)
        .and_then(|()| form.required("client_id"))
        .and_then(|client_id| form.required("token").map(|token| (client_id, token)));
    let (client_id, token) = match parts {
        Ok(parts) => parts,
        Err(error) => return malformed(&gateway, &error, origin),
    };
    let token = Secret::new(token.to_owned());
    match gateway.app.authorization.revoke(client_id, &token, origin).await {
        Ok(()) | Err(TokenAnswer::Granted(_)) => json_answer(StatusCode::OK, &json!({})),
        Err(TokenAnswer::Refused(error)) => error_answer(&error),
        Err(TokenAnswer::Unavailable(refusal)) => Outcome::from(refusal).into_response(),
    }
}
