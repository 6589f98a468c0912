//! MCP over streamable HTTP, both eras of it.

mod listen;
mod receive;
mod session;
mod turns;
mod wire;

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use http::{HeaderName, HeaderValue, StatusCode};
use portcullis_core::{
    json::Node,
    mcp::{Era, Method, code::UNSUPPORTED_VERSION, header},
    oauth::Challenge,
    refusal::{Executed, UpstreamReason::SessionLost},
};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout_at},
};

pub(crate) use self::wire::{Hears, Stop, Wire};
use self::{receive::Trouble, session::Session};
use crate::{
    error::CallError,
    mcp::message::{Outgoing, Reply, cancelled, of_era},
    params,
    settings::{Credential, Protocol},
    tools::ParamHeaders,
};

const MCP_METHOD: HeaderName = HeaderName::from_static(header::METHOD);
const MCP_NAME: HeaderName = HeaderName::from_static(header::NAME);
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// Time limit of a notification or of the end of a session.
const COURTESY: Duration = Duration::from_secs(2);

/// One upstream over HTTP.
#[derive(Debug)]
pub(crate) struct Http {
    wire: Arc<Wire>,
    protocol: Protocol,
    call_timeout: Duration,
    session: RwLock<Option<Arc<Session>>>,
    opening: Mutex<()>,
    params: RwLock<Arc<ParamHeaders>>,
}

impl Http {
    pub(crate) fn new(wire: Wire, protocol: Protocol, call_timeout: Duration) -> Self {
        Self {
            wire: Arc::new(wire),
            protocol,
            call_timeout,
            session: RwLock::default(),
            opening: Mutex::default(),
            params: RwLock::default(),
        }
    }

    /// Sends a request and waits for its result until `deadline`.
    pub(crate) async fn exchange(
        &self,
        request: &Outgoing<'_>,
        deadline: Instant,
    ) -> Result<Reply, CallError> {
        let session = self.session_by(deadline).await?;
        match self.send(&session, request, deadline).await {
            Err(Trouble::Status(StatusCode::NOT_FOUND)) if session.has_id => {
                self.forget(&session);
                if request.method == Method::CallTool {
                    // A server that does not know the session has not looked at the call. But the
                    // session may have ended by the call itself, and somebody on the way may answer
                    // 404 as well.
                    return Err(CallError::upstream(SessionLost, Executed::Unknown));
                }
                let session = self.session_by(deadline).await?;
                let second = self.send(&session, request, deadline).await;
                second.map_err(|trouble| self.give_up(&session, trouble))
            }
            first => first.map_err(|trouble| self.give_up(&session, trouble)),
        }
    }

    /// The same server, with a credential and sessions of its own.
    pub(crate) fn beside(&self, credential: Option<Credential>) -> (Self, Stop) {
        let (wire, stop) = self.wire.beside(credential);
        (Self::new(wire, self.protocol, self.call_timeout), stop)
    }

    pub(crate) fn set_credential(&self, credential: Option<Credential>) {
        self.wire.set_credential(credential);
    }

    pub(crate) fn challenge(&self) -> Option<Arc<Challenge>> {
        self.wire.challenge()
    }

    /// Returns true if large answers wait for each other, because one was too large.
    pub(crate) fn takes_turns(&self) -> bool {
        self.wire.turns.are_taken()
    }

    /// Remembers which arguments to mirror into headers.
    pub(crate) fn set_params(&self, params: ParamHeaders) {
        *self.params.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(params);
    }

    /// Ends the session politely.
    pub(crate) async fn shutdown(&self) {
        self.wire.stop.cancel();
        let session = self.session.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(session) = session.filter(|session| session.has_id) {
            // The session ends on its own when this does not arrive.
            let _ = tokio::time::timeout(COURTESY, self.wire.delete(&session.headers)).await;
        }
    }

    async fn session_by(&self, deadline: Instant) -> Result<Arc<Session>, CallError> {
        if let Some(session) = self.current() {
            return Ok(session);
        }
        match timeout_at(deadline, self.open()).await {
            Ok(opened) => opened.map_err(CallError::before_the_call),
            Err(_) => Err(CallError::timeout(self.call_timeout, Executed::No)),
        }
    }

    fn current(&self) -> Option<Arc<Session>> {
        self.session.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens a session; those who come meanwhile wait and share it.
    async fn open(&self) -> Result<Arc<Session>, CallError> {
        let _one_at_a_time = self.opening.lock().await;
        if let Some(session) = self.current() {
            return Ok(session);
        }
        if self.wire.stop.is_cancelled() {
            return Err(CallError::connect_failed());
        }
        let silence = self.call_timeout / 3;
        let session = Arc::new(Session::open(&self.wire, self.protocol, silence).await?);
        let known = &mut *self.session.write().unwrap_or_else(PoisonError::into_inner);
        *known = Some(session.clone());
        Ok(session)
    }

    /// Forgets a session, unless another one has taken its place already.
    fn forget(&self, session: &Arc<Session>) {
        let mut known = self.session.write().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_some_and(|known| Arc::ptr_eq(known, session)) {
            *known = None;
            self.wire.tools_changed();
        }
    }

    async fn send(
        &self,
        session: &Session,
        request: &Outgoing<'_>,
        deadline: Instant,
    ) -> Result<Reply, Trouble> {
        let id = self.wire.ids.next();
        let body = request.encode(id, session.era).map_err(Trouble::Call)?;
        let mut headers = session.headers.clone();
        if session.era == Era::Modern {
            headers.insert(MCP_METHOD, HeaderValue::from_static(request.method.as_str()));
            if let Some(name) = request.name {
                self.mirror(name, request.arguments, &mut headers);
            }
        }
        trace(request, &mut headers);
        let work = async {
            let response = self.wire.post(headers, body).await.map_err(Trouble::Call)?;
            self.wire.receive(response, id, session, request).await
        };
        let _waits = session.forms.as_ref().zip(request.forms).map(|(all, call)| all.add(id, call));
        let work = async {
            let work = timeout_at(deadline, work);
            let late = |_| CallError::timeout(self.call_timeout, Executed::Unknown);
            if !request.may_be_abandoned() {
                return work.await.map_err(late);
            }
            tokio::select! {
                // An answer that has come counts.
                biased;
                outcome = work => outcome.map_err(late),
                ended = request.abandoned() => Err(ended),
            }
        };
        let result = match work.await {
            Ok(outcome) => outcome?.map_err(Trouble::Rpc)?,
            Err(ended) => {
                self.cancel(session, id);
                return Err(Trouble::Call(ended));
            }
        };
        of_era(result, session.era).map_err(Trouble::Call)
    }

    fn mirror(
        &self,
        name: &portcullis_core::tool::ToolName,
        arguments: Option<Node<'_>>,
        headers: &mut http::HeaderMap,
    ) {
        if let Ok(value) = HeaderValue::from_str(name.as_str()) {
            headers.insert(MCP_NAME, value);
        }
        let params = self.params.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let (Some(params), Some(arguments)) = (params.get(name), arguments) {
            params::mirror(params, arguments, headers);
        }
    }

    /// Tells a server of the older era that nobody waits any more; in the modern one the closed
    /// stream says so.
    fn cancel(&self, session: &Session, id: u64) {
        if session.era != Era::Modern {
            self.wire.post_in_background(session.headers.clone(), cancelled(id));
        }
    }

    /// Draws the conclusions of a failure for the call and for the session.
    fn give_up(&self, session: &Arc<Session>, trouble: Trouble) -> CallError {
        match trouble {
            Trouble::Call(error) => error,
            Trouble::Rpc(error) => {
                if error.code == UNSUPPORTED_VERSION {
                    self.forget(session);
                }
                error.to_call_error()
            }
            Trouble::Status(status) => {
                self.forget(session);
                CallError::protocol(executed_after(status))
            }
        }
    }
}

/// The trace that a request is part of, for servers that look at headers only.
fn trace(request: &Outgoing<'_>, headers: &mut http::HeaderMap) {
    let Some(parent) = request.traceparent else { return };
    if let Ok(value) = HeaderValue::from_str(&parent.to_string()) {
        headers.insert(TRACEPARENT, value);
    }
    if let Some(Ok(value)) = request.tracestate.map(HeaderValue::from_str) {
        headers.insert(TRACESTATE, value);
    }
}

/// Execution of a request that was answered with this status only.
fn executed_after(status: StatusCode) -> Executed {
    const REFUSED: [StatusCode; 7] = [
        StatusCode::NOT_FOUND,
        StatusCode::METHOD_NOT_ALLOWED,
        StatusCode::NOT_ACCEPTABLE,
        StatusCode::PAYLOAD_TOO_LARGE,
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::MISDIRECTED_REQUEST,
    ];
    if REFUSED.contains(&status) { Executed::No } else { Executed::Unknown }
}

/// The request that opens the stream of announcements in the modern era.
const LISTEN: Outgoing<'static> = Outgoing::bare(Method::Listen);
