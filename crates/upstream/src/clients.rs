//! The HTTP clients of one reach.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use portcullis_lanes::Own;
use reqwest::{Client, redirect, retry};
use rustls::{ClientConfig, RootCertStore, crypto::CryptoProvider};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::runtime::Handle;

use crate::{
    direct::Direct,
    reach::{Guard, Reach},
    settings::SettingsError,
};

/// HTTP/2 flow-control windows of one answer and of all: answers that are left
/// waiting for their turn must not block others of the same connection.
pub(crate) const STREAM_WINDOW: u32 = 256 << 10;
pub(crate) const CONNECTION_WINDOW: u32 = 16 << 20;

/// An idle connection is dropped before common servers close it (5 s), so that a call rarely meets
/// a connection that is being closed; such a call could not be sent again.
pub(crate) const KEEP_IDLE: Duration = Duration::from_secs(4);
/// Idle connections kept to one server.
pub(crate) const MAX_IDLE: usize = 256;
pub(crate) const USER_AGENT: &str = concat!("portcullis/", env!("CARGO_PKG_VERSION"));

static PROVIDER: LazyLock<Arc<CryptoProvider>> =
    LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));

/// One client of each kind for each runtime that sends requests, so that a connection stays with the
/// thread that opened it. What they trust, and the sessions they may resume, is shared.
#[derive(Debug)]
pub(crate) struct Clients {
    blueprint: Blueprint,
    /// For threads without a runtime.
    spare: Client,
    each: Own<Client>,
    direct: Own<Direct>,
}

#[derive(Debug)]
struct Blueprint {
    reach: Reach,
    connect: Duration,
    tls: ClientConfig,
}

impl Clients {
    pub(crate) fn new(reach: Reach, connect: Duration) -> Result<Self, SettingsError> {
        let tls = tls(reach).map_err(|_| SettingsError::HttpClient)?;
        let blueprint = Blueprint { reach, connect, tls };
        let spare = blueprint.client().map_err(|_| SettingsError::HttpClient)?;
        Ok(Self { blueprint, spare, each: Own::default(), direct: Own::default() })
    }

    /// hyper's client of the runtime that this is called on.
    pub(crate) fn direct(&self) -> Direct {
        let Ok(runtime) = Handle::try_current().map(|runtime| runtime.id()) else {
            return self.blueprint.direct();
        };
        let known = self.direct.of(runtime);
        known.unwrap_or_else(|| self.direct.of_or(runtime, self.blueprint.direct()))
    }

    /// The client of the runtime that this is called on.
    pub(crate) fn here(&self) -> Client {
        let Ok(runtime) = Handle::try_current().map(|runtime| runtime.id()) else {
            return self.spare.clone();
        };
        self.each.of(runtime).unwrap_or_else(|| {
            let new = self.blueprint.client().unwrap_or_else(|_| self.spare.clone());
            self.each.of_or(runtime, new)
        })
    }
}

impl Blueprint {
    /// **Invariant:** no redirects, no retries, no proxy, no decompression, and no address that
    /// the reach does not allow.
    fn client(&self) -> reqwest::Result<Client> {
        Client::builder()
            .tls_backend_preconfigured(self.tls.clone())
            .user_agent(USER_AGENT)
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .referer(false)
            .no_proxy()
            .https_only(self.reach != Reach::Private)
            .dns_resolver(Arc::new(Guard::new(self.reach)))
            .connect_timeout(self.connect)
            .tcp_nodelay(true)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .pool_idle_timeout(KEEP_IDLE)
            .pool_max_idle_per_host(MAX_IDLE)
            .build()
    }

    fn direct(&self) -> Direct {
        Direct::new(self.reach, self.connect, &self.tls)
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
        let (one, other) = (runtime(), runtime());
        let ask = || async { clients.here().get(&url).send().await.unwrap().status().as_u16() };
        let uri: Uri = url.parse().unwrap();
        let ask_directly = || async {
            let request = (Method::POST, uri.clone(), HeaderMap::new(), Vec::new());
            let sent = clients.direct().send(request.0, request.1, request.2, request.3).await;
            sent.unwrap().status().as_u16()
        };

        let (mut connections, mut direct) = (Vec::new(), Vec::new());
        for runtime in [&one, &one, &other, &other, &one] {
            assert_eq!(runtime.block_on(ask()), 204);
            connections.push(came.load(Ordering::SeqCst));
        }
        for runtime in [&one, &one, &other, &other, &one] {
            assert_eq!(runtime.block_on(ask_directly()), 204);
            direct.push(came.load(Ordering::SeqCst));
        }

        assert_eq!((connections, direct), (vec![1, 1, 2, 2, 2], vec![3, 3, 4, 4, 4]));
        assert_eq!((clients.each.count(), clients.direct.count()), (2, 2));
    }

    #[test]
    fn without_a_runtime_there_is_a_client_too() {
        let clients = Clients::new(Reach::Private, Duration::from_secs(1)).unwrap();

        drop((clients.here(), clients.direct()));

        assert_eq!((clients.each.count(), clients.direct.count()), (0, 0));
    }
}
