//! Hearing when a server's lists and resources change, and what a server of the older era asks outside of answers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, HeaderValue};
use portcullis_core::mcp::{Era, Method};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{MCP_METHOD, connection::Connection, receive::Body};
use crate::{
    forms::{self, FormCalls},
    mcp::{
        message::{self, Incoming},
        outgoing::Outgoing,
        sse::Parser,
    },
};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// Announcements are not urgent; reading them slowly keeps a flood of them cheap.
const BETWEEN_PIECES: Duration = Duration::from_millis(20);
const MAX_ANNOUNCEMENT_BYTES: usize = 64 << 10;

/// Listens in the background until the guard is dropped.
pub(super) fn start(connection: &Arc<Connection>, stream: SessionStream) -> DropGuard {
    let stop = connection.stop.child_token();
    let listener = Listener::new(connection, stream);
    connection.tasks.spawn(listener.run(stop.clone()));
    stop.drop_guard()
}

/// Listens once, until the server ends that or cannot be reached.
pub(super) async fn once(connection: &Arc<Connection>, stream: SessionStream) {
    let listener = Listener::new(connection, stream);
    let _over = listener.listen_once().await;
}

/// A stream that belongs to no call.
pub(super) struct SessionStream {
    pub(super) era: Era,
    pub(super) headers: HeaderMap,
    /// True if changes of lists are announced on it.
    pub(super) announces: bool,
    /// The resources that it is to tell of, in the modern era; of none, it tells of lists.
    pub(super) watched: Vec<Arc<str>>,
    /// The calls to one of which a form on it belongs.
    pub(super) forms: Option<Arc<FormCalls>>,
    /// Set once it was opened for the first time, or could not be.
    pub(super) opened: CancellationToken,
}

impl SessionStream {
    /// The one of announcements in a session with these headers.
    pub(super) fn of(era: Era, headers: &HeaderMap) -> Self {
        let headers = headers.clone();
        let opened = CancellationToken::new();
        Self { era, headers, announces: true, watched: Vec::new(), forms: None, opened }
    }
}

struct Listener {
    connection: Arc<Connection>,
    stream: SessionStream,
    was_open: AtomicBool,
}

/// End of a stream.
enum Over {
    NotOffered,
    Ended,
}

impl Listener {
    fn new(connection: &Arc<Connection>, stream: SessionStream) -> Self {
        Self { connection: Arc::clone(connection), stream, was_open: AtomicBool::new(false) }
    }

    async fn run(self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.listen() => {}
        }
    }

    async fn listen(&self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let started = Instant::now();
            let over = self.listen_once().await;
            self.stream.opened.cancel();
            match over {
                // What was offered once is offered again when a proxy on the way is well.
                Over::NotOffered if !self.was_open.load(Ordering::Acquire) => return,
                Over::NotOffered | Over::Ended => {}
            }
            if started.elapsed() > LONGEST_PAUSE {
                pause = FIRST_PAUSE;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn listen_once(&self) -> Over {
        let SessionStream { era, headers, .. } = &self.stream;
        let opened = match era {
            Era::Modern => {
                let mut headers = headers.clone();
                headers.insert(MCP_METHOD, HeaderValue::from_static(Method::Listen.as_str()));
                let request =
                    Outgoing { watched: &self.stream.watched, ..Outgoing::bare(Method::Listen) };
                let Ok(body) = request.encode(self.connection.ids.next(), Era::Modern) else {
                    return Over::NotOffered;
                };
                self.connection.post(headers, body).await
            }
            Era::Legacy(_) => self.connection.get(headers, None).await,
        };
        let Ok(mut response) = opened else { return Over::Ended };
        if response.status().is_server_error() {
            return Over::Ended;
        }
        if !response.status().is_success() || Body::of(&response) != Body::Events {
            return Over::NotOffered;
        }
        if self.was_open.swap(true, Ordering::AcqRel) && self.stream.era != Era::Modern {
            self.connection.announcer.watched.interrupt();
        }
        self.stream.opened.cancel();
        // Something may have been announced before anybody listened, also between the beginning of
        // the session and now.
        self.tools_changed();
        // A server repeats what it was asked to tell of.
        let asked: usize = self.stream.watched.iter().map(|uri| uri.len()).sum();
        let mut parser = Parser::new(MAX_ANNOUNCEMENT_BYTES + 2 * asked);
        while let Ok(Some(piece)) = response.chunk().await {
            if parser.push(&piece).is_err() {
                return Over::Ended;
            }
            while let Some(event) = parser.next() {
                self.take(&event.data);
            }
            tokio::time::sleep(BETWEEN_PIECES).await;
        }
        Over::Ended
    }

    fn take(&self, data: &[u8]) {
        match message::parse(data) {
            Ok(Incoming::ListChanged) => self.tools_changed(),
            Ok(Incoming::ResourceChanged(uri)) => {
                self.connection.announcer.watched.changed(&uri);
            }
            Ok(Incoming::Acknowledged { told, .. }) if !self.stream.watched.is_empty() => {
                self.connection.announcer.watched.acknowledge(told.as_deref());
            }
            Ok(Incoming::Request(request)) if self.stream.era != Era::Modern => {
                let calls = self.stream.forms.as_ref().map(|calls| calls.waiting());
                if let Ok(reply) = forms::reply(&request, &calls.unwrap_or_default()) {
                    self.connection.reply_in_background(self.stream.headers.clone(), reply);
                }
            }
            Ok(
                Incoming::Answer { .. }
                | Incoming::Progress { .. }
                | Incoming::Acknowledged { .. }
                | Incoming::Notification
                | Incoming::Request(_),
            )
            | Err(message::Malformed) => {}
        }
    }

    fn tools_changed(&self) {
        if self.stream.announces {
            self.connection.announcer.lists_changed();
        }
    }
}
