//! Statements are sent at once.
//!
//! sqlx 0.9.0 leaves Nagle's algorithm on (sqlx issue 4335, mended there but not released): under TLS a
//! statement that takes more than one record then waits some 40 ms for a delayed acknowledgement. Its
//! sockets are nowhere to be had, so they are looked for among those of the process.

use std::{fs, os::fd::RawFd, time::Duration};

use nix::sys::socket::{SockaddrStorage, getpeername, setsockopt, sockopt};
use tokio::{select, time::interval};

/// Interval between looks for new connections while some are opened.
const LOOK: Duration = Duration::from_millis(1);

/// Opens connections to a port. The handshakes of TLS and of the protocol are sent at once, too:
/// otherwise each connection takes 90 ms.
pub(crate) async fn opened_at_once<T>(port: u16, open: impl Future<Output = T>) -> T {
    // Boxed, for it is large, and most who wait for it are waiting for something else.
    let mut open = Box::pin(open);
    let mut look = interval(LOOK);
    loop {
        select! {
            biased;
            opened = &mut open => return opened,
            _ = look.tick() => send_at_once(port),
        }
    }
}

/// Turns Nagle's algorithm off for every connection of this process to a port.
pub(crate) fn send_at_once(port: u16) {
    let open = fs::read_dir("/proc/self/fd").or_else(|_| fs::read_dir("/dev/fd"));
    let entries = open.into_iter().flatten().flatten();
    for name in entries.map(|entry| entry.file_name()) {
        let Some(fd) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        if peer_port(fd) == Some(port) {
            // What is no TCP connection is as it should be.
            let _ = setsockopt(fd, sockopt::TcpNoDelay, &true);
        }
    }
}

fn peer_port(fd: RawFd) -> Option<u16> {
    let peer: SockaddrStorage = getpeername(fd).ok()?;
    let v4 = peer.as_sockaddr_in().map(nix::sys::socket::SockaddrIn::port);
    v4.or_else(|| peer.as_sockaddr_in6().map(nix::sys::socket::SockaddrIn6::port))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn only_connections_to_the_port_send_at_once() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (Ok(database), Ok(other)) =
                (TcpListener::bind(address), TcpListener::bind(address))
            else {
                continue;
            };
            let port = database.local_addr().unwrap().port();
            let to_database = TcpStream::connect(database.local_addr().unwrap()).unwrap();
            let to_other = TcpStream::connect(other.local_addr().unwrap()).unwrap();

            send_at_once(port);

            assert!(to_database.nodelay().unwrap());
            assert!(!to_other.nodelay().unwrap());
        }
    }

    #[tokio::test]
    async fn a_connection_is_switched_while_it_is_opened() {
        let database = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = database.local_addr().unwrap();

        let opening = opened_at_once(address.port(), async {
            let opened = TcpStream::connect(address).unwrap();
            // As if it were shaking hands.
            while !opened.nodelay().unwrap() {
                tokio::time::sleep(LOOK).await;
            }
        });

        let switched = tokio::time::timeout(Duration::from_secs(10), opening).await;
        assert!(switched.is_ok(), "nobody has looked for it");
    }
}
