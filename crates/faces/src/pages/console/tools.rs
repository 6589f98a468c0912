//! Tools: which there are, and one tool with a form to try it.

use axum::{extract::Path, http::StatusCode, response::Response};
use portcullis_core::principal::Scope;

use super::{
    PageResult,
    api::Problem,
    form::Choices,
    json::Json,
    plot::sparkline_of_list,
    render, schema,
    schema_form::{self, FormValues},
    signed_in::{Guest, GuestForm},
    table::Filters,
    trial::Trial,
};
use crate::{
    exchange::{Segment, segment},
    pages::{form::Form, html::Html},
    v1::{self, ToolPath},
};

const PATH: &str = "/console/tools";
const ACCESSES: Choices =
    &[("", "any"), ("allow", "allow"), ("conditional", "conditional"), ("deny", "deny")];

page! { ToolsPage = "tools.html";
    filters: Filters,
    /// Tools, each with its calls of a day.
    tools: Vec<(Json, Html)>,
    /// True if the person may see how often tools are called.
    may_count: bool, more: Html, left_out: Vec<Json>,
}

/// The tools that the person sees, with the filters of the API, and those that were left out.
pub(crate) async fn list(guest: Guest, filters: Filters) -> PageResult {
    let scope = Some(Scope::McpsRead);
    let reply = guest.list(scope, &filters, v1::mcps::list).await?;
    let left_out = guest.items(scope, "", v1::mcps::left_out).await;
    let more = reply.more(PATH, &filters, "More tools");
    let frame = guest.frame("Tools", PATH);
    let may_count = guest.may(Scope::AuditRead);
    let tools = guest.with_calls(reply.items()).await;
    Ok(render(StatusCode::OK, &ToolsPage { frame, filters, tools, may_count, more, left_out }))
}

page! { ToolPage<'a> = "tool.html";
    tool: Json,
    /// The address that the form is sent to.
    action: String, fields: Html, may_call: bool, may_read_policies: bool,
    trial: Option<Trial<'a>>,
    /// The connection that the call lacks, if the person may make it.
    connection: Option<Json>,
    /// The input as JSON, as it was sent or as an empty one.
    raw: String,
}

/// One tool: its definition as accepted, who may call it, and a form to try it.
pub(crate) async fn show(guest: Guest, path: Segment) -> PageResult {
    let tool = read(&guest, &segment(path)).await?;
    Ok(page(&guest, tool, None).await)
}

/// Calls a tool as the person, from the form of its page: a governed call like any other.
pub(crate) async fn call(path: Segment, GuestForm(guest, form): GuestForm) -> PageResult {
    call_from(&guest.whole().await?, &segment(path), &form).await
}

/// Calls a tool with the input of a form that was checked, and shows what came of it.
pub(super) async fn call_from(guest: &Guest, id: &str, form: &Form) -> PageResult {
    let tool = read(guest, id).await?;
    let trial = Trial::run(guest, id, &tool, form).await;
    Ok(page(guest, tool, Some(trial)).await)
}

async fn read(guest: &Guest, id: &str) -> Result<Json, Response> {
    let read = |caller| v1::mcps::get(caller, ToolPath::of(id));
    let tool = guest.ask(Some(Scope::McpsRead), read).await;
    Ok(tool.map_err(|problem| problem.page(guest))?.data)
}

async fn page(guest: &Guest, tool: Json, trial: Option<Trial<'_>>) -> Response {
    let sent = trial.as_ref().and_then(Trial::input);
    // Fields that are no input yet come back as they were sent.
    let unread = trial.as_ref().and_then(|trial| trial.unread);
    let filled = unread.map_or(FormValues::By(sent.as_ref()), FormValues::As);
    let raw = trial.as_ref().map_or_else(|| "{}".to_owned(), |trial| trial.raw.clone());
    let problem = trial.as_ref().and_then(|trial| trial.result.as_ref().err());
    let connection = match problem.filter(|problem| problem.details.has("/connect")) {
        Some(problem) => guest.missing_connection(problem).await,
        None => None,
    };
    let page = ToolPage {
        frame: guest.frame(tool.text("/id"), PATH),
        action: format!("{PATH}/{}", tool.text("/id")),
        fields: schema_form::fields(&tool.at("/input_schema").0, filled),
        may_call: guest.may(Scope::McpsInvoke),
        may_read_policies: guest.may(Scope::PoliciesRead),
        connection,
        tool,
        trial,
        raw,
    };
    render(StatusCode::OK, &page)
}

impl Guest {
    /// The tools of a list, with their calls for people who may read the log.
    async fn with_calls(&self, tools: Vec<Json>) -> Vec<(Json, Html)> {
        let ids: Vec<String> = tools.iter().map(|tool| tool.text("/id")).collect();
        let query = Filters::of("tools", &ids.join(",")).query().unwrap_or_default();
        let counts = self.items(Some(Scope::AuditRead), &query, v1::counts::by_tool).await;
        let mut counts = counts.into_iter();
        let with_calls = |tool: Json| {
            let calls = counts.next();
            let calls = calls.map(|it| sparkline_of_list(&it.at("/calls"), "Calls of a day"));
            (tool, calls.unwrap_or_default())
        };
        tools.into_iter().map(with_calls).collect()
    }

    /// The connection that a refused call lacks; `None` if the person may not make it.
    async fn missing_connection(&self, problem: &Problem) -> Option<Json> {
        let id = Ok(Path(problem.details.text("/provider_id")));
        let read = |caller| v1::providers::get(caller, id);
        let provider = self.ask(Some(Scope::ProvidersRead), read).await.ok()?.data;
        let of_org = provider.is("/owner/type", "org");
        let may_connect = self.may(Scope::ProvidersWrite) && (!of_org || self.may(Scope::Admin));
        may_connect.then_some(provider)
    }
}
