//! The listener: who may connect, for how long, and how it ends.
//!
//! Our own loop instead of `axum::serve`, which never times out a header or an idle connection.

use std::{
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, HttpBody},
    extract::Request,
};
use bytes::Bytes;
use futures_util::{StreamExt, stream::FuturesUnordered};
use hyper::{
    body::{Frame, Incoming, SizeHint},
    rt::Executor,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto,
};
use metrics::{Gauge, gauge};
use portcullis_lanes::Lanes;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpSocket, TcpStream},
    runtime::Handle,
    sync::Semaphore,
    task::JoinError,
};
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};
use tower::ServiceExt;

use crate::{
    boot::Node,
    config::{Config, Server},
    http::router,
    tls::TlsAcceptor,
};

/// Connections at once on a listener for a few trusted clients.
const PLAIN_CONNECTIONS: usize = 100;

/// A bound port.
pub(crate) struct Bound {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
}

/// The port cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BindError {
    #[error("{0}")]
    Address(String),
    #[error(
        "port {} of {} is taken by another program: stop it, or choose another port with \
         `--port` or `server.listen` (`--port 0` takes any free one)", .0.port(), .0.ip()
    )]
    Taken(SocketAddr),
    #[error("cannot listen on {0}")]
    Refused(SocketAddr, #[source] io::Error),
    #[error("the TLS certificate or key cannot be used: {0}")]
    Tls(String),
}

impl Bound {
    /// Binds the port of the configuration.
    pub(crate) fn bind(server: &Server) -> Result<Self, BindError> {
        let address = crate::config::address(&server.listen, "server.listen");
        let address = address.map_err(BindError::Address)?;
        let tls = server.tls.as_ref().map(TlsAcceptor::load).transpose().map_err(BindError::Tls)?;
        let listener = listen(address).map_err(|error| {
            if error.kind() == io::ErrorKind::AddrInUse {
                BindError::Taken(address)
            } else {
                BindError::Refused(address, error)
            }
        })?;
        Ok(Self { listener, tls })
    }

    /// Where it listens, as a URL.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let address = self.listener.local_addr();
        address.map_or_else(|_| scheme.to_owned(), |address| format!("{scheme}://{address}"))
    }
}

/// Clients who come together wait until they are accepted, as many as the system allows, instead of
/// trying again after a second.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // The port of a gateway that has just ended can be had at once.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(u32::from(u16::MAX))
}

/// Serves until `stop`, then drains: no new connections, calls in flight end, events are sealed.
pub(crate) async fn run(node: Node, bound: Bound, config: &Config, stop: CancellationToken) {
    let router = router(Arc::clone(&node.gateway));
    let jobs = CancellationToken::new();
    node.app.start_jobs(&jobs);
    node.app.started();
    let speech = Speech::new(&config.server, router, gauge!("portcullis_connections"));
    let (lanes, connections) = (Lanes::start(), TaskTracker::new());
    let room = config.server.max_connections;
    accept(&bound, room, &speech, (&lanes, &connections), &stop).await;
    drop(bound);
    node.gateway.draining.store(true, Ordering::Release);
    tracing::info!("shutting down: no new calls, those in flight end");
    let drain = Duration::from_secs(config.server.drain_seconds);
    connections.close();
    if tokio::time::timeout(drain, connections.wait()).await.is_err() {
        tracing::warn!("some connections did not end in time and are cut");
    }
    jobs.cancel();
    node.tasks.close();
    if tokio::time::timeout(drain, node.tasks.wait()).await.is_err() {
        tracing::warn!("some calls did not end in time; the next start closes them as unknown");
    }
    node.living.cancel();
    node.app.end_part().await;
    node.outbound.drained().await;
    node.store.close().await;
    // Last: connections to upstreams and databases may have been opened there.
    lanes.end().await;
}

/// Serves a plain router to a few trusted clients, such as a metrics scraper.
pub(crate) async fn plain(listener: TcpListener, router: Router) {
    let bound = Bound { listener, tls: None };
    let speech = Speech::new(&Server::default(), router, Gauge::noop());
    let (lanes, connections) = (Lanes::none(), TaskTracker::new());
    let never = CancellationToken::new();
    accept(&bound, PLAIN_CONNECTIONS, &speech, (&lanes, &connections), &never).await;
}

async fn accept(
    bound: &Bound,
    max_connections: usize,
    speech: &Speech,
    (lanes, connections): (&Lanes, &TaskTracker),
    stop: &CancellationToken,
) {
    let room = Arc::new(Semaphore::new(max_connections));
    loop {
        let permit = tokio::select! {
            () = stop.cancelled() => return,
            permit = Arc::clone(&room).acquire_owned() => permit,
        };
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = bound.listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, mostly: wait for some to come back.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        // To be known to the runtime that serves it instead of this one.
        let Ok(stream) = stream.into_std() else { continue };
        let (speech, tls, stop) = (speech.clone(), bound.tls.clone(), stop.clone());
        let seat = lanes.seat();
        let runtime = seat.runtime.clone();
        let served = async move {
            let (_permit, _seat) = (permit, seat);
            let Ok(stream) = TcpStream::from_std(stream) else { return };
            match tls {
                None => speech.hold(stream, peer, &stop).await,
                Some(tls) => {
                    if let Some(stream) = tls.accept(stream).await {
                        speech.hold(stream, peer, &stop).await;
                    }
                }
            }
        };
        connections.spawn_on(served, &runtime);
    }
}

/// How a connection is spoken to, and when it is over.
#[derive(Clone)]
struct Speech {
    http: Arc<auto::Builder<Shared>>,
    router: Router,
    shared: Shared,
    patience: Duration,
    open: Gauge,
}

/// Why a connection is held no longer.
enum Over {
    /// The gateway ends.
    Stopped,
    /// Nothing was asked over it for too long.
    Silent,
}

/// A connection that is counted while it is held.
struct Held(Gauge);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

impl Speech {
    fn new(server: &Server, router: Router, open: Gauge) -> Self {
        let patience = Duration::from_secs(server.header_timeout_seconds);
        let shared = Shared(Handle::current());
        let http = Arc::new(protocol(patience, shared.clone()));
        Self { http, router, shared, patience, open }
    }

    /// Answers what comes over `stream` until it ends, falls silent, or `stop` says so; requests
    /// in flight are answered first.
    async fn hold<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        self,
        stream: S,
        peer: SocketAddr,
        stop: &CancellationToken,
    ) {
        self.open.increment(1.0);
        let _held = Held(self.open);
        let requests = Arc::new(Requests::default());
        let (router, shared, begun) = (self.router, self.shared, Arc::clone(&requests));
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            let in_flight = InFlight::begin(&begun);
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer);
            let (shared, requests) = (shared.clone(), Arc::clone(&begun));
            let is_call = request.uri().path().ends_with("/invoke");
            let answer = router.clone().oneshot(request);
            async move {
                let answer = if is_call { Ok(answer.await) } else { shared.run(answer).await };
                drop(in_flight);
                let Ok(answer) = answer?;
                Ok::<_, JoinError>(answer.map(|body| watched(body, requests)))
            }
        });
        let mut connection = pin!(self.http.serve_connection(TokioIo::new(stream), service));
        let over = async {
            tokio::select! {
                () = stop.cancelled() => Over::Stopped,
                () = requests.silence(self.patience) => Over::Silent,
            }
        };
        // Asked only when it has something to tell, and not whenever a call goes on: to ask `stop`
        // takes a lock that all connections share.
        let mut over = FuturesUnordered::from_iter([over]);
        let ended = tokio::select! {
            biased;
            ended = connection.as_mut() => ended,
            Some(over) = over.next() => {
                connection.as_mut().graceful_shutdown();
                match over {
                    Over::Stopped => connection.await,
                    // A peer that does not even take its leave is cut off.
                    Over::Silent => {
                        tokio::time::timeout(self.patience, connection).await.unwrap_or(Ok(()))
                    }
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%peer, %error, "a connection ended early");
        }
    }
}

/// The runtime that all connections share. Each request of HTTP/2 is answered there, so that one
/// connection keeps all processors busy, and so is whatever is no call of a tool and may be long.
#[derive(Clone)]
struct Shared(Handle);

impl Shared {
    /// Does the work there, as long as somebody waits for it.
    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, JoinError> {
        AbortOnDropHandle::new(self.0.spawn(work)).await
    }
}

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for Shared {
    fn execute(&self, work: F) {
        self.0.spawn(work);
    }
}

/// The requests of one connection. HTTP/1 has its own timeout for a header; a client that never
/// says which protocol it speaks, and one of HTTP/2 that only answers pings, is found here.
#[derive(Debug, Default)]
struct Requests {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Requests {
    /// Ends when no request was begun or in flight for `patience`, at twice that at the latest.
    async fn silence(&self, patience: Duration) {
        loop {
            let begun = self.begun.load(Ordering::Acquire);
            tokio::time::sleep(patience).await;
            let ended = self.ended.load(Ordering::Acquire);
            if self.begun.load(Ordering::Acquire) == begun && ended == begun {
                return;
            }
        }
    }
}

/// A body of unknown length, such as a file that is being read: as long as the client takes what
/// there is, the connection is not silent.
struct Watched {
    body: Body,
    requests: Arc<Requests>,
}

fn watched(body: Body, requests: Arc<Requests>) -> Body {
    if body.size_hint().exact().is_some() {
        return body;
    }
    Body::new(Watched { body, requests })
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if frame.is_ready() {
            drop(InFlight::begin(&self.requests));
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A request until it is answered or its client is gone.
struct InFlight(Arc<Requests>);

impl InFlight {
    fn begin(requests: &Arc<Requests>) -> Self {
        requests.begun.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(requests))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::AcqRel);
    }
}

fn protocol(header_timeout: Duration, shared: Shared) -> auto::Builder<Shared> {
    let mut builder = auto::Builder::new(shared);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_buf_size(64 * 1024)
        .max_headers(64);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(100)
        .max_header_list_size(16 * 1024)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(10));
    builder
}
