//! Programs of this machine.

use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use tokio::time::Instant;

/// The longest a server may take to start.
const PATIENCE: Duration = Duration::from_secs(20);

/// A child process; it is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct KilledOnDrop(pub(crate) Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl KilledOnDrop {
    /// Starts a server and waits until it listens at this address. Fails if it cannot be started.
    pub(crate) fn serving(command: &mut Command, address: SocketAddr) -> io::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let running = Self(command.spawn()?);
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(begun.elapsed() < PATIENCE, "{command:?} does not start");
            thread::sleep(Duration::from_millis(10));
        }
        Ok(running)
    }
}

/// Runs a command to its end and gives what it printed. Panics with its errors if it failed.
pub(crate) fn printed_by(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {error}");
    output.stdout
}

/// A loopback address whose port was free a moment ago.
pub(crate) fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address")
}
