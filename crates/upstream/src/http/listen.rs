//! Hearing when a server's tools change.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue};
use portcullis_core::mcp::{Era, Method};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{LISTEN, MCP_METHOD, receive::Body, wire::Wire};
use crate::mcp::{
    message::{self, Incoming},
    sse::Parser,
};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// Announcements are not urgent; reading them slowly keeps a flood of them cheap.
const BETWEEN_PIECES: Duration = Duration::from_millis(20);
const MAX_ANNOUNCEMENT_BYTES: usize = 64 << 10;

/// Listens in the background until the guard is dropped.
pub(super) fn start(wire: &Arc<Wire>, era: Era, headers: &HeaderMap) -> DropGuard {
    let stop = wire.stop.child_token();
    let listener = Listener { wire: wire.clone(), era, headers: headers.clone() };
    wire.tasks.spawn(listener.run(stop.clone()));
    stop.drop_guard()
}

struct Listener {
    wire: Arc<Wire>,
    era: Era,
    headers: HeaderMap,
}

/// End of a stream.
enum Over {
    /// The server has no such stream.
    NotOffered,
    /// It broke off or ended.
    Ended,
}

impl Listener {
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
            match self.listen_once().await {
                Over::NotOffered => return,
                Over::Ended => {}
            }
            if started.elapsed() > LONGEST_PAUSE {
                pause = FIRST_PAUSE;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn listen_once(&self) -> Over {
        let opened = match self.era {
            Era::Modern => {
                let mut headers = self.headers.clone();
                headers.insert(MCP_METHOD, HeaderValue::from_static(Method::Listen.as_str()));
                let Ok(body) = LISTEN.encode(self.wire.ids.next(), Era::Modern) else {
                    return Over::NotOffered;
                };
                self.wire.post(headers, body).await
            }
            Era::Legacy(_) => self.wire.get(&self.headers, None).await,
        };
        let Ok(mut response) = opened else { return Over::Ended };
        if response.status().is_server_error() {
            return Over::Ended;
        }
        if !response.status().is_success() || Body::of(&response) != Body::Events {
            return Over::NotOffered;
        }
        // Something may have been announced before anybody listened, also between the beginning of
        // the session and now.
        self.wire.tools_changed();
        let mut parser = Parser::new(MAX_ANNOUNCEMENT_BYTES);
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
            Ok(Incoming::ToolsChanged) => self.wire.tools_changed(),
            Ok(Incoming::Request { id, method }) if self.era != Era::Modern => {
                if let Ok(reply) = message::reply(&id, &method) {
                    self.wire.post_in_background(self.headers.clone(), reply);
                }
            }
            Ok(
                Incoming::Answer { .. }
                | Incoming::Progress { .. }
                | Incoming::Notification
                | Incoming::Request { .. },
            )
            | Err(message::Malformed) => {}
        }
    }
}
