//! The first page: is it healthy, what happens, what was refused and why, what waits.

use std::sync::atomic::Ordering;

use axum::{http::StatusCode, response::Response};
use portcullis_app::CountStep;
use portcullis_core::principal::Scope;

use super::{
    api::Problem,
    json::Json,
    plot::{self, DECISIONS, FINDINGS, LATENCIES},
    render,
    signed_in::Guest,
    table::Filters,
};
use crate::{
    exchange::{NoQuery, Outcome},
    pages::html::Html,
    v1,
};

/// Providers that are named in their tile.
const FEW: usize = 3;

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
    /// Number of providers that are not connected, and the first of them.
    down: usize,
    named: Vec<Json>,
    /// Number of events that the newest checkpoint signs, for people who may read the log.
    log: Option<Result<String, String>>,
}

/// Calls over time.
struct Activity {
    step: &'static str,
    calls: Html,
    plots: [Html; 3],
}

impl Activity {
    /// Returns true if the plots have these steps.
    fn is_by(&self, step: &str) -> bool {
        self.step == step
    }

    fn of(step: CountStep, counts: &Json) -> Self {
        Self {
            step: step.as_str(),
            calls: plot::sparkline(counts, "/calls", "Calls"),
            plots: [
                plot::bars("decisions", "Calls by decision", counts, &DECISIONS),
                plot::lines("latency", "Time of allowed calls in ms", counts, &LATENCIES),
                plot::bars("findings", "Calls with findings", counts, &FINDINGS),
            ],
        }
    }
}

/// The first page of the console.
pub(crate) async fn show(guest: Guest, filters: Filters) -> Response {
    let calls = match guest.last_events("type=mcp.invocation&limit=8").await {
        Ok(calls) => calls,
        Err(problem) => return problem.page(&guest),
    };
    let refused = guest.last_events("type=mcp.invocation&decision=deny&limit=5").await;
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
        refused: refused.unwrap_or_default(),
        approvals,
        waiting,
        tools,
    };
    render(StatusCode::OK, &page)
}

impl Guest {
    async fn last_events(&self, filters: &str) -> Result<Vec<Json>, Problem> {
        let listed = self.read(None, Some(filters.to_owned()), v1::events::list).await;
        listed.map(|reply| reply.items())
    }

    async fn activity(&self, step: CountStep) -> Option<Activity> {
        let query = Some(format!("step={}", step.as_str()));
        let counts = self.read(Some(Scope::AuditRead), query, v1::counts::get).await;
        counts.ok().map(|reply| Activity::of(step, &reply.data))
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
        let providers = self.items(scope, "limit=200", v1::providers::list).await;
        let is_down = |provider: &&Json| !provider.is("/status", "connected");
        let named: Vec<Json> = providers.iter().filter(is_down).take(FEW).cloned().collect();
        let down = providers.iter().filter(is_down).count();
        let checkpoint = async |NoQuery(ctx, gateway)| {
            let note = gateway.app.audit.checkpoint(&ctx).await?;
            // The second line of a checkpoint is the size of the log.
            Ok(Outcome::data(&note.lines().nth(1).unwrap_or_default()))
        };
        let log = if self.may(Scope::AuditRead) {
            let signed = self.ask(None, checkpoint).await;
            Some(signed.map(|reply| reply.data.text("")).map_err(|problem| problem.message))
        } else {
            None
        };
        Condition { trouble, policies_failed, providers: providers.len(), down, named, log }
    }
}
