//! Context of a use case: everything it is told besides its own arguments.

pub(crate) mod attendance;
pub(crate) mod dlp;
pub(crate) mod permitted;
pub(crate) mod possession;
pub(crate) mod screening;
pub(crate) mod session;

use std::{fmt, net::IpAddr, sync::Arc};

use portcullis_core::{
    audit::{self, Actor, Capture, Event, EventType, Outcome, Target},
    call::Asker,
    clock::Timestamp,
    id::{EventId, RequestId},
    principal::{Caller, Scope},
    refusal::{Executed, Refusal},
    trace::TraceParent,
};
use serde_json::Value;

use self::{attendance::Attendance, screening::Screening, session::Session};
use crate::telemetry::stages::Stages;

/// One HTTP request before anybody is known: where it came from and when.
#[derive(Debug, Clone)]
pub struct Origin {
    /// Ours; also in `X-Request-Id`.
    pub request_id: RequestId,
    pub arrived: Timestamp,
    pub source_ip: IpAddr,
    /// The client's `User-Agent`, cut to 256 characters.
    pub user_agent: Option<String>,
    /// W3C `traceparent`, if it was well-formed.
    pub traceparent: Option<TraceParent>,
    /// W3C `tracestate`, if there was a `traceparent`.
    pub tracestate: Option<String>,
    pub stages: Stages,
    /// True for a request of the operator within the process, of which events tell nothing but who made it.
    pub is_internal: bool,
}

impl Origin {
    /// The request as events record it; `None` for one within the process.
    pub(crate) fn noted(&self) -> Option<audit::Request> {
        (!self.is_internal).then(|| self.recorded())
    }

    /// The same of a request from the network.
    pub(crate) fn recorded(&self) -> audit::Request {
        audit::Request {
            id: self.request_id,
            idempotent: false,
            trace_id: self.stages.trace_id().or(self.traceparent.map(|parent| parent.trace)),
        }
    }

    /// Origin of the request, as events commit to it.
    pub(crate) fn detached(&self, screening: &Screening) -> audit::Detached {
        if self.is_internal {
            return audit::Detached::default();
        }
        let random = &*screening.base.random;
        let user_agent = self.user_agent.as_deref().map(|text| screening.recordable(text));
        let address = self.source_ip.to_string();
        let detached = audit::Detached::default();
        let detached = detached.keep_text("source_ip", Some(&address), random);
        detached.keep_text("user_agent", user_agent.as_deref(), random)
    }
}

/// A request of a known caller.
#[derive(Debug, Clone)]
pub struct Ctx {
    pub origin: Arc<Origin>,
    pub session: Arc<Session>,
    /// The caller's side of a call that it attends.
    pub attendance: Option<Attendance>,
}

impl Ctx {
    /// The caller.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.session.caller
    }

    /// Refuses unless the token carries `scope`. The protocol that offers an operation asks for its
    /// scope, once; use cases ask only for what depends on their arguments, such as `admin`, and
    /// for what has to be recorded, as in a call.
    pub fn require(&self, scope: Scope) -> Result<(), Refusal> {
        if self.caller().scopes.contains(scope) {
            Ok(())
        } else {
            Err(Refusal::InsufficientScope { required: scope })
        }
    }

    pub(crate) fn asker(&self, capture: Capture) -> Asker<'_> {
        Asker {
            capture,
            principal: &self.session.principal,
            time: self.origin.arrived,
            source_ip: Some(self.origin.source_ip),
        }
    }

    pub(crate) fn recorded_request(&self) -> audit::Request {
        self.origin.recorded()
    }

    /// The personal part every event of this request commits to.
    pub(crate) fn detached(&self, screening: &Screening) -> audit::Detached {
        let random = &*screening.base.random;
        self.origin
            .detached(screening)
            .keep_text("actor_name", self.caller().recorded_name(), random)
            .keep_text("label", self.caller().label.as_deref(), random)
    }

    /// The event of a change by the caller to `id`, with its particulars.
    pub(crate) fn change_event(
        &self,
        screening: &Screening,
        kind: EventType,
        target: &'static str,
        id: impl fmt::Display,
        change: Option<Value>,
    ) -> Event {
        let event = self.event(screening, kind, target_of(target, id));
        let detached = event.detached.keep("change", change, &*screening.base.random);
        Event { detached, ..event }
    }

    /// An event of this request about `target`, which succeeded.
    pub(crate) fn event(&self, screening: &Screening, kind: EventType, target: Target) -> Event {
        Event {
            id: EventId::new(screening.base.ids()),
            org_id: self.caller().org_id,
            kind,
            occurred_at: self.origin.arrived,
            count: None,
            actor: Actor::of(self.caller()),
            request: self.origin.noted(),
            target: Some(target),
            governance: None,
            outcome: Outcome::success(Executed::Yes),
            detached: self.detached(screening),
        }
    }
}

/// The target of an event that is named by its kind and id alone.
pub(crate) fn target_of(kind: &'static str, id: impl fmt::Display) -> Target {
    Target {
        capability: None,
        credential: None,
        id: Some(id.to_string()),
        provider_id: None,
        kind,
        version: None,
    }
}

/// Versions of a resource that a change applies to (RFC 9110 §13.1.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Precondition {
    /// Whatever its version is.
    None,
    /// One of these, unquoted.
    OneOf(Vec<String>),
}

impl Precondition {
    /// Returns true if a resource of this version may be changed.
    pub(crate) fn admits(&self, version: &str) -> bool {
        match self {
            Self::None => true,
            Self::OneOf(versions) => versions.iter().any(|named| named == version),
        }
    }
}
