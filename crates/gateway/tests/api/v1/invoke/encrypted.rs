//! Upstreams under TLS: who they have to be, and that they are called.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use portcullis_testkit::{Hostile, Script};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer},
};

use crate::{
    gateway,
    given::serve_as,
    scene::{SUCCESS, check, tool},
};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(folder: &Path, name: &str) -> (Authority, PathBuf) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let file = folder.join(name);
    fs::write(&file, authority.pem()).unwrap();
    (authority, file)
}

/// A port under TLS before a server that has none.
struct Front {
    address: SocketAddr,
    tried: Arc<AtomicUsize>,
    trusted: Arc<AtomicUsize>,
    _serving: JoinSet<()>,
}

impl Front {
    async fn start(authority: &Authority, behind: SocketAddr) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = certificate.signed_by(&key, authority).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
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
    let (known, known_file) = authority(folder.path(), "known.pem");
    let (_, other_file) = authority(folder.path(), "other.pem");
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

    let (trusting, who) = started(&vouched, &known_file);
    let called = trusting.invoke(&who, "up:echo", json!({"text": "under TLS"})).await;
    let (wary, other) = started(&unknown, &other_file);
    let refused = wary.invoke(&other, "up:echo", json!({})).await;

    check(&trusting, &who, &called, SUCCESS).await;
    assert!(vouched.trusted.load(Ordering::SeqCst) > 0);
    assert_ne!(refused.status, 200, "{}", refused.text);
    assert!(unknown.tried.load(Ordering::SeqCst) > 0);
    assert_eq!(unknown.trusted.load(Ordering::SeqCst), 0, "nothing is said to a stranger");
    assert_eq!(upstream.count("echo"), 1);
}
