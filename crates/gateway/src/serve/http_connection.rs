//! The protocol of a connection: requests and answers until it ends.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, HttpBody},
    extract::Request,
    http::{HeaderValue, Version, header::CONNECTION},
    response::Response,
};
use bytes::Bytes;
use hyper::{
    body::{Frame, Incoming, SizeHint},
    rt::Executor,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::TokioTimer;
use metrics::Gauge;
use portcullis_faces::{
    connection::{
        Arrival, Connection, IdleTime, InFlight, MAX_STREAMS, Streaming, Unsent, heads, waiting,
    },
    quota::Quota,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime::Handle,
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::guarded_stream::{GuardedStream, Protocol};
use crate::config::Server;

/// Answers the requests of connections and closes those that are silent.
#[derive(Clone)]
pub(super) struct HttpConnection {
    http1: Arc<http1::Builder>,
    http2: Arc<http2::Builder<Shared>>,
    router: Router,
    idle: IdleTime,
    waiting: Arc<Quota>,
    heads: Arc<Quota>,
    open: Gauge,
    leaving: Leaving,
}

/// The time between the wish to end and the end of the port: clients are asked to go elsewhere.
#[derive(Clone, Default)]
pub(super) struct Leaving {
    pub(super) has_begun: Arc<AtomicBool>,
    pub(super) begins: CancellationToken,
}

/// Time that a silent client gets to answer the end of its connection.
const PARTING: Duration = Duration::from_secs(1);

/// Error of a stream or a protocol.
type ConnectionError = Box<dyn std::error::Error + Send + Sync>;

/// A connection that is counted while it is held.
struct OpenConnection(Gauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

impl HttpConnection {
    /// For callers who have to authenticate.
    pub(super) fn new(server: &Server, router: Router, open: Gauge, leaving: Leaving) -> Self {
        let known = Duration::from_secs(server.header_timeout_seconds);
        let unknown = Duration::from_secs(server.unauthenticated_idle_seconds).min(known);
        Self { leaving, ..Self::speaking(IdleTime { unknown, known }, router, open) }
    }

    /// For clients that do not authenticate.
    pub(super) fn without_callers(server: &Server, router: Router) -> Self {
        let known = Duration::from_secs(server.header_timeout_seconds);
        Self::speaking(IdleTime { unknown: known, known }, router, Gauge::noop())
    }

    fn speaking(idle: IdleTime, router: Router, open: Gauge) -> Self {
        let http1 = Arc::new(over_http1(idle.known));
        let http2 = Arc::new(over_http2(Shared(Handle::current())));
        let leaving = Leaving::default();
        let (waiting, heads) = (waiting(), heads());
        Self { http1, http2, router, idle, waiting, heads, open, leaving }
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
        let _held = OpenConnection(self.open.clone());
        let client = Arc::new(client);
        let mut wire = GuardedStream::new(stream, Arc::clone(&client));
        let mut over = pin!(over(&client, self.idle, stop));
        let protocol = tokio::select! {
            biased;
            protocol = wire.protocol() => protocol,
            _ = over.as_mut() => return,
        };
        let service = service_fn(|request| self.answer(request, &client));
        let ended = match protocol {
            Ok(None) => Ok(()),
            Ok(Some(Protocol::Http1)) => {
                let connection = pin!(self.http1.serve_connection(wire, service));
                speak(connection, http1::Connection::graceful_shutdown, over, &client).await
            }
            Ok(Some(Protocol::Http2)) => {
                // Boxed, so that a connection with HTTP/1 has no room for it.
                let connection = Box::pin(self.http2.serve_connection(wire, service));
                let connection = pin!(connection);
                // At once: streams that come meanwhile are answered, and others open elsewhere.
                let over = pin!(self::over(&client, self.idle, &self.leaving.begins));
                speak(connection, |it| it.get_mut().as_mut().graceful_shutdown(), over, &client)
                    .await
            }
            Err(error) => Err(error.into()),
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
        let is_last = !streamed && self.leaving.has_begun.load(Ordering::Acquire);
        let mut request = connection.receive(request);
        // Before the request waits for a thread.
        let head =
            if streamed { connection.hold_head(&mut request, &self.heads) } else { Ok(None) };
        let router = self.router.clone();
        let connection = Arc::clone(connection);
        let waiting = (streamed && head.is_ok()).then(|| Arc::clone(&self.waiting));
        async move {
            let slot = match &waiting {
                None => None,
                Some(waiting) => connection.stream(waiting).await,
            };
            let shed = streamed && slot.is_none();
            let arrival = Arrival { connection: Some(Arc::clone(&connection)), shed };
            request.extensions_mut().insert(arrival);
            let mut answer = router.oneshot(request).await?;
            if is_last {
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            drop((head, in_flight));
            let unsent = streamed.then(|| Unsent::begin(Arc::clone(&connection)));
            Ok(answer.map(|body| watched(body, connection, unsent)))
        }
    }
}

/// Reason to close a connection.
#[derive(Clone, Copy)]
enum CloseReason {
    /// The gateway ends.
    Stopped,
    /// There was no request for too long.
    Silent,
}

/// Waits until a connection is to be closed.
async fn over(client: &Connection, idle: IdleTime, stop: &CancellationToken) -> CloseReason {
    tokio::select! {
        () = stop.cancelled() => CloseReason::Stopped,
        () = client.silence(idle) => CloseReason::Silent,
    }
}

/// Speaks a protocol until its connection ends, or is to be closed: then what is in flight is answered.
async fn speak<C: Future<Output = hyper::Result<()>>>(
    mut connection: Pin<&mut C>,
    shut_down: impl FnOnce(Pin<&mut C>),
    over: Pin<&mut impl Future<Output = CloseReason>>,
    client: &Connection,
) -> Result<(), ConnectionError> {
    let reason = tokio::select! {
        biased;
        ended = connection.as_mut() => return Ok(ended?),
        reason = over => reason,
    };
    shut_down(connection.as_mut());
    match reason {
        CloseReason::Stopped if client.is_answering() => connection.await?,
        // A peer that does not answer the end of its connection is cut off.
        CloseReason::Stopped | CloseReason::Silent => tokio::select! {
            biased;
            ended = connection => ended?,
            () = client.silence(IdleTime { unknown: PARTING, known: PARTING }) => {}
        },
    }
    Ok(())
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

/// The body of an answer over HTTP/2, or one of unknown length, such as a file that is being read or
/// a stream of events: as long as the client takes what there is, or there is nothing to take yet,
/// the connection is not silent.
struct WatchedBody {
    body: Body,
    /// Bytes that were read of the body and are not handed on yet.
    rest: Bytes,
    streaming: Streaming,
    /// Over HTTP/2, where each answer has a window of its own.
    unsent: Option<Unsent>,
}

/// Bytes of an answer over HTTP/2 that are one step of its progress.
const PART: usize = 16 << 10;

fn watched(body: Body, connection: Arc<Connection>, unsent: Option<Unsent>) -> Body {
    if body.is_end_stream() || (unsent.is_none() && body.size_hint().exact().is_some()) {
        return body;
    }
    let streaming = Streaming::begin(connection);
    Body::new(WatchedBody { body, rest: Bytes::new(), streaming, unsent })
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, rest, streaming, unsent } = self.get_mut();
        if rest.is_empty() {
            let frame = Pin::new(body).poll_frame(context);
            streaming.note(&frame);
            let Some(unsent) = unsent else { return frame };
            unsent.note(&frame);
            match ready!(frame) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => *rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                ended @ (Some(Err(_)) | None) => return Poll::Ready(ended),
            }
        } else {
            streaming.note(&Poll::Ready(()));
        }
        let part = rest.split_to(rest.len().min(PART));
        Poll::Ready(Some(Ok(Frame::data(match unsent {
            Some(unsent) => unsent.part(part),
            None => part,
        }))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(hint.lower().saturating_add(rest));
        hint
    }
}

/// Bytes of request bodies that a client of HTTP/2 may send over a connection before they are read.
const WINDOW: u32 = 256 << 10;

fn over_http1(header_timeout: Duration) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_buf_size(64 * 1024)
        .max_headers(64);
    builder
}

fn over_http2(shared: Shared) -> http2::Builder<Shared> {
    let mut builder = http2::Builder::new(shared);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_header_list_size(16 * 1024)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(10));
    builder
}
