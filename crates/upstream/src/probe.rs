//! Asking a listener on this machine how it is, for health checks.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use reqwest::{Client, redirect};

/// Time limit of an answer.
const PATIENCE: Duration = Duration::from_secs(4);

/// There was no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    #[error("nothing answers at {0}")]
    Silent(SocketAddr),
    #[error("the HTTP client cannot be set up")]
    HttpClient,
}

/// The status that a listener at `address` answers `path` with. A listener on all addresses is asked
/// on loopback. Whose certificate it shows is not looked at: nothing secret is sent, and the only
/// thing believed is how it says it is.
pub async fn status_of(address: SocketAddr, tls: bool, path: &str) -> Result<u16, ProbeError> {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    let address = SocketAddr::new(ip, address.port());
    let client = Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .tls_certs_only([])
        .tls_danger_accept_invalid_certs(true)
        .timeout(PATIENCE)
        .build()
        .map_err(|_| ProbeError::HttpClient)?;
    let scheme = if tls { "https" } else { "http" };
    let answer = client.get(format!("{scheme}://{address}{path}")).send().await;
    answer.map(|answer| answer.status().as_u16()).map_err(|_| ProbeError::Silent(address))
}
