//! The protocol of a connection: requests and answers until it ends.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, HttpBody},
    extract::Request,
    http::Version,
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
use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime::Handle,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    turns::{Over, Turn, Turns},
    wire::{Protocol, Wire},
};
use crate::{
    config::Server,
    connection::{Arrival, Connection, IdleTime, InFlight, MAX_STREAMS, REST, Streaming, waiting},
    http::Service,
    quota::Quota,
};

/// Answers the requests of connections and closes those that are silent.
#[derive(Clone)]
pub(super) struct Speech {
    http1: Arc<http1::Builder>,
    http2: Arc<http2::Builder<Shared>>,
    service: Service,
    idle: IdleTime,
    waiting: Arc<Quota>,
    open: Gauge,
}

/// Time that a silent client gets to answer that its connection ends.
pub(super) const PARTING: Duration = Duration::from_secs(1);

/// Error of a stream or a protocol.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A connection that is counted while it is held.
struct Held(Gauge);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

impl Speech {
    /// For callers who have to authenticate.
    pub(super) fn new(server: &Server, service: Service, open: Gauge) -> Self {
        let known = Duration::from_secs(server.header_timeout_seconds);
        let unknown = Duration::from_secs(server.unauthenticated_idle_seconds).min(known);
        Self::speaking(IdleTime { unknown, known }, service, open)
    }

    /// For clients of whom nobody authenticates.
    pub(super) fn without_callers(server: &Server, service: Service) -> Self {
        let known = Duration::from_secs(server.header_timeout_seconds);
        Self::speaking(IdleTime { unknown: known, known }, service, Gauge::noop())
    }

    fn speaking(idle: IdleTime, service: Service, open: Gauge) -> Self {
        let http1 = Arc::new(over_http1(idle.known));
        let http2 = Arc::new(over_http2(Shared(Handle::current())));
        Self { http1, http2, service, idle, waiting: waiting(), open }
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
        let client = Arc::new(client);
        let mut wire = Wire::new(stream, Arc::clone(&client));
        let mut turns = Turns::of(&client, self.idle, stop);
        let protocol = tokio::select! {
            biased;
            protocol = wire.protocol() => protocol,
            _ = turns.over() => return,
        };
        let ended = match protocol {
            Ok(None) => Ok(()),
            Ok(Some(Protocol::Http1)) => self.speak_http1(wire, &client, turns).await,
            // Boxed, so that a connection with HTTP/1 has no room for it.
            Ok(Some(Protocol::Http2)) => Box::pin(self.speak_http2(wire, &client, turns)).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = ended {
            tracing::debug!(peer = %client.peer(), %error, "a connection ended early");
        }
    }

    /// Speaks HTTP/1. While the connection rests, it has no buffers.
    async fn speak_http1<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        mut wire: Wire<S>,
        client: &Arc<Connection>,
        mut turns: Turns<'_>,
    ) -> Result<(), Failure> {
        loop {
            let service = service_fn(|request| self.answer(request, client));
            let mut connection = Box::pin(self.http1.serve_connection(wire, service));
            let turn = tokio::select! {
                biased;
                ended = connection.as_mut() => return Ok(ended?),
                turn = turns.next() => turn,
            };
            if let Turn::Over(over) = turn {
                connection.as_mut().graceful_shutdown();
                return parted(connection, over, client).await;
            }
            let parts = Pin::into_inner(connection).into_parts();
            wire = parts.io;
            wire.put_back(parts.read_buf);
            if wire.has_more() {
                continue;
            }
            // The time that a head may take begins with the answer before it.
            let end = Instant::now() + self.idle.known.saturating_sub(REST);
            let woken = tokio::select! {
                biased;
                woken = timeout_at(end, wire.is_woken()) => woken.unwrap_or(Ok(false))?,
                _ = turns.over() => false,
            };
            if !woken {
                return Ok(wire.end().await?);
            }
            turns.ask_by(end);
        }
    }

    async fn speak_http2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        wire: Wire<S>,
        client: &Arc<Connection>,
        mut turns: Turns<'_>,
    ) -> Result<(), Failure> {
        let service = service_fn(|request| self.answer(request, client));
        let mut connection = pin!(self.http2.serve_connection(wire, service));
        let over = tokio::select! {
            biased;
            ended = connection.as_mut() => return Ok(ended?),
            over = turns.over() => over,
        };
        connection.as_mut().graceful_shutdown();
        parted(connection, over, client).await
    }

    fn answer(
        &self,
        request: Request<Incoming>,
        connection: &Arc<Connection>,
    ) -> impl Future<Output = Result<Response, Infallible>> + Send + use<> {
        let in_flight = InFlight::begin(connection);
        let streamed = request.version() >= Version::HTTP_2;
        let request = connection.receive(request);
        let (service, connection) = (self.service.clone(), Arc::clone(connection));
        let waiting = streamed.then(|| Arc::clone(&self.waiting));
        async move {
            let slot = match &waiting {
                None => None,
                Some(waiting) => connection.stream(waiting).await,
            };
            let shed = waiting.is_some() && slot.is_none();
            let arrival = Arrival { connection: Some(Arc::clone(&connection)), shed };
            let answer = service.answer(request, arrival).await;
            drop(in_flight);
            Ok(answer.map(|body| watched(body, connection)))
        }
    }
}

/// Answers what is in flight over a connection that is over.
async fn parted(
    connection: impl Future<Output = hyper::Result<()>>,
    over: Over,
    client: &Connection,
) -> Result<(), Failure> {
    match over {
        Over::Stopped if client.is_answering() => connection.await?,
        // A peer that does not even take its leave is cut off.
        Over::Stopped | Over::Silent => tokio::select! {
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

/// A body of unknown length, such as a file that is being read: as long as the client takes what
/// there is, the connection is not silent.
struct Watched {
    body: Body,
    streaming: Streaming,
}

fn watched(body: Body, connection: Arc<Connection>) -> Body {
    if body.size_hint().exact().is_some() {
        return body;
    }
    Body::new(Watched { body, streaming: Streaming::begin(connection) })
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
            self.streaming.taken();
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
