//! Servers of this process, each on a loopback port of its own.

use std::net::SocketAddr;

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

/// A listener on a free port, and its address.
pub(crate) async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its address");
    (listener, address)
}

/// Serves a router on a free port until the guard is dropped.
pub(crate) async fn serve(router: Router) -> (SocketAddr, DropGuard) {
    let (listener, address) = listen().await;
    let serving = async { axum::serve(listener, router).await.expect("a server") };
    (address, until_dropped(serving))
}

/// Does something in the background until the guard is dropped.
pub(crate) fn until_dropped(act: impl Future<Output = ()> + Send + 'static) -> DropGuard {
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    TaskTracker::new().spawn(async move { stopped.run_until_cancelled(act).await });
    stop.drop_guard()
}
