//! The first page: is it healthy, what happens, what was refused and why, what waits.

use std::sync::{Arc, atomic::Ordering};

use askama::Template;
use axum::{
    extract::{RawQuery, State},
    http::StatusCode,
    response::Response,
};
use portcullis_core::principal::Scope;

use super::{
    guest::{Frame, Guest},
    json::Json,
    render,
};
use crate::{Gateway, v1};

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    frame: Frame,
    is_ready: bool,
    /// Counters of the plan; nothing for people who are no admins.
    org: Option<Json>,
    calls: Vec<Json>,
    refused: Vec<Json>,
    approvals: Vec<Json>,
    waiting: Vec<Json>,
    providers: Vec<Json>,
    /// Tools to begin with, as long as there was no call.
    tools: Vec<Json>,
}

/// The first page of the console.
#[utoipa::path(
    get, path = "/console", tag = "console", operation_id = "console_home",
    responses(
        (status = 200, description = "a page: health, the last calls and refusals, and what waits for the person", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 404, description = "a page: the console is switched off", content_type = "text/html"),
    )
)]
pub(crate) async fn show(guest: Guest, State(gateway): State<Arc<Gateway>>) -> Response {
    let draining = gateway.draining.load(Ordering::Acquire);
    let events = async |query: &str| {
        let query = RawQuery(Some(query.to_owned()));
        let listed = guest.ask(None, |caller, state| v1::events::list(caller, state, query)).await;
        listed.map(|reply| reply.items())
    };
    let calls = match events("type=mcp.invocation&limit=8").await {
        Ok(calls) => calls,
        Err(problem) => return problem.page(&guest),
    };
    let refused = events("type=mcp.invocation&decision=deny&limit=5").await.unwrap_or_default();
    let query = |text: &str| RawQuery(Some(text.to_owned()));
    let approvals = guest.ask(Some(Scope::ApprovalsRead), |caller, state| {
        v1::approvals::list(caller, state, query("status=pending&limit=5"))
    });
    let approvals = approvals.await.map(|reply| reply.items()).unwrap_or_default();
    let waiting = guest.ask(Some(Scope::Admin), |caller, state| {
        v1::tools::waiting(caller, state, query("limit=5"))
    });
    let waiting = waiting.await.map(|reply| reply.items()).unwrap_or_default();
    let providers = guest.ask(Some(Scope::ProvidersRead), |caller, state| {
        v1::providers::list(caller, state, query("limit=50"))
    });
    let providers = providers.await.map(|reply| reply.items()).unwrap_or_default();
    let org =
        guest.ask(Some(Scope::Admin), |caller, state| v1::org::get(caller, state, RawQuery(None)));
    let org = org.await.ok().map(|reply| reply.data);
    let tools = if calls.is_empty() {
        let tools = guest.ask(Some(Scope::McpsRead), |caller, state| {
            v1::mcps::list(caller, state, query("limit=5"))
        });
        tools.await.map(|reply| reply.items()).unwrap_or_default()
    } else {
        Vec::new()
    };
    let page = HomePage {
        frame: guest.frame("Home", "/console"),
        is_ready: !draining && gateway.app.nodes.ready().await.is_ok(),
        org,
        calls,
        refused,
        approvals,
        waiting,
        providers,
        tools,
    };
    render(StatusCode::OK, &page)
}
