//! The first page: is it healthy, what happens, what was refused and why, what waits.

use std::sync::atomic::Ordering;

use axum::http::StatusCode;
use portcullis_app::CountStep;
use portcullis_core::principal::Scope;

use super::{
    PageResult,
    json::Json,
    plot::{self, DECISIONS, FINDINGS, LATENCIES, Plot},
    render,
    signed_in::Guest,
    table::Filters,
};
use crate::{pages::html::Html, v1};

page! { HomePage = "home.html";
    health: Condition, activity: Option<Activity>,
    /// Counters of the plan; nothing for people who are no admins.
    org: Option<Json>, calls: Vec<Json>, refused: Vec<Json>, approvals: Vec<Json>,
    waiting: Vec<Json>,
    /// Tools to begin with, as long as there was no call.
    tools: Vec<Json>,
}

/// State of the parts, as measured for the page.
struct Condition {
    /// The reason that no calls are taken, if none are.
    trouble: Option<String>,
    /// The policy folder could not be loaded: the set before it decides.
    policies_failed: bool,
    providers: usize,
    /// Providers that are not connected.
    down: Vec<Json>,
    /// Number of events that the newest checkpoint signs, for people who may read the log.
    log: Option<Result<String, String>>,
}

/// Calls over time.
struct Activity {
    step: &'static str,
    calls: Html,
    plots: [Plot; 3],
}

/// The first page of the console.
pub(crate) async fn show(guest: Guest, filters: Filters) -> PageResult {
    let last = Filters::read(Some("type=mcp.invocation&limit=8"));
    let calls = guest.list(None, &last, v1::events::list).await?.items();
    let denied = "type=mcp.invocation,mcp.task_ended&decision=deny&limit=5";
    let refused = guest.items(None, denied, v1::events::list).await;
    let scope = Some(Scope::ApprovalsRead);
    let approvals = guest.items(scope, "status=pending&limit=5", v1::approvals::list).await;
    let waiting = guest.items(Some(Scope::Admin), "limit=5", v1::tools::waiting).await;
    let org = guest.ask(Some(Scope::Admin), v1::org::get);
    let step = CountStep::from_name(filters.text("step"));
    let tools = if calls.is_empty() {
        guest.items(Some(Scope::McpsRead), "limit=5", v1::mcps::list).await
    } else {
        Vec::new()
    };
    let page = HomePage {
        frame: guest.frame("Home", "/console"),
        health: guest.health().await,
        activity: guest.activity(step.unwrap_or(CountStep::Minute)).await,
        org: org.await.ok().map(|reply| reply.data),
        calls,
        refused,
        approvals,
        waiting,
        tools,
    };
    Ok(render(StatusCode::OK, &page))
}

impl Guest {
    async fn activity(&self, step: CountStep) -> Option<Activity> {
        let query = Some(format!("step={}", step.as_str()));
        let counts = self.read(Some(Scope::AuditRead), query, v1::counts::get).await.ok()?.data;
        let plots = [
            plot::bars("decisions", "Calls by decision", &counts, &DECISIONS),
            plot::lines("latency", "Time of allowed calls in ms", &counts, &LATENCIES),
            plot::bars("findings", "Calls with findings", &counts, &FINDINGS),
        ];
        let calls = plot::sparkline(&counts, "/calls", "Calls");
        Some(Activity { step: step.as_str(), calls, plots })
    }

    async fn health(&self) -> Condition {
        let gateway = &self.gateway;
        let trouble = if gateway.leaving.load(Ordering::Acquire) {
            Some("The node is shutting down.".to_owned())
        } else {
            gateway.app.nodes.ready().await.err().map(|refusal| refusal.to_string())
        };
        let policies_failed = !gateway.app.policies.policy_set().1.errors.is_empty();
        let scope = Some(Scope::ProvidersRead);
        let mut down = self.items(scope, "limit=200", v1::providers::list).await;
        let providers = down.len();
        down.retain(|provider| !provider.is("/status", "connected"));
        let log = if self.may(Scope::AuditRead) {
            let signed = self.checkpoint().await;
            Some(signed.map(|signed| signed.size).map_err(|problem| problem.message))
        } else {
            None
        };
        Condition { trouble, policies_failed, providers, down, log }
    }
}
