//! A standard load balancer in front of several nodes: `HAProxy`.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use tempfile::TempDir;
use tokio::time::Instant;

use crate::free_port;

const PATIENCE: Duration = Duration::from_secs(20);

/// A running `HAProxy`; it ends when this is dropped.
#[derive(Debug)]
pub struct LoadBalancer {
    _folder: TempDir,
    address: SocketAddr,
    child: Child,
}

impl LoadBalancer {
    /// Balances between these nodes (host and port), by turns, as long as they say on `/readyz`
    /// that they are ready. A request whose connection could be made is sent once.
    pub fn start(nodes: &[SocketAddr]) -> Self {
        let folder = tempfile::Builder::new().prefix("portcullis-haproxy-").tempdir();
        let folder = folder.expect("a folder");
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let servers: Vec<String> = nodes
            .iter()
            .enumerate()
            .map(|(n, node)| format!("    server node{n} {node} check inter 250ms fall 1 rise 1\n"))
            .collect();
        let servers = servers.concat();
        let config = format!(
            "global\n    maxconn 2000\n\
             defaults\n    mode http\n    timeout connect 1s\n    timeout client 60s\n    \
             timeout server 60s\n    option redispatch\n    retries 2\n    retry-on conn-failure\n\
             frontend gateway\n    bind {address}\n    default_backend nodes\n\
             backend nodes\n    balance roundrobin\n    option httpchk GET /readyz\n{servers}"
        );
        let file = folder.path().join("haproxy.cfg");
        fs::write(&file, config).expect("a configuration file");
        let child = Command::new("haproxy")
            .args(["-db", "-q", "-f"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program haproxy");
        let balancer = Self { _folder: folder, address, child };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(begun.elapsed() < PATIENCE, "haproxy does not start");
            thread::sleep(Duration::from_millis(10));
        }
        balancer
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for LoadBalancer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
