//! Single HTTP requests to one upstream.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Uri,
    header::{self, ACCEPT, CONTENT_TYPE},
};
use hyper_util::client::legacy;
use portcullis_core::{oauth::Challenge, refusal::Executed};
use tokio::{sync::Semaphore, time::timeout};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use super::{COURTESY, cause, large_answers::LargeAnswers};
use crate::{
    announced::Announcer,
    clients::Clients,
    error::CallError,
    forms::Forms,
    http_client::{AGENT, Answer, JSON},
    ids::Ids,
    settings::Credential,
};

pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

const MAX_COURTESIES: usize = 16;
/// Replies under way at once.
const MAX_REPLIES: usize = 256;
/// Time limit of a reply.
const REPLY: Duration = Duration::from_secs(10);

/// Messages that are accepted of a server besides its answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AcceptedMessages {
    /// Announcements of changes of its lists.
    pub(crate) announcements: bool,
    /// Forms, if it speaks the older era.
    pub(crate) forms: Forms,
    /// Pages of its apps.
    pub(crate) apps: bool,
}

/// Connection to one upstream, without any memory of what was said.
#[derive(Debug)]
pub(crate) struct Connection {
    clients: Arc<Clients>,
    uri: Uri,
    credential: ArcSwapOption<Credential>,
    /// Challenge of the last refusal of the credential.
    challenge: ArcSwapOption<Challenge>,
    /// Last cause that kept the server from use.
    cause: ArcSwapOption<String>,
    pub(super) accepted: AcceptedMessages,
    pub(super) max_response_bytes: usize,
    /// Turns of its large answers.
    pub(super) large_answers: Arc<LargeAnswers>,
    pub(super) ids: Arc<Ids>,
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
    courtesies: Arc<Semaphore>,
    replies: Arc<Semaphore>,
    pub(super) announcer: Announcer,
}

/// Address of an upstream, and the credential for it.
pub(crate) struct Endpoint {
    pub(crate) clients: Arc<Clients>,
    pub(crate) uri: Uri,
    pub(crate) credential: Option<Credential>,
}

/// Stops what runs for an upstream when it is dropped.
pub(crate) type Stop = DropGuard;

impl Connection {
    pub(crate) fn new(
        Endpoint { clients, uri, credential }: Endpoint,
        accepted: AcceptedMessages,
        max_response_bytes: usize,
        ids: Ids,
        tasks: TaskTracker,
        announcer: Announcer,
    ) -> (Self, Stop) {
        let stop = CancellationToken::new();
        let credential = ArcSwapOption::from_pointee(credential);
        let guard = stop.clone().drop_guard();
        let courtesies = Arc::new(Semaphore::new(MAX_COURTESIES));
        let replies = Arc::new(Semaphore::new(MAX_REPLIES));
        let connection = Self {
            clients,
            uri,
            credential,
            challenge: ArcSwapOption::empty(),
            cause: ArcSwapOption::empty(),
            accepted,
            max_response_bytes,
            large_answers: Arc::default(),
            ids: Arc::new(ids),
            tasks,
            stop,
            courtesies,
            replies,
            announcer,
        };
        (connection, guard)
    }

    /// The headers that every message has, but for the credential, which is put in when it is
    /// sent.
    pub(super) fn headers() -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(12);
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, BOTH);
        headers.insert(header::USER_AGENT, AGENT);
        headers
    }

    /// Another connection to the same server, which shows another credential and accepts no
    /// announcements of lists.
    pub(crate) fn beside(&self, credential: Option<Credential>) -> (Self, Stop) {
        let stop = self.stop.child_token();
        let guard = stop.clone().drop_guard();
        let connection = Self {
            clients: Arc::clone(&self.clients),
            uri: self.uri.clone(),
            credential: ArcSwapOption::from_pointee(credential),
            challenge: ArcSwapOption::empty(),
            cause: ArcSwapOption::empty(),
            accepted: AcceptedMessages { announcements: false, ..self.accepted },
            max_response_bytes: self.max_response_bytes,
            large_answers: Arc::clone(&self.large_answers),
            ids: Arc::clone(&self.ids),
            tasks: self.tasks.clone(),
            stop,
            courtesies: Arc::clone(&self.courtesies),
            replies: Arc::clone(&self.replies),
            announcer: self.announcer.beside(),
        };
        (connection, guard)
    }

    /// The credential that it shows.
    pub(crate) fn credential(&self) -> Option<Arc<Credential>> {
        self.credential.load_full()
    }

    /// Shows this credential from now on.
    pub(crate) fn set_credential(&self, credential: Option<Credential>) {
        self.credential.store(credential.map(Arc::new));
    }

    /// Challenge of the last refusal of the credential.
    pub(crate) fn challenge(&self) -> Option<Arc<Challenge>> {
        self.challenge.load_full()
    }

    pub(super) fn challenged(&self, challenge: Option<Challenge>) {
        self.challenge.store(challenge.map(Arc::new));
    }

    /// Last cause that kept the server from use, unless it answered since.
    pub(crate) fn cause(&self) -> Option<String> {
        self.cause.load().as_deref().cloned()
    }

    /// Notes why the server cannot be used.
    pub(super) fn caused(&self, cause: String) {
        self.cause.store(Some(Arc::new(cause)));
    }

    /// The server answered as one that can be used.
    pub(super) fn note_answer(&self) {
        if self.cause.load().is_some() {
            self.cause.store(None);
        }
    }

    fn with_credential(&self, mut headers: HeaderMap) -> HeaderMap {
        if let Some(credential) = &*self.credential.load() {
            headers.insert(credential.name.clone(), credential.value.clone());
        }
        headers
    }

    async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Answer, CallError> {
        let headers = self.with_credential(headers);
        let client = self.clients.here();
        let sent = client.send(method, self.uri.clone(), headers, body).await;
        sent.map_err(|error| {
            self.caused(cause::of_connection(&error));
            sending_failed(&error)
        })
    }

    /// Sends one message; the answer's body is still to be read.
    pub(super) async fn post(
        &self,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Answer, CallError> {
        self.send(Method::POST, headers, body).await
    }

    /// Opens a stream of events, or resumes one after the event `last`.
    pub(super) async fn get(
        &self,
        session: &HeaderMap,
        last: Option<&str>,
    ) -> Result<Answer, CallError> {
        let mut headers = session.clone();
        headers.remove(CONTENT_TYPE);
        headers.insert(ACCEPT, EVENTS);
        if let Some(last) = last.and_then(|last| HeaderValue::from_str(last).ok()) {
            headers.insert(LAST_EVENT_ID, last);
        }
        self.send(Method::GET, headers, Vec::new()).await
    }

    /// Ends a session.
    pub(super) async fn delete(&self, session: &HeaderMap) -> Result<Answer, CallError> {
        let mut headers = session.clone();
        headers.remove(CONTENT_TYPE);
        self.send(Method::DELETE, headers, Vec::new()).await
    }

    /// Sends a message for which no answer is expected, without waiting. With many of them under
    /// way already it is left out.
    pub(super) fn post_in_background(&self, headers: HeaderMap, body: Vec<u8>) {
        // When it is lost, the server finds out by itself.
        self.send_in_background(&self.courtesies, COURTESY, headers, body);
    }

    /// Sends the reply to a request of the server's likewise. Where forms are answered, calls wait for
    /// it: it is left out only when a server asks more than they could.
    pub(super) fn reply_in_background(&self, headers: HeaderMap, body: Vec<u8>) {
        let (permits, limit) = match self.accepted.forms {
            Forms::Refuse => (&self.courtesies, COURTESY),
            Forms::Defaults => (&self.replies, REPLY),
        };
        self.send_in_background(permits, limit, headers, body);
    }

    fn send_in_background(
        &self,
        permits: &Arc<Semaphore>,
        limit: Duration,
        headers: HeaderMap,
        body: Vec<u8>,
    ) {
        let Ok(permit) = Arc::clone(permits).try_acquire_owned() else { return };
        let headers = self.with_credential(headers);
        let uri = self.uri.clone();
        let client = self.clients.here();
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let _permit = permit;
            tokio::select! {
                () = stop.cancelled() => {}
                _ = timeout(limit, client.send(Method::POST, uri, headers, body)) => {}
            }
        });
    }
}

/// Maps a failure: nothing was sent for certain only when no connection was made.
fn sending_failed(error: &legacy::Error) -> CallError {
    if error.is_connect() {
        CallError::connect_failed()
    } else {
        CallError::reset(Executed::Unknown)
    }
}
