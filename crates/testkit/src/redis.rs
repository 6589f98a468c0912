//! A Redis or Valkey server of one's own, which can die and come back.

use std::{
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use tempfile::TempDir;
use tokio::time::Instant;

use crate::free_port;

/// The longest a server may take to start.
const PATIENCE: Duration = Duration::from_secs(20);
const PASSWORD: &str = "counters-canary-7c1e";

/// A server with a password that keeps what it was told also when it is killed.
#[derive(Debug)]
pub struct RedisServer {
    folder: TempDir,
    address: SocketAddr,
    running: Option<Child>,
}

impl RedisServer {
    /// Starts one. Panics without the program `redis-server` or `valkey-server`.
    pub fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("portcullis-redis-").tempdir();
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let mut server = Self { folder: folder.expect("a folder"), address, running: None };
        server.start_again();
        server
    }

    /// Starts it again at the same address.
    pub fn start_again(&mut self) {
        let port = self.address.port().to_string();
        let start = |program: &str| {
            Command::new(program)
                .args(["--bind", "127.0.0.1", "--port", &port, "--requirepass", PASSWORD])
                .args(["--appendonly", "yes", "--save", "", "--dir"])
                .arg(self.folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
        };
        let child = start("redis-server").or_else(|_| start("valkey-server"));
        self.running = Some(child.expect("the program redis-server or valkey-server"));
        let begun = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            assert!(begun.elapsed() < PATIENCE, "the server does not start");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills it at once (SIGKILL).
    pub fn kill(&mut self) {
        if let Some(mut child) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL, with the password.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_at(self.address)
    }

    /// Its URL by way of another address.
    #[must_use]
    pub fn url_at(&self, address: SocketAddr) -> String {
        format!("redis://:{PASSWORD}@{address}/0")
    }

    /// Its password, which must never be shown.
    #[must_use]
    pub fn password(&self) -> &'static str {
        PASSWORD
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}
