//! One request while it is handled: who it is from, and what it asks for.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod caller;
pub(crate) mod host;
pub(crate) mod idempotency;
pub(crate) mod message;
pub(crate) mod nearest;
pub(crate) mod outcome;
pub(crate) mod page;
pub(crate) mod precondition;
pub(crate) mod proof;
pub(crate) mod query;
pub(crate) mod segment;
pub(crate) mod spec;
pub(crate) mod sse;
pub(crate) mod waiting;

pub(crate) use self::{
    answer::{ErrorAnswer, InvokeAnswer, Items, One, Paged},
    body::RequestBody,
    caller::{Caller, Credential, NoQuery, Stranger, TokenScheme, WithQuery},
    idempotency::idempotency_key,
    nearest::NamedBy,
    outcome::{Content, Failure, HandlerResult, Outcome},
    page::Listing,
    precondition::if_match,
    query::Query,
    segment::{Segment, segment},
    spec::{Access, RouteSpec, Thread, Words},
    waiting::Wait,
};

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, header, request::Parts},
};
use portcullis_app::{Account, Origin, PresentedProof, Session};
use portcullis_core::{
    id::{OrgId, PrincipalId, RequestId},
    refusal::Refusal,
    trace::{TraceParent, whole_entries},
};

use self::message::McpMessage;
use crate::{
    connection::Connection,
    gateway::{Gateway, known_senders::Payer},
};

/// The operator as the caller of a request. Only [`OperatorApi`](crate::OperatorApi) adds it to one, within the process:
/// nothing that comes over a connection has an extension of this type.
#[derive(Clone)]
pub(crate) struct OperatorSession(pub(crate) Arc<Session>);

/// State of a request while it is handled; shared by the frame and the handler.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) origin: Arc<Origin>,
    pub(crate) route: RouteSpec,
    /// On a route of JSON-RPC: the message, once it is read.
    pub(crate) message: Option<OnceLock<McpMessage>>,
    /// On the same: the host that was asked and the path of the MCP endpoint.
    pub(crate) endpoint: Option<Box<str>>,
    pub(crate) account: OnceLock<Account>,
    principal: OnceLock<PrincipalId>,
    pub(crate) caller: OnceLock<Arc<Session>>,
    /// The operator, who needs no token.
    pub(crate) operator: Option<Arc<Session>>,
    proof: Option<Box<PresentedProof>>,
    pub(crate) connection: Option<Arc<Connection>>,
}

impl Exchange {
    pub(crate) fn begin(
        gateway: &Gateway,
        route: RouteSpec,
        connection: Option<Arc<Connection>>,
        request: &Request,
    ) -> Self {
        let headers = request.headers();
        let traceparent = traceparent(headers);
        let tracestate = traceparent.and_then(|_| tracestate(headers));
        let request_id = RequestId::new(gateway.app.base.ids());
        let arrived = gateway.app.base.now();
        let operator = request.extensions().get().map(|OperatorSession(it)| Arc::clone(it));
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
                is_internal: operator.is_some(),
            }),
            route,
            message: (route.access == Access::Message).then(OnceLock::new),
            endpoint: (route.access == Access::Message).then(|| {
                let host = host::named(headers, request.uri()).unwrap_or_default();
                [host, request.uri().path()].concat().into()
            }),
            account: OnceLock::new(),
            principal: OnceLock::new(),
            caller: OnceLock::new(),
            operator,
            proof: proof::presented(gateway, request),
            connection,
        }
    }

    /// The exchange of a request inside the frame.
    pub(crate) fn of(parts: &Parts) -> Result<&Arc<Self>, Refusal> {
        parts.extensions.get::<Arc<Self>>().ok_or(Refusal::Internal)
    }

    /// Returns true if the request asks for a call of a tool.
    pub(crate) fn is_invocation(&self) -> bool {
        self.route.is_invocation() || self.message().is_some_and(McpMessage::is_call)
    }

    /// The message of JSON-RPC, once it is read.
    pub(crate) fn message(&self) -> Option<&McpMessage> {
        self.message.as_ref()?.get()
    }

    /// From here on it is known what the message asks for.
    pub(crate) fn set_message(&self, asked: McpMessage) {
        if let Some(message) = &self.message {
            let _ = message.set(asked);
        }
    }

    /// The proof of possession that came with the request.
    pub(crate) fn proof(&self) -> Option<&PresentedProof> {
        self.proof.as_deref()
    }

    /// The org whose plan pays, if it is known.
    pub(crate) fn org(&self) -> Option<OrgId> {
        self.account.get().map(Account::org)
    }

    /// The org and the principal that the answer is charged to.
    pub(crate) fn payer(&self) -> Option<Payer> {
        Some(Payer { org: self.org()?, principal: self.principal.get().copied() })
    }

    /// From here on it is known who asks. The session is not kept for calls, whose streams may last for long.
    pub(crate) fn set_caller(&self, session: &Arc<Session>) {
        let _ = self.principal.set(session.caller.principal_id);
        self.set_account(session.account());
        if !matches!(self.route.access, Access::Call(_) | Access::Message) {
            let _ = self.caller.set(Arc::clone(session));
        }
    }

    /// From here on it is known whose plan pays.
    pub(crate) fn set_account(&self, account: Account) {
        let _ = self.account.set(account);
        if let Some(connection) = &self.connection {
            connection.authenticated();
        }
    }
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
