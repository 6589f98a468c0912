//! The listeners: where clients connect, and how serving ends.
//!
//! Our own loop instead of `axum::serve`, which never times out a header or an idle connection.

mod accept;
mod framing;
mod guarded_stream;
mod http_connection;
#[cfg(test)]
mod tests;

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::Router;
use metrics::gauge;
use portcullis_faces::{health_router, router};
use portcullis_lanes::Lanes;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};

use self::{
    accept::{Limits, Listening, accept},
    http_connection::{HttpConnection, Leaving},
};
use crate::{
    boot::Node,
    config::{Config, Server},
    tls::TlsAcceptor,
};

/// Time to send the last event of streams whose connections are cut.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Bound ports.
pub(crate) struct Bound {
    listening: Listening,
    health: Option<TcpListener>,
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
    #[error("`{key}`: {address} is taken by another program: stop it, or set another address")]
    TakenBeside { key: &'static str, address: SocketAddr },
    #[error("`{key}`: cannot listen on {address}")]
    RefusedBeside {
        key: &'static str,
        address: SocketAddr,
        #[source]
        error: io::Error,
    },
    #[error("the TLS certificate or key cannot be used: {0}")]
    Tls(String),
}

impl Bound {
    /// Binds the ports of the configuration.
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
        let health = server.health_listen.as_deref().map(listen_for_probes).transpose()?;
        Ok(Self { listening: Listening { listener, tls }, health })
    }

    /// Follows changes of the certificate as long as the process lives.
    pub(crate) fn watch_certificate(&self, server: &Server) {
        if let (Some(acceptor), Some(tls)) = (&self.listening.tls, &server.tls) {
            acceptor.watch(tls);
        }
    }

    /// The listening address as a URL.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.listening.tls.is_some() { "https" } else { "http" };
        let address = self.listening.listener.local_addr();
        address.map_or_else(|_| scheme.to_owned(), |address| format!("{scheme}://{address}"))
    }
}

fn listen_for_probes(address: &str) -> Result<TcpListener, BindError> {
    let (listener, bound) = listen_beside(address, "server.health_listen")?;
    tracing::info!("health probes on http://{bound}/healthz and /readyz");
    Ok(listener)
}

/// A listener beside that of the API, and its address. `key` is where the configuration says it.
pub(crate) fn listen_beside(
    address: &str,
    key: &'static str,
) -> Result<(TcpListener, SocketAddr), BindError> {
    let address = crate::config::address(address, key).map_err(BindError::Address)?;
    let failed = |error: io::Error| {
        if error.kind() == io::ErrorKind::AddrInUse {
            BindError::TakenBeside { key, address }
        } else {
            BindError::RefusedBeside { key, address, error }
        }
    };
    let listener = listen(address).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
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

/// Serves until `stop` and as long after it as the port stays open, then drains: no new connections,
/// calls in flight end, events are sealed.
pub(crate) async fn run(node: Node, bound: Bound, config: &Config, stop: CancellationToken) {
    let service = router(Arc::clone(&node.gateway));
    let jobs = CancellationToken::new();
    node.app.nodes.start_jobs(&jobs);
    // What orgs switched off is off from the first call on.
    node.app.policies.read_org_overrides().await;
    node.app.nodes.started();
    let Bound { listening, health } = bound;
    let probes = TaskTracker::new();
    let _probes = health.map(|listener| {
        let router = health_router(Arc::clone(&node.gateway));
        AbortOnDropHandle::new(probes.spawn(plain(listener, router)))
    });
    let leaving = Leaving { has_begun: Arc::clone(&node.gateway.leaving), begins: stop.clone() };
    let open = gauge!("portcullis_connections");
    let http = HttpConnection::new(&config.server, service, open, leaving);
    let lanes = Lanes::start();
    let connections = TaskTracker::new();
    if config.server.behind_tls_proxy && config.server.trusted_proxies.is_empty() {
        tracing::warn!(
            "all clients of the proxy in front count as one address: name it in \
             `server.trusted_proxies`"
        );
    }
    let limits = Limits::of(&config.server, node.gateway.proxies.clone());
    let closing = CancellationToken::new();
    tokio::join!(
        accept(&listening, &limits, &http, &lanes, &connections, &closing),
        leave(&node, config.server.drain_listen(), &stop, &closing),
    );
    drop(listening);
    node.gateway.draining.store(true, Ordering::Release);
    node.app.base.end_long_work();
    tracing::info!("shutting down; draining calls in flight");
    let drain = Duration::from_secs(config.server.drain_seconds);
    connections.close();
    if tokio::time::timeout(drain, connections.wait()).await.is_err() {
        tracing::warn!("some connections did not end in time and are cut");
        // Clients of streams may wait for long for an answer that they are not told to be lost.
        node.app.base.cut_streams();
        let _ = tokio::time::timeout(LAST_WORDS, connections.wait()).await;
    }
    jobs.cancel();
    node.tasks.close();
    if tokio::time::timeout(drain, node.tasks.wait()).await.is_err() {
        tracing::warn!("some calls did not end in time; the next start closes them as unknown");
    }
    node.living.cancel();
    node.app.nodes.end_part().await;
    node.outbound.drained().await;
    node.store.close().await;
    // Last: connections to upstreams and databases may have been opened there.
    lanes.end().await;
}

/// Waits for `stop`, says on `/readyz` that the node ends, and closes the port when those who ask
/// had time to learn of it.
async fn leave(
    node: &Node,
    drain_listen: Duration,
    stop: &CancellationToken,
    closing: &CancellationToken,
) {
    stop.cancelled().await;
    node.gateway.leaving.store(true, Ordering::Release);
    if !drain_listen.is_zero() {
        let seconds = drain_listen.as_secs();
        tracing::info!("shutting down; calls are taken for {seconds} more seconds");
        tokio::time::sleep(drain_listen).await;
    }
    closing.cancel();
}

/// Serves a plain router to a few clients that need not authenticate, such as a metrics scraper.
pub(crate) async fn plain(listener: TcpListener, router: Router) {
    let listening = Listening { listener, tls: None };
    let http = HttpConnection::without_callers(&Server::default(), router);
    let lanes = Lanes::none();
    let connections = TaskTracker::new();
    let never = CancellationToken::new();
    accept(&listening, &Limits::plain(), &http, &lanes, &connections, &never).await;
}
