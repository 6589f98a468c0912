//! `/v1/audit/events`: what happened, as the caller may see it.

use portcullis_app::{EventView, ExplainedEvent};
use portcullis_core::refusal::Refusal;
use portcullis_store::{EventFilter, EventOrder};

use super::{Segment, segment};
use crate::exchange::{
    ErrorAnswer, HandlerResult, Items, Listing, One, Outcome, Paged, Query, WithQuery,
};

/// Parameters beside the filter: the range, which exports have as members of their own, and the order.
const OTHERS: [&str; 4] = ["from", "to", "order", "tail"];

/// Lists events by their place in the log: one's own, or everybody's with `audit:read`.
#[utoipa::path(
    get, path = "/v1/audit/events", tag = "audit", operation_id = "list_events",
    params(
        ("from" = Option<String>, Query, description = "RFC 3339, inclusive, on `recorded_at`", format = DateTime),
        ("to" = Option<String>, Query, description = "RFC 3339, exclusive", format = DateTime),
        EventFilter,
        ("order" = Option<String>, Query, description = "`desc` (default) or `asc`", pattern = "^(desc|asc)$"),
        ("tail" = Option<bool>, Query, description = "with `order=asc`: never ends"),
        ("limit" = Option<u32>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "from `meta.pagination.next_cursor`"),
    ),
    responses(
        (status = 200, description = "a page of events; `integrity.mismatch`, there only when something is wrong, names what is not as the log holds it", body = Paged<Items<EventView>>),
    )
)]
pub(crate) async fn list(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let (filter, list): (EventFilter, _) =
        Listing::filtered(&gateway, &ctx, "audit/events", &OTHERS, raw.as_deref())?;
    let filter =
        EventFilter { from: list.query.time("from")?, to: list.query.time("to")?, ..filter };
    if filter.from.zip(filter.to).is_some_and(|(from, to)| from >= to) {
        return Err(Refusal::bad_parameter("to", "`to` has to be later than `from`.").into());
    }
    let order = match list.query.choice("order", &["desc", "asc"])? {
        Some("asc") => EventOrder::Ascending,
        Some(_) | None => EventOrder::Descending,
    };
    let tail = list.query.parsed::<bool>("tail", "true or false")?.unwrap_or(false);
    if tail && order == EventOrder::Descending {
        return Err(Refusal::bad_parameter("tail", "`tail` needs `order=asc`.").into());
    }
    let after = list.after();
    let page = gateway.app.audit.events(&ctx, &filter, order, after, list.limit).await?;
    let resume = if page.more || tail { page.last.or(after) } else { None };
    let position = resume.map(|sequence| sequence.to_string()).or(tail.then(|| "-1".to_owned()));
    Ok(list.answer(&Items { items: page.items }, position.as_deref()))
}

/// One event in full; readable as soon as the answer that named it has left. With `explain` it comes
/// with what the policies in force say of its call, clause by clause, and a permit that would allow it.
#[utoipa::path(
    get, path = "/v1/audit/events/{id}", tag = "audit", operation_id = "get_event",
    params(
        ("id" = String, Path, description = "`evt_` and a ULID"),
        ("explain" = Option<String>, Query, description = "`1` or `true`: with an explanation of the decision, where the event is of the type `mcp.invocation`; needs `policies:read`", pattern = "^(0|1|false|true)$"),
    ),
    responses(
        (status = 200, description = "the event; `integrity.mismatch`, there only when something is wrong, names what is not as the log holds it", body = One<ExplainedEvent>),
        (status = 403, description = "the token lacks `policies:read`, which `explain` needs", body = ErrorAnswer),
    )
)]
pub(crate) async fn get(WithQuery(ctx, gateway, raw): WithQuery, path: Segment) -> HandlerResult {
    let query = Query::parse(raw.as_deref(), &["explain"])?;
    let explains = query.choice("explain", &["0", "1", "false", "true"])?;
    let id = segment(path);
    let explained = if matches!(explains, Some("1" | "true")) {
        gateway.app.simulations.explained_event(&ctx, &id).await?
    } else {
        ExplainedEvent { event: gateway.app.audit.event(&ctx, &id).await?, explanation: None }
    };
    Ok(Outcome::data(&explained))
}
