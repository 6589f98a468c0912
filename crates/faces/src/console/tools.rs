//! Tools: which there are, and one tool with a form to try it.

use std::sync::Arc;

use askama::Template;
use axum::{
    extract::{RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use portcullis_core::principal::Scope;

use super::{
    api::Problem,
    guest::{Frame, Guest},
    json::Json,
    render,
    schema_form::{self, Field},
    table::{Filters, more},
    trial::Trial,
};
use crate::{
    Gateway,
    form::Form,
    outcome::Outcome,
    segment::{Segment, segment},
    v1::{self, ToolPath},
};

const PATH: &str = "/console/tools";

#[derive(Template)]
#[template(path = "tools.html")]
struct ToolsPage {
    frame: Frame,
    filters: Filters,
    tools: Vec<Json>,
    more: Option<String>,
    left_out: Vec<Json>,
}

/// The tools that the person sees, with the filters of the API, and those that were left out.
#[utoipa::path(
    get, path = "/console/tools", tag = "console", operation_id = "console_tools",
    responses(
        (status = 200, description = "a page of tools; takes the filters of `GET /v1/mcps`", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 403, description = "a page: the person lacks `mcps:read`", content_type = "text/html"),
    )
)]
pub(crate) async fn list(
    guest: Guest,
    State(_): State<Arc<Gateway>>,
    RawQuery(raw): RawQuery,
) -> Response {
    let filters = Filters::read(raw.as_deref());
    let query = RawQuery(filters.query());
    let scope = Some(Scope::McpsRead);
    let listed = guest.ask(scope, |caller, state| v1::mcps::list(caller, state, query)).await;
    let reply = match listed {
        Ok(reply) => reply,
        Err(problem) => return problem.page(&guest),
    };
    let left_out =
        guest.ask(scope, |caller, state| v1::mcps::left_out(caller, state, RawQuery(None)));
    let left_out = left_out.await.map(|reply| reply.items()).unwrap_or_default();
    let more = more(PATH, &filters, reply.next.as_deref());
    let frame = guest.frame("Tools", PATH);
    render(StatusCode::OK, &ToolsPage { frame, tools: reply.items(), more, filters, left_out })
}

#[derive(Template)]
#[template(path = "tool.html")]
struct ToolPage {
    frame: Frame,
    tool: Json,
    /// The address that the form is sent to.
    action: String,
    fields: Vec<Field>,
    may_call: bool,
    may_read_policies: bool,
    trial: Option<Trial>,
    /// The input as JSON, as it was sent or as an empty one.
    raw: String,
}

/// One tool: its definition as accepted, who may call it, and a form to try it.
#[utoipa::path(
    get, path = "/console/tools/{id}", tag = "console", operation_id = "console_tool",
    params(("id" = String, Path, description = "`<provider>:<tool_name>`")),
    responses(
        (status = 200, description = "a page: the tool", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 404, description = "a page: no such tool for this person", content_type = "text/html"),
    )
)]
pub(crate) async fn show(guest: Guest, State(_): State<Arc<Gateway>>, path: Segment) -> Response {
    match read(&guest, &segment(path)).await {
        Ok(tool) => page(&guest, tool, None),
        Err(problem) => problem.page(&guest),
    }
}

/// Calls a tool as the person, from the form of its page: a governed call like any other.
#[utoipa::path(
    post, path = "/console/tools/{id}", tag = "console", operation_id = "console_try_tool",
    params(("id" = String, Path, description = "`<provider>:<tool_name>`")),
    request_body(content = Object, content_type = "application/x-www-form-urlencoded", description = "`form_token`, and `raw` with the input as JSON or a field for each member of it"),
    responses(
        (status = 200, description = "a page: the answer beside its governance, or why there is none", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 400, description = "no page of this session sent the form", body = crate::answer::ErrorAnswer),
        (status = 404, description = "a page: no such tool for this person", content_type = "text/html"),
    )
)]
pub(crate) async fn call(
    guest: Guest,
    State(_): State<Arc<Gateway>>,
    path: Segment,
    form: Form,
) -> Response {
    if let Err(foreign) = guest.check(&form) {
        return Outcome::from(foreign).into_response();
    }
    let id = segment(path);
    let tool = match read(&guest, &id).await {
        Ok(tool) => tool,
        Err(problem) => return problem.page(&guest),
    };
    let trial = Trial::run(&guest, &id, &tool, &form).await;
    page(&guest, tool, Some(trial))
}

async fn read(guest: &Guest, id: &str) -> Result<Json, Problem> {
    let read = |caller, state| v1::mcps::get(caller, state, ToolPath::of(id), RawQuery(None));
    Ok(guest.ask(Some(Scope::McpsRead), read).await?.data)
}

fn page(guest: &Guest, tool: Json, trial: Option<Trial>) -> Response {
    let sent = trial.as_ref().and_then(Trial::input);
    let raw = trial.as_ref().map_or_else(|| "{}".to_owned(), |trial| trial.raw.clone());
    let schema = tool.at("/input_schema");
    let page = ToolPage {
        frame: guest.frame(tool.text("/id"), PATH),
        action: format!("{PATH}/{}", tool.text("/id")),
        fields: schema_form::fields(&schema.0, sent.as_ref()),
        may_call: guest.may(Scope::McpsInvoke),
        may_read_policies: guest.may(Scope::PoliciesRead),
        tool,
        trial,
        raw,
    };
    render(StatusCode::OK, &page)
}
