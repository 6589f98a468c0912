//! The frame around every answer: envelope, headers and limits.

use std::{
    fmt::{self, Write},
    io, iter, mem,
    panic::AssertUnwindSafe,
    sync::Arc,
};

use axum::{
    body::{Body, HttpBody as _},
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Version, header},
    response::{IntoResponse, Response},
};
use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt, stream};
use portcullis_app::PresentedProof;
use portcullis_core::{
    clock::Timestamp,
    limits::{Bucket, Resource},
    refusal::{Refusal, Unavailable},
};

use super::{cors, drain_body, metrics, traces};
use crate::{
    authorization,
    connection::{Arrival, Use},
    exchange::{Access, Exchange, Outcome, RouteSpec, Words, answer, host, outcome::insert, proof},
    gateway::{Gateway, anonymous_budget::overloaded},
    mcp::reply,
    scim,
};

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

/// Frames the answer to a request of this route: every answer leaves through here, with envelope and
/// headers, also that of a handler that panics.
pub(crate) async fn framed<F: Future<Output = Response>>(
    gateway: &Arc<Gateway>,
    spec: RouteSpec,
    mut request: Request,
    answer: impl FnOnce(Request) -> F,
) -> Response {
    let arrival = request.extensions().get::<Arrival>().cloned().unwrap_or_default();
    let counted = metrics::Route::of(&request);
    let shed = arrival.shed;
    let exchange = Arc::new(Exchange::begin(gateway, spec, arrival.connection, &request));
    let expects = request.headers().contains_key(header::EXPECT);
    let streamed = request.version() >= Version::HTTP_2;
    let is_safe = request.method().is_safe();
    let page = spec
        .is_open_to_pages()
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
        drain_body::settle(connection, expects, response.headers_mut()).await;
        if connection.used_for() == Use::Probes && !streamed {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
    finish(gateway, &exchange, &counted, &mut response, outcome, is_safe).await;
    if let Some(page) = page {
        cors::expose(page, response.headers_mut());
    }
    if spec.access == Access::Public {
        cors::publish(response.status(), response.headers_mut());
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
    is_safe: bool,
) {
    let refusal = outcome.as_ref().and_then(Outcome::refusal);
    if let Some(refusal) = refusal.filter(|refusal| refusal.http_status() == 403) {
        exchange.note_forbidden(gateway, refusal);
    }
    set_headers(gateway, exchange, refusal, response.headers_mut());
    let outcome = match outcome {
        None => None,
        Some(outcome) => {
            outcome.set_headers(response.headers_mut());
            write(gateway, exchange, outcome, response).await
        }
    };
    let outcome = charge(gateway, exchange, response, outcome, is_safe).await;
    if let Some(nonce) = exchange.proof().and_then(PresentedProof::offered_nonce) {
        insert(response.headers_mut(), proof::NONCE, nonce);
    }
    let refusal = outcome.as_ref().and_then(Outcome::refusal);
    if let (Some(asked), Some(refusal)) = (&exchange.endpoint, refusal) {
        authorization::complete_challenge(gateway, asked, refusal, response.headers_mut());
    }
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
        let kind = match exchange.route.words {
            Words::Envelope | Words::OAuth => "application/json",
            Words::Scim => scim::MEDIA_TYPE,
        };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    headers.remove(header::CONTENT_LENGTH);
    *response.body_mut() = body;
    outcome
}

/// Headers of an answer that a refusal in its place does not have.
const OF_CONTENT: [HeaderName; 6] = [
    header::ACCEPT_RANGES,
    header::CONTENT_DISPOSITION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::ETAG,
];

/// Charges a large answer to its caller. One for which there is no room is refused with 503 if its
/// request changed nothing, and cut off otherwise, like one whose connection broke.
async fn charge(
    gateway: &Arc<Gateway>,
    exchange: &Arc<Exchange>,
    response: &mut Response,
    outcome: Option<Outcome>,
    is_safe: bool,
) -> Option<Outcome> {
    let Some(payer) = exchange.payer() else { return outcome };
    let is_file = response.headers().contains_key(header::CONTENT_DISPOSITION);
    match gateway.known.charge_answer(payer, mem::take(response.body_mut()), is_file) {
        Ok(body) => *response.body_mut() = body,
        Err(_) if is_safe => {
            let refused = Outcome::from(overloaded());
            for name in OF_CONTENT {
                response.headers_mut().remove(name);
            }
            refused.set_headers(response.headers_mut());
            return write(gateway, exchange, refused, response).await;
        }
        Err(_) => {
            let cut = Err::<Bytes, _>(io::Error::from(io::ErrorKind::OutOfMemory));
            *response.body_mut() = Body::from_stream(stream::iter([cut]));
        }
    }
    outcome
}

/// The body in the protocol of the route.
fn body(exchange: &Exchange, outcome: &Outcome, now: Timestamp) -> Body {
    let request_id = exchange.origin.request_id;
    let is_invocation = exchange.is_invocation();
    match (exchange.route.words, outcome.refusal()) {
        (Words::OAuth, Some(refusal)) => return Body::from(authorization::error_body(refusal)),
        (Words::Scim, Some(refusal)) => return Body::from(scim::error_body(refusal)),
        (Words::Envelope | Words::OAuth | Words::Scim, _) => {}
    }
    match exchange.message {
        None => Body::from(answer::body(
            outcome,
            answer::AnsweredRequest { request_id, is_invocation, now },
        )),
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
    let shown = exchange.limit_to_show(&buckets, refusal);
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

impl Exchange {
    /// Records a refusal of what the caller may not do. A refused call has an event of its own.
    fn note_forbidden(&self, gateway: &Gateway, refusal: &Refusal) {
        if let Some(session) = self.caller.get() {
            gateway.app.audit.note_forbidden(&session.caller, refusal, &self.origin);
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
    fn limit_to_show(&self, buckets: &Buckets, refusal: Option<&Refusal>) -> Bucket {
        if let Some(Refusal::RateLimited { resource, limit, reset_at, .. }) = refusal {
            let resource = *resource;
            let limit = *limit;
            let resets_at = reset_at.as_seconds();
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
