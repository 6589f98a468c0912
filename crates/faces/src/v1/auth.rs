//! `/v1/auth`: tokens.

pub(crate) mod exchange;
mod granted;
pub(crate) mod refresh;

use portcullis_core::{id::TokenId, refusal::Refusal};
use serde::Serialize;
use utoipa::ToSchema;

use crate::exchange::{HandlerResult, One, Outcome, Query, WithQuery};

/// Revokes the Bearer's own token, or another one, with everything that descends from it.
///
/// The Bearer may be of any kind, also a refresh token. Takes effect on this node before the answer leaves, everywhere within 5 seconds.
#[utoipa::path(
    delete, path = "/v1/auth/token", tag = "auth", operation_id = "revoke_token",
    params(("token_id" = Option<String>, Query, description = "revoke this one instead: own \
        tokens always, any of the org with the scope `admin`")),
    responses(
        (status = 200, description = "revoked", body = One<RevokedToken>),
    )
)]
pub(crate) async fn revoke(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let query = Query::parse(raw.as_deref(), &["token_id"])?;
    let asked = query.text("token_id");
    let token_id: Option<TokenId> = asked
        .map(|text| text.parse().map_err(|_| Refusal::not_found("token", text)))
        .transpose()?;
    let (token_id, descendants) = gateway.app.access.revoke_token(ctx, token_id).await?;
    Ok(Outcome::data(&RevokedToken::of(token_id, descendants)))
}

/// A token that is worth nothing any more.
#[derive(Serialize, ToSchema)]
pub(crate) struct RevokedToken {
    /// Always `true`.
    revoked: bool,
    token_id: TokenId,
    /// Number of tokens that descended from it.
    descendants_revoked: u64,
}

impl RevokedToken {
    /// The answer to a revocation.
    pub(crate) const fn of(token_id: TokenId, descendants_revoked: u64) -> Self {
        Self { revoked: true, token_id, descendants_revoked }
    }
}
