//! The HTTP clients of one reach.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use portcullis_lanes::Own;
use rustls::{ClientConfig, RootCertStore, crypto::CryptoProvider};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::runtime::Handle;

use crate::{error::SettingsError, http_client::HttpClient, reach::Reach};

pub(crate) static PROVIDER: LazyLock<Arc<CryptoProvider>> =
    LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));

/// A client for each runtime that sends requests, so that a connection stays with the thread that
/// opened it. The certificates that they trust, and the sessions they may resume, are shared.
#[derive(Debug)]
pub(crate) struct Clients {
    reach: Reach,
    connect: Duration,
    tls: ClientConfig,
    each: Own<HttpClient>,
}

impl Clients {
    pub(crate) fn new(reach: Reach, connect: Duration) -> Result<Self, SettingsError> {
        let tls = tls(reach).map_err(|_| SettingsError::HttpClient)?;
        Ok(Self { reach, connect, tls, each: Own::default() })
    }

    /// The client of the runtime that this is called on; a new one outside of runtimes.
    pub(crate) fn here(&self) -> HttpClient {
        let new = || HttpClient::new(self.reach, self.connect, &self.tls);
        let Ok(runtime) = Handle::try_current().map(|runtime| runtime.id()) else { return new() };
        self.each.of(runtime).unwrap_or_else(|| self.each.of_or(runtime, new()))
    }
}

fn tls(reach: Reach) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::clone(&PROVIDER))
        .with_safe_default_protocol_versions()?;
    let builder = match reach {
        Reach::Public | Reach::Named => builder.with_platform_verifier()?,
        // Nothing is encrypted, so a machine without CA certificates will do.
        Reach::Private => builder.with_root_certificates(RootCertStore::empty()),
    };
    let mut tls = builder.with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
        sync::atomic::{AtomicUsize, Ordering},
        thread,
    };

    use http::{HeaderMap, Method, Uri};
    use tokio::runtime::{Builder, Runtime};

    use super::*;

    /// Answers every request, and counts who came.
    fn server() -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let came = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&came);
        thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
                let mut stream = stream.unwrap();
                thread::spawn(move || {
                    let mut request = [0; 1024];
                    while stream.read(&mut request).is_ok_and(|read| read > 0) {
                        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
                    }
                });
            }
        });
        (url, came)
    }

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn each_runtime_keeps_connections_of_its_own() {
        let (url, came) = server();
        let clients = Clients::new(Reach::Private, Duration::from_secs(1)).unwrap();
        let one = runtime();
        let other = runtime();
        let uri: Uri = url.parse().unwrap();
        let ask = || async {
            let client = clients.here();
            let sent = client.send(Method::POST, uri.clone(), HeaderMap::new(), Vec::new());
            sent.await.unwrap().status().as_u16()
        };

        let mut connections = Vec::new();
        for runtime in [&one, &one, &other, &other, &one] {
            assert_eq!(runtime.block_on(ask()), 204);
            connections.push(came.load(Ordering::SeqCst));
        }

        assert_eq!(connections, [1, 1, 2, 2, 2]);
        assert_eq!(clients.each.count(), 2);
    }

    #[test]
    fn without_a_runtime_there_is_a_client_too() {
        let clients = Clients::new(Reach::Private, Duration::from_secs(1)).unwrap();

        drop(clients.here());

        assert_eq!(clients.each.count(), 0);
    }
}
