//! The policy workbench: a draft that is checked, simulated on a call and replayed over recorded ones.

use std::collections::BTreeMap;

use askama::Template;
use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use portcullis_core::principal::Scope;
use serde_json::{Value, json};

use super::{
    PageResult,
    api::Problem,
    json::Json,
    render,
    signed_in::{Frame, Guest, GuestForm},
    table::Filters,
};
use crate::{pages::form::Form, v1};

const PATH: &str = "/console/workbench";
const SCOPE: Option<Scope> = Some(Scope::PoliciesRead);
const USUAL_CALLS: u64 = 1_000;

#[derive(Template)]
#[template(path = "workbench.html")]
struct WorkbenchPage {
    frame: Frame,
    /// The set in force with its statistics.
    set: Json,
    policies: Vec<Json>,
    draft: DraftForm,
    /// Lines of the draft, if something is wrong with it.
    lines: Vec<DraftLine>,
    problem: Option<Problem>,
    report: Option<Json>,
    /// Answer of a check.
    check: Option<Json>,
    groups: Vec<ChangeGroup>,
    /// True if the person may ask as another principal.
    may_ask_as: bool,
}

/// A draft and the call to ask about, as the page was sent.
#[derive(Debug, Default)]
struct DraftForm {
    source: String,
    tool: String,
    /// Id of the caller; empty for the person.
    principal: String,
    input: String,
    calls: String,
}

/// A line of a draft and the errors in it.
#[derive(Debug)]
struct DraftLine {
    number: usize,
    text: String,
    errors: Vec<String>,
}

/// Answer to a draft.
enum WorkbenchReport {
    Checked(Json),
    Reported(Json),
}

/// Changes of one tool for one caller.
#[derive(Debug)]
struct ChangeGroup {
    tool: String,
    principal: String,
    changes: Vec<Json>,
}

/// The workbench with an empty draft.
#[utoipa::path(
    get, path = "/console/workbench", tag = "console", operation_id = "console_workbench",
    params(
        ("tool" = Option<String>, Query, description = "the tool to ask about"),
        ("principal" = Option<String>, Query, description = "the caller to ask as; that takes `admin`"),
    ),
    responses(
        (status = 200, description = "a page: the set in force and a draft", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 403, description = "a page: the person lacks `policies:read`", content_type = "text/html"),
    )
)]
pub(crate) async fn show(guest: Guest, filters: Filters) -> Response {
    let text = |name| filters.text(name).to_owned();
    let draft = DraftForm {
        tool: text("tool"),
        principal: text("principal"),
        input: "{}".to_owned(),
        calls: USUAL_CALLS.to_string(),
        ..DraftForm::default()
    };
    page(&guest, draft, None).await
}

/// Checks, simulates, replays or downloads a draft. Nothing is executed or put in force.
#[utoipa::path(
    post, path = "/console/workbench", tag = "console", operation_id = "console_try_draft",
    request_body(content = Object, content_type = "application/x-www-form-urlencoded", description = "`form_token`, `source`, `ask` (`check`, `simulate`, `replay`, `download`), `tool`, `principal`, `input`, `calls`"),
    responses(
        (status = 200, description = "a page: what the draft would do, or its errors; the file with `download`", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 400, description = "no page of this session sent the form", body = crate::exchange::ErrorAnswer),
        (status = 403, description = "a page: the person lacks `policies:read`", content_type = "text/html"),
    )
)]
pub(crate) async fn ask(GuestForm(guest, form): GuestForm) -> PageResult {
    Ok(answer(&guest.whole().await?, &form).await)
}

async fn answer(guest: &Guest, form: &Form) -> Response {
    let text = |name| form.field(name).unwrap_or_default().replace("\r\n", "\n");
    let draft = DraftForm {
        source: text("source"),
        tool: text("tool").trim().to_owned(),
        principal: text("principal").trim().to_owned(),
        input: text("input"),
        calls: text("calls").trim().to_owned(),
    };
    let asked = form.field("ask").unwrap_or("check");
    if asked == "download" {
        return send_file(draft.source);
    }
    if asked == "check" {
        let body = guest.json_body(&json!({ "policies": draft.policies() }));
        let check = |caller| v1::policy_check::check(caller, body);
        let checked =
            guest.ask(SCOPE, check).await.map(|reply| WorkbenchReport::Checked(reply.data));
        return page(guest, draft, Some(checked)).await;
    }
    let body = match draft.simulation(asked) {
        Ok(body) => guest.json_body(&body),
        Err(wrong) => {
            let refusal = portcullis_core::refusal::Refusal::bad_request(wrong);
            let problem = Problem::or_reply(refusal.into())
                .map(|reply| WorkbenchReport::Reported(reply.data));
            return page(guest, draft, Some(problem)).await;
        }
    };
    let simulate = |caller| v1::simulate::simulate(caller, body);
    let report =
        guest.ask(SCOPE, simulate).await.map(|reply| WorkbenchReport::Reported(reply.data));
    page(guest, draft, Some(report)).await
}

impl DraftForm {
    /// The draft as a program would send it.
    fn policies(&self) -> Value {
        let upsert = if self.source.trim().is_empty() {
            json!([])
        } else {
            json!([{ "source": self.source }])
        };
        json!({ "upsert": upsert })
    }

    /// The body with which a program would simulate, or replay, the same.
    fn simulation(&self, asked: &str) -> Result<Value, String> {
        let policies = self.policies();
        if asked == "simulate" {
            let input: Value = serde_json::from_str(&self.input)
                .map_err(|error| format!("The input is not JSON: {error}."))?;
            let principal = (!self.principal.is_empty()).then(|| json!({ "id": self.principal }));
            Ok(json!({
                "tool": self.tool, "input": input, "principal": principal, "policies": policies,
                "baseline": "live", "options": { "include_shadow": true },
            }))
        } else {
            let calls = self.calls.parse::<u64>();
            let calls = calls.map_err(|_| "The number of calls is no number.".to_owned())?;
            Ok(json!({ "replay": { "limit": calls }, "policies": policies, "baseline": "live" }))
        }
    }

    /// The lines with these errors; none without errors.
    fn lines(&self, mut errors: LineErrors) -> Vec<DraftLine> {
        if errors.is_empty() {
            return Vec::new();
        }
        let text = Json(Value::String(self.source.clone())).text("");
        let lines = (1..).zip(text.split('\n')).map(|(number, text)| DraftLine {
            number,
            text: text.to_owned(),
            errors: errors.remove(&number).unwrap_or_default(),
        });
        lines.collect()
    }
}

/// Errors by the line that they stand in.
type LineErrors = BTreeMap<usize, Vec<String>>;

fn checked_errors(check: &Json) -> LineErrors {
    let mut errors = LineErrors::new();
    for error in check.items("/errors") {
        let message = format!("column {}: {}", error.text("/column"), error.text("/message"));
        errors.entry(error.text("/line").parse().unwrap_or(1)).or_default().push(message);
    }
    errors
}

/// The errors in a refused simulation.
fn refused_errors(problem: &Problem) -> LineErrors {
    let mut errors = LineErrors::new();
    for violation in problem.details.items("/violations") {
        let message = violation.text("/message");
        let place = message.strip_prefix("line ").and_then(|rest| rest.split_once(','));
        if let Some((line, rest)) = place
            && let Ok(line) = line.parse()
        {
            errors.entry(line).or_default().push(rest.trim().to_owned());
        }
    }
    errors
}

/// A draft as a file of policies.
fn send_file(source: String) -> Response {
    let mut response = Response::new(Body::from(source));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(
        header::CONTENT_DISPOSITION,
        HeaderValue::from_static("attachment; filename=\"draft.cedar\""),
    );
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The changes of a replay by tool and caller.
fn group_changes(report: &Json) -> Vec<ChangeGroup> {
    let mut groups: BTreeMap<(String, String), Vec<Json>> = BTreeMap::new();
    for change in report.items("/changes") {
        let key = (change.text("/tool"), change.text("/principal/id"));
        groups.entry(key).or_default().push(change);
    }
    let group = |(key, changes)| {
        let (tool, principal) = key;
        ChangeGroup { tool, principal, changes }
    };
    groups.into_iter().map(group).collect()
}

async fn page(
    guest: &Guest,
    draft: DraftForm,
    asked: Option<Result<WorkbenchReport, Problem>>,
) -> Response {
    let all = Some("limit=200".to_owned());
    let listed = match guest.read(SCOPE, all, v1::policies::list).await {
        Ok(reply) => reply,
        Err(problem) => return problem.page(guest),
    };
    let (check, report, problem) = match asked {
        None => (None, None, None),
        Some(Ok(WorkbenchReport::Checked(check))) => (Some(check), None, None),
        Some(Ok(WorkbenchReport::Reported(report))) => (None, Some(report), None),
        Some(Err(problem)) => (None, None, Some(problem)),
    };
    let errors = match (&check, &problem) {
        (Some(check), _) => checked_errors(check),
        (None, Some(problem)) => refused_errors(problem),
        (None, None) => LineErrors::new(),
    };
    let lines = draft.lines(errors);
    let groups = report.as_ref().map(group_changes).unwrap_or_default();
    let frame = guest.frame("Policy workbench", PATH);
    let set = listed.data.at("/policy_set");
    let policies = listed.items();
    let page = WorkbenchPage {
        frame,
        set,
        policies,
        draft,
        lines,
        problem,
        report,
        check,
        groups,
        may_ask_as: guest.may(Scope::Admin),
    };
    render(StatusCode::OK, &page)
}
