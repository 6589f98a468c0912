//! REST: the envelope in which results, pages and errors are written.

use portcullis_app::GovernanceView;
use portcullis_core::{audit::OutcomeStatus, clock::Timestamp, id::RequestId, refusal::Executed};
use serde::Serialize;
use serde_json::{Map, Value};

use super::outcome::{Content, Failure, Outcome, Page};

#[derive(Serialize)]
struct Envelope<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    governance: Option<&'a GovernanceView>,
    meta: Meta,
}

#[derive(Serialize)]
struct ErrorBody {
    code: String,
    message: String,
    details: Map<String, Value>,
}

#[derive(Serialize)]
struct Meta {
    request_id: RequestId,
    timestamp: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<OutcomeStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pagination: Option<Pagination>,
}

#[derive(Serialize)]
struct Pagination {
    limit: usize,
    next_cursor: Option<String>,
}

/// The request that an answer belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) request_id: RequestId,
    /// The request asks for a call of a tool.
    pub(crate) is_invocation: bool,
    /// Time of the answer.
    pub(crate) now: Timestamp,
}

/// Writes the envelope of an outcome.
pub(crate) fn body(outcome: &Outcome, asked: Asked) -> Vec<u8> {
    let (mut data, mut result, mut error, mut pagination) = (None, None, None, None);
    match &outcome.content {
        Content::Data(value) | Content::Begun(value) => data = Some(value),
        Content::Page(Page { data: value, limit, next_cursor }) => {
            data = Some(value);
            pagination = Some(Pagination { limit: *limit, next_cursor: next_cursor.clone() });
        }
        Content::Result(value) => result = Some(value),
        Content::Failed(failure) => {
            error = Some(error_body(failure, outcome.told_executed(asked.is_invocation)));
        }
    }
    let meta = Meta {
        request_id: asked.request_id,
        timestamp: asked.now,
        outcome: outcome.recorded,
        pagination,
    };
    // Large enough for a small answer, so that writing it moves nothing.
    let mut body = Vec::with_capacity(2048);
    let governance = outcome.governance.as_ref();
    let envelope = Envelope { data, result, error, governance, meta };
    // Strings, numbers and maps with string keys always serialise, and memory takes all.
    if serde_json::to_writer(&mut body, &envelope).is_err() {
        body.clear();
    }
    body
}

fn error_body(failure: &Failure, executed: Option<Executed>) -> ErrorBody {
    let mut details = failure.details();
    if let Some(executed) = executed {
        details.insert("executed".to_owned(), Value::from(executed.as_str()));
    }
    ErrorBody { code: failure.code().to_owned(), message: failure.message(), details }
}
