//! `/v1/sessions`: browser sessions of people.

use portcullis_app::SessionView;
use portcullis_core::{id::SessionId, refusal::Refusal};
use portcullis_store::SessionQuery;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Segment, segment};
use crate::exchange::{
    ErrorAnswer, HandlerResult, Items, Listing, NoQuery, One, Outcome, Paged, WithQuery,
};

/// Lists browser sessions that have not ended: one's own, or with `admin` those of the org.
#[utoipa::path(
    get, path = "/v1/sessions", tag = "login", operation_id = "list_sessions",
    params(
        SessionQuery,
        ("limit" = Option<u32>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "from `meta.pagination.next_cursor`"),
    ),
    responses(
        (status = 200, description = "a page of sessions", body = Paged<Items<SessionView>>),
        (status = 403, description = "the sessions of others, or a token that was handed on, without `admin`", body = ErrorAnswer),
    )
)]
pub(crate) async fn list(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let (wanted, list) = Listing::filtered(&gateway, &ctx, "sessions", &[], raw.as_deref())?;
    let wanted = SessionQuery { after: list.after(), limit: list.limit, ..wanted };
    let (items, more) = gateway.app.logins.list(&ctx, wanted).await?;
    let end = items.last().filter(|_| more).map(|session| session.id.to_string());
    Ok(list.answer(&Items { items }, end.as_deref()))
}

/// Ends a browser session of one's own, or with `admin` any of the org.
///
/// Takes effect on this node before the answer leaves, everywhere within 5 seconds.
#[utoipa::path(
    delete, path = "/v1/sessions/{id}", tag = "login", operation_id = "end_session",
    params(("id" = String, Path, description = "`ses_` and a ULID")),
    responses(
        (status = 200, description = "ended", body = One<EndedSession>),
    )
)]
pub(crate) async fn end(NoQuery(ctx, gateway): NoQuery, path: Segment) -> HandlerResult {
    let text = segment(path);
    let id: SessionId = text.parse().map_err(|_| Refusal::not_found("session", &text))?;
    gateway.app.logins.end_by_id(ctx, id).await?;
    Ok(Outcome::data(&EndedSession { ended: true, id }))
}

/// A session that opens nothing any more.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndedSession {
    /// Always `true`.
    ended: bool,
    id: SessionId,
}
