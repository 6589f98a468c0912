//! `POST /v1/auth/refresh`: a refresh token for the next pair (RFC 6749 §6, in JSON).

use std::sync::Arc;

use axum::{body::Body, extract::State, http::HeaderMap};
use portcullis_core::{refusal::Refusal, secret::Secret};
use serde_json::{Map, Value};

use super::granted::{RefreshBody, TokenAnswer, answer, scope};
use crate::http::{
    Gateway,
    answer::Answer,
    body::{self, text},
    caller::Credential,
    strangers::Charged,
    v1::shapes::ErrorAnswer,
};

/// Spends a refresh token, in the body or as the Bearer, for a new access and refresh token.
///
/// Within 30 seconds the same refresh token gives the same pair again, as long as the new refresh
/// token is unspent. Presented later, it revokes everything that came of its login.
#[utoipa::path(
    post, path = "/v1/auth/refresh", tag = "auth", security((), ("token" = [])),
    request_body = Option<RefreshBody>,
    responses(
        (status = 200, description = "the next pair; shown this once", body = TokenAnswer),
        (status = 400, description = "bad request, or more scopes than the login gave", body = ErrorAnswer),
        (status = 401, description = "the refresh token is worth nothing", body = ErrorAnswer),
        (status = 413, description = "the body is over 64 KiB", body = ErrorAnswer),
        (status = 415, description = "the body is not JSON", body = ErrorAnswer),
        (status = 429, description = "a limit is exceeded", body = ErrorAnswer),
        (status = 503, description = "the gateway cannot record, or unknown callers send more than it reads", body = ErrorAnswer),
    )
)]
pub(crate) async fn refresh(
    Credential { bearer, exchange }: Credential,
    State(gateway): State<Arc<Gateway>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Answer> {
    let (app, origin) = (&gateway.app, &exchange.origin);
    let screened =
        app.access.screen_refresh(bearer.as_ref(), origin).await.map_err(|no| no.refusal)?;
    let (strangers, time) = (&gateway.strangers, gateway.body_time);
    let asked = match strangers.optional_object(&headers, body, time, (screened, origin)).await {
        Ok(Charged { members, .. }) => read(members),
        Err(refusal) => Err(refusal),
    };
    let (token, asked) =
        asked.map_err(|refusal| app.quotas.charge_source(refusal, origin).refusal)?;
    let refreshing = app.access.refreshing(bearer, token, origin).await.map_err(|no| no.refusal)?;
    exchange.known(refreshing.account().clone());
    app.access.admit_refresh(&refreshing, origin).await?;
    let scope = scope(asked.as_deref())?;
    Ok(answer(&app.access.refresh_token(refreshing, scope, origin).await?))
}

/// The refresh token and the scope, if they are given.
fn read(mut members: Map<String, Value>) -> Result<(Option<Secret>, Option<String>), Refusal> {
    body::only(&members, &["refresh_token", "scope"])?;
    let token = text(&mut members, "refresh_token", 256)?;
    Ok((token.map(Secret::new), text(&mut members, "scope", 1024)?))
}
