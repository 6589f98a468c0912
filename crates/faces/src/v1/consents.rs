//! `/v1/consents`: what people let clients do.

use portcullis_app::{ConsentQuery, ConsentView};
use portcullis_core::{id::ConsentId, refusal::Refusal};
use serde::Serialize;
use utoipa::ToSchema;

use crate::exchange::{
    ErrorAnswer, HandlerResult, Items, Listing, One, Outcome, Paged, Segment, WithQuery, segment,
};

/// Lists what the caller let clients do; with the scope `admin` what all people of the org did.
#[utoipa::path(
    get, path = "/v1/consents", tag = "oauth", operation_id = "list_consents",
    params(
        ("q" = Option<String>, Query, description = "only those of which a word begins so, in any case: of name or addresses of the client, or of names and addresses of the person", max_length = 64, pattern = "[^, ]"),
        ("principal" = Option<String>, Query, description = "those of one principal"),
        ("limit" = Option<usize>, Query, description = "1 to 200, 50 when absent"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
    ),
    responses(
        (status = 200, description = "a page of consents, by id", body = Paged<Items<ConsentView>>),
        (status = 400, description = "a parameter is wrong", body = ErrorAnswer),
    )
)]
pub(crate) async fn list(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let listing = Listing::read(&gateway, &ctx, "consents", &["q", "principal"], raw.as_deref())?;
    let principal = listing.query.parsed("principal", "an id of the form `usr_…`")?;
    let after = listing.after.as_deref().and_then(|after| after.parse().ok());
    let search = listing.search()?;
    let query = ConsentQuery { search, principal, after, limit: listing.limit };
    let (items, next) = gateway.app.authorization.consents(&ctx, &query).await?;
    Ok(listing.answer(&Items { items }, next.as_ref()))
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
