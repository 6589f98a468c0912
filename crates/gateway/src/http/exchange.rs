//! One request and its answer: who it is from, which limits it is shown, how it is framed.

use std::{
    fmt::Write,
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Version, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use portcullis_app::{Account, Origin};
use portcullis_core::{
    id::{OrgId, RequestId},
    limits::{Bucket, Resource},
    refusal::{Refusal, Unavailable},
    trace::{TraceParent, whole_entries},
};

use super::{
    Gateway,
    answer::Answer,
    health, host, leftover,
    mcp::{self, reply::Asked},
    traces,
};
use crate::connection::{Connection, Shed, Use};

// Named once, so that no answer spells them out again.
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const RESOURCE: HeaderName = HeaderName::from_static("x-ratelimit-resource");
const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What is known of a request while it is handled; shared by the frame and the handler.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) origin: Origin,
    /// Of the invocation endpoint of REST.
    invokes: bool,
    /// Of an address at which JSON-RPC is spoken: the message, once it is read.
    rpc: Option<OnceLock<Asked>>,
    account: OnceLock<Account>,
    connection: Option<Arc<Connection>>,
}

impl Exchange {
    fn begin(gateway: &Gateway, request: &Request) -> Self {
        let headers = request.headers();
        let traceparent = traceparent(headers);
        let tracestate = traceparent.and_then(|_| tracestate(headers));
        let path = request.uri().path();
        let rpc = mcp::is_face(path).then(OnceLock::new);
        let invokes = rpc.is_none() && path.ends_with("/invoke");
        let (request_id, arrived) = (RequestId::new(gateway.app.ids()), gateway.app.now());
        let connection = request.extensions().get::<Arc<Connection>>().cloned();
        let peer = connection.as_ref().map_or(IpAddr::from([0, 0, 0, 0]), |it| it.peer());
        Self {
            origin: Origin {
                request_id,
                arrived,
                source_ip: gateway.proxies.client(peer, headers),
                user_agent: text(headers, header::USER_AGENT.as_str(), 256),
                traceparent,
                tracestate,
                stages: gateway.app.stages(traceparent, request_id, arrived),
            },
            invokes,
            rpc,
            account: OnceLock::new(),
            connection,
        }
    }

    /// Whether it asks for a call of a tool.
    pub(crate) fn is_invocation(&self) -> bool {
        self.invokes || self.rpc().is_some_and(Asked::is_call)
    }

    /// Whether it is answered in JSON-RPC.
    pub(crate) fn is_rpc(&self) -> bool {
        self.rpc.is_some()
    }

    /// The message of JSON-RPC, once it is read.
    pub(crate) fn rpc(&self) -> Option<&Asked> {
        self.rpc.as_ref()?.get()
    }

    /// From here on it is known what the message is.
    pub(crate) fn asked(&self, asked: Asked) {
        if let Some(rpc) = &self.rpc {
            let _ = rpc.set(asked);
        }
    }

    /// From here on it is known that the message calls this tool.
    pub(crate) fn calls(&self, tool: &str) {
        self.rpc().into_iter().for_each(|asked| asked.calls(tool));
    }

    /// The resource whose limit is shown.
    fn resource(&self) -> Resource {
        if self.is_invocation() { Resource::Invocations } else { Resource::Requests }
    }

    /// The org whose plan pays, if it is known.
    fn org(&self) -> Option<OrgId> {
        self.account.get().map(Account::org)
    }

    /// From here on it is known whose plan pays.
    pub(crate) fn known(&self, account: Account) {
        let _ = self.account.set(account);
        if let Some(connection) = &self.connection {
            connection.authenticated();
        }
    }

    /// The bucket to show as `X-RateLimit-*` (contract A17), and all that apply.
    fn buckets(&self, gateway: &Gateway, refusal: Option<&Refusal>) -> (Bucket, Vec<Bucket>) {
        let app = &gateway.app;
        let all = match self.account.get() {
            None => vec![app.peek_source(&self.origin)],
            Some(account) => vec![
                app.peek(account, Resource::Requests),
                app.peek(account, Resource::Invocations),
            ],
        };
        let shown = match refusal {
            Some(Refusal::RateLimited { resource, limit, reset_at, .. }) => Bucket {
                resource: *resource,
                limit: *limit,
                remaining: 0,
                resets_at: reset_at.as_seconds(),
            },
            Some(_) | None => all
                .iter()
                .find(|bucket| bucket.resource == self.resource())
                .or(all.first())
                .copied()
                .unwrap_or_else(|| app.peek_source(&self.origin)),
        };
        (shown, all)
    }
}

/// The refusal of a request that is not let in, whatever it asks for.
fn barred(gateway: &Gateway, exchange: &Exchange, request: &Request) -> Option<Refusal> {
    let reserve = exchange.connection.as_ref().is_some_and(|it| it.used_for() == Use::Probes);
    let shed = request.extensions().get::<Shed>().is_some();
    if shed || (reserve && !health::is_probe(request)) {
        return Some(Refusal::Unavailable { reason: Unavailable::Overloaded });
    }
    let refusal = host::check(request).err()?;
    Some(gateway.app.charge_source(refusal, &exchange.origin).refusal)
}

fn text(headers: &HeaderMap, name: &str, longest: usize) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    Some(value.chars().take(longest).collect())
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

/// The outermost layer: every answer leaves through here, with envelope and headers.
pub(crate) async fn frame(
    State(gateway): State<Arc<Gateway>>,
    mut request: Request,
    next: Next,
) -> Response {
    let exchange = Arc::new(Exchange::begin(&gateway, &request));
    let route = super::metrics::Route::of(&request);
    request.extensions_mut().insert(Arc::clone(&exchange));
    let expects = request.headers().contains_key(header::EXPECT);
    let streamed = request.version() >= Version::HTTP_2;
    let mut response = match barred(&gateway, &exchange, &request) {
        None => next.run(request).await,
        Some(refusal) => {
            drop(request);
            Answer::Refused(refusal).into_response()
        }
    };
    if let Some(connection) = &exchange.connection {
        leftover::settle(connection, expects, response.headers_mut()).await;
        if connection.used_for() == Use::Probes && !streamed {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
    let answer = response.extensions_mut().remove::<Arc<Answer>>();
    let refusal = answer.as_deref().and_then(Answer::refusal);
    set_headers(&gateway, &exchange, refusal, response.headers_mut());
    if let Some(answer) = &answer {
        let body = body(&gateway, &exchange, answer).await;
        answer.write(body, &mut response);
        if exchange.is_rpc() {
            mcp::reply::set_status(answer, &exchange, &mut response);
        }
    }
    route.count(&gateway, &exchange.origin, response.status(), refusal);
    if let Some(recording) = exchange.origin.stages.traced() {
        traces::answered(recording, &exchange, &route, answer.as_deref(), response.status());
    }
    if let (Some(org), Some(answer)) = (exchange.org(), answer.filter(|answer| answer.is_large())) {
        gateway.app.discard(org, answer);
    }
    response
}

/// The body of an answer. A large one is not written by the thread that serves.
async fn body(gateway: &Arc<Gateway>, exchange: &Arc<Exchange>, answer: &Arc<Answer>) -> Vec<u8> {
    let Some(org) = exchange.org().filter(|_| answer.is_large()) else {
        return answer.body(gateway, exchange);
    };
    let (app, gateway) = (Arc::clone(&gateway.app), Arc::clone(gateway));
    let (exchange, answer) = (Arc::clone(exchange), Arc::clone(answer));
    let written = app.worked(org, usize::MAX, move || answer.body(&gateway, &exchange)).await;
    // What cannot be written is an empty body, as below.
    written.unwrap_or_default()
}

fn set_headers(
    gateway: &Gateway,
    exchange: &Exchange,
    refusal: Option<&Refusal>,
    headers: &mut HeaderMap,
) {
    let now = gateway.app.limits_now();
    let (shown, all) = exchange.buckets(gateway, refusal);
    headers.insert(LIMIT, shown.limit.into());
    headers.insert(REMAINING, shown.remaining.into());
    headers.insert(RESET, shown.resets_at.into());
    headers.insert(RESOURCE, HeaderValue::from_static(shown.resource.as_str()));
    let mut policy = String::with_capacity(64);
    let mut state = String::with_capacity(64);
    for bucket in &all {
        let name = bucket.resource.as_str();
        let separator = if policy.is_empty() { "" } else { ", " };
        let left = (bucket.resets_at - now.as_seconds()).max(0);
        // Writing to a string cannot fail.
        let _ = write!(policy, "{separator}\"{name}\";q={};w=60", bucket.limit);
        let _ = write!(state, "{separator}\"{name}\";r={};t={left}", bucket.remaining);
    }
    insert(headers, RATELIMIT_POLICY, &policy);
    insert(headers, RATELIMIT, &state);
    insert(headers, REQUEST_ID, &exchange.origin.request_id.to_string());
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
