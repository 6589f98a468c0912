//! MCP over streamable HTTP, both eras of it.

pub(crate) mod cause;
mod connection;
mod handshake;
mod large_answers;
mod listen;
mod receive;
mod session;

use std::{
    pin::pin,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use http::{HeaderName, HeaderValue, StatusCode};
use portcullis_core::{
    json::Node,
    mcp::{Era, Method, header},
    oauth::Challenge,
    refusal::{Executed, UpstreamReason::SessionLost},
};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use self::connection::{AcceptedMessages, Connection, Endpoint, Stop};
use self::{listen::SessionStream, receive::Trouble, session::Session};
use crate::{
    announced::Watched,
    error::CallError,
    mcp::{
        era::{self, Peer},
        message::{Reply, of_era},
        outgoing::{Outgoing, cancelled},
    },
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
    connection: Arc<Connection>,
    protocol: Protocol,
    call_timeout: Duration,
    session: RwLock<Option<Arc<Session>>>,
    opening: Mutex<()>,
    params: RwLock<Arc<ParamHeaders>>,
}

impl Http {
    pub(crate) fn new(connection: Connection, protocol: Protocol, call_timeout: Duration) -> Self {
        Self {
            connection: Arc::new(connection),
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
        request.check_peer(session.number)?;
        let trouble = match self.attempt(&session, request, deadline).await {
            Ok(reply) => return Ok(reply),
            Err(trouble) => trouble,
        };
        let is_forgotten =
            session.has_id && matches!(trouble, Trouble::Status(StatusCode::NOT_FOUND));
        if request.method.is_use() {
            // A server that does not know the session has not looked at the call. But the session
            // may have ended by the call itself, and a proxy on the way may answer 404 as well.
            let lost = CallError::upstream(SessionLost, Executed::Unknown);
            return Err(if is_forgotten { lost } else { trouble.of(request) });
        }
        if !session.health.is_suspect() || Instant::now() >= deadline {
            return Err(trouble.of(request));
        }
        Box::pin(self.try_again(&session, trouble, request, deadline)).await
    }

    /// Sends a request that has no effect in another session, if another one can be opened.
    async fn try_again(
        &self,
        session: &Arc<Session>,
        trouble: Trouble,
        request: &Outgoing<'_>,
        deadline: Instant,
    ) -> Result<Reply, CallError> {
        let renewed = self.session_by(deadline).await?;
        if Arc::ptr_eq(&renewed, session) {
            return Err(trouble.of(request));
        }
        let second = self.attempt(&renewed, request, deadline).await;
        second.map_err(|trouble| trouble.of(request))
    }

    /// Sends a request once and draws the conclusions for the session.
    async fn attempt(
        &self,
        session: &Arc<Session>,
        request: &Outgoing<'_>,
        deadline: Instant,
    ) -> Result<Reply, Trouble> {
        let outcome = self.send(session, request, deadline).await;
        match outcome.as_ref().err().and_then(Trouble::suspicion) {
            Some(suspicion) => session.health.suspect(suspicion),
            None => session.health.confirm(),
        }
        if session.has_id && matches!(outcome, Err(Trouble::Status(StatusCode::NOT_FOUND))) {
            self.forget(session);
        }
        outcome
    }

    /// Asks the server whether it knows the session, if there is doubt.
    async fn is_known(&self, session: &Session) -> bool {
        if !session.health.is_suspect() {
            return true;
        }
        if session.health.is_certain() {
            return false;
        }
        let method = if session.era == Era::Modern { Method::Discover } else { Method::Ping };
        let deadline = Instant::now() + self.call_timeout / 3;
        let known = match self.send(session, &Outgoing::bare(method), deadline).await {
            Ok(reply) => session.era != Era::Modern || era::is_modern(&Ok(reply)),
            Err(Trouble::Rpc(error)) => session.era != Era::Modern && !error.is_about_the_session(),
            Err(Trouble::Status(_) | Trouble::Refused(_) | Trouble::Call(_)) => false,
        };
        match (known, session.has_id) {
            (true, true) => session.health.vouch(),
            // There is nothing that it could have forgotten.
            (true, false) => session.health.confirm(),
            (false, _) => {}
        }
        known
    }

    /// The same server, with a credential and sessions of its own.
    pub(crate) fn beside(&self, credential: Option<Credential>) -> (Self, Stop) {
        let (connection, stop) = self.connection.beside(credential);
        (Self::new(connection, self.protocol, self.call_timeout), stop)
    }

    /// The credential that it shows.
    pub(crate) fn credential(&self) -> Option<Arc<Credential>> {
        self.connection.credential()
    }

    pub(crate) fn set_credential(&self, credential: Option<Credential>) {
        self.connection.set_credential(credential);
    }

    pub(crate) fn challenge(&self) -> Option<Arc<Challenge>> {
        self.connection.challenge()
    }

    /// Last cause that kept the server from use, unless it answered since.
    pub(crate) fn cause(&self) -> Option<String> {
        self.connection.cause()
    }

    /// The session, if there is one.
    pub(crate) fn known_peer(&self) -> Option<Peer> {
        self.current().map(|session| session.peer())
    }

    /// The session, which is opened if there is none.
    pub(crate) async fn peer(&self, deadline: Instant) -> Result<Peer, CallError> {
        self.session_by(deadline).await.map(|session| session.peer())
    }

    /// Has a server of the modern era tell of resources that are watched, until that ends.
    pub(crate) async fn listen(&self, watched: Vec<Arc<str>>) {
        let Some(session) = self.current() else { return };
        let stream = SessionStream::of(session.era, &session.headers);
        let stream = SessionStream { announces: false, watched, ..stream };
        listen::once(&self.connection, stream).await;
    }

    /// Resources of the server that are watched.
    pub(crate) fn watched(&self) -> &Arc<Watched> {
        &self.connection.announcer.watched
    }

    /// Kinds and extensions that the server declared last.
    pub(crate) fn offered(&self) -> Arc<Vec<String>> {
        self.connection.announcer.offered.load_full()
    }

    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.connection.stop
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.connection.tasks
    }

    /// Returns true if large answers wait for each other, because one was too large.
    pub(crate) fn takes_turns(&self) -> bool {
        self.connection.large_answers.are_taken()
    }

    /// Remembers which arguments to mirror into headers.
    pub(crate) fn set_params(&self, params: ParamHeaders) {
        *self.params.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(params);
    }

    /// Ends the session politely.
    pub(crate) async fn shutdown(&self) {
        self.connection.stop.cancel();
        let session = self.session.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(session) = session.filter(|session| session.has_id) {
            // The session ends on its own when this does not arrive.
            let _ = tokio::time::timeout(COURTESY, self.connection.delete(&session.headers)).await;
        }
    }

    async fn session_by(&self, deadline: Instant) -> Result<Arc<Session>, CallError> {
        if let Some(session) = self.current().filter(|session| !session.health.is_suspect()) {
            return Ok(session);
        }
        match timeout_at(deadline, Box::pin(self.open())).await {
            Ok(opened) => opened.map_err(CallError::before_the_call),
            Err(_) => Err(CallError::timeout(self.call_timeout, Executed::No)),
        }
    }

    fn current(&self) -> Option<Arc<Session>> {
        self.session.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens a session, unless the server still knows the one there is; those who come meanwhile wait and
    /// share it.
    async fn open(&self) -> Result<Arc<Session>, CallError> {
        let _one_at_a_time = self.opening.lock().await;
        if let Some(session) = self.current() {
            if self.is_known(&session).await {
                return Ok(session);
            }
            self.forget(&session);
        }
        if self.connection.stop.is_cancelled() {
            return Err(CallError::connect_failed());
        }
        let silence = self.call_timeout / 3;
        let session = Session::open(&self.connection, self.protocol, silence).await?;
        let session = Arc::new(Session { number: self.connection.ids.next(), ..session });
        let known = &mut *self.session.write().unwrap_or_else(PoisonError::into_inner);
        *known = Some(session.clone());
        Ok(session)
    }

    /// Forgets a session, unless another one has taken its place already.
    fn forget(&self, session: &Arc<Session>) {
        let mut known = self.session.write().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_some_and(|known| Arc::ptr_eq(known, session)) {
            *known = None;
            self.connection.announcer.lists_changed();
        }
    }

    async fn send(
        &self,
        session: &Session,
        request: &Outgoing<'_>,
        deadline: Instant,
    ) -> Result<Reply, Trouble> {
        let id = self.connection.ids.next();
        let body = request.encode(id, session.era).map_err(Trouble::Call)?;
        let mut headers = session.headers.clone();
        if session.era == Era::Modern {
            headers.insert(MCP_METHOD, HeaderValue::from_static(request.method.as_str()));
            if let Some(name) = request.name {
                let of_tool = request.method == Method::CallTool;
                self.mirror(name, request.arguments.filter(|_| of_tool), &mut headers);
            }
            let named = request.uri.or(request.task);
            if let Some(Ok(name)) = named.map(|it| HeaderValue::from_str(&header::encode(it))) {
                headers.insert(MCP_NAME, name);
            }
        }
        trace(request, &mut headers);
        let _waits = session.forms.as_ref().zip(request.forms).map(|(all, call)| all.add(id, call));
        let mut work = pin!(timeout_at(deadline, async {
            let response = self.connection.post(headers, body).await.map_err(Trouble::Call)?;
            self.connection.receive(response, id, session, request).await
        }));
        let late = |_| CallError::timeout(self.call_timeout, Executed::Unknown);
        let worked = if request.may_be_abandoned() {
            tokio::select! {
                // An answer that has come counts.
                biased;
                outcome = &mut work => outcome.map_err(late),
                ended = request.abandoned() => Err(ended),
            }
        } else {
            work.await.map_err(late)
        };
        let result = match worked {
            Ok(outcome) => outcome?.map_err(Trouble::Rpc)?,
            Err(ended) => {
                self.cancel(session, id);
                return Err(Trouble::Call(ended));
            }
        };
        let reply = of_era(result, session.era).map_err(Trouble::Call)?;
        Ok(Reply { peer: session.number, ..reply })
    }

    fn mirror(
        &self,
        name: &portcullis_core::capability::CapabilityName,
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

    /// Tells a server of the older era that the caller gave up; in the modern one the closed stream
    /// says so.
    fn cancel(&self, session: &Session, id: u64) {
        if session.era != Era::Modern {
            self.connection.post_in_background(session.headers.clone(), cancelled(id));
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
