//! Ways to a server.

use std::sync::Arc;

use tokio::{sync::watch, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    announced::{Announcer, Watched},
    error::{CallError, SettingsError},
    http::{AcceptedMessages, Connection, Endpoint, Http, Stop},
    mcp::{era::Peer, message::Reply, outgoing::Outgoing},
    outbound::Outbound,
    settings::{ServerSettings, Transport},
    stdio::{Launch, Stdio},
    tools::Headers,
};

pub(super) enum Link {
    Http { http: Http, _stop: Stop },
    Stdio(Stdio),
}

impl Link {
    pub(super) fn new(
        settings: ServerSettings,
        outbound: &Outbound,
        changed: watch::Sender<u64>,
    ) -> Result<Self, SettingsError> {
        let announcer = Announcer::new(changed);
        let ids = outbound.ids();
        let tasks = outbound.tasks().clone();
        match settings.transport {
            Transport::Http { endpoint, credential } => {
                let clients = outbound.clients(endpoint.reach(), settings.connect_timeout)?;
                let endpoint = Endpoint { clients, uri: endpoint.uri()?, credential };
                let (forms, apps) = (settings.forms, settings.apps.is_some());
                let accepted = AcceptedMessages { announcements: true, forms, apps };
                let (connection, stop) = Connection::new(
                    endpoint, accepted, settings.max_response_bytes, ids, tasks, announcer,
                );
                let http = Http::new(connection, settings.protocol, settings.call_timeout);
                Ok(Self::Http { http, _stop: stop })
            }
            Transport::Stdio(program) => Ok(Self::Stdio(Stdio::new(Launch {
                slug: settings.slug,
                program,
                protocol: settings.protocol,
                forms: settings.forms,
                apps: settings.apps.is_some(),
                call_timeout: settings.call_timeout,
                start_timeout: settings.start_timeout,
                silence: settings.connect_timeout,
                max_line_bytes: settings.max_response_bytes,
                ids: Arc::new(ids),
                starts: outbound.starts(),
                jitter: outbound.jitter(),
                last_words: Arc::default(),
                tasks,
                announcer,
            }))),
        }
    }

    pub(super) const fn headers(&self) -> Headers {
        match self {
            Self::Http { .. } => Headers::Mirrored,
            Self::Stdio(_) => Headers::None,
        }
    }

    /// Returns true if large answers wait for each other.
    pub(super) fn takes_turns(&self) -> bool {
        match self {
            Self::Http { http, .. } => http.takes_turns(),
            Self::Stdio(_) => false,
        }
    }

    /// The session or process, as far as that is known without waiting.
    pub(super) fn known_peer(&self) -> Option<Peer> {
        match self {
            Self::Http { http, .. } => http.known_peer(),
            Self::Stdio(stdio) => stdio.known_peer(),
        }
    }

    /// The session or process, which begins if there is none.
    pub(super) async fn peer(&self, deadline: Instant) -> Result<Peer, CallError> {
        match self {
            Self::Http { http, .. } => http.peer(deadline).await,
            Self::Stdio(stdio) => stdio.peer(deadline).await,
        }
    }

    /// Resources that are watched.
    pub(super) fn watched(&self) -> &Arc<Watched> {
        match self {
            Self::Http { http, .. } => http.watched(),
            Self::Stdio(stdio) => stdio.watched(),
        }
    }

    /// Kinds and extensions that the server declared last.
    pub(super) fn offered(&self) -> Arc<Vec<String>> {
        match self {
            Self::Http { http, .. } => http.offered(),
            Self::Stdio(stdio) => stdio.offered(),
        }
    }

    /// Cancelled at its end.
    pub(super) fn stop(&self) -> &CancellationToken {
        match self {
            Self::Http { http, .. } => http.stop(),
            Self::Stdio(stdio) => stdio.stop(),
        }
    }

    pub(super) fn tasks(&self) -> &TaskTracker {
        match self {
            Self::Http { http, .. } => http.tasks(),
            Self::Stdio(stdio) => stdio.tasks(),
        }
    }

    pub(super) async fn exchange(
        &self,
        request: &Outgoing<'_>,
        deadline: Instant,
    ) -> Result<Reply, CallError> {
        match self {
            Self::Http { http, .. } => http.exchange(request, deadline).await,
            Self::Stdio(stdio) => stdio.exchange(request, deadline).await,
        }
    }
}
