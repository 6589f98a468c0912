//! One connection of a client, shared by the requests that come over it.

mod body;
mod streams;
mod unsent;

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use axum::{body::Body, extract::Request, http::Version};
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;

pub(crate) use self::body::Unread;
use self::{
    body::ReturnedBody,
    streams::{Streams, hold_head},
    unsent::UnsentAnswers,
};
pub use self::{
    streams::{MAX_STREAMS, heads, waiting},
    unsent::Unsent,
};
use crate::quota::{Exhausted, Permit, Quota};

/// Bytes of HTTP/2 besides bodies that a connection may bring within an idle time before anybody
/// has authenticated over it.
const UNKNOWN_FRAMES: usize = 1 << 20;

/// Time without a request after which a connection is closed.
#[derive(Debug, Clone, Copy)]
pub struct IdleTime {
    /// Before anybody has authenticated over it.
    pub unknown: Duration,
    /// Afterwards.
    pub known: Duration,
}

/// The requests that are answered over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Every request.
    All,
    /// Health probes: it holds a slot of the reserve, for all others are taken.
    Probes,
}

/// The connection that a request came over.
#[derive(Debug, Clone, Default)]
pub struct Arrival {
    pub connection: Option<Arc<Connection>>,
    /// True if the connection has as many unknown callers as it may have, or its source as many headers.
    pub shed: bool,
}

/// A connection until it is closed.
#[derive(Debug)]
pub struct Connection {
    peer: SocketAddr,
    used_for: Use,
    known: AtomicBool,
    begun: AtomicU64,
    ended: AtomicU64,
    /// Answers whose bodies of unknown length have not ended.
    streaming: AtomicUsize,
    /// Those of them whose next part the gateway does not have yet.
    awaited: AtomicUsize,
    /// The client does not take what is written.
    held_up: AtomicBool,
    unread: Unread,
    streams: Streams,
    answers: UnsentAnswers,
    /// Bytes of frames besides DATA in this idle time.
    frames: AtomicUsize,
}

impl Connection {
    /// A connection from this address, over which nothing was asked yet.
    #[must_use]
    pub fn new(peer: SocketAddr, used_for: Use) -> Self {
        Self {
            peer,
            used_for,
            known: AtomicBool::new(false),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            streaming: AtomicUsize::new(0),
            awaited: AtomicUsize::new(0),
            held_up: AtomicBool::new(false),
            unread: Unread::default(),
            streams: Streams::default(),
            answers: UnsentAnswers::default(),
            frames: AtomicUsize::new(0),
        }
    }

    /// The address at the other end.
    pub const fn peer(&self) -> IpAddr {
        self.peer.ip()
    }

    /// The requests that are answered over it.
    #[must_use]
    pub const fn used_for(&self) -> Use {
        self.used_for
    }

    /// Notes that a caller has authenticated over it.
    pub fn authenticated(&self) {
        if !self.is_known() && !self.known.swap(true, Ordering::AcqRel) {
            self.streams.open();
        }
    }

    fn is_known(&self) -> bool {
        self.known.load(Ordering::Acquire)
    }

    /// The rest of a request's body, once its handler has let go of it.
    pub(crate) const fn unread(&self) -> &Unread {
        &self.unread
    }

    /// The request as handlers get it: its body comes back here when it was not read to its end.
    /// HTTP/2 needs no such care, for a stream ends without its connection.
    pub fn receive(self: &Arc<Self>, request: Request<Incoming>) -> Request {
        let one_at_a_time = request.version() < Version::HTTP_2;
        request.map(|body| {
            if one_at_a_time { Body::new(ReturnedBody::new(body, self)) } else { Body::new(body) }
        })
    }

    /// Charges the head of a request of HTTP/2 to its source while no caller has authenticated over the
    /// connection. One for which there is no room is let go of, and the request has to be refused.
    pub fn hold_head(
        &self,
        request: &mut Request,
        heads: &Arc<Quota>,
    ) -> Result<Option<Permit>, Exhausted> {
        if self.is_known() {
            return Ok(None);
        }
        hold_head(request, self.peer(), heads).map(Some)
    }

    /// Waits until a request of HTTP/2 may be handled. `None`: one of an unknown caller for which
    /// no capacity is left.
    pub async fn stream(&self, waiting: &Arc<Quota>) -> Option<OwnedSemaphorePermit> {
        self.streams.enter(self.peer(), waiting).await
    }

    /// Counts bytes of frames besides DATA. False if they are too many before anybody has
    /// authenticated: headers, pings and settings cost time whatever is answered.
    #[must_use]
    pub fn takes_frames(&self, bytes: usize) -> bool {
        self.is_known()
            || self.frames.fetch_add(bytes, Ordering::AcqRel).saturating_add(bytes)
                <= UNKNOWN_FRAMES
    }

    /// Notes whether the client takes what is written.
    pub fn held_up(&self, held_up: bool) {
        self.held_up.store(held_up, Ordering::Release);
    }

    /// Ends when no request was begun or in flight for the idle time, or an answer over HTTP/2 made
    /// no progress, at twice that at the latest.
    pub async fn silence(&self, idle: IdleTime) {
        loop {
            let known = self.is_known();
            let patience = if known { idle.known } else { idle.unknown };
            let silent = self.is_silent_for(patience).await;
            self.frames.store(0, Ordering::Release);
            // Who authenticated meanwhile is waited for longer.
            if self.answers.begin_period() || (silent && self.is_known() == known) {
                return;
            }
        }
    }

    /// Returns true while a request is answered or its answer sent.
    pub fn is_answering(&self) -> bool {
        self.begun.load(Ordering::Acquire) != self.ended.load(Ordering::Acquire)
            || self.streaming.load(Ordering::Acquire) > 0
            || self.held_up.load(Ordering::Acquire)
    }

    /// Returns true if no request was begun or in flight for this time, and no client waits for more.
    async fn is_silent_for(&self, time: Duration) -> bool {
        let begun = self.begun.load(Ordering::Acquire);
        tokio::time::sleep(time).await;
        let ended = self.ended.load(Ordering::Acquire);
        let awaited = self.awaited.load(Ordering::Acquire) > 0;
        let waits = awaited && !self.held_up.load(Ordering::Acquire);
        self.begun.load(Ordering::Acquire) == begun && ended == begun && !waits
    }
}

/// A request until it is answered or its client is gone.
pub struct InFlight(Arc<Connection>);

impl InFlight {
    /// Counts a request of this connection.
    pub fn begin(connection: &Arc<Connection>) -> Self {
        connection.begun.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(connection))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::AcqRel);
    }
}

/// An answer with a body of unknown length, until that ends.
pub struct Streaming {
    connection: Arc<Connection>,
    awaited: bool,
}

impl Streaming {
    /// Counts an answer over this connection.
    #[must_use]
    pub fn begin(connection: Arc<Connection>) -> Self {
        connection.streaming.fetch_add(1, Ordering::AcqRel);
        Self { connection, awaited: false }
    }

    /// Notes whether the client took a part of it, or waits for one that the gateway does not have yet.
    pub fn note<T>(&mut self, part: &Poll<T>) {
        let awaited = part.is_pending();
        if !awaited {
            drop(InFlight::begin(&self.connection));
        }
        if awaited != std::mem::replace(&mut self.awaited, awaited) {
            let count = &self.connection.awaited;
            match part {
                Poll::Pending => count.fetch_add(1, Ordering::AcqRel),
                Poll::Ready(_) => count.fetch_sub(1, Ordering::AcqRel),
            };
        }
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        self.note(&Poll::Ready(()));
        self.connection.streaming.fetch_sub(1, Ordering::AcqRel);
    }
}
