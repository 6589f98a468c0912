//! What happened: the list of events, and one event with everything that is known of it.

use std::sync::Arc;

use askama::Template;
use axum::{
    extract::{Path, RawQuery, State},
    http::StatusCode,
    response::Response,
};
use portcullis_core::principal::Scope;

use super::{
    api::Problem,
    guest::{Frame, Guest},
    json::Json,
    render,
    table::{Filters, more},
};
use crate::{
    Gateway,
    segment::{Segment, segment},
    v1,
};

const PATH: &str = "/console/events";
const TYPE_OF_CALLS: &str = "mcp.invocation";

#[derive(Template)]
#[template(path = "events.html")]
struct EventsPage {
    frame: Frame,
    filters: Filters,
    /// The filters as they stand in an address.
    query: Option<String>,
    /// True if new events appear above the others: on the first page, the newest first.
    is_live: bool,
    events: Vec<Json>,
    more: Option<String>,
}

/// Events, the newest first, with the filters of the API.
#[utoipa::path(
    get, path = "/console/events", tag = "console", operation_id = "console_events",
    responses(
        (status = 200, description = "a page of events; takes the filters of `GET /v1/audit/events`", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 400, description = "a page: a filter is not understood", content_type = "text/html"),
    )
)]
pub(crate) async fn list(
    guest: Guest,
    State(_): State<Arc<Gateway>>,
    RawQuery(raw): RawQuery,
) -> Response {
    let filters = Filters::read(raw.as_deref());
    let query = RawQuery(filters.query());
    let listed = guest.ask(None, |caller, state| v1::events::list(caller, state, query)).await;
    match listed {
        Ok(reply) => {
            let frame = guest.frame("Events", PATH);
            let more = more(PATH, &filters, reply.next.as_deref());
            let query = filters.query();
            let is_live = filters.is("cursor", "") && !filters.is("order", "asc");
            let events = reply.items();
            render(StatusCode::OK, &EventsPage { frame, filters, query, is_live, events, more })
        }
        Err(problem) => problem.page(&guest),
    }
}

#[derive(Template)]
#[template(path = "event.html")]
struct EventPage {
    frame: Frame,
    event: Json,
    is_call: bool,
    may_explain: bool,
    explanation: Option<Result<Json, Problem>>,
}

/// One event: what was asked, decided, found and answered, and with `explain=1` why.
#[utoipa::path(
    get, path = "/console/events/{id}", tag = "console", operation_id = "console_event",
    params(
        ("id" = String, Path, description = "`evt_` and a ULID"),
        ("explain" = Option<String>, Query, description = "`1`: with an explanation of the decision"),
    ),
    responses(
        (status = 200, description = "a page: the event", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 404, description = "a page: no such event for this person", content_type = "text/html"),
    )
)]
pub(crate) async fn show(
    guest: Guest,
    State(_): State<Arc<Gateway>>,
    path: Segment,
    RawQuery(raw): RawQuery,
) -> Response {
    let id = segment(path);
    let read = async |query: Option<&str>| {
        let path = Ok(Path(id.clone()));
        let query = RawQuery(query.map(str::to_owned));
        guest.ask(None, |caller, state| v1::events::get(caller, state, path, query)).await
    };
    let event = match read(None).await {
        Ok(reply) => reply.data,
        Err(problem) => return problem.page(&guest),
    };
    let is_call = event.is("/type", TYPE_OF_CALLS);
    let may_explain = is_call && guest.may(Scope::PoliciesRead);
    let asked = Filters::read(raw.as_deref()).is("explain", "1");
    let explanation = if may_explain && asked {
        Some(read(Some("explain=1")).await.map(|reply| reply.data.at("/explanation")))
    } else {
        None
    };
    let frame = guest.frame("Event", PATH);
    render(StatusCode::OK, &EventPage { frame, event, is_call, may_explain, explanation })
}
