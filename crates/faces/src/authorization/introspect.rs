//! `POST /oauth/introspect` (RFC 7662).

use std::sync::Arc;

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use portcullis_core::{authorization::OAuthForm, secret::Secret};

use super::{error_answer, json_answer};
use crate::{Gateway, body::RequestBody, caller::Caller, outcome::Outcome};

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
    request: RequestBody,
) -> Response {
    let read = request.read_form().await;
    let form = match read.map(|bytes| OAuthForm::parse(&bytes)) {
        Ok(Ok(form)) => form,
        Ok(Err(error)) => return error_answer(&error),
        Err(refusal) => return Outcome::from(refusal).into_response(),
    };
    let token = match form.required("token") {
        Ok(token) => Secret::new(token.to_owned()),
        Err(error) => return error_answer(&error),
    };
    match gateway.app.authorization.introspect(&ctx, &token).await {
        Ok(told) => json_answer(StatusCode::OK, &told),
        Err(refusal) => Outcome::from(refusal).into_response(),
    }
}
