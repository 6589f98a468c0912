//! `POST /v1/auth/refresh`: a refresh token for the next pair (RFC 6749 §6, in JSON).

use std::sync::Arc;

use axum::extract::State;
use portcullis_app::{PresentedRefresh, RefreshAt};
use portcullis_core::{refusal::Refusal, secret::Secret};
use serde_json::{Map, Value};

use super::granted::{RefreshBody, Token, answer, scope};
use crate::{
    Gateway,
    answer::{ErrorAnswer, One},
    body::{self, RequestBody, text},
    caller::Credential,
    outcome::HandlerResult,
};

/// Spends a refresh token, in the body or as the Bearer, for a new access and refresh token.
///
/// Within 30 seconds the same refresh token gives the same pair again, as long as the new refresh
/// token is unspent. Presented later, it revokes everything that came of its login. One that is
/// bound to a key needs a proof of that key in the header `DPoP`.
#[utoipa::path(
    post, path = "/v1/auth/refresh", tag = "auth", operation_id = "refresh_token",
    request_body = Option<RefreshBody>,
    responses(
        (status = 200, description = "the next pair; shown this once", body = One<Token>),
        (status = 400, description = "bad request, or more scopes than the login gave", body = ErrorAnswer),
        (status = 401, description = "the refresh token is worth nothing", body = ErrorAnswer),
        (status = 503, description = "the gateway cannot record, or unknown callers send more than it reads", body = ErrorAnswer),
    )
)]
pub(crate) async fn refresh(
    Credential { bearer, exchange, .. }: Credential,
    State(gateway): State<Arc<Gateway>>,
    request: RequestBody,
) -> HandlerResult {
    let app = &gateway.app;
    let origin = &exchange.origin;
    let charged = |refusal| app.quotas.charge_source(refusal, origin).refusal;
    let proved = app.access.proved_key(exchange.proof(), None, origin.arrived);
    let proved = proved.map_err(charged)?;
    let screened =
        app.access.screen_refresh(bearer.as_ref(), origin).await.map_err(|no| no.refusal)?;
    let asked = match request.screened(screened, &gateway).optional_object().await {
        Ok(members) => RefreshBody::read(members),
        Err(refusal) => Err(refusal),
    };
    let asked = asked.map_err(charged)?;
    let token = asked.refresh_token;
    let presented = PresentedRefresh { bearer, token, proved, at: RefreshAt::Api };
    let refreshing = app.access.refreshing(presented, origin).await.map_err(|no| no.refusal)?;
    exchange.set_account(refreshing.account().clone());
    app.access.admit_refresh(&refreshing, origin).await?;
    let scope = scope(asked.scope.as_deref())?;
    Ok(answer(&app.access.refresh_token(refreshing, scope, origin).await?))
}

impl RefreshBody {
    fn read(mut members: Map<String, Value>) -> Result<Self, Refusal> {
        body::only(&members, &["refresh_token", "scope"])?;
        let token = text(&mut members, "refresh_token", 256)?;
        Ok(Self {
            refresh_token: token.map(Secret::new),
            scope: text(&mut members, "scope", 1024)?,
        })
    }
}
