//! A standard load balancer in front of several nodes: `HAProxy`.

use std::{fs, net::SocketAddr, process::Command};

use tempfile::TempDir;

use crate::programs::{KilledOnDrop, free_address};

/// A running `HAProxy`; it ends when this is dropped.
#[derive(Debug)]
pub struct LoadBalancer {
    _running: KilledOnDrop,
    _folder: TempDir,
    address: SocketAddr,
}

impl LoadBalancer {
    /// Balances between these nodes (host and port), by turns, as long as they say on `/readyz`
    /// that they are ready. A request whose connection could be made is sent once.
    pub fn start(nodes: &[SocketAddr]) -> Self {
        Self::with("option redispatch\n    retries 2\n    retry-on conn-failure", nodes)
    }

    /// The same, but a request whose connection cannot be made fails.
    pub fn trying_once(nodes: &[SocketAddr]) -> Self {
        Self::with("retries 0\n    timeout check 2s", nodes)
    }

    fn with(retrying: &str, nodes: &[SocketAddr]) -> Self {
        let folder = tempfile::Builder::new().prefix("portcullis-haproxy-").tempdir();
        let folder = folder.expect("a folder");
        let address = free_address();
        let servers: Vec<String> = nodes
            .iter()
            .enumerate()
            .map(|(n, node)| format!("    server node{n} {node} check inter 200ms fall 1 rise 1\n"))
            .collect();
        let servers = servers.concat();
        let config = format!(
            "global\n    maxconn 2000\n\
             defaults\n    mode http\n    timeout connect 1s\n    timeout client 60s\n    \
             timeout server 60s\n    {retrying}\n\
             frontend gateway\n    bind {address}\n    default_backend nodes\n\
             backend nodes\n    balance roundrobin\n    option httpchk GET /readyz\n{servers}"
        );
        let file = folder.path().join("haproxy.cfg");
        fs::write(&file, config).expect("a configuration file");
        let mut haproxy = Command::new("haproxy");
        haproxy.args(["-db", "-q", "-f"]).arg(&file);
        let running = KilledOnDrop::serving(&mut haproxy, address).expect("the program haproxy");
        Self { _folder: folder, address, _running: running }
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}
