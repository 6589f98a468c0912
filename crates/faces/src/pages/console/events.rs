//! What happened: the list of events, and one event with everything that is known of it.

use axum::{
    extract::Path,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use portcullis_core::principal::Scope;

use super::{
    PageResult,
    api::Problem,
    form::Choices,
    json::{self, Json},
    render,
    signed_in::Guest,
    stages::{self, Stage},
    table::Filters,
    trial::escaped,
};
use crate::{
    exchange::{Outcome, Segment, segment},
    pages::html::Html,
    v1,
};

const PATH: &str = "/console/events";
const DECISIONS: Choices = &[("", "any"), ("allow", "allow"), ("deny", "deny")];
#[rustfmt::skip]
const DLP_RESULTS: Choices = &[
    ("", "any"), ("passed", "passed"), ("flagged", "flagged"), ("redacted", "redacted"), ("blocked", "blocked"),
    ("skipped", "skipped"),
];
const TYPE_OF_CALLS: &str = "mcp.invocation";

page! { EventsPage = "events.html";
    filters: Filters,
    /// The filters as they stand in an address.
    query: Option<String>,
    /// True if new events appear above the others: on the first page, the newest first.
    is_live: bool, events: Vec<Json>, more: Html,
}

/// Events, the newest first, with the filters of the API.
pub(crate) async fn list(guest: Guest, filters: Filters) -> PageResult {
    let reply = guest.list(None, &filters, v1::events::list).await?;
    let frame = guest.frame("Events", PATH);
    let more = reply.more(PATH, &filters, "Older events");
    let query = filters.query();
    let is_live = filters.is("cursor", "") && !filters.is("order", "asc");
    let events = reply.items();
    Ok(render(StatusCode::OK, &EventsPage { frame, filters, query, is_live, events, more }))
}

page! { EventPage = "event.html";
    event: Json, is_call: bool, stages: Vec<Stage>,
    /// Findings where they were, in the arguments and in the answer, each with its title.
    places: Vec<(&'static str, String)>, may_explain: bool, explanation: Option<Result<Json, Problem>>,
    /// The leaf as JSON, which the page hashes; empty while the event is not sealed.
    leaf: String,
    /// Verifier keys of the log.
    keys: String,
}

/// One event: what was asked, decided, found and answered, and with `explain=1` why.
pub(crate) async fn show(guest: Guest, path: Segment, filters: Filters) -> PageResult {
    let id = segment(path);
    let read = async |query: Option<&str>| {
        let path = Ok(Path(id.clone()));
        let query = query.map(str::to_owned);
        guest.read(None, query, |caller| v1::events::get(caller, path)).await
    };
    let event = read(None).await.map_err(|problem| problem.page(&guest))?.data;
    let is_call = event.is("/type", TYPE_OF_CALLS);
    let may_explain = is_call && guest.may(Scope::PoliciesRead);
    let asked = filters.is("explain", "1");
    let explanation = if may_explain && asked {
        Some(read(Some("explain=1")).await.map(|reply| reply.data.at("/explanation")))
    } else {
        None
    };
    let frame = guest.frame("Event", PATH);
    let leaf = write_leaf(&event);
    let keys = guest.log_keys().join("\n");
    let stages = if is_call { stages::of(&event) } else { Vec::new() };
    let places = stages::places_of(&event);
    let page =
        EventPage { frame, event, is_call, stages, places, may_explain, explanation, leaf, keys };
    Ok(render(StatusCode::OK, &page))
}

/// The part of an event that its log holds.
fn write_leaf(event: &Json) -> String {
    let mut held = event.0.clone();
    if let Some(members) = held.as_object_mut() {
        members.retain(|name, _| !["detached", "integrity"].contains(&name.as_str()));
    }
    if event.has("/sequence") { escaped(&held.to_string()) } else { String::new() }
}

/// The proof of an event, for the script of its page.
#[utoipa::path(
    get, path = "/console/events/{id}/proof", tag = "console", operation_id = "console_event_proof",
    params(("id" = String, Path, description = "`evt_` and a ULID")),
    responses(
        (status = 200, description = "the text of `GET /v1/audit/events/{id}/proof`", content_type = "text/plain"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 404, description = "no such event for this person, or not sealed yet", body = crate::exchange::ErrorAnswer),
    )
)]
pub(crate) async fn proof(guest: Guest, path: Segment) -> Result<Response, Outcome> {
    let text = v1::checkpoint::proof(guest.caller(), path).await?;
    Ok(([(header::CACHE_CONTROL, "no-store")], text).into_response())
}
