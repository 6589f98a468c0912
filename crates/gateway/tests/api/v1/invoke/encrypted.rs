//! Upstreams under TLS: who they have to be, and that they are called.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
};

use tokio::{io::copy_bidirectional, net::TcpListener};

use crate::{authority::Authority, prelude::*};

/// A port under TLS before a server that has none.
struct Front {
    address: SocketAddr,
    tried: Arc<AtomicUsize>,
    trusted: Arc<AtomicUsize>,
    _serving: JoinSet<()>,
}

impl Front {
    async fn start(authority: &Authority, behind: SocketAddr) -> Self {
        let acceptor = authority.acceptor();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let tried = Arc::<AtomicUsize>::default();
        let trusted = Arc::<AtomicUsize>::default();
        let came = Arc::clone(&tried);
        let believed = Arc::clone(&trusted);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                came.fetch_add(1, Ordering::SeqCst);
                let acceptor = acceptor.clone();
                let believed = Arc::clone(&believed);
                open.spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    believed.fetch_add(1, Ordering::SeqCst);
                    let mut behind = TcpStream::connect(behind).await.unwrap();
                    // Ends when either side has had enough.
                    let _ = copy_bidirectional(&mut stream, &mut behind).await;
                });
            }
        });
        Self { address, tried, trusted, _serving: serving }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_is_called_under_tls_if_somebody_trusted_vouches_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let known = Authority::new(folder.path(), "known.pem");
    let other = Authority::new(folder.path(), "other.pem");
    let upstream = Hostile::start(vec![tool("echo", Script::Echo)]).await;
    let plain: reqwest::Url = upstream.url().parse().unwrap();
    let behind = plain.socket_addrs(|| None).unwrap()[0];
    let vouched = Front::start(&known, behind).await;
    let unknown = Front::start(&known, behind).await;
    let started = |front: &Front, trust: &Path| {
        let url = format!("https://{}{}", front.address, plain.path());
        let gateway = gateway().http("up", &url, "").env("SSL_CERT_FILE", &trust.to_string_lossy());
        serve_as("mcps:read mcps:invoke", gateway)
    };

    let (trusting, who) = started(&vouched, &known.file);
    let called = trusting.invoke(&who, "up:echo", json!({"text": "under TLS"})).await;
    let (wary, other) = started(&unknown, &other.file);
    let refused = wary.invoke(&other, "up:echo", json!({})).await;

    check(&trusting, &who, &called, SUCCESS).await;
    assert!(vouched.trusted.load(Ordering::SeqCst) > 0);
    assert_ne!(refused.status, 200, "{}", refused.text);
    assert!(unknown.tried.load(Ordering::SeqCst) > 0);
    assert_eq!(unknown.trusted.load(Ordering::SeqCst), 0, "nothing is said to a stranger");
    assert_eq!(upstream.count("echo"), 1);
}
