//! The accept loop: which connections are held, and which are closed at once.

use std::{
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use metrics::counter;
use portcullis_faces::{
    Proxies,
    connection::{Connection, Use},
    quota::{Exhausted, Permit, Quota},
};
use portcullis_lanes::Lanes;
use tokio::{
    net::{TcpListener, TcpStream},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::http_connection::HttpConnection;
use crate::{config::Server, tls::TlsAcceptor};

/// Connections on a listener for a few clients, of all and of one address.
const PLAIN_CONNECTIONS: usize = 100;
const PLAIN_SHARE: usize = 50;
/// Connections beyond those that are configured, on which health probes are answered; of all and of
/// one address.
const RESERVE: usize = 64;
const RESERVE_SHARE: usize = 4;
/// Time in which a probe has to be over.
const RESERVE_TIME: Duration = Duration::from_secs(3);
/// Time between two warnings.
const WARN_EVERY: Duration = Duration::from_mins(1);

/// A bound port with TLS or without.
pub(super) struct Listening {
    pub(super) listener: TcpListener,
    pub(super) tls: Option<TlsAcceptor>,
}

/// Connections at once, of all clients and of each address. Addresses of trusted proxies are not
/// bounded, for many clients come from them.
pub(super) struct Limits {
    all: Arc<Quota>,
    reserve: Arc<Quota>,
    proxies: Proxies,
    warned: Mutex<Option<Instant>>,
}

/// A connection that may be held, until this is dropped.
struct Slot {
    used_for: Use,
    _permit: Permit,
}

impl Limits {
    pub(super) fn of(server: &Server, proxies: Proxies) -> Self {
        let all = Quota::new(server.max_connections, server.max_connections_per_address);
        let reserve = Quota::new(RESERVE, RESERVE_SHARE);
        Self { all, reserve, proxies, warned: Mutex::default() }
    }

    /// For a listener without callers; it has no reserve, for probes are all that it is there for.
    pub(super) fn plain() -> Self {
        let all = Quota::new(PLAIN_CONNECTIONS, PLAIN_SHARE);
        let reserve = Quota::new(0, 0);
        let proxies = Proxies::default();
        Self { all, reserve, proxies, warned: Mutex::default() }
    }

    /// A slot for a connection from `peer`, or one of the reserve; `None` if there is neither.
    fn admit(&self, peer: IpAddr) -> Option<Slot> {
        let source = (!self.proxies.trust(peer)).then_some(peer);
        let exhausted = match self.all.take(source, 1) {
            Ok(permit) => return Some(Slot { used_for: Use::All, _permit: permit }),
            Err(exhausted) => exhausted,
        };
        self.warn(peer, exhausted);
        if let Ok(permit) = self.reserve.take(source, 1) {
            return Some(Slot { used_for: Use::Probes, _permit: permit });
        }
        let limit = match exhausted {
            Exhausted::Share => "address",
            Exhausted::All => "node",
        };
        counter!("portcullis_connections_refused_total", "limit" => limit).increment(1);
        None
    }

    fn warn(&self, peer: IpAddr, exhausted: Exhausted) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_some_and(|last| last.elapsed() < WARN_EVERY) {
            return;
        }
        *warned = Some(Instant::now());
        match exhausted {
            Exhausted::Share => tracing::warn!(
                %peer,
                "an address has `server.max_connections_per_address` connections; further ones are \
                 closed (a proxy belongs into `server.trusted_proxies`)"
            ),
            Exhausted::All => tracing::warn!(
                "there are `server.max_connections` connections; further ones are closed"
            ),
        }
    }
}

/// Accepts connections and hands them to the threads that serve them, until `stop`.
pub(super) async fn accept(
    listening: &Listening,
    limits: &Limits,
    http: &HttpConnection,
    lanes: &Lanes,
    connections: &TaskTracker,
    stop: &CancellationToken,
) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listening.listener.accept() => accepted,
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
        let Some(slot) = limits.admit(peer.ip()) else { continue };
        let _ = stream.set_nodelay(true);
        // To be known to the runtime that serves it instead of this one.
        let Ok(stream) = stream.into_std() else { continue };
        let http = http.clone();
        let tls = listening.tls.clone();
        let stop = stop.clone();
        let lane = lanes.assign();
        let runtime = lane.runtime.clone();
        let served = async move {
            let _lane = lane;
            let Ok(stream) = TcpStream::from_std(stream) else { return };
            // Awaited where it is: moved, it would have room twice in the task of each connection.
            let mut serving = pin!(serve(http, stream, tls, peer, slot.used_for, &stop));
            match slot.used_for {
                Use::All => serving.await,
                Use::Probes => {
                    let _ = tokio::time::timeout(RESERVE_TIME, serving.as_mut()).await;
                }
            }
            drop(slot);
        };
        connections.spawn_on(served, &runtime);
    }
}

async fn serve(
    http: HttpConnection,
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    peer: SocketAddr,
    used_for: Use,
    stop: &CancellationToken,
) {
    let connection = Connection::new(peer, used_for);
    match tls {
        None => http.hold(stream, connection, stop).await,
        // Boxed, so that a connection without TLS carries no room for it.
        Some(tls) => {
            if let Some(stream) = Box::pin(tls.accept(stream)).await {
                Box::pin(http.hold(stream, connection, stop)).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(all: usize, share: usize, proxies: Option<&str>) -> Limits {
        let server = Server {
            max_connections: all,
            max_connections_per_address: share,
            ..Server::default()
        };
        Limits::of(&server, Proxies::new(proxies.map(|list| list.parse().unwrap())))
    }

    fn admitted(limits: &Limits, peer: &str, count: usize) -> Vec<Slot> {
        (0..count).filter_map(|_| limits.admit(peer.parse().unwrap())).collect()
    }

    fn count(slots: &[Slot], used_for: Use) -> usize {
        slots.iter().filter(|slot| slot.used_for == used_for).count()
    }

    #[test]
    fn an_address_has_its_share_and_a_few_probes() {
        let limits = limits(100, 10, None);

        let greedy = admitted(&limits, "203.0.113.7", 50);
        let other = admitted(&limits, "203.0.113.8", 10);

        assert_eq!((count(&greedy, Use::All), count(&greedy, Use::Probes)), (10, RESERVE_SHARE));
        assert_eq!(count(&other, Use::All), 10);
    }

    #[test]
    fn a_trusted_proxy_has_no_share_but_is_bounded_like_all() {
        let limits = limits(100, 10, Some("10.0.0.0/8"));

        let proxied = admitted(&limits, "10.1.2.3", 1000);

        assert_eq!((count(&proxied, Use::All), count(&proxied, Use::Probes)), (100, RESERVE));
    }

    #[test]
    fn what_is_closed_makes_room() {
        let limits = limits(10, 10, None);

        drop(admitted(&limits, "203.0.113.7", 50));

        assert_eq!(count(&admitted(&limits, "203.0.113.8", 10), Use::All), 10);
    }
}
