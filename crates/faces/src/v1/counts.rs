//! `/v1/audit/counts`: calls over time, as plots show them.

use portcullis_app::{CountStep, CountsView, ToolCountsView};
use portcullis_core::refusal::Refusal;

use crate::exchange::{ErrorAnswer, HandlerResult, One, Outcome, Query, WithQuery};

/// Tools of one request.
const MOST_TOOLS: usize = 200;

/// Counts of the org's calls over time: how they were decided, what DLP found, how long they took.
/// An event is counted when it has its place in the log, within a second.
#[utoipa::path(
    get, path = "/v1/audit/counts", tag = "audit", operation_id = "get_call_counts",
    params(
        ("step" = Option<String>, Query, description = "`minute` (default; kept for 8 days), `hour` (for 40 days) or `day`, in UTC", pattern = "^(minute|hour|day)$"),
        ("from" = Option<String>, Query, description = "RFC 3339, in the first step; by default 60 minutes, 48 hours or 30 days before the last", format = DateTime),
        ("to" = Option<String>, Query, description = "RFC 3339, exclusive; by default now", format = DateTime),
    ),
    responses(
        (status = 200, description = "the counts of each step, at most 1500", body = One<CountsView>),
        (status = 400, description = "too many steps, or older than they are kept", body = ErrorAnswer),
    )
)]
pub(crate) async fn get(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let query = Query::parse(raw.as_deref(), &["from", "to", "step"])?;
    let step = query.choice("step", &CountStep::NAMES)?.and_then(CountStep::from_name);
    let step = step.unwrap_or(CountStep::Minute);
    let counts =
        gateway.app.audit.call_counts(&ctx, step, query.time("from")?, query.time("to")?).await?;
    Ok(Outcome::data(&counts))
}

/// Calls by tool in the last 24 hours, of those that policies decided. An event is counted when it has its
/// place in the log, within a second.
#[utoipa::path(
    get, path = "/v1/audit/tool-counts", tag = "audit", operation_id = "get_tool_counts",
    params(
        ("tools" = String, Query, description = "ids of tools, comma-separated, at most 200", pattern = "[^, ]"),
    ),
    responses(
        (status = 200, description = "the calls of each tool by hour; of one that does not exist, none", body = One<ToolCountsView>),
        (status = 400, description = "no tools, or too many", body = ErrorAnswer),
    )
)]
pub(crate) async fn by_tool(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let query = Query::parse(raw.as_deref(), &["tools"])?;
    let tools = query.list("tools");
    if tools.is_empty() || tools.len() > MOST_TOOLS {
        let message = format!("`tools` has to be 1 to {MOST_TOOLS} ids of tools.");
        return Err(Refusal::bad_request(message).into());
    }
    Ok(Outcome::data(&gateway.app.audit.tool_calls(&ctx, tools).await?))
}
