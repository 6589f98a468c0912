//! The plan of the org: its limits, what is used of them, and who was over them.

use axum::{http::StatusCode, response::Response};
use portcullis_core::principal::Scope;

use super::{
    json::Json,
    plot::{self, DECISIONS},
    render,
    signed_in::Guest,
};
use crate::{pages::html::Html, v1};

const PATH: &str = "/console/limits";

page! { LimitsPage = "limits.html";
    org: Json, tiles: [LimitTile; 2],
    /// Spans of time, and what was used within each.
    spans: [(&'static str, Json); 3],
    /// Calls of the last two days.
    calls: Option<Html>,
    /// Events of calls and requests that were over a limit.
    events: Vec<Json>,
}

/// A limit and what is used of it at this moment.
struct LimitTile {
    name: &'static str,
    used: String,
    limit: String,
}

/// Limits of the plan and what is used of them.
pub(crate) async fn show(guest: Guest) -> Response {
    let admin = Some(Scope::Admin);
    let org = match guest.ask(admin, v1::org::get).await {
        Ok(reply) => reply.data,
        Err(problem) => return problem.page(&guest),
    };
    let by_hour = Some("step=hour".to_owned());
    let counts = guest.read(Some(Scope::AuditRead), by_hour, v1::counts::get).await;
    let counts = counts.ok().map(|reply| reply.data);
    let plot = |counts: &Json| plot::bars("calls", "Calls by hour", counts, &DECISIONS);
    let over = "outcome=rate_limited&limit=20";
    let tile = |name, used, limit| LimitTile { name, used: org.text(used), limit: org.text(limit) };
    let tiles = [
        tile("Requests", "/used/minute/requests", "/limits/requests_per_minute"),
        tile("Calls of tools", "/used/minute/invocations", "/limits/invocations_per_minute"),
    ];
    let spans = [
        ("this minute", org.at("/used/minute")),
        ("today, UTC", org.at("/used/day")),
        ("this month, UTC", org.at("/used/month")),
    ];
    let calls = counts.as_ref().map(plot);
    let events = guest.items(None, over, v1::events::list).await;
    let frame = guest.frame("Limits", PATH);
    render(StatusCode::OK, &LimitsPage { frame, org, tiles, spans, calls, events })
}
