//! DLP: a text or a JSON value, its findings, and the value with masks.

use askama::Template;
use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use portcullis_core::{
    json::{Bounds, parse},
    principal::Scope,
    refusal::Refusal,
};
use serde_json::{Value, json};

use super::{
    api::Problem,
    json::Json,
    render,
    signed_in::{Frame, Guest},
};
use crate::{exchange::Outcome, pages::form::Form, v1};

const PATH: &str = "/console/dlp";
const SCOPE: Option<Scope> = Some(Scope::PoliciesRead);

#[derive(Template)]
#[template(path = "dlp.html")]
struct DlpPage {
    frame: Frame,
    form: ScanForm,
    problem: Option<Problem>,
    report: Option<Json>,
    /// The value with masks, as a reader sees it.
    masked: String,
}

/// A value to scan, as the page was sent.
#[derive(Debug, Default)]
struct ScanForm {
    text: String,
    is_json: bool,
    is_input: bool,
}

/// An empty form.
#[utoipa::path(
    get, path = "/console/dlp", tag = "console", operation_id = "console_dlp",
    responses(
        (status = 200, description = "a page: a text to scan", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 403, description = "a page: the person lacks `policies:read`", content_type = "text/html"),
    )
)]
pub(crate) async fn show(guest: Guest) -> Response {
    match guest.ctx.require(Scope::PoliciesRead) {
        Ok(()) => page(&guest, ScanForm::default(), None),
        Err(refusal) => fail(&guest, refusal.into()),
    }
}

/// Scans a text or a JSON value by the settings in force. It is not kept, recorded or logged.
#[utoipa::path(
    post, path = "/console/dlp", tag = "console", operation_id = "console_scan",
    request_body(content = Object, content_type = "application/x-www-form-urlencoded", description = "`form_token`, `text`, `kind` (`text` or `json`), `direction` (`output` or `input`)"),
    responses(
        (status = 200, description = "a page: the findings and the masked value, or why there are none", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 400, description = "no page of this session sent the form", body = crate::exchange::ErrorAnswer),
        (status = 403, description = "a page: the person lacks `policies:read`", content_type = "text/html"),
        (status = 413, description = "a page: the form is over 1 MiB", content_type = "text/html"),
    )
)]
pub(crate) async fn scan(guest: Guest, form: Result<Form, Outcome>) -> Response {
    let form = match form {
        Ok(form) => form,
        Err(unread) => return fail(&guest, unread),
    };
    if let Err(refusal) = guest.ctx.require(Scope::PoliciesRead) {
        return fail(&guest, refusal.into());
    }
    if let Err(foreign) = guest.check(&form) {
        return Outcome::from(foreign).into_response();
    }
    let sent = ScanForm {
        text: form.field("text").unwrap_or_default().replace("\r\n", "\n"),
        is_json: form.field("kind") == Some("json"),
        is_input: form.field("direction") == Some("input"),
    };
    let body = match sent.body() {
        Ok(body) => guest.json_body(&body),
        Err(refusal) => {
            let problem = Problem::or_reply(refusal.into()).map(|reply| reply.data);
            return page(&guest, sent, Some(problem));
        }
    };
    let scanned = guest.ask(SCOPE, |caller| v1::dlp::scan(caller, body)).await;
    let scanned = scanned.map(|reply| reply.data);
    page(&guest, sent, Some(scanned))
}

impl ScanForm {
    /// The body with which a program would ask the same.
    fn body(&self) -> Result<Value, Refusal> {
        let direction = if self.is_input { "input" } else { "output" };
        if self.text.is_empty() {
            return Err(Refusal::bad_request("There is nothing to scan: paste a text."));
        }
        if !self.is_json {
            return Ok(json!({ "text": self.text, "direction": direction }));
        }
        let value = parse(self.text.as_bytes(), Bounds::REQUEST)
            .map_err(|error| Refusal::bad_request(format!("The text is no JSON: {error}.")))?;
        Ok(json!({ "value": value, "direction": direction }))
    }
}

/// The page of a request that was refused before anything was scanned.
fn fail(guest: &Guest, refused: Outcome) -> Response {
    match Problem::or_reply(refused) {
        Err(problem) => problem.page(guest),
        Ok(_) => Outcome::from(Refusal::Internal).into_response(),
    }
}

fn page(guest: &Guest, form: ScanForm, scanned: Option<Result<Json, Problem>>) -> Response {
    let (report, problem) = match scanned {
        None => (None, None),
        Some(Ok(report)) => (Some(report), None),
        Some(Err(problem)) => (None, Some(problem)),
    };
    let masked = report.as_ref().map(|report| match report.0.get("masked") {
        Some(Value::String(_)) => report.text("/masked"),
        Some(_) | None => report.pretty("/masked"),
    });
    let frame = guest.frame("DLP", PATH);
    let masked = masked.unwrap_or_default();
    render(StatusCode::OK, &DlpPage { frame, form, problem, report, masked })
}
