//! A Redis or Valkey server of one's own, which can die and come back.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::Command,
};

use tempfile::TempDir;

use crate::programs::{KilledOnDrop, free_address};

const PASSWORD: &str = "counters-canary-7c1e";

/// A server with a password that keeps what it was told also when it is killed.
#[derive(Debug)]
pub struct RedisServer {
    running: Option<KilledOnDrop>,
    folder: TempDir,
    address: SocketAddr,
}

impl RedisServer {
    /// Starts one. Panics without the program `redis-server` or `valkey-server`.
    pub fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("portcullis-redis-").tempdir();
        let address = free_address();
        let mut server = Self { folder: folder.expect("a folder"), address, running: None };
        server.start_again();
        server
    }

    /// Starts it again at the same address.
    pub fn start_again(&mut self) {
        let port = self.address.port().to_string();
        let start = |program: &str| {
            let mut server = Command::new(program);
            server
                .args(["--bind", "127.0.0.1", "--port", &port, "--requirepass", PASSWORD])
                .args(["--appendonly", "yes", "--save", "", "--dir"])
                .arg(self.folder.path());
            KilledOnDrop::serving(&mut server, self.address)
        };
        let running = start("redis-server").or_else(|_| start("valkey-server"));
        self.running = Some(running.expect("the program redis-server or valkey-server"));
    }

    /// Kills it at once (SIGKILL).
    pub fn kill(&mut self) {
        self.running = None;
    }

    /// Gives it a command. Panics unless it obeys.
    pub fn tell(&self, command: &str) {
        let mut stream = TcpStream::connect(self.address).expect("the server");
        let commands = format!("AUTH {PASSWORD}\r\n{command}\r\nQUIT\r\n");
        stream.write_all(commands.as_bytes()).expect("a connection");
        let mut answers = String::new();
        stream.read_to_string(&mut answers).expect("answers");
        assert!(answers.lines().all(|answer| answer.starts_with("+OK")), "{command}: {answers}");
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
