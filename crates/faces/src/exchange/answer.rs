//! REST: the envelopes in which results, pages and errors are written, which are also their
//! schemas.

#![expect(unused_qualifications, reason = "utoipa writes paths of type parameters out in full")]

use portcullis_app::GovernanceView;
use portcullis_core::{
    audit::OutcomeStatus,
    clock::Timestamp,
    id::RequestId,
    json::Document,
    refusal::{CODES, ErrorDetails, Executed},
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, Type, schema::SchemaType},
};

use super::outcome::{Content, Failure, Outcome, Page};

/// One resource.
#[derive(Serialize, ToSchema)]
pub(crate) struct One<T> {
    data: T,
    meta: Meta,
}

/// A page of resources.
#[derive(Serialize, ToSchema)]
pub(crate) struct Paged<T> {
    data: T,
    meta: PageMeta,
}

/// The resources of a page.
#[derive(Serialize, ToSchema)]
pub(crate) struct Items<T> {
    /// In the order of the list.
    pub(crate) items: Vec<T>,
}

/// The answer of an invocation.
#[derive(Serialize, ToSchema)]
pub(crate) struct InvokeAnswer<'a> {
    /// The answer of the tool, as far as it may leave.
    #[schema(value_type = Object, required = true)]
    #[serde(skip_serializing_if = "is_written_first")]
    result: &'a Document,
    #[schema(value_type = GovernanceView)]
    governance: Option<&'a GovernanceView>,
    meta: CallMeta,
}

/// An error.
#[derive(Serialize, ToSchema)]
pub(crate) struct ErrorAnswer<'a> {
    error: ErrorBody,
    /// Present exactly when a decision was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    governance: Option<&'a GovernanceView>,
    meta: CallMeta,
}

/// Identity of an answer.
#[derive(Serialize, ToSchema)]
pub(crate) struct Meta {
    request_id: RequestId,
    timestamp: Timestamp,
}

/// Identity and place of a page.
#[derive(Serialize, ToSchema)]
pub(crate) struct PageMeta {
    request_id: RequestId,
    timestamp: Timestamp,
    pagination: Pagination,
}

/// Identity of an answer, and the outcome of its call.
#[derive(Serialize, ToSchema)]
pub(crate) struct CallMeta {
    request_id: RequestId,
    timestamp: Timestamp,
    /// The recorded outcome; absent on errors of which no call was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<OutcomeStatus>,
    /// Sentences about arguments that look misspelt; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<String>>)]
    notes: Vec<String>,
}

/// Continuation of a list.
#[derive(Serialize, ToSchema)]
pub(crate) struct Pagination {
    /// The page size in force.
    limit: usize,
    /// Pass it as `cursor` for the next page; `null` at the end.
    next_cursor: Option<String>,
}

/// A refusal or failure.
#[derive(Serialize, ToSchema)]
struct ErrorBody {
    #[schema(value_type = ErrorCode)]
    code: String,
    /// One English sentence for people; never parse it.
    message: String,
    /// Always an object.
    #[schema(value_type = ErrorDetails)]
    details: Map<String, Value>,
}

/// Every `error.code`.
struct ErrorCode;

impl PartialSchema for ErrorCode {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(SchemaType::new(Type::String))
            .description(Some("Stable; codes can be added."))
            .enum_values(Some(CODES))
            .into()
    }
}

impl ToSchema for ErrorCode {}

/// The request that an answer belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnsweredRequest {
    pub(crate) request_id: RequestId,
    /// The request asks for a call of a tool.
    pub(crate) is_invocation: bool,
    pub(crate) now: Timestamp,
}

/// Writes the envelope of an outcome.
pub(crate) fn body(outcome: &Outcome, asked: AnsweredRequest) -> Vec<u8> {
    let AnsweredRequest { request_id, is_invocation, now: timestamp } = asked;
    let governance = outcome.governance.as_ref();
    let notes = outcome.notes.clone();
    let call = CallMeta { request_id, timestamp, outcome: outcome.recorded, notes };
    match &outcome.content {
        Content::Data(data) | Content::Created(data) | Content::Begun(data) => {
            to_bytes(&One { data, meta: Meta { request_id, timestamp } })
        }
        Content::Page(Page { data, limit, next_cursor }) => {
            let pagination = Pagination { limit: *limit, next_cursor: next_cursor.clone() };
            to_bytes(&Paged { data, meta: PageMeta { request_id, timestamp, pagination } })
        }
        // JSON-RPC is not spoken on routes of REST.
        Content::Message(_) => Vec::new(),
        Content::Result(result) => invoked(&InvokeAnswer { result, governance, meta: call }),
        Content::Failed(failure) => {
            let error = error_body(failure, outcome.told_executed(is_invocation));
            to_bytes(&ErrorAnswer { error, governance, meta: call })
        }
    }
}

/// The result of an invocation is written by [`invoked`].
const fn is_written_first(_: &Document) -> bool {
    true
}

/// The answer of an invocation, with the result as it came or was masked.
fn invoked(answer: &InvokeAnswer<'_>) -> Vec<u8> {
    let result = answer.result.root().raw();
    let mut body = Vec::with_capacity(result.len() + 512);
    body.extend_from_slice(b"{\"result\":");
    body.extend_from_slice(result.as_bytes());
    let rest = body.len();
    write(&mut body, answer);
    // The other members follow in the same object.
    if let Some(brace) = body.get_mut(rest) {
        *brace = b',';
    }
    body
}

fn to_bytes(envelope: &impl Serialize) -> Vec<u8> {
    // Large enough for a small answer, so that writing it moves nothing.
    let mut body = Vec::with_capacity(2048);
    write(&mut body, envelope);
    body
}

fn write(body: &mut Vec<u8>, envelope: &impl Serialize) {
    // Strings, numbers and maps with string keys always serialise, and memory takes all.
    if serde_json::to_writer(&mut *body, envelope).is_err() {
        body.clear();
    }
}

fn error_body(failure: &Failure, executed: Option<Executed>) -> ErrorBody {
    let details = failure.details(executed);
    ErrorBody { code: failure.code().to_owned(), message: failure.message(), details }
}
