//! Answers in the words of JSON-RPC and MCP: the other writer of what REST writes as an envelope.

mod called;

use axum::{body::Body, http::StatusCode};
use bytes::Bytes;
use portcullis_app::GovernanceView;
use portcullis_core::{
    audit::OutcomeStatus,
    id::RequestId as HttpRequestId,
    json::{JsonValue, Node},
    mcp::{Era, ProtocolError, RequestId, code, refused, tasks::Disposition, uris},
    refusal::{Refusal, UpstreamReason},
};
use serde::Serialize;
use serde_json::{Map, Value};

use self::called::{CallResultBody, OwnMeta, TaskEnd};
use super::{common, parts::Parts, question};
use crate::exchange::{
    Content, Failure, Outcome,
    message::{List, McpMessage, Reply},
};

impl From<ProtocolError> for Outcome {
    fn from(error: ProtocolError) -> Self {
        Self::message(Reply::Error(error))
    }
}

/// The result as an answer, with the members that each of this era has.
pub(super) fn result(result: Value, era: Era) -> Outcome {
    Outcome::message(Reply::Result(text_of(result, era)))
}

/// The text of a result, with the members that each of this era has.
pub(super) fn text_of(mut result: Value, era: Era) -> String {
    if let Value::Object(members) = &mut result {
        for (name, value) in common(era) {
            match (members.get_mut(&name), value) {
                (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
                (_, value) => {
                    members.insert(name, value);
                }
            }
        }
    }
    result.to_string()
}

/// Form of an answer.
enum ReplyForm<'a> {
    /// A result that was prepared as text.
    Text(&'a str),
    List(&'a List),
    /// The result of a tool, as far as it may leave.
    Called(CallResultBody<'a>),
    /// A task with the result of its call.
    Task(TaskEnd<'a>),
    Nothing,
    Error(RpcError<'a>),
}

/// A refusal with the members that it has over REST.
#[derive(Serialize)]
struct RpcErrorBody {
    code: String,
    message: String,
    details: Map<String, Value>,
}

#[derive(Serialize)]
struct RpcError<'a> {
    code: i64,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<ErrorData<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ErrorData<'a> {
    Protocol(&'a Value),
    Refused {
        #[serde(rename = "requiredCapabilities", skip_serializing_if = "Option::is_none")]
        required: Option<Value>,
        /// The resource that is not found.
        #[serde(skip_serializing_if = "Option::is_none")]
        uri: Option<&'a str>,
        /// Milliseconds until the next try, of a refusal by limits.
        #[serde(rename = "retryAfterMs", skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<i64>,
        #[serde(rename = "dev.portcullis/error")]
        error: Box<RpcErrorBody>,
        #[serde(rename = "dev.portcullis/governance", skip_serializing_if = "Option::is_none")]
        governance: Option<&'a GovernanceView>,
        #[serde(rename = "dev.portcullis/request_id")]
        request_id: HttpRequestId,
    },
}

#[derive(Serialize)]
struct Envelope<'a, R: Serialize> {
    jsonrpc: &'static str,
    /// `null` where no request could be read (JSON-RPC 2.0 §5).
    id: Option<&'a RequestId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RpcError<'a>>,
}

/// The body of a response. A list is not copied.
pub(crate) fn response_body(
    outcome: &Outcome,
    request: Option<&McpMessage>,
    request_id: HttpRequestId,
) -> Body {
    match &outcome.content {
        Content::Message(Reply::List(list)) => {
            Body::new(Parts::from(in_parts(request.map(|request| &request.id), list)))
        }
        Content::Message(Reply::Result(_) | Reply::Error(_) | Reply::Accepted)
        | Content::Data(_)
        | Content::Created(_)
        | Content::Begun(_)
        | Content::Page(_)
        | Content::Result(_)
        | Content::Failed(_) => Body::from(body(outcome, request, request_id)),
    }
}

/// The text of an answer.
pub(crate) fn body(
    outcome: &Outcome,
    request: Option<&McpMessage>,
    request_id: HttpRequestId,
) -> Vec<u8> {
    let of_error = match &outcome.content {
        Content::Message(Reply::Error(error)) => error.id.as_ref(),
        Content::Message(Reply::Result(_) | Reply::List(_) | Reply::Accepted)
        | Content::Data(_)
        | Content::Created(_)
        | Content::Begun(_)
        | Content::Page(_)
        | Content::Result(_)
        | Content::Failed(_) => None,
    };
    let id = of_error.or(request.map(|request| &request.id));
    let envelope = |error| Envelope::<()> { jsonrpc: "2.0", id, result: None, error: Some(error) };
    let written = match write_reply(outcome, request, request_id) {
        ReplyForm::Nothing => return Vec::new(),
        ReplyForm::Text(text) => return around(id, text),
        ReplyForm::List(list) => return in_parts(id, list).concat(),
        ReplyForm::Called(called) => enveloped(id, |text| called.write(text)),
        ReplyForm::Task(task) => enveloped(id, |text| task.write(text)),
        ReplyForm::Error(error) => serde_json::to_vec(&envelope(error)),
    };
    // Strings, numbers and maps with string keys always serialise.
    written.unwrap_or_default()
}

/// A message around a result that is written there.
fn enveloped(
    id: Option<&RequestId>,
    write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
) -> serde_json::Result<Vec<u8>> {
    // Room for a small answer, so that writing it moves nothing.
    let mut text = Vec::with_capacity(2048);
    text.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    if let Some(id) = id {
        text.extend_from_slice(b",\"id\":");
        serde_json::to_writer(&mut text, id)?;
    }
    text.extend_from_slice(b",\"result\":");
    write(&mut text)?;
    text.push(b'}');
    Ok(text)
}

/// A message around a result that is text already.
fn around(id: Option<&RequestId>, result: &str) -> Vec<u8> {
    let id = id.and_then(|id| serde_json::to_string(id).ok()).unwrap_or_default();
    let mut body = Vec::with_capacity(result.len() + id.len() + 64);
    for part in ["{\"jsonrpc\":\"2.0\",\"id\":", &id, ",\"result\":", result, "}"] {
        body.extend_from_slice(part.as_bytes());
    }
    body
}

/// A message around a list.
fn in_parts(id: Option<&RequestId>, list: &List) -> [Bytes; 3] {
    let id = id.and_then(|id| serde_json::to_string(id).ok()).unwrap_or_default();
    let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"{}\":[", list.member);
    let tail = format!("]{}}}", list.rest);
    [Bytes::from(head), list.items.clone(), Bytes::from(tail)]
}

fn write_reply<'a>(
    outcome: &'a Outcome,
    request: Option<&'a McpMessage>,
    request_id: HttpRequestId,
) -> ReplyForm<'a> {
    let written = plainly(outcome, request, request_id);
    let Some((request, task)) = request.and_then(|it| Some((it, it.ended_task()?))) else {
        return written;
    };
    match written {
        ReplyForm::Called(mut called) => {
            if !request.tells_of_provided_task() {
                called.own.disposition = disposition(outcome);
            }
            ReplyForm::Task(TaskEnd { task, result: Some(called), error: None })
        }
        ReplyForm::Error(mut error) => {
            let Content::Failed(failure) = &outcome.content else { return ReplyForm::Error(error) };
            let is_given_up = failure_of_task(failure) == Some(UpstreamReason::Cancelled);
            // The words of the server, as far as they may leave.
            if let Some(Value::String(said)) = failure.details(None).remove("upstream_message") {
                error.message = said;
            }
            error.code = code::INTERNAL_ERROR;
            let error = Some(error).filter(|_| !is_given_up);
            ReplyForm::Task(TaskEnd { task, result: None, error })
        }
        ReplyForm::Text(_) | ReplyForm::List(_) | ReplyForm::Task(_) | ReplyForm::Nothing => {
            written
        }
    }
}

/// The end of a task of a provider without a result, if the failure is one: an error of the provider, or that the task was given up.
fn failure_of_task(failure: &Failure) -> Option<UpstreamReason> {
    let details = failure.details(None);
    let reason = details.get("reason").filter(|_| failure.code() == "upstream_error")?;
    [UpstreamReason::JsonrpcError, UpstreamReason::Cancelled]
        .into_iter()
        .find(|it| reason.as_str() == Some(it.as_str()))
}

/// End of the call of a task.
fn disposition(outcome: &Outcome) -> Option<Disposition> {
    match &outcome.content {
        Content::Result(_) => {
            let is_error = outcome.recorded == Some(OutcomeStatus::ToolError);
            Some(Disposition::of_result(is_error))
        }
        Content::Failed(failure) => {
            let executed = outcome.told_executed(true)?;
            Some(Disposition::of_failure(failure.code(), executed))
        }
        Content::Data(_)
        | Content::Created(_)
        | Content::Begun(_)
        | Content::Page(_)
        | Content::Message(_) => None,
    }
}

fn plainly<'a>(
    outcome: &'a Outcome,
    request: Option<&'a McpMessage>,
    request_id: HttpRequestId,
) -> ReplyForm<'a> {
    match (&outcome.content, request) {
        (Content::Message(Reply::Accepted), _) => ReplyForm::Nothing,
        (Content::Message(Reply::Result(text)), _) => ReplyForm::Text(text),
        (Content::Message(Reply::List(list)), _) => ReplyForm::List(list),
        (Content::Message(Reply::Error(error)), _) => ReplyForm::Error(RpcError {
            code: error.code,
            message: error.message.clone(),
            data: error.data.as_ref().map(ErrorData::Protocol),
        }),
        (Content::Result(result), Some(request)) => {
            let governance = outcome.governance.as_ref();
            let notes = &outcome.notes;
            let own = OwnMeta { governance, notes, ..OwnMeta::of(request, request_id) };
            let result = result.root();
            let asks = result.get("interaction");
            let asks = asks.filter(|_| outcome.recorded == Some(OutcomeStatus::InputRequired));
            let task = result.get("task");
            let task = task.filter(|_| outcome.recorded == Some(OutcomeStatus::Task));
            let task = task.map(Node::to_value);
            let members = Some(result).filter(|_| asks.is_none() && task.is_none());
            let carried = request.carried.get();
            let asks = asks.map(|asks| question::carrying(asks, carried.map(String::as_str)));
            let sentence = None;
            let renamed =
                carried.zip(members).and_then(|(slug, members)| uris::renamed(members, slug));
            let kept_for = request.read.get().filter(|_| request.era == Era::Modern);
            let kept_for = kept_for.map(|read| read.ttl_ms).filter(|_| asks.is_none());
            ReplyForm::Called(CallResultBody {
                era: request.era,
                members,
                renamed,
                kept_for,
                asks,
                task,
                sentence,
                own,
            })
        }
        (Content::Failed(failure), _) => failed(outcome, failure, request, request_id),
        // Results of REST never come here.
        (
            Content::Data(_)
            | Content::Created(_)
            | Content::Begun(_)
            | Content::Page(_)
            | Content::Result(_),
            _,
        ) => {
            let bug = Failure::Refused(Refusal::Internal);
            failed(outcome, &bug, None, request_id)
        }
    }
}

/// A refusal or failure: of a call as a result that a model can read, else as an error.
fn failed<'a>(
    outcome: &'a Outcome,
    failure: &Failure,
    request: Option<&'a McpMessage>,
    request_id: HttpRequestId,
) -> ReplyForm<'a> {
    let governance = outcome.governance.as_ref();
    let executed = outcome.told_executed(request.is_some_and(McpMessage::is_use));
    let details = failure.details(executed);
    let code = failure.code().to_owned();
    let message = failure.message();
    let error = RpcErrorBody { code, message: message.clone(), details };
    if let (Some(request), Some(executed)) = (request, executed)
        && is_result(failure, request)
    {
        let task = request.begun_task();
        let asks =
            question::approval(failure, request.opens_urls.get().is_some() && task.is_none());
        let told = match failure {
            Failure::Refused(refusal) => refused::sentence(refusal, executed),
            Failure::Replayed { error, .. } => {
                let places = error.details.get("dlp").map(refused::places).unwrap_or_default();
                refused::repeated(&error.code, &format!("{message}{places}"), executed)
            }
        };
        let sentence = (asks.is_none() && task.is_none()).then_some(told);
        let own = OwnMeta { governance, error: Some(error), ..OwnMeta::of(request, request_id) };
        let immediate = task.and_then(|task| task.get("statusMessage"));
        let task = task.cloned().map(Value::Object);
        let own = OwnMeta { immediate, ..own };
        let era = request.era;
        return ReplyForm::Called(CallResultBody {
            era,
            members: None,
            renamed: None,
            kept_for: None,
            asks,
            task,
            sentence,
            own,
        });
    }
    let code = match failure {
        Failure::Refused(refusal) => code_of(refusal, request),
        Failure::Replayed { http_status, .. } => i64::from(*http_status),
    };
    let required = request.and_then(|request| required_capabilities(failure, request));
    let code = if required.is_some() { code::MISSING_CAPABILITY } else { code };
    let error = Box::new(error);
    let is_missing = matches!(failure, Failure::Refused(Refusal::NotFound { .. }));
    let read = request.and_then(|request| request.read.get()).filter(|_| is_missing);
    let uri = read.map(|read| read.uri.as_str());
    // What is hidden and what its server does not have are answered alike.
    let governance = governance.filter(|_| read.is_none());
    let retry_after_ms = match failure {
        Failure::Refused(Refusal::RateLimited { retry_after, .. }) => {
            Some(retry_after.saturating_mul(1_000))
        }
        Failure::Refused(_) | Failure::Replayed { .. } => None,
    };
    let data = ErrorData::Refused { required, uri, retry_after_ms, error, governance, request_id };
    let data = Some(data);
    ReplyForm::Error(RpcError { code, message, data })
}

fn is_result(failure: &Failure, request: &McpMessage) -> bool {
    if request.ended_task().is_some() {
        return !request.tells_of_provided_task() || failure_of_task(failure).is_none();
    }
    request.is_call()
        && refused::is_for_models(failure.code())
        && required_capabilities(failure, request).is_none()
}

/// Capabilities that a client of the present era has to declare to be asked, if that is the failure.
fn required_capabilities(failure: &Failure, request: &McpMessage) -> Option<Value> {
    if request.era != Era::Modern {
        return None;
    }
    match failure {
        Failure::Refused(Refusal::Unanswerable { required, .. }) => Some(required.declared()),
        Failure::Refused(_) => None,
        Failure::Replayed { error, .. } => error.details.get("required_capabilities").cloned(),
    }
}

/// The code of an error. Where neither JSON-RPC nor MCP has one, the HTTP status, which lies outside
/// of what both reserve.
fn code_of(refusal: &Refusal, request: Option<&McpMessage>) -> i64 {
    match refusal.http_status() {
        404 if request.is_some_and(is_legacy_read) => code::RESOURCE_NOT_FOUND,
        404 if request.is_some_and(McpMessage::is_use) => code::INVALID_PARAMS,
        400 => code::INVALID_PARAMS,
        405 | 413 | 415 => code::INVALID_REQUEST,
        500 => code::INTERNAL_ERROR,
        status => i64::from(status),
    }
}

fn is_legacy_read(request: &McpMessage) -> bool {
    request.era != Era::Modern && request.read.get().is_some()
}

/// The status of an answer, which is that of REST unless JSON-RPC tells it.
pub(crate) fn status(outcome: &Outcome, request: Option<&McpMessage>) -> StatusCode {
    let is_use = request.is_some_and(McpMessage::is_use);
    // Clients take another status of what is no result, such as 403, for a demand to log in again.
    let told = |failure: &Failure| {
        let is_read = is_use && refused::is_for_models(failure.code());
        request.is_some_and(|it| is_result(failure, it) || (is_read && !it.is_call()))
    };
    let unanswerable = |failure: &Failure| {
        request.is_some_and(|request| required_capabilities(failure, request).is_some())
    };
    match &outcome.content {
        Content::Message(Reply::Error(error)) => {
            StatusCode::from_u16(error.http_status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        }
        Content::Message(Reply::Accepted) => StatusCode::ACCEPTED,
        Content::Message(Reply::Result(_) | Reply::List(_)) | Content::Result(_) => StatusCode::OK,
        Content::Failed(failure) => {
            let not_found = matches!(failure, Failure::Refused(Refusal::NotFound { .. }));
            let ends_task = request.is_some_and(|it| it.ended_task().is_some());
            if unanswerable(failure) {
                StatusCode::BAD_REQUEST
            } else if ends_task || (is_use && not_found) || told(failure) {
                StatusCode::OK
            } else {
                failure.http_status()
            }
        }
        Content::Data(_) | Content::Created(_) | Content::Begun(_) | Content::Page(_) => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}
