//! The protocol of a connection: requests and answers until it ends.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, HttpBody},
    extract::Request,
    http::Version,
    response::Response,
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
use metrics::Gauge;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime::Handle,
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::{
    config::Server,
    connection::{Connection, IdleTime, InFlight, MAX_STREAMS, Shed, waiting},
    quota::Quota,
};

/// Answers the requests of connections and closes those that are silent.
#[derive(Clone)]
pub(super) struct Speech {
    http: Arc<auto::Builder<Shared>>,
    router: Router,
    idle: IdleTime,
    waiting: Arc<Quota>,
    open: Gauge,
}

/// Time that a silent client gets to answer that its connection ends.
const PARTING: IdleTime =
    IdleTime { unknown: Duration::from_secs(1), known: Duration::from_secs(1) };

/// Reason to close a connection.
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
    /// For callers who have to authenticate.
    pub(super) fn new(server: &Server, router: Router, open: Gauge) -> Self {
        let known = Duration::from_secs(server.header_timeout_seconds);
        let unknown = Duration::from_secs(server.unauthenticated_idle_seconds).min(known);
        Self::speaking(IdleTime { unknown, known }, router, open)
    }

    /// For clients of whom nobody authenticates.
    pub(super) fn without_callers(server: &Server, router: Router) -> Self {
        let known = Duration::from_secs(server.header_timeout_seconds);
        Self::speaking(IdleTime { unknown: known, known }, router, Gauge::noop())
    }

    fn speaking(idle: IdleTime, router: Router, open: Gauge) -> Self {
        let http = Arc::new(protocol(idle.known, Shared(Handle::current())));
        Self { http, router, idle, waiting: waiting(), open }
    }

    /// Answers what comes over `stream` until it ends, falls silent, or `stop` says so; requests
    /// in flight are answered first.
    pub(super) async fn hold<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        self,
        stream: S,
        client: Connection,
        stop: &CancellationToken,
    ) {
        self.open.increment(1.0);
        let _held = Held(self.open.clone());
        let (idle, http, client) = (self.idle, Arc::clone(&self.http), Arc::new(client));
        let answering = Arc::clone(&client);
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            self.answer(request, &answering)
        });
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
        let over = async {
            tokio::select! {
                () = stop.cancelled() => Over::Stopped,
                () = client.silence(idle) => Over::Silent,
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
                    Over::Silent => tokio::select! {
                        biased;
                        ended = connection => ended,
                        () = client.silence(PARTING) => Ok(()),
                    }
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(peer = %client.peer(), %error, "a connection ended early");
        }
    }

    fn answer(
        &self,
        request: Request<Incoming>,
        connection: &Arc<Connection>,
    ) -> impl Future<Output = Result<Response, Infallible>> + Send + use<> {
        let in_flight = InFlight::begin(connection);
        let streamed = request.version() >= Version::HTTP_2;
        let mut request = connection.receive(request);
        let (router, connection) = (self.router.clone(), Arc::clone(connection));
        let waiting = streamed.then(|| Arc::clone(&self.waiting));
        async move {
            let _slot = match waiting {
                None => None,
                Some(waiting) => {
                    let slot = connection.stream(&waiting).await;
                    if slot.is_none() {
                        request.extensions_mut().insert(Shed);
                    }
                    slot
                }
            };
            let Ok(answer) = router.oneshot(request).await;
            drop(in_flight);
            Ok(answer.map(|body| watched(body, connection)))
        }
    }
}

/// The runtime that all connections share. Each request of HTTP/2 is answered there, so that one
/// connection keeps all processors busy.
#[derive(Clone)]
struct Shared(Handle);

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for Shared {
    fn execute(&self, work: F) {
        self.0.spawn(work);
    }
}

/// A body of unknown length, such as a file that is being read: as long as the client takes what
/// there is, the connection is not silent.
struct Watched {
    body: Body,
    connection: Arc<Connection>,
}

fn watched(body: Body, connection: Arc<Connection>) -> Body {
    if body.size_hint().exact().is_some() {
        return body;
    }
    Body::new(Watched { body, connection })
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
            drop(InFlight::begin(&self.connection));
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

/// Bytes of request bodies that a client of HTTP/2 may send over a connection before they are read.
const WINDOW: u32 = 256 << 10;

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
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_header_list_size(16 * 1024)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(10));
    builder
}
