//! `/v1/consents`: what people let clients do.

use portcullis_app::ConsentView;
use portcullis_core::{id::ConsentId, refusal::Refusal};
use portcullis_store::ConsentQuery;
use serde::Serialize;
use utoipa::ToSchema;

use crate::exchange::{
    ErrorAnswer, HandlerResult, Items, Listing, One, Outcome, Paged, Segment, WithQuery, segment,
};

/// Lists what the caller let clients do; with the scope `admin` what all people of the org did.
#[utoipa::path(
    get, path = "/v1/consents", tag = "oauth", operation_id = "list_consents",
    params(
        ConsentQuery,
        ("limit" = Option<usize>, Query, description = "1 to 200, 50 when absent"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
    ),
    responses(
        (status = 200, description = "a page of consents, by id", body = Paged<Items<ConsentView>>),
        (status = 400, description = "a parameter is wrong", body = ErrorAnswer),
    )
)]
pub(crate) async fn list(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let (wanted, list) = Listing::filtered(&gateway, &ctx, "consents", &[], raw.as_deref())?;
    let wanted = ConsentQuery { after: list.after(), limit: list.limit, ..wanted };
    let (items, next) = gateway.app.authorization.consents(&ctx, wanted).await?;
    Ok(list.answer(&Items { items }, next.as_ref()))
}

/// A consent that was withdrawn.
#[derive(Serialize, ToSchema)]
#[schema(as = Withdrawn)]
pub(crate) struct WithdrawnConsent {
    withdrawn: bool,
    id: ConsentId,
    /// Number of tokens that were revoked with it.
    tokens_revoked: usize,
}

/// Withdraws a consent: the tokens that came of it are revoked, at once on this node, everywhere within 5
/// seconds.
#[utoipa::path(
    delete, path = "/v1/consents/{id}", tag = "oauth", operation_id = "withdraw_consent",
    params(("id" = String, Path, description = "`con_` and a ULID")),
    responses(
        (status = 200, description = "withdrawn", body = One<WithdrawnConsent>),
    )
)]
pub(crate) async fn withdraw(WithQuery(ctx, gateway, _): WithQuery, id: Segment) -> HandlerResult {
    let text = segment(id);
    let id: ConsentId = text.parse().map_err(|_| Refusal::not_found("consent", &text))?;
    let tokens_revoked = gateway.app.authorization.withdraw(&ctx, id).await?;
    Ok(Outcome::data(&WithdrawnConsent { withdrawn: true, id, tokens_revoked }))
}
