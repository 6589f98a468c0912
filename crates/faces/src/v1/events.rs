//! `/v1/audit/events`: what happened, as the caller may see it.

use portcullis_app::{EventQuery, EventView, ExplainedEvent, audit::filters};
use portcullis_core::refusal::Refusal;
use portcullis_store::{EventFilter, EventOrder};

use super::{Segment, segment};
use crate::exchange::{
    ErrorAnswer, HandlerResult, Items, Listing, One, Outcome, Paged, Query, WithQuery,
};

const FILTERS: [&str; 12] = [
    "from", "to", "type", "actor", "target", "decision", "policy", "dlp_result", "outcome",
    "request_id", "order", "tail",
];
/// Lists events by their place in the log: one's own, or everybody's with `audit:read`.
#[utoipa::path(
    get, path = "/v1/audit/events", tag = "audit", operation_id = "list_events",
    params(
        ("from" = Option<String>, Query, description = "RFC 3339, inclusive, on `recorded_at`", format = DateTime),
        ("to" = Option<String>, Query, description = "RFC 3339, exclusive", format = DateTime),
        ("type" = Option<String>, Query, description = "types, comma-separated", pattern = "[^, ]"),
        ("actor" = Option<String>, Query, description = "`usr_…`, `sa_…` or `tok_…`", pattern = "^(usr|sa|tok)_[0-7][0-9A-HJKMNP-TV-Z]{25}$"),
        ("target" = Option<String>, Query, description = "tool id, `prv_…` or name; trailing `*`", max_length = 200, pattern = "[^, ]"),
        ("decision" = Option<String>, Query, description = "`allow` or `deny`, or both, comma-separated", pattern = "^(allow|deny)(,(allow|deny))*$"),
        ("policy" = Option<String>, Query, description = "policy names, comma-separated", pattern = "[^, ]"),
        ("dlp_result" = Option<String>, Query, description = "DLP outcomes, comma-separated", pattern = "^(passed|flagged|redacted|blocked|skipped)(,(passed|flagged|redacted|blocked|skipped))*$"),
        ("outcome" = Option<String>, Query, description = "outcomes, comma-separated", pattern = "^(success|tool_error|input_required|approval_pending|denied|invalid|not_found|rate_limited|upstream_error|upstream_timeout|unavailable|unknown)(,(success|tool_error|input_required|approval_pending|denied|invalid|not_found|rate_limited|upstream_error|upstream_timeout|unavailable|unknown))*$"),
        ("request_id" = Option<String>, Query, description = "`req_…` of a given answer", pattern = "^req_[0-7][0-9A-HJKMNP-TV-Z]{25}$"),
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
    let list = Listing::read(&gateway, &ctx, "audit/events", &FILTERS, raw.as_deref())?;
    let wanted = parse_query(&list)?;
    let tail = list.query.parsed::<bool>("tail", "true or false")?.unwrap_or(false);
    if tail && wanted.order == EventOrder::Descending {
        return Err(Refusal::bad_parameter("tail", "`tail` needs `order=asc`.").into());
    }
    let page = gateway.app.audit.events(&ctx, &wanted).await?;
    let resume = if page.more || tail { page.last.or(wanted.after) } else { None };
    let position = resume.map(|sequence| sequence.to_string()).or(tail.then(|| "-1".to_owned()));
    Ok(list.answer(&Items { items: page.items }, position.as_deref()))
}

fn parse_query(list: &Listing<'_>) -> Result<EventQuery, Refusal> {
    let query = &list.query;
    let from = query.time("from")?;
    let to = query.time("to")?;
    if let (Some(from), Some(to)) = (from, to)
        && from >= to
    {
        return Err(Refusal::bad_parameter("to", "`to` has to be later than `from`."));
    }
    let order = match query.choice("order", &["desc", "asc"])? {
        Some("asc") => EventOrder::Ascending,
        Some(_) | None => EventOrder::Descending,
    };
    let filter = EventFilter { from, to, ..filter(query)? };
    let after = list.after.as_deref().and_then(|text| text.parse().ok());
    Ok(EventQuery { filter, order, after, limit: list.limit })
}

fn filter(query: &Query) -> Result<EventFilter, Refusal> {
    let given = filters::FILTERS.into_iter().filter_map(|name| {
        let values = if filters::MANY.contains(&name) {
            query.list(name)
        } else {
            query.text(name).map(str::to_owned).into_iter().collect()
        };
        (!values.is_empty()).then(|| (name.to_owned(), values))
    });
    filters::event_filter(&given.collect())
        .map_err(|wrong| Refusal::bad_parameter(&wrong.name, format!("{wrong}.")))
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
