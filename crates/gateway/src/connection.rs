//! One connection of a client, shared by the requests that come over it.

mod body;
mod streams;

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{body::Body, extract::Request, http::Version};
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;

use self::{body::Received, streams::Streams};
pub(crate) use self::{
    body::Unread,
    streams::{MAX_STREAMS, waiting},
};
use crate::quota::Quota;

/// Time without a request after which a connection is closed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdleTime {
    /// Before anybody has authenticated over it.
    pub(crate) unknown: Duration,
    /// Afterwards.
    pub(crate) known: Duration,
}

/// The requests that are answered over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Every request.
    All,
    /// Health probes: it holds a slot of the reserve, for all others are taken.
    Probes,
}

/// The request came over a connection that has as many unknown callers as it may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shed;

/// A connection until it is closed.
#[derive(Debug)]
pub(crate) struct Connection {
    peer: SocketAddr,
    used_for: Use,
    known: AtomicBool,
    begun: AtomicU64,
    ended: AtomicU64,
    unread: Unread,
    streams: Streams,
}

impl Connection {
    pub(crate) fn new(peer: SocketAddr, used_for: Use) -> Self {
        Self {
            peer,
            used_for,
            known: AtomicBool::new(false),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            unread: Unread::default(),
            streams: Streams::default(),
        }
    }

    /// The address at the other end.
    pub(crate) const fn peer(&self) -> IpAddr {
        self.peer.ip()
    }

    pub(crate) const fn used_for(&self) -> Use {
        self.used_for
    }

    /// Notes that somebody has authenticated over it.
    pub(crate) fn authenticated(&self) {
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
    pub(crate) fn receive(self: &Arc<Self>, request: Request<Incoming>) -> Request {
        let one_at_a_time = request.version() < Version::HTTP_2;
        let mut request = request.map(|body| {
            if one_at_a_time { Body::new(Received::new(body, self)) } else { Body::new(body) }
        });
        request.extensions_mut().insert(Arc::clone(self));
        request
    }

    /// Waits until a request of HTTP/2 may be handled. `None`: one of an unknown caller for which
    /// no capacity is left.
    pub(crate) async fn stream(&self, waiting: &Arc<Quota>) -> Option<OwnedSemaphorePermit> {
        self.streams.enter(self.peer(), waiting).await
    }

    /// Ends when no request was begun or in flight for the idle time, at twice that at the latest.
    pub(crate) async fn silence(&self, idle: IdleTime) {
        loop {
            let begun = self.begun.load(Ordering::Acquire);
            let patience = if self.is_known() { idle.known } else { idle.unknown };
            tokio::time::sleep(patience).await;
            let ended = self.ended.load(Ordering::Acquire);
            if self.begun.load(Ordering::Acquire) == begun && ended == begun {
                return;
            }
        }
    }
}

/// A request until it is answered or its client is gone.
pub(crate) struct InFlight(Arc<Connection>);

impl InFlight {
    pub(crate) fn begin(connection: &Arc<Connection>) -> Self {
        connection.begun.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(connection))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::AcqRel);
    }
}
