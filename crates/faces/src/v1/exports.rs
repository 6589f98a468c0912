//! `/v1/audit/export` and `/v1/audit/exports`: a part of the log as a file.

use axum::{http::HeaderMap, response::Response};
use portcullis_app::{BegunExport, Claim, ExportAsk, ExportView};
use portcullis_core::{clock::Timestamp, json, refusal::Refusal};
use portcullis_store::{ExportStatus, filters::Given};
use serde_json::{Map, Value};

use super::{Segment, download, segment};
use crate::exchange::{
    ErrorAnswer, HandlerResult, NoQuery, One, Outcome, RequestBody, body, idempotency_key,
};

/// The longest text of a member.
const LONGEST: usize = 200;
const MEMBERS: [&str; 6] = ["from", "to", "format", "filters", "include", "since"];

/// Begins an export of the org's audit log. Answers 200 if it is ready within two seconds.
#[utoipa::path(
    post, path = "/v1/audit/export", tag = "audit", operation_id = "create_export",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 255 visible ASCII characters, bare or quoted: for 24 hours the same request with the same key names the same export", pattern = "^(\"[!#-~]{1,253}\"|[!#-~][!-~]{0,254})$"),
    ),
    request_body = Option<ExportAsk>,
    responses(
        (status = 200, description = "the export is ready", body = One<ExportView>),
        (status = 202, description = "the export is being written; poll it", body = One<ExportView>),
        (status = 400, description = "not understood, the range is too long, or the idempotency key stands for another request", body = ErrorAnswer),
        (status = 409, description = "the request of this idempotency key is under way", body = ErrorAnswer),
        (status = 429, description = "a limit is exceeded, or three exports are under way", body = ErrorAnswer),
    )
)]
pub(crate) async fn create(NoQuery(ctx, gateway): NoQuery, request: RequestBody) -> HandlerResult {
    let key = idempotency_key(&request.headers)?;
    let members = request.optional_object().await?;
    let claim = key.map(|key| {
        Claim::of_export(ctx.caller(), &key, &json::canonical(&Value::Object(members.clone())))
    });
    let request = parse_export(members)?
        .read(gateway.app.base.now())
        .map_err(|wrong| body::wrong_member(&wrong.name, &wrong.problem))?;
    let BegunExport { export, replayed } =
        gateway.app.audit.begin_export(&ctx, request, claim).await?;
    let answer = if export.status == ExportStatus::Ready {
        Outcome::data(&export)
    } else {
        Outcome::begun(&export)
    };
    Ok(if replayed { answer.again() } else { answer })
}

fn parse_export(mut members: Map<String, Value>) -> Result<ExportAsk, Refusal> {
    body::only(&members, &MEMBERS)?;
    Ok(ExportAsk {
        from: time(&mut members, "from")?,
        to: time(&mut members, "to")?,
        format: body::text(&mut members, "format", LONGEST)?,
        filters: filters(members.remove("filters"))?,
        include: match members.remove("include") {
            None | Some(Value::Null) => Vec::new(),
            Some(value) => texts("include", value)?,
        },
        since: match members.remove("since") {
            None | Some(Value::Null) => None,
            Some(value) => Some(size(&value)?),
        },
    })
}

fn size(value: &Value) -> Result<u64, Refusal> {
    let problem = "has to be the size of a log: a whole number, not below 0";
    value.as_u64().ok_or_else(|| body::wrong_member("since", problem))
}

fn time(members: &mut Map<String, Value>, name: &str) -> Result<Option<Timestamp>, Refusal> {
    let Some(text) = body::text(members, name, LONGEST)? else { return Ok(None) };
    let parsed = Timestamp::parse_rfc3339(&text);
    let problem = "has to be an RFC 3339 time such as 2026-11-20T11:02:15Z";
    parsed.map(Some).ok_or_else(|| body::wrong_member(name, problem))
}

/// The filters by name; a single value may stand without its array.
fn filters(given: Option<Value>) -> Result<Given, Refusal> {
    let given = match given {
        None | Some(Value::Null) => return Ok(Given::new()),
        Some(Value::Object(given)) => given,
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            return Err(body::wrong_member("filters", "has to be an object"));
        }
    };
    let read = |(name, value): (String, Value)| {
        let values = texts(&format!("filters/{name}"), value)?;
        Ok((name, values))
    };
    given.into_iter().map(read).collect()
}

fn texts(name: &str, value: Value) -> Result<Vec<String>, Refusal> {
    let name: String = name.chars().take(LONGEST).collect();
    let wrong = || body::wrong_member(&name, "has to be an array of texts");
    let text = |value: Value| match value {
        Value::String(text) => Ok(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(wrong())
        }
    };
    match value {
        Value::Array(values) => values.into_iter().map(text).collect(),
        single @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_)) => Ok(vec![text(single)?]),
    }
}

/// An export as it stands, with its progress while it is written.
#[utoipa::path(
    get, path = "/v1/audit/exports/{id}", tag = "audit", operation_id = "get_export",
    params(("id" = String, Path, description = "`exp_` and a ULID")),
    responses(
        (status = 200, description = "the export; `mismatched`, there only when it is not 0, counts events that are not what the log holds", body = One<ExportView>),
        (status = 404, description = "no such export in this org, or not any more", body = ErrorAnswer),
    )
)]
pub(crate) async fn get(NoQuery(ctx, gateway): NoQuery, path: Segment) -> HandlerResult {
    Ok(Outcome::data(&gateway.app.audit.export(&ctx, &segment(path)).await?))
}

/// The file of an export: whole, a part of it (`Range`), or compressed (`Accept-Encoding: gzip`).
#[utoipa::path(
    get, path = "/v1/audit/exports/{id}/file", tag = "audit", operation_id = "get_export_file",
    params(("id" = String, Path, description = "`exp_` and a ULID")),
    responses(
        (status = 200, description = "the file", content((String = "application/x-ndjson"), (String = "text/csv"))),
        (status = 206, description = "the part asked for with `Range`", content((String = "application/x-ndjson"), (String = "text/csv"))),
        (status = 404, description = "no such file in this org, not yet, or not any more", body = ErrorAnswer),
        (status = 416, description = "the part is not in the file", body = ErrorAnswer),
        (status = 503, description = "the read cannot be recorded, or the file is on another node", body = ErrorAnswer),
    )
)]
pub(crate) async fn file(
    NoQuery(ctx, gateway): NoQuery,
    path: Segment,
    headers: HeaderMap,
) -> Result<Response, Outcome> {
    let file = gateway.app.audit.export_file(&ctx, &segment(path)).await?;
    Ok(download::answer(file, &headers, &gateway.app, ctx.caller().org_id)?)
}
