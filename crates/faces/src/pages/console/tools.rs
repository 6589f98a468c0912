//! Tools: which there are, and one tool with a form to try it.

use axum::{extract::Path, http::StatusCode, response::Response};
use portcullis_core::principal::Scope;

use super::{
    PageResult,
    api::Problem,
    json::Json,
    plot::sparkline_of_list,
    render,
    schema::{self, SchemaRow},
    schema_form::{self, FormValues, Kind, Part},
    signed_in::{Guest, GuestForm},
    table::{Filters, More, more},
    trial::Trial,
};
use crate::{
    exchange::{Segment, segment},
    pages::{form::Form, html::Html},
    v1::{self, ToolPath},
};

const PATH: &str = "/console/tools";
const ACCESSES: &[(&str, &str)] =
    &[("", "any"), ("allow", "allow"), ("conditional", "conditional"), ("deny", "deny")];

page! { ToolsPage = "tools.html";
    filters: Filters, tools: Vec<ListedTool>,
    /// True if the person may see how often tools are called.
    may_count: bool, more: More, left_out: Vec<Json>,
}

/// A tool with its calls of a day.
struct ListedTool {
    tool: Json,
    calls: Html,
}

/// The tools that the person sees, with the filters of the API, and those that were left out.
pub(crate) async fn list(guest: Guest, filters: Filters) -> PageResult {
    let scope = Some(Scope::McpsRead);
    let reply = guest.list(scope, &filters, v1::mcps::list).await?;
    let left_out = guest.items(scope, "", v1::mcps::left_out).await;
    let more = more(PATH, &filters, reply.next.as_deref());
    let frame = guest.frame("Tools", PATH);
    let may_count = guest.may(Scope::AuditRead);
    let tools = guest.with_calls(reply.items()).await;
    Ok(render(StatusCode::OK, &ToolsPage { frame, filters, tools, may_count, more, left_out }))
}

page! { ToolPage<'a> = "tool.html";
    tool: Json,
    /// The address that the form is sent to.
    action: String, parts: Vec<Part>, schemas: Vec<ReadableSchema>, may_call: bool,
    may_read_policies: bool, trial: Option<Trial<'a>>,
    /// The connection that the call lacks, if the person may make it.
    connection: Option<MissingConnection>,
    /// The input as JSON, as it was sent or as an empty one.
    raw: String,
}

/// A schema of a tool, as people read it.
struct ReadableSchema {
    name: &'static str,
    rows: Vec<SchemaRow>,
    json: String,
}

/// A connection that a person is asked to make anew.
struct MissingConnection {
    slug: String,
    /// `org` or `me`: its owner.
    owner: &'static str,
    takes_key: bool,
}

/// One tool: its definition as accepted, who may call it, and a form to try it.
pub(crate) async fn show(guest: Guest, path: Segment) -> Response {
    match read(&guest, &segment(path)).await {
        Ok(tool) => page(&guest, tool, None).await,
        Err(problem) => problem.page(&guest),
    }
}

/// Calls a tool as the person, from the form of its page: a governed call like any other.
pub(crate) async fn call(path: Segment, GuestForm(guest, form): GuestForm) -> PageResult {
    let guest = guest.whole().await?;
    Ok(call_from(&guest, &segment(path), &form).await)
}

/// Calls a tool with the input of a form that was checked, and shows what came of it.
pub(super) async fn call_from(guest: &Guest, id: &str, form: &Form) -> Response {
    match read(guest, id).await {
        Ok(tool) => {
            let trial = Trial::run(guest, id, &tool, form).await;
            page(guest, tool, Some(trial)).await
        }
        Err(problem) => problem.page(guest),
    }
}

async fn read(guest: &Guest, id: &str) -> Result<Json, Problem> {
    let read = |caller| v1::mcps::get(caller, ToolPath::of(id));
    Ok(guest.ask(Some(Scope::McpsRead), read).await?.data)
}

async fn page(guest: &Guest, tool: Json, trial: Option<Trial<'_>>) -> Response {
    let sent = trial.as_ref().and_then(Trial::input);
    // Fields that are no input yet come back as they were sent.
    let unread = trial.as_ref().and_then(|trial| trial.unread);
    let filled = unread.map_or(FormValues::By(sent.as_ref()), FormValues::As);
    let raw = trial.as_ref().map_or_else(|| "{}".to_owned(), |trial| trial.raw.clone());
    let problem = trial.as_ref().and_then(|trial| trial.problem.as_ref());
    let connection = match problem.filter(|problem| problem.details.has("/connect")) {
        Some(problem) => guest.missing_connection(problem).await,
        None => None,
    };
    let schemas = [("Input", "/input_schema"), ("Output", "/output_schema")];
    let schemas = schemas.into_iter().filter(|(_, pointer)| tool.has(pointer));
    let page = ToolPage {
        frame: guest.frame(tool.text("/id"), PATH),
        action: format!("{PATH}/{}", tool.text("/id")),
        parts: schema_form::parts(&tool.at("/input_schema").0, filled),
        schemas: schemas
            .map(|(name, pointer)| ReadableSchema {
                name,
                rows: schema::rows(&tool.at(pointer).0),
                json: tool.pretty(pointer),
            })
            .collect(),
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
    async fn with_calls(&self, tools: Vec<Json>) -> Vec<ListedTool> {
        let ids: Vec<String> = tools.iter().map(|tool| tool.text("/id")).collect();
        let query = Filters::of("tools", &ids.join(",")).query().unwrap_or_default();
        let counts = self.items(Some(Scope::AuditRead), &query, v1::counts::by_tool).await;
        let mut counts = counts.into_iter();
        let with_calls = |tool: Json| {
            let calls = counts.next();
            let calls = calls.map(|it| sparkline_of_list(&it.at("/calls"), "Calls of a day"));
            ListedTool { tool, calls: calls.unwrap_or_default() }
        };
        tools.into_iter().map(with_calls).collect()
    }

    /// The connection that a refused call lacks; `None` if the person may not make it.
    async fn missing_connection(&self, problem: &Problem) -> Option<MissingConnection> {
        let id = Ok(Path(problem.details.text("/provider_id")));
        let read = |caller| v1::providers::get(caller, id);
        let provider = self.ask(Some(Scope::ProvidersRead), read).await.ok()?.data;
        let of_org = provider.is("/owner/type", "org");
        let may_connect = self.may(Scope::ProvidersWrite) && (!of_org || self.may(Scope::Admin));
        may_connect.then(|| MissingConnection {
            slug: provider.text("/slug"),
            owner: if of_org { "org" } else { "me" },
            takes_key: !provider.is("/auth/type", "oauth2"),
        })
    }
}
