//! `POST /v1/dlp/scan`: findings of DLP in a value that is part of no call.

use portcullis_app::SpecimenReport;
use portcullis_core::{call::Specimen, dlp::Direction, json::Document, refusal::Refusal};
use serde_json::Value;
use utoipa::ToSchema;

use crate::exchange::{ErrorAnswer, HandlerResult, NoQuery, One, Outcome, RequestBody, body};

/// Tells the findings of DLP in a text or a JSON value, and masks it, by the settings in force.
///
/// Policies are not asked, and neither is a tool. The value is not kept, recorded or logged.
#[utoipa::path(
    post, path = "/v1/dlp/scan", tag = "policies", operation_id = "scan_value",
    request_body = ScanRequest,
    responses(
        (status = 200, description = "the findings, also if they would stop a call", body = One<SpecimenReport>),
        (status = 400, description = "not understood", body = ErrorAnswer),
    )
)]
pub(crate) async fn scan(NoQuery(ctx, gateway): NoQuery, request: RequestBody) -> HandlerResult {
    let bytes = request.read().await?;
    let org = ctx.caller().org_id;
    let length = bytes.len();
    let specimen = gateway.app.base.worked(org, length, move || read(&bytes)).await??;
    let report = gateway.app.screening.inspect(org, specimen).await?;
    Ok(Outcome::data(&report).with_size(length))
}

/// The body of a scan: `text`, or `value`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the body is read as it came")]
pub(crate) struct ScanRequest {
    /// A text.
    text: Option<String>,
    /// A JSON value, scanned as arguments or results are.
    #[schema(value_type = Value)]
    value: Option<Value>,
    /// `output` (default) for the actions on results, `input` for those on arguments.
    #[schema(pattern = "^(input|output)$")]
    direction: Option<String>,
}

fn read(bytes: &[u8]) -> Result<Specimen, Refusal> {
    let body = body::document(bytes)?;
    let names = body.root().members().into_iter().flatten().map(|(name, _)| name);
    body::only_named(names, &["text", "value", "direction"])?;
    let direction = body.member("direction");
    let direction = match direction.as_ref().map(|it| it.root().raw()) {
        None | Some("null" | "\"output\"") => Direction::Output,
        Some("\"input\"") => Direction::Input,
        Some(_) => return Err(body::wrong_member("direction", "has to be `input` or `output`")),
    };
    Ok(Specimen::new(value(&body)?, direction))
}

/// The one value to scan.
fn value(body: &Document) -> Result<Document, Refusal> {
    match (body.member("text"), body.member("value")) {
        (Some(text), None) if text.root().is_text() => Ok(text),
        (Some(_), None) => Err(body::wrong_member("text", "has to be a text")),
        (None, Some(value)) => Ok(value),
        (None, None) | (Some(_), Some(_)) => {
            Err(Refusal::bad_request("Give either `text` or `value`."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_a_text_or_a_value_and_a_direction() {
        for (body, direction) in [
            (r#"{"text": "x"}"#, Direction::Output),
            (r#"{"value": null, "direction": "output"}"#, Direction::Output),
            (r#"{"value": [1], "direction": "input"}"#, Direction::Input),
            (r#"{"text": "", "direction": null}"#, Direction::Output),
        ] {
            assert_eq!(read(body.as_bytes()).map(|it| it.direction()), Ok(direction), "{body}");
        }
        for body in [
            "{}",
            "[]",
            r#"{"text": "x", "value": 1}"#,
            r#"{"text": {"x": 1}}"#,
            r#"{"text": "x", "direction": "both"}"#,
            r#"{"text": "x", "direction": 1}"#,
            r#"{"text": "x", "mask": true}"#,
            r#"{"text": "x", "text": "y"}"#,
            r#"{"value": [1e400]}"#,
        ] {
            assert!(matches!(read(body.as_bytes()), Err(Refusal::InvalidRequest { .. })), "{body}");
        }
    }
}
