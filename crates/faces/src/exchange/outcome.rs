//! The outcome of a request, before any protocol writes it.
//!
//! Handlers and extractors end in an [`Outcome`]. The frame in `exchange` measures and traces it,
//! sets the headers that follow from it, and has it written by the writer of the route: `answer`
//! writes the envelope of REST, `mcp::reply` the messages of JSON-RPC.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use portcullis_app::{Answered, GovernanceView, LARGE, ReplayedError, Stopped};
use portcullis_core::{
    audit::OutcomeStatus,
    authorization::{OAuthError, OAuthErrorCode},
    json::Document,
    refusal::{Executed, Refusal},
    trust::PROOF_ALGORITHMS,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::message::Reply;

/// Marks an answer that was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Seconds to wait before a gateway that cannot record is asked again.
const RETRY_UNAVAILABLE: &str = "5";
/// Seconds to wait before a request under way is asked for again.
const RETRY_UNDER_WAY: &str = "1";

/// The answer of an operation, or its error.
pub(crate) type HandlerResult = Result<Outcome, Outcome>;

/// The end of a request: a result or an error, and what was decided and recorded on the way.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) content: Content,
    /// The decision on a call, if one was reached.
    pub(crate) governance: Option<GovernanceView>,
    /// The recorded outcome of a call; `None` for everything that has no event of its own.
    pub(crate) recorded: Option<OutcomeStatus>,
    /// Effect of a call at its upstream; `None` where the call was not looked at.
    pub(crate) executed: Option<Executed>,
    /// The same request was answered so before.
    pub(crate) replayed: bool,
    /// Writing it takes long.
    pub(crate) large: bool,
    /// Version of the resource, as `ETag` and `If-Match` quote it.
    pub(crate) etag: Option<String>,
    /// Sentences about the input of a call for its caller.
    pub(crate) notes: Vec<String>,
}

/// Result or error.
#[derive(Debug)]
pub(crate) enum Content {
    /// A resource.
    Data(Value),
    /// A resource that was made.
    Created(Value),
    /// A resource that is still being made.
    Begun(Value),
    Page(Page),
    /// The result of a tool.
    Result(Document),
    Failed(Failure),
    /// A message of JSON-RPC that is no answer to a call.
    Message(Reply),
}

#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) data: Value,
    /// The page size in force.
    pub(crate) limit: usize,
    pub(crate) next_cursor: Option<String>,
}

/// An error of this request, or that of the earlier request it repeats.
#[derive(Debug)]
pub(crate) enum Failure {
    Refused(Refusal),
    Replayed { http_status: u16, error: ReplayedError },
}

impl Failure {
    /// The stable `error.code`.
    pub(crate) fn code(&self) -> &str {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::Replayed { error, .. } => &error.code,
        }
    }

    /// One sentence for people.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.to_string(),
            Self::Replayed { error, .. } => error.message.clone(),
        }
    }

    /// The members of `error.details`, with the effect of a call. A replayed error has the others
    /// that it was kept with.
    pub(crate) fn details(&self, executed: Option<Executed>) -> Map<String, Value> {
        match self {
            Self::Refused(refusal) => refusal.error_details().with_executed(executed).members(),
            Self::Replayed { error, .. } => {
                let mut details = error.details.clone();
                if let Some(executed) = executed {
                    details.insert("executed".to_owned(), Value::from(executed.as_str()));
                }
                details
            }
        }
    }

    /// Its status in HTTP.
    pub(crate) fn http_status(&self) -> StatusCode {
        let status = match self {
            Self::Refused(refusal) => refusal.http_status(),
            Self::Replayed { http_status, .. } => *http_status,
        };
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl Outcome {
    const fn of(content: Content) -> Self {
        Self {
            content,
            governance: None,
            recorded: None,
            executed: None,
            replayed: false,
            large: false,
            etag: None,
            notes: Vec::new(),
        }
    }

    /// A failure of a call whose tool may have run.
    pub(crate) fn unsure(refusal: Refusal) -> Self {
        Self { executed: Some(Executed::Unknown), ..Self::from(refusal) }
    }

    /// One resource, done.
    pub(crate) fn data(view: &impl Serialize) -> Self {
        Self::of(serde_json::to_value(view).map_or_else(|_| bug(), Content::Data))
    }

    /// One resource that was made by the request.
    pub(crate) fn created(view: &impl Serialize) -> Self {
        Self::of(serde_json::to_value(view).map_or_else(|_| bug(), Content::Created))
    }

    /// The same, which takes as long to write as something of `bytes` bytes.
    pub(crate) fn with_size(self, bytes: usize) -> Self {
        Self { large: bytes > LARGE, ..self }
    }

    /// The same with the version of the resource, unquoted.
    pub(crate) fn with_etag(self, version: &str) -> Self {
        Self { etag: Some(format!("\"{version}\"")), ..self }
    }

    /// One resource that is still being made.
    pub(crate) fn begun(view: &impl Serialize) -> Self {
        Self::of(serde_json::to_value(view).map_or_else(|_| bug(), Content::Begun))
    }

    pub(crate) fn page(data: &impl Serialize, limit: usize, next_cursor: Option<String>) -> Self {
        let page = |data| Content::Page(Page { data, limit, next_cursor });
        Self::of(serde_json::to_value(data).map_or_else(|_| bug(), page))
    }

    /// The outcome of a call.
    pub(crate) fn of_call(ended: Result<Answered, Box<Stopped>>) -> Self {
        match ended {
            Ok(answered) => Self::of_answer(answered),
            Err(stopped) => Self::from(*stopped),
        }
    }

    /// The outcome of a call that was not refused.
    fn of_answer(answered: Answered) -> Self {
        match answered {
            Answered::Invoked(invoked) => Self {
                content: Content::Result(invoked.result),
                governance: Some(invoked.governance),
                recorded: Some(invoked.outcome),
                executed: Some(Executed::Yes),
                replayed: false,
                large: invoked.large,
                etag: None,
                notes: invoked.notes,
            },
            Answered::Replayed(replayed) => {
                let http_status = replayed.http_status;
                let content = match (replayed.error, replayed.result) {
                    (Some(error), _) => Content::Failed(Failure::Replayed { http_status, error }),
                    (None, Some(result)) => Content::Result(result),
                    (None, None) => bug(),
                };
                Self {
                    content,
                    governance: replayed.governance,
                    recorded: Some(replayed.outcome),
                    executed: Some(replayed.executed),
                    replayed: true,
                    large: replayed.large,
                    etag: None,
                    notes: Vec::new(),
                }
            }
        }
    }

    /// A message of JSON-RPC.
    pub(crate) const fn message(reply: Reply) -> Self {
        Self::of(Content::Message(reply))
    }

    /// The same, of a request that was answered so before.
    pub(crate) fn again(self) -> Self {
        Self { replayed: true, ..self }
    }

    /// The refusal of this request, if it is one.
    pub(crate) const fn refusal(&self) -> Option<&Refusal> {
        match &self.content {
            Content::Failed(Failure::Refused(refusal)) => Some(refusal),
            Content::Failed(Failure::Replayed { .. })
            | Content::Data(_)
            | Content::Created(_)
            | Content::Begun(_)
            | Content::Page(_)
            | Content::Message(_)
            | Content::Result(_) => None,
        }
    }

    /// The effect at the upstream that an error tells. What is refused before the call was looked
    /// at was not executed; what ended in a bug may have been.
    pub(crate) fn told_executed(&self, invocation: bool) -> Option<Executed> {
        let refused = || {
            let refusal = self.refusal().filter(|_| invocation)?;
            let bug = matches!(refusal, Refusal::Internal);
            Some(if bug { Executed::Unknown } else { Executed::No })
        };
        self.executed.or_else(refused)
    }

    /// Its status in HTTP, where the protocol does not say another.
    pub(crate) fn http_status(&self) -> StatusCode {
        match &self.content {
            Content::Data(_) | Content::Page(_) | Content::Result(_) | Content::Message(_) => {
                StatusCode::OK
            }
            Content::Created(_) => StatusCode::CREATED,
            Content::Begun(_) => StatusCode::ACCEPTED,
            Content::Failed(failure) => failure.http_status(),
        }
    }

    /// Sets the headers that follow from it in every protocol.
    pub(crate) fn set_headers(&self, headers: &mut HeaderMap) {
        if self.replayed {
            insert(headers, REPLAYED, "true");
        }
        if let Some(etag) = &self.etag {
            insert(headers, header::ETAG, etag);
        }
        if let Some(refusal) = self.refusal() {
            refusal_headers(refusal, headers);
        }
        if let Content::Failed(Failure::Replayed { http_status: 503, .. }) = &self.content {
            insert(headers, header::RETRY_AFTER, RETRY_UNAVAILABLE);
        }
    }
}

/// Outcome of a view that cannot be written as JSON, which there is none of.
const fn bug() -> Content {
    Content::Failed(Failure::Refused(Refusal::Internal))
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Self {
        Self::of(Content::Failed(Failure::Refused(refusal)))
    }
}

impl From<Stopped> for Outcome {
    fn from(stopped: Stopped) -> Self {
        Self {
            governance: stopped.governance,
            recorded: stopped.outcome,
            executed: Some(stopped.executed),
            ..Self::from(stopped.refusal)
        }
    }
}

impl IntoResponse for Outcome {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

/// Sets a header, unless the text is no value of one.
pub(crate) fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// The challenge of RFC 6750 §3, with what follows the realm.
fn challenge(headers: &mut HeaderMap, more: &str) {
    insert(headers, header::WWW_AUTHENTICATE, &format!("Bearer realm=\"portcullis\"{more}"));
}

/// The challenge of RFC 9449 §7.1.
fn proof_challenge(refusal: &Refusal) -> String {
    let algorithms = PROOF_ALGORITHMS.join(" ");
    let error = refusal.code();
    format!("DPoP algs=\"{algorithms}\", error=\"{error}\"{}", in_words(refusal))
}

/// The words of a challenge about a token that is sent in the wrong way or a proof that is wrong, which a client
/// could take for another fault.
pub(crate) fn in_words(refusal: &Refusal) -> String {
    if !matches!(refusal, Refusal::WrongTokenKind { .. } | Refusal::InvalidProof { .. }) {
        return String::new();
    }
    let told = OAuthError::new(OAuthErrorCode::InvalidToken, refusal.to_string()).description;
    format!(", error_description=\"{told}\"")
}

fn refusal_headers(refusal: &Refusal, headers: &mut HeaderMap) {
    match refusal {
        Refusal::MissingToken => challenge(headers, ""),
        Refusal::InvalidToken
        | Refusal::TokenExpired { .. }
        | Refusal::TokenRevoked
        | Refusal::TokenReused
        | Refusal::InvalidCredential { .. } => challenge(headers, ", error=\"invalid_token\""),
        Refusal::WrongTokenKind { .. } => {
            challenge(headers, &format!(", error=\"invalid_token\"{}", in_words(refusal)));
        }
        Refusal::InvalidProof { .. } => {
            insert(headers, header::WWW_AUTHENTICATE, &proof_challenge(refusal));
        }
        Refusal::InsufficientScope { required } => {
            let more = format!(", error=\"insufficient_scope\", scope=\"{required}\"");
            challenge(headers, &more);
        }
        Refusal::DelegationNotTrusted => {
            challenge(headers, ", error=\"insufficient_scope\"");
        }
        Refusal::RateLimited { retry_after, .. }
        | Refusal::TooManyExports { retry_after, .. }
        | Refusal::ExportsFull { retry_after, .. } => {
            insert(headers, header::RETRY_AFTER, &retry_after.to_string());
        }
        Refusal::UpstreamResting { retry_after, .. } => {
            insert(headers, header::RETRY_AFTER, &retry_after.to_string());
        }
        Refusal::RangeNotSatisfiable { bytes } => {
            insert(headers, header::CONTENT_RANGE, &format!("bytes */{bytes}"));
        }
        Refusal::Unavailable { .. } => insert(headers, header::RETRY_AFTER, RETRY_UNAVAILABLE),
        Refusal::IdempotencyInProgress { .. } => {
            insert(headers, header::RETRY_AFTER, RETRY_UNDER_WAY);
        }
        Refusal::MethodNotAllowed { allow } => insert(headers, header::ALLOW, &allow.join(", ")),
        Refusal::InvalidRequest { .. }
        | Refusal::InvalidInput { .. }
        | Refusal::InvalidScope { .. }
        | Refusal::IdempotencyKeyReused { .. }
        | Refusal::PolicyDenied { .. }
        | Refusal::AwaitsApproval { .. }
        | Refusal::ApprovalSettled { .. }
        | Refusal::ReadOnly
        | Refusal::PreconditionFailed
        | Refusal::Conflict { .. }
        | Refusal::NotFound { .. }
        | Refusal::ProviderAuthRequired { .. }
        | Refusal::NotRefreshable { .. }
        | Refusal::NoSuchProvider { .. }
        | Refusal::RejectedByProvider { .. }
        | Refusal::PayloadTooLarge { .. }
        | Refusal::UnsupportedMediaType { .. }
        | Refusal::Internal
        | Refusal::UpstreamError { .. }
        | Refusal::Unanswerable { .. }
        | Refusal::UpstreamTimeout { .. }
        | Refusal::Interrupted { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use portcullis_core::refusal::Unavailable;

    use super::*;

    fn retry_after(content: Content) -> Option<HeaderValue> {
        let mut headers = HeaderMap::new();
        Outcome::of(content).set_headers(&mut headers);
        headers.remove(header::RETRY_AFTER)
    }

    #[test]
    fn every_503_says_when_to_come_back_also_one_that_is_answered_again() {
        for reason in [Unavailable::Audit, Unavailable::Limits, Unavailable::Overloaded] {
            let refused = Failure::Refused(Refusal::Unavailable { reason });
            assert!(retry_after(Content::Failed(refused)).is_some(), "{reason:?}");
        }
        let replayed = |http_status| {
            let code = "unavailable".to_owned();
            let message = "It was so.".to_owned();
            let error = ReplayedError { code, message, details: Map::new() };
            retry_after(Content::Failed(Failure::Replayed { http_status, error }))
        };

        assert!(replayed(503).is_some());
        assert_eq!(replayed(504), None);
    }
}
