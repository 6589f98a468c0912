//! The policy workbench: a draft that is checked, simulated on a call and replayed over recorded ones.

use std::collections::BTreeMap;

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use portcullis_core::{authorization::OAuthForm, principal::Scope, refusal::Refusal};
use serde_json::{Value, json};

use super::{
    PageResult,
    api::Problem,
    form::FormState,
    json::Json,
    render,
    signed_in::{Guest, GuestForm},
    table::Filters,
};
use crate::{pages::form::Form, v1};

const PATH: &str = "/console/workbench";
const SCOPE: Option<Scope> = Some(Scope::PoliciesRead);

page! { WorkbenchPage = "workbench.html";
    /// The set in force with its statistics.
    set: Json, policies: Vec<Json>, draft: FormState,
    /// Lines of the draft, if something is wrong with it.
    lines: Vec<DraftLine>, report: Option<Json>,
    /// Answer of a check.
    check: Option<Json>, groups: Vec<ChangeGroup>,
    /// True if the person may ask as another principal.
    may_ask_as: bool,
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
pub(crate) async fn show(guest: Guest, filters: Filters) -> Response {
    let draft = OAuthForm::default().with("tool", filters.text("tool"));
    let draft = draft.with("principal", filters.text("principal"));
    page(&guest, &Form(draft.with("input", "{}").with("calls", "1000")), None).await
}

/// Checks, simulates, replays or downloads a draft. Nothing is executed or put in force.
pub(crate) async fn ask(GuestForm(guest, form): GuestForm) -> PageResult {
    Ok(answer(&guest.whole().await?, &form).await)
}

async fn answer(guest: &Guest, form: &Form) -> Response {
    let asked = form.field("ask").unwrap_or("check");
    if asked == "download" {
        return send_file(source_of(form));
    }
    let policies = if source_of(form).trim().is_empty() {
        json!({ "upsert": [] })
    } else {
        json!({ "upsert": [{ "source": source_of(form) }] })
    };
    if asked == "check" {
        let body = guest.json_body(&json!({ "policies": policies }));
        let check = |caller| v1::policy_check::check(caller, body);
        let checked =
            guest.ask(SCOPE, check).await.map(|reply| WorkbenchReport::Checked(reply.data));
        return page(guest, form, Some(checked)).await;
    }
    let report = match simulation(form, asked, &policies) {
        Ok(body) => {
            let body = guest.json_body(&body);
            guest.ask(SCOPE, |caller| v1::simulate::simulate(caller, body)).await
        }
        Err(wrong) => Err(Problem::of(Refusal::bad_request(wrong))),
    };
    page(guest, form, Some(report.map(|reply| WorkbenchReport::Reported(reply.data)))).await
}

fn source_of(form: &Form) -> String {
    form.field("source").unwrap_or_default().replace("\r\n", "\n")
}

/// The body with which a program would simulate, or replay, the same.
fn simulation(form: &Form, asked: &str, policies: &Value) -> Result<Value, String> {
    let text = |name| form.field(name).unwrap_or_default().trim();
    if asked == "simulate" {
        let input: Value = serde_json::from_str(text("input"))
            .map_err(|error| format!("The input is not JSON: {error}."))?;
        let principal = text("principal");
        let principal = (!principal.is_empty()).then(|| json!({ "id": principal }));
        Ok(json!({
            "tool": text("tool"), "input": input, "principal": principal, "policies": policies,
            "baseline": "live", "options": { "include_shadow": true },
        }))
    } else {
        let calls = text("calls").parse::<u64>();
        let calls = calls.map_err(|_| "The number of calls is no number.".to_owned())?;
        Ok(json!({ "replay": { "limit": calls }, "policies": policies, "baseline": "live" }))
    }
}

/// The lines of a draft with these errors; none without errors.
fn lines(source: String, mut errors: LineErrors) -> Vec<DraftLine> {
    if errors.is_empty() {
        return Vec::new();
    }
    let text = Json(Value::String(source)).text("");
    let lines = (1..).zip(text.split('\n')).map(|(number, text)| DraftLine {
        number,
        text: text.to_owned(),
        errors: errors.remove(&number).unwrap_or_default(),
    });
    lines.collect()
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
    form: &Form,
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
    let lines = lines(source_of(form), errors);
    let draft = FormState::refused(form, problem);
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
        report,
        check,
        groups,
        may_ask_as: guest.may(Scope::Admin),
    };
    render(StatusCode::OK, &page)
}
