//! The plan of the org: its limits, what is used of them, and who was over them.

use axum::http::StatusCode;
use portcullis_core::principal::Scope;

use super::{
    PageResult,
    api::ApiReply,
    json::Json,
    plot::{self, DECISIONS, Plot},
    render,
    signed_in::Guest,
};
use crate::v1;

const PATH: &str = "/console/limits";

page! { LimitsPage = "limits.html";
    org: Json, tiles: [LimitTile; 2],
    /// Spans of time, and what was used within each.
    spans: [(&'static str, Json); 3],
    /// Calls of the last two days.
    calls: Option<Plot>,
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
pub(crate) async fn show(guest: Guest) -> PageResult {
    let org = guest.ask(Some(Scope::Admin), v1::org::get).await;
    let org = org.map_err(|problem| problem.page(&guest))?.data;
    let by_hour = Some("step=hour".to_owned());
    let counts = guest.read(Some(Scope::AuditRead), by_hour, v1::counts::get).await.ok();
    let plot = |counts: ApiReply| plot::bars("calls", "Calls by hour", &counts.data, &DECISIONS);
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
    let calls = counts.map(plot);
    let events = guest.items(None, over, v1::events::list).await;
    let frame = guest.frame("Limits", PATH);
    Ok(render(StatusCode::OK, &LimitsPage { frame, org, tiles, spans, calls, events }))
}
