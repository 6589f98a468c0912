//! DLP: a text or a JSON value, its findings, and the value with masks.

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
    PageResult,
    api::Problem,
    form::{Choices, FormState},
    json::Json,
    render,
    signed_in::Guest,
};
use crate::{exchange::Outcome, pages::form::Form, v1};

const PATH: &str = "/console/dlp";
const KINDS: Choices = &[("text", "a text"), ("json", "JSON, member by member")];
const DIRECTIONS: Choices = &[("output", "result of a tool"), ("input", "arguments of a call")];

page! { DlpPage = "dlp.html";
    form: FormState, report: Option<Json>,
    /// The value with masks, as a reader sees it.
    masked: String,
}

/// An empty form.
pub(crate) async fn show(guest: Guest) -> PageResult {
    guest.require(Scope::PoliciesRead)?;
    Ok(page(&guest, FormState::default(), None))
}

/// Scans a text or a JSON value by the settings in force. It is not kept, recorded or logged.
pub(crate) async fn scan(guest: Guest, form: Result<Form, Outcome>) -> PageResult {
    let form = form.map_err(|unread| Problem::of(unread).page(&guest))?;
    guest.require(Scope::PoliciesRead)?;
    guest.check(&form).map_err(|foreign| Outcome::from(foreign).into_response())?;
    let scanned = match scan_request(&form) {
        Ok(body) => {
            let body = guest.json_body(&body);
            guest.ask(Some(Scope::PoliciesRead), |caller| v1::dlp::scan(caller, body)).await
        }
        Err(refusal) => Err(Problem::of(refusal)),
    };
    Ok(match scanned {
        Ok(reply) => page(&guest, FormState::of(&form), Some(reply.data)),
        Err(problem) => page(&guest, FormState::refused(&form, Some(problem)), None),
    })
}

/// The body with which a program would ask the same.
fn scan_request(form: &Form) -> Result<Value, Refusal> {
    let direction = if form.field("direction") == Some("input") { "input" } else { "output" };
    let text = form.field("text").unwrap_or_default().replace("\r\n", "\n");
    if text.is_empty() {
        return Err(Refusal::bad_request("There is nothing to scan: paste a text."));
    }
    if form.field("kind") != Some("json") {
        return Ok(json!({ "text": text, "direction": direction }));
    }
    let value = parse(text.as_bytes(), Bounds::REQUEST)
        .map_err(|error| Refusal::bad_request(format!("The text is no JSON: {error}.")))?;
    Ok(json!({ "value": value, "direction": direction }))
}

fn page(guest: &Guest, form: FormState, report: Option<Json>) -> Response {
    let masked = report.as_ref().map(|report| match report.0.get("masked") {
        Some(Value::String(_)) => report.text("/masked"),
        Some(_) | None => report.pretty("/masked"),
    });
    let frame = guest.frame("DLP", PATH);
    let masked = masked.unwrap_or_default();
    render(StatusCode::OK, &DlpPage { frame, form, report, masked })
}
