//! Cross-origin requests of pages that the operator lists in `mcp.origins`, and of all pages for what is public (Fetch,
//! CORS protocol).

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::gateway::guard::Guard;

/// Headers that a page may send, besides those of MCP.
const ALLOWED: [&str; 4] = ["authorization", "content-type", "dpop", "last-event-id"];
/// The beginning of the names of headers of MCP.
const OF_MCP: &str = "mcp-";
/// Headers of answers that a page may read.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "www-authenticate, dpop-nonce, mcp-protocol-version, mcp-session-id, retry-after, x-ratelimit-limit, \
     x-ratelimit-remaining, x-ratelimit-reset, x-request-id",
);
/// Seconds for which a browser may remember a preflight.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");

/// The origin of a page that may ask.
pub(crate) fn allowed_origin(guard: &Guard, headers: &HeaderMap) -> Option<HeaderValue> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin = origins.next().filter(|origin| origins.next().is_none() && guard.lists(origin))?;
    Some(origin.clone())
}

/// Lets a page read the answer.
pub(crate) fn expose(origin: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
}

/// Lets every page read the answer, and everybody keep a document for an hour (SEP-2127, CORS Requirements, Caching).
pub(crate) fn publish(status: StatusCode, headers: &mut HeaderMap) {
    let open = [
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "Content-Type, If-None-Match"),
        (header::ACCESS_CONTROL_EXPOSE_HEADERS, "ETag"),
    ];
    let is_document = matches!(status, StatusCode::OK | StatusCode::NOT_MODIFIED);
    let kept = is_document.then_some((header::CACHE_CONTROL, "public, max-age=3600"));
    for (name, value) in open.into_iter().chain(kept) {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// The answer to a browser that asks whether a page may send a request; `None` if it asks nothing of the kind.
pub(crate) fn preflight(
    guard: &Guard,
    methods: HeaderValue,
    method: &Method,
    headers: &HeaderMap,
) -> Option<Response> {
    let wanted = headers.get(header::ACCESS_CONTROL_REQUEST_METHOD);
    if method != Method::OPTIONS || wanted.is_none() {
        return None;
    }
    allowed_origin(guard, headers)?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    let answer = response.headers_mut();
    answer.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    answer.insert(header::ACCESS_CONTROL_MAX_AGE, REMEMBERED);
    let asked = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS);
    let asked = asked.and_then(|names| names.to_str().ok()).unwrap_or_default();
    let names = asked.split(',').map(|name| name.trim().to_ascii_lowercase());
    let names: Vec<_> = names.filter(|name| may_be_sent(name)).collect();
    if let Ok(names) = HeaderValue::from_str(&names.join(", ")) {
        answer.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
    }
    Some(response)
}

fn may_be_sent(name: &str) -> bool {
    HeaderName::from_bytes(name.as_bytes()).is_ok()
        && (ALLOWED.contains(&name) || name.starts_with(OF_MCP))
}
