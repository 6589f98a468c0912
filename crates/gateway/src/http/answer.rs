//! The envelope: how results, pages and refusals are written (contract §3.2).

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use portcullis_app::{GovernanceView, Invoked, Replayed, ReplayedError, Stopped};
use portcullis_core::{
    audit::OutcomeStatus,
    clock::Timestamp,
    id::RequestId,
    refusal::{Executed, Refusal},
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    Gateway,
    exchange::{Exchange, insert},
    mcp::reply::{self, Reply},
};

/// Says that an answer was given before.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// What a handler answers; the frame writes it.
#[derive(Debug)]
pub(crate) enum Answer {
    /// `data` and `meta`.
    Data(Value),
    /// `data` and `meta` of something that is not done yet: 202.
    Begun(Value),
    /// `data.items` and `meta.pagination`.
    Page { data: Value, limit: usize, next_cursor: Option<String> },
    /// `result`, `governance` and `meta`.
    Invoked(Invoked),
    /// What was answered before to the same request with the same idempotency key, with a new
    /// `meta`.
    Replayed(Replayed),
    /// `error`, `governance` if a decision was reached, and `meta`.
    Stopped(Stopped),
    /// `error` and `meta`.
    Refused(Refusal),
    /// A message of JSON-RPC.
    Rpc(Reply),
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

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

impl Answer {
    /// The refusal, if it is one.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Stopped(stopped) => Some(&stopped.refusal),
            Self::Refused(refusal) => Some(refusal),
            Self::Data(_)
            | Self::Begun(_)
            | Self::Page { .. }
            | Self::Invoked(_)
            | Self::Replayed(_)
            | Self::Rpc(_) => None,
        }
    }

    /// How a call was governed, if a decision was reached.
    pub(crate) fn governance(&self) -> Option<&GovernanceView> {
        match self {
            Self::Invoked(invoked) => Some(&invoked.governance),
            Self::Stopped(stopped) => stopped.governance.as_ref(),
            Self::Replayed(replayed) => replayed.governance.as_ref(),
            Self::Data(_)
            | Self::Begun(_)
            | Self::Page { .. }
            | Self::Refused(_)
            | Self::Rpc(_) => None,
        }
    }

    /// Whether the upstream did it, for invocations. What is refused before the call was looked at
    /// was not done; what ended in a bug may have been.
    fn executed(&self, invocation: bool) -> Option<Executed> {
        match self {
            Self::Stopped(stopped) => Some(stopped.executed),
            Self::Refused(Refusal::Internal) if invocation => Some(Executed::Unknown),
            Self::Refused(_) if invocation => Some(Executed::No),
            Self::Replayed(replayed) => Some(replayed.executed),
            Self::Data(_)
            | Self::Begun(_)
            | Self::Page { .. }
            | Self::Invoked(_)
            | Self::Refused(_)
            | Self::Rpc(_) => None,
        }
    }

    fn error(&self, executed: Option<Executed>) -> Option<ErrorBody> {
        match self {
            Self::Replayed(replayed) => {
                let ReplayedError { code, message, details } = replayed.error.as_ref()?;
                let body = (code.clone(), message.clone(), details.clone());
                Some(error(body, executed))
            }
            Self::Stopped(_) | Self::Refused(_) => self.refusal().map(|refusal| {
                let body = (refusal.code().to_owned(), refusal.to_string(), refusal.details());
                error(body, executed)
            }),
            Self::Data(_)
            | Self::Begun(_)
            | Self::Page { .. }
            | Self::Invoked(_)
            | Self::Rpc(_) => None,
        }
    }

    /// Returns true if to write it takes long.
    pub(crate) fn is_large(&self) -> bool {
        match self {
            Self::Invoked(invoked) => invoked.large,
            Self::Replayed(replayed) => replayed.large,
            Self::Data(_)
            | Self::Begun(_)
            | Self::Page { .. }
            | Self::Stopped(_)
            | Self::Refused(_)
            | Self::Rpc(_) => false,
        }
    }

    /// The body: an envelope, or a message of JSON-RPC.
    pub(crate) fn body(&self, gateway: &Gateway, exchange: &Exchange) -> Vec<u8> {
        if exchange.is_rpc() {
            return reply::body(self, exchange);
        }
        let executed = self.executed(exchange.is_invocation());
        let error = self.error(executed);
        let (data, result, governance, outcome, pagination) = match self {
            Self::Data(data) | Self::Begun(data) => (Some(data), None, None, None, None),
            Self::Page { data, limit, next_cursor } => {
                let pagination = Pagination { limit: *limit, next_cursor: next_cursor.clone() };
                (Some(data), None, None, None, Some(pagination))
            }
            Self::Invoked(Invoked { result, governance, outcome, large: _ }) => {
                (None, Some(result), Some(governance), Some(*outcome), None)
            }
            Self::Stopped(stopped) => {
                (None, None, stopped.governance.as_ref(), stopped.outcome, None)
            }
            Self::Replayed(replayed) => {
                let (result, governance) = (replayed.result.as_ref(), replayed.governance.as_ref());
                (None, result, governance, Some(replayed.outcome), None)
            }
            Self::Refused(_) | Self::Rpc(_) => (None, None, None, None, None),
        };
        let meta = Meta {
            request_id: exchange.origin.request_id,
            timestamp: gateway.app.now(),
            outcome,
            pagination,
        };
        // Room for a small answer, so that writing it moves nothing.
        let mut body = Vec::with_capacity(2048);
        let envelope = Envelope { data, result, error, governance, meta };
        // Strings, numbers and maps with string keys always serialise, and memory takes all.
        if serde_json::to_writer(&mut body, &envelope).is_err() {
            body.clear();
        }
        body
    }

    /// Writes status, body and the headers that depend on them.
    pub(crate) fn write(&self, body: Vec<u8>, response: &mut Response) {
        *response.body_mut() = Body::from(body);
        if let Self::Begun(_) = self {
            *response.status_mut() = StatusCode::ACCEPTED;
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.remove(header::CONTENT_LENGTH);
        let mut status = None;
        if let Self::Replayed(replayed) = self {
            insert(headers, REPLAYED, "true");
            status = Some(replayed.http_status);
        }
        if let Some(refusal) = self.refusal() {
            refusal_headers(refusal, headers);
            status = Some(refusal.http_status());
        }
        if let Some(status) = status {
            *response.status_mut() =
                StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        }
    }
}

fn error(
    (code, message, mut details): (String, String, Map<String, Value>),
    executed: Option<Executed>,
) -> ErrorBody {
    if let Some(executed) = executed {
        details.insert("executed".to_owned(), Value::from(executed.as_str()));
    }
    ErrorBody { code, message, details }
}

/// Seconds to wait before a gateway that cannot record is asked again.
const RETRY_UNAVAILABLE: &str = "5";
/// Seconds to wait before it is asked again how a request under way ended.
const RETRY_UNDER_WAY: &str = "1";

fn refusal_headers(refusal: &Refusal, headers: &mut HeaderMap) {
    match refusal {
        Refusal::MissingToken => {
            insert(headers, header::WWW_AUTHENTICATE, "Bearer realm=\"portcullis\"");
        }
        Refusal::InvalidToken
        | Refusal::WrongTokenKind { .. }
        | Refusal::TokenExpired { .. }
        | Refusal::TokenRevoked
        | Refusal::TokenReused
        | Refusal::InvalidCredential { .. } => insert(
            headers,
            header::WWW_AUTHENTICATE,
            "Bearer realm=\"portcullis\", error=\"invalid_token\"",
        ),
        Refusal::InsufficientScope { required } => insert(
            headers,
            header::WWW_AUTHENTICATE,
            &format!(
                "Bearer realm=\"portcullis\", error=\"insufficient_scope\", scope=\"{required}\""
            ),
        ),
        Refusal::DelegationNotTrusted => insert(
            headers,
            header::WWW_AUTHENTICATE,
            "Bearer realm=\"portcullis\", error=\"insufficient_scope\"",
        ),
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
        | Refusal::NotFound { .. }
        | Refusal::ProviderAuthRequired { .. }
        | Refusal::NotRefreshable { .. }
        | Refusal::NoSuchProvider { .. }
        | Refusal::RejectedByProvider { .. }
        | Refusal::PayloadTooLarge { .. }
        | Refusal::UnsupportedMediaType
        | Refusal::Internal
        | Refusal::UpstreamError { .. }
        | Refusal::UpstreamTimeout { .. }
        | Refusal::Interrupted { .. } => {}
    }
}
