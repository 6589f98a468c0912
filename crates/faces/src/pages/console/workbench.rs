//! The policy workbench: a draft that is checked, simulated on a call and replayed over recorded ones.

use std::collections::BTreeMap;

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use portcullis_core::{authorization::OAuthForm, principal::Scope, refusal::Refusal};
use serde_json::{Value, json};

use super::{
    PageResult,
    api::{ApiReply, Problem},
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
    check: Option<Json>, groups: ChangeGroups,
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
#[derive(Default)]
struct DraftAnswer {
    /// Answer of a check.
    check: Option<Json>,
    /// Answer of a simulation or a replay.
    report: Option<Json>,
    problem: Option<Problem>,
}

/// Changes of a replay by tool and caller.
type ChangeGroups = BTreeMap<(String, String), Vec<Json>>;

/// The workbench with an empty draft.
pub(crate) async fn show(guest: Guest, filters: Filters) -> PageResult {
    let draft = OAuthForm::default().with("tool", filters.text("tool"));
    let draft = draft.with("principal", filters.text("principal"));
    let form = Form(draft.with("input", "{}").with("calls", "1000"));
    page(&guest, &form, DraftAnswer::default()).await
}

/// Checks, simulates, replays or downloads a draft. Nothing is executed or put in force.
pub(crate) async fn ask(GuestForm(guest, form): GuestForm) -> PageResult {
    let guest = guest.whole().await?;
    let asked = form.field("ask").unwrap_or("check");
    if asked == "download" {
        return Ok(send_file(source_of(&form)));
    }
    let nothing = DraftAnswer::default();
    let answer = match answer(&guest, &form, asked).await {
        Ok(reply) if asked == "check" => DraftAnswer { check: Some(reply.data), ..nothing },
        Ok(reply) => DraftAnswer { report: Some(reply.data), ..nothing },
        Err(problem) => DraftAnswer { problem: Some(problem), ..nothing },
    };
    page(&guest, &form, answer).await
}

async fn answer(guest: &Guest, form: &Form, asked: &str) -> Result<ApiReply, Problem> {
    let source = source_of(form);
    let upsert = if source.trim().is_empty() { json!([]) } else { json!([{ "source": source }]) };
    let policies = json!({ "upsert": upsert });
    if asked == "check" {
        let body = guest.json_body(&json!({ "policies": policies }));
        return guest.ask(SCOPE, |caller| v1::policy_check::check(caller, body)).await;
    }
    let simulation = simulation(form, asked, &policies);
    let simulation = simulation.map_err(|wrong| Problem::of(Refusal::bad_request(wrong)))?;
    let body = guest.json_body(&simulation);
    guest.ask(SCOPE, |caller| v1::simulate::simulate(caller, body)).await
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

/// A line, and what is wrong in it.
type LineError = (usize, String);

/// The lines of a draft with these errors; none without errors.
fn lines(source: String, errors: &[LineError]) -> Vec<DraftLine> {
    if errors.is_empty() {
        return Vec::new();
    }
    let text = Json(Value::String(source)).text("");
    let lines = (1..).zip(text.split('\n')).map(|(number, text)| {
        let errors = errors.iter().filter(|error| error.0 == number);
        let errors = errors.map(|error| error.1.clone()).collect();
        DraftLine { number, text: text.to_owned(), errors }
    });
    lines.collect()
}

fn checked_errors(check: &Json) -> Vec<LineError> {
    let error = |it: &Json| {
        let message = format!("column {}: {}", it.text("/column"), it.text("/message"));
        (it.text("/line").parse().unwrap_or(1), message)
    };
    check.items("/errors").iter().map(error).collect()
}

/// The errors in a refused simulation.
fn refused_errors(problem: &Problem) -> Vec<LineError> {
    let error = |it: &Json| {
        let message = it.text("/message");
        let (line, rest) = message.strip_prefix("line ")?.split_once(',')?;
        Some((line.parse().ok()?, rest.trim().to_owned()))
    };
    problem.details.items("/violations").iter().filter_map(error).collect()
}

/// A draft as a file of policies.
fn send_file(source: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"draft.cedar\""),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, source).into_response()
}

fn group_changes(report: &Json) -> ChangeGroups {
    let mut groups = ChangeGroups::new();
    for change in report.items("/changes") {
        let key = (change.text("/tool"), change.text("/principal/id"));
        groups.entry(key).or_default().push(change);
    }
    groups
}

async fn page(guest: &Guest, form: &Form, answer: DraftAnswer) -> PageResult {
    let listed = guest.list(SCOPE, &Filters::of("limit", "200"), v1::policies::list).await?;
    let DraftAnswer { check, report, problem } = answer;
    let mut errors = check.as_ref().map(checked_errors).unwrap_or_default();
    errors.extend(problem.iter().flat_map(refused_errors));
    let page = WorkbenchPage {
        frame: guest.frame("Policy workbench", PATH),
        set: listed.data.at("/policy_set"),
        policies: listed.items(),
        draft: FormState::refused(form, problem),
        lines: lines(source_of(form), &errors),
        groups: report.as_ref().map(group_changes).unwrap_or_default(),
        report,
        check,
        may_ask_as: guest.may(Scope::Admin),
    };
    Ok(render(StatusCode::OK, &page))
}
