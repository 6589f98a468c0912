//! The listener: who may connect, for how long, and how it ends.
//!
//! Our own loop instead of `axum::serve`, which never times out a header or an idle connection.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::{Router, extract::Request};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;

use crate::{
    boot::Node,
    config::{Config, Server},
    http::router,
    tls::TlsAcceptor,
};

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
    pub(crate) async fn bind(server: &Server) -> Result<Self, BindError> {
        let address = crate::config::address(&server.listen, "server.listen");
        let address = address.map_err(BindError::Address)?;
        let tls = server.tls.as_ref().map(TlsAcceptor::load).transpose().map_err(BindError::Tls)?;
        let listener = TcpListener::bind(address).await.map_err(|error| {
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

/// Serves until `stop`, then drains: no new connections, calls in flight end, events are sealed.
pub(crate) async fn run(node: Node, bound: Bound, config: &Config, stop: CancellationToken) {
    let router = router(Arc::clone(&node.gateway));
    let jobs = CancellationToken::new();
    node.app.start_jobs(&jobs);
    node.app.started();
    let connections = TaskTracker::new();
    let graceful = GracefulShutdown::new();
    accept(&bound, &router, &config.server, &graceful, &connections, &stop).await;
    drop(bound);
    node.gateway.draining.store(true, Ordering::Release);
    tracing::info!("shutting down: no new calls, those in flight end");
    let drain = Duration::from_secs(config.server.drain_seconds);
    if tokio::time::timeout(drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("some connections did not end in time and are cut");
    }
    jobs.cancel();
    node.tasks.close();
    if tokio::time::timeout(drain, node.tasks.wait()).await.is_err() {
        tracing::warn!("some calls did not end in time; the next start closes them as unknown");
    }
    node.outbound.drained().await;
    node.store.close().await;
}

async fn accept(
    bound: &Bound,
    router: &Router,
    server: &Server,
    graceful: &GracefulShutdown,
    connections: &TaskTracker,
    stop: &CancellationToken,
) {
    let room = Arc::new(Semaphore::new(server.max_connections));
    let http = Arc::new(protocol(Duration::from_secs(server.header_timeout_seconds)));
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
        let (router, http, tls) = (router.clone(), Arc::clone(&http), bound.tls.clone());
        let watcher = graceful.watcher();
        connections.spawn(async move {
            let _permit = permit;
            match tls {
                None => speak(stream, peer, router, &http, watcher).await,
                Some(tls) => {
                    if let Some(stream) = tls.accept(stream).await {
                        speak(stream, peer, router, &http, watcher).await;
                    }
                }
            }
        });
    }
}

fn protocol(header_timeout: Duration) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
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

async fn speak<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: SocketAddr,
    router: Router,
    http: &auto::Builder<TokioExecutor>,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(peer);
        router.clone().oneshot(request)
    });
    let connection = http.serve_connection(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(connection.into_owned()).await {
        tracing::debug!(%peer, %error, "a connection ended early");
    }
}

/// Serves a plain router to a few trusted clients, such as a metrics scraper.
pub(crate) async fn plain(listener: TcpListener, router: Router) {
    let graceful = GracefulShutdown::new();
    let http = protocol(Duration::from_secs(10));
    let connections = TaskTracker::new();
    let http = Arc::new(http);
    while let Ok((stream, peer)) = listener.accept().await {
        let (router, http, watcher) = (router.clone(), Arc::clone(&http), graceful.watcher());
        connections.spawn(async move {
            let stream: TcpStream = stream;
            speak(stream, peer, router, &http, watcher).await;
        });
    }
}
