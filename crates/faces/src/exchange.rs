//! One request and its answer: who it is from, which limits it is shown, how it is framed.

use std::{
    fmt::{self, Write},
    iter,
    net::IpAddr,
    panic::AssertUnwindSafe,
    sync::{Arc, OnceLock},
};

use axum::{
    body::{Body, HttpBody as _},
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Version, header, request::Parts},
    response::{IntoResponse, Response},
};
use bytes::BytesMut;
use futures_util::FutureExt;
use portcullis_app::{Account, Origin};
use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, RequestId},
    limits::{Bucket, Resource},
    refusal::{Refusal, Unavailable},
    trace::{TraceParent, whole_entries},
};

use super::{
    Gateway, answer, host, leftover,
    mcp::{
        cors,
        reply::{self, Asked},
    },
    metrics,
    outcome::Outcome,
    routes::{Access, RouteSpec},
    traces,
};
use crate::connection::{Arrival, Connection, Use};

// Named once, so that no answer spells them out again.
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const RESOURCE: HeaderName = HeaderName::from_static("x-ratelimit-resource");
const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
/// Number of headers that the frame sets.
const HEADERS: usize = 12;
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// State of a request while it is handled; shared by the frame and the handler.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) origin: Arc<Origin>,
    pub(crate) route: RouteSpec,
    /// On a route of JSON-RPC: the message, once it is read.
    message: Option<OnceLock<Asked>>,
    account: OnceLock<Account>,
    connection: Option<Arc<Connection>>,
}

impl Exchange {
    fn begin(
        gateway: &Gateway,
        route: RouteSpec,
        connection: Option<Arc<Connection>>,
        headers: &HeaderMap,
    ) -> Self {
        let traceparent = traceparent(headers);
        let tracestate = traceparent.and_then(|_| tracestate(headers));
        let (request_id, arrived) =
            (RequestId::new(gateway.app.base.ids()), gateway.app.base.now());
        let peer = connection.as_ref().map_or(IpAddr::from([0, 0, 0, 0]), |it| it.peer());
        Self {
            origin: Arc::new(Origin {
                request_id,
                arrived,
                source_ip: gateway.proxies.client(peer, headers),
                user_agent: text(headers, &header::USER_AGENT, 256),
                traceparent,
                tracestate,
                stages: gateway.app.telemetry.stages(traceparent, request_id, arrived),
            }),
            route,
            message: (route.access == Access::Message).then(OnceLock::new),
            account: OnceLock::new(),
            connection,
        }
    }

    /// The exchange of a request inside the frame.
    pub(crate) fn of(parts: &Parts) -> Result<&Arc<Self>, Refusal> {
        parts.extensions.get::<Arc<Self>>().ok_or(Refusal::Internal)
    }

    /// Returns true if the request asks for a call of a tool.
    fn is_invocation(&self) -> bool {
        self.route.is_invocation() || self.message().is_some_and(Asked::is_call)
    }

    /// The message of JSON-RPC, once it is read.
    pub(crate) fn message(&self) -> Option<&Asked> {
        self.message.as_ref()?.get()
    }

    /// From here on it is known what the message asks for.
    pub(crate) fn set_message(&self, asked: Asked) {
        if let Some(message) = &self.message {
            let _ = message.set(asked);
        }
    }

    /// The org whose plan pays, if it is known.
    pub(crate) fn org(&self) -> Option<OrgId> {
        self.account.get().map(Account::org)
    }

    /// From here on it is known whose plan pays.
    pub(crate) fn set_account(&self, account: Account) {
        let _ = self.account.set(account);
        if let Some(connection) = &self.connection {
            connection.authenticated();
        }
    }

    /// The limits that apply.
    fn buckets(&self, gateway: &Gateway) -> Buckets {
        let quotas = &gateway.app.quotas;
        match self.account.get() {
            None => Buckets { first: quotas.peek_source(&self.origin), second: None },
            Some(account) => Buckets {
                first: quotas.peek(account, Resource::Requests),
                second: Some(quotas.peek(account, Resource::Invocations)),
            },
        }
    }

    /// The limit to show as `X-RateLimit-*`: the exceeded one, or that of the route.
    fn shown(&self, buckets: &Buckets, refusal: Option<&Refusal>) -> Bucket {
        if let Some(Refusal::RateLimited { resource, limit, reset_at, .. }) = refusal {
            let (resource, limit, resets_at) = (*resource, *limit, reset_at.as_seconds());
            return Bucket { resource, limit, remaining: 0, resets_at };
        }
        let of_route = if self.is_invocation() { Resource::Invocations } else { self.route.limit };
        buckets.iter().find(|bucket| bucket.resource == of_route).unwrap_or(buckets.first)
    }
}

/// The limits that apply to a request: that of its source, or those of a plan.
struct Buckets {
    first: Bucket,
    second: Option<Bucket>,
}

impl Buckets {
    fn iter(&self) -> impl Iterator<Item = Bucket> {
        iter::once(self.first).chain(self.second)
    }

    /// Writes a list (RFC 8941) with an item of each, named by its resource, and its parameters.
    fn list(
        &self,
        out: &mut BytesMut,
        mut parameters: impl FnMut(Bucket, &mut BytesMut) -> fmt::Result,
    ) -> fmt::Result {
        for (index, bucket) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(out, "{separator}\"{}\"", bucket.resource.as_str())?;
            parameters(bucket, out)?;
        }
        Ok(())
    }
}

/// The refusal of a request that is not let in, whatever it asks for.
fn barred(
    gateway: &Gateway,
    exchange: &Exchange,
    shed: bool,
    request: &Request,
) -> Option<Refusal> {
    let reserve = exchange.connection.as_ref().is_some_and(|it| it.used_for() == Use::Probes);
    if shed || (reserve && exchange.route.access != Access::Probe) {
        return Some(Refusal::Unavailable { reason: Unavailable::Overloaded });
    }
    let refusal = host::check(request).err()?;
    Some(gateway.app.quotas.charge_source(refusal, &exchange.origin).refusal)
}

/// The start of a header, if it is ASCII.
fn text(headers: &HeaderMap, name: &HeaderName, longest: usize) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    Some(value.get(..longest).unwrap_or(value).to_owned())
}

/// The one `traceparent`; of several, none can be believed.
fn traceparent(headers: &HeaderMap) -> Option<TraceParent> {
    let mut values = headers.get_all("traceparent").iter();
    let first = values.next()?;
    values.next().is_none().then(|| TraceParent::parse(first.as_bytes()))?
}

/// The entries of all `tracestate` headers, as many as are passed on.
fn tracestate(headers: &HeaderMap) -> Option<String> {
    let values: Result<Vec<&str>, _> =
        headers.get_all("tracestate").iter().map(HeaderValue::to_str).collect();
    let all = values.ok()?.join(",");
    Some(whole_entries(&all).to_owned()).filter(|state| !state.is_empty())
}

/// Frames the answer to a request of this route: every answer leaves through here, with envelope and
/// headers, also that of a handler that panics.
pub(crate) async fn framed<F: Future<Output = Response>>(
    gateway: &Arc<Gateway>,
    spec: RouteSpec,
    mut request: Request,
    answer: impl FnOnce(Request) -> F,
) -> Response {
    let arrival = request.extensions().get::<Arrival>().cloned().unwrap_or_default();
    let (counted, shed) = (metrics::Route::of(&request), arrival.shed);
    let exchange = Arc::new(Exchange::begin(gateway, spec, arrival.connection, request.headers()));
    let expects = request.headers().contains_key(header::EXPECT);
    let streamed = request.version() >= Version::HTTP_2;
    let page = (spec.access == Access::Message)
        .then(|| cors::allowed_origin(&gateway.mcp.guard, request.headers()))
        .flatten();
    let mut response = match barred(gateway, &exchange, shed, &request) {
        None => {
            request.extensions_mut().insert(Arc::clone(&exchange));
            let answered = AssertUnwindSafe(answer(request)).catch_unwind().await;
            answered.unwrap_or_else(|_| Outcome::from(Refusal::Internal).into_response())
        }
        Some(refusal) => {
            drop(request);
            Outcome::from(refusal).into_response()
        }
    };
    // A handler that answers with an outcome leaves the writing to the frame.
    let outcome = response.extensions_mut().remove::<Arc<Outcome>>().and_then(Arc::into_inner);
    response.headers_mut().reserve(HEADERS);
    if let Some(connection) = &exchange.connection {
        leftover::settle(connection, expects, response.headers_mut()).await;
        if connection.used_for() == Use::Probes && !streamed {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
    finish(gateway, &exchange, &counted, &mut response, outcome).await;
    if let Some(page) = page {
        cors::expose(page, response.headers_mut());
    }
    response
}

/// Sets the headers of an answer, writes its outcome, and measures it.
async fn finish(
    gateway: &Arc<Gateway>,
    exchange: &Arc<Exchange>,
    counted: &metrics::Route,
    response: &mut Response,
    outcome: Option<Outcome>,
) {
    let refusal = outcome.as_ref().and_then(Outcome::refusal);
    set_headers(gateway, exchange, refusal, response.headers_mut());
    let outcome = match outcome {
        None => None,
        Some(outcome) => {
            outcome.set_headers(response.headers_mut());
            write(gateway, exchange, outcome, response).await
        }
    };
    let refusal = outcome.as_ref().and_then(Outcome::refusal);
    counted.count(gateway, &exchange.origin, response.status(), refusal);
    if let Some(recording) = exchange.origin.stages.traced() {
        traces::answered(recording, exchange, counted, outcome.as_ref(), response.status());
    }
    if let (Some(org), Some(large)) = (exchange.org(), outcome.filter(|outcome| outcome.large)) {
        gateway.app.base.discard(org, large);
    }
}

/// Writes status and body in the protocol of the route, and gives the outcome back. A large body is
/// not written by the thread that serves; if no worker can write it, it is empty.
async fn write(
    gateway: &Arc<Gateway>,
    exchange: &Arc<Exchange>,
    outcome: Outcome,
    response: &mut Response,
) -> Option<Outcome> {
    let now = gateway.app.base.now();
    *response.status_mut() = match exchange.message {
        None => outcome.http_status(),
        Some(_) => reply::status(&outcome, exchange.message()),
    };
    let (body, outcome) = match exchange.org().filter(|_| outcome.large) {
        None => (body(exchange, &outcome, now), Some(outcome)),
        Some(org) => {
            let exchange = Arc::clone(exchange);
            let work = move || (body(&exchange, &outcome, now), Some(outcome));
            gateway.app.base.worked(org, usize::MAX, work).await.unwrap_or_default()
        }
    };
    let headers = response.headers_mut();
    if !body.is_end_stream() {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    headers.remove(header::CONTENT_LENGTH);
    *response.body_mut() = body;
    outcome
}

/// The body in the protocol of the route.
fn body(exchange: &Exchange, outcome: &Outcome, now: Timestamp) -> Body {
    let (request_id, is_invocation) = (exchange.origin.request_id, exchange.is_invocation());
    match exchange.message {
        None => Body::from(answer::body(outcome, answer::Asked { request_id, is_invocation, now })),
        Some(_) => reply::response_body(outcome, exchange.message(), request_id),
    }
}

/// Values of headers, written one after the other into one buffer that they share.
struct Values(BytesMut);

impl Values {
    /// Sets a header to what is written; none, where that is no value of a header.
    fn set(
        &mut self,
        headers: &mut HeaderMap,
        name: HeaderName,
        write: impl FnOnce(&mut BytesMut) -> fmt::Result,
    ) {
        if write(&mut self.0).is_ok()
            && let Ok(value) = HeaderValue::from_maybe_shared(self.0.split().freeze())
        {
            headers.insert(name, value);
        }
    }
}

fn set_headers(
    gateway: &Gateway,
    exchange: &Exchange,
    refusal: Option<&Refusal>,
    headers: &mut HeaderMap,
) {
    let now = gateway.app.quotas.limits_now();
    let buckets = exchange.buckets(gateway);
    let shown = exchange.shown(&buckets, refusal);
    let mut values = Values(BytesMut::with_capacity(256));
    values.set(headers, LIMIT, |out| write!(out, "{}", shown.limit));
    values.set(headers, REMAINING, |out| write!(out, "{}", shown.remaining));
    values.set(headers, RESET, |out| write!(out, "{}", shown.resets_at));
    headers.insert(RESOURCE, HeaderValue::from_static(shown.resource.as_str()));
    values.set(headers, RATELIMIT_POLICY, |out| {
        buckets.list(out, |bucket, out| write!(out, ";q={};w=60", bucket.limit))
    });
    values.set(headers, RATELIMIT, |out| {
        buckets.list(out, |bucket, out| {
            let left = (bucket.resets_at - now.as_seconds()).max(0);
            write!(out, ";r={};t={left}", bucket.remaining)
        })
    });
    values.set(headers, REQUEST_ID, |out| write!(out, "{}", exchange.origin.request_id));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

pub(crate) fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn of_several_parents_none_counts() {
        let one = headers(&[("traceparent", PARENT)]);
        let two = headers(&[("traceparent", PARENT), ("traceparent", PARENT)]);

        assert_eq!(traceparent(&one).unwrap().to_string(), PARENT);
        assert_eq!(traceparent(&two), None);
    }

    #[test]
    fn several_states_are_one() {
        let two = headers(&[("tracestate", "a=1,b=2"), ("tracestate", "c=3")]);

        assert_eq!(tracestate(&two).as_deref(), Some("a=1,b=2,c=3"));
        assert_eq!(tracestate(&headers(&[("tracestate", "")])), None);
        assert_eq!(tracestate(&headers(&[])), None);
    }
}
