//! `POST /oauth/introspect` (RFC 7662).

use std::sync::Arc;

use axum::{extract::State, http::StatusCode, response::Response};
use portcullis_core::secret::Secret;

use super::{error_answer, json_answer};
use crate::{
    exchange::{Caller, Outcome},
    gateway::Gateway,
    pages::form::Form,
};

/// Tells a resource server what a token of its own org is worth. Of any other it tells nothing.
#[utoipa::path(
    post, path = "/oauth/introspect", tag = "oauth", operation_id = "oauth_introspect",
    request_body(content = Object, content_type = "application/x-www-form-urlencoded", description = "`token`"),
    responses(
        (status = 200, description = "`active`, and what the token is good for if it is", body = Object),
        (status = 400, description = "`invalid_request`", body = Object),
    )
)]
pub(crate) async fn introspect(
    Caller(ctx): Caller,
    State(gateway): State<Arc<Gateway>>,
    Form(fields): Form,
) -> Result<Response, Outcome> {
    let token = match fields.required("token") {
        Ok(token) => Secret::new(token.to_owned()),
        Err(error) => return Ok(error_answer(&error)),
    };
    let told = gateway.app.authorization.introspect(&ctx, &token).await?;
    Ok(json_answer(StatusCode::OK, &told))
}
