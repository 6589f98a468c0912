//! Clients that describe themselves in a metadata document: `GET /oauth/authorize`.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer},
};

use super::{
    Site,
    client::{Client, Fields, Tokens, hidden},
    error,
};
use crate::{gateway, login::browser::Browser};

const APP: &str = "https://app.example/cb";
const EVIL: &str = "https://evil.example/cb";

/// A site under TLS that holds documents of clients, the good one at `/app.json`.
struct Documents {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    authority: PathBuf,
    _serving: JoinSet<()>,
}

fn acceptor(folder: &Path) -> (TlsAcceptor, PathBuf) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let file = folder.join("authority.pem");
    fs::write(&file, authority.pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = certificate.signed_by(&key, &authority).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), file)
}

/// The answer to the request of this number, for this path; `None` if it never comes.
fn answer(path: &str, number: usize, address: SocketAddr) -> Option<String> {
    let document = |path: &str| {
        let id = format!("https://{address}{path}");
        json!({"client_id": id, "client_name": "Described", "redirect_uris": [APP]}).to_string()
    };
    let ok = |body: String| {
        let length = body.len();
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    };
    match path {
        "/changing.json" if number > 0 => Some(ok(document(path).replace(APP, EVIL))),
        "/app.json" | "/changing.json" => Some(ok(document(path))),
        "/other.json" => Some(ok(document("/app.json"))),
        "/moved.json" => Some(
            "HTTP/1.1 302 Found\r\nlocation: /app.json\r\ncontent-length: 0\r\n\r\n".to_owned(),
        ),
        "/large.json" => Some(ok(format!("{}{}", document(path), " ".repeat(10 << 20)))),
        "/slow.json" => None,
        _ => Some("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned()),
    }
}

impl Documents {
    async fn start(folder: &Path) -> Self {
        let (acceptor, authority) = acceptor(folder);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<AtomicUsize>::default();
        let came = Arc::clone(&asked);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                let came = Arc::clone(&came);
                open.spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let mut request = vec![0; 4096];
                    let Ok(length) = stream.read(&mut request).await else { return };
                    let number = came.fetch_add(1, Ordering::SeqCst);
                    let text = String::from_utf8_lossy(&request[..length]).into_owned();
                    let path = text.split(' ').nth(1).unwrap_or_default();
                    match answer(path, number, address) {
                        Some(answer) => drop(stream.write_all(answer.as_bytes()).await),
                        None => std::future::pending().await,
                    }
                });
            }
        });
        Self { address, asked, authority, _serving: serving }
    }

    fn id(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// A gateway that trusts the site, with these lines in `[oauth]`.
    fn site(&self, oauth: &str) -> Site {
        let oauth = format!("[oauth]\n{oauth}");
        let trust = self.authority.to_string_lossy().into_owned();
        let builder = gateway().config(super::LINKS).config(&oauth).sample();
        Site::of(builder.env("SSL_CERT_FILE", &trust))
    }
}

const NAMED: &str = "private_hosts = [\"127.0.0.1\"]";

fn request(id: &str, client: &Client<'_>) -> Fields {
    let mut request = client.request();
    request.insert("client_id", id.to_owned());
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_known_by_its_document_which_is_fetched_once() {
    let folder = tempfile::tempdir().unwrap();
    let documents = Documents::start(folder.path()).await;
    let site = documents.site(NAMED);
    let browser = site.browser().await;
    let client = Client { id: documents.id("/app.json"), ..site.client(APP).await };

    let page = client.asks(&browser, &client.request()).await;
    let tokens = client.tokens(&browser, &client.request()).await;

    assert!(page.text.contains("Described") && page.text.contains("described by 127.0.0.1"));
    assert_eq!(documents.asked.load(Ordering::SeqCst), 1);
    Tokens::of(&client.token(&client.refresh(&tokens.refresh)).await);
    let event = site.events("consent.given", 1).await.remove(0);
    assert_eq!(event["actor"]["client"]["id"], client.id);
    assert_eq!(event["actor"]["client"]["kind"], "metadata_document");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_of_another_client_or_that_leads_elsewhere_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let documents = Documents::start(folder.path()).await;
    let site = documents.site(NAMED);
    let browser = site.browser().await;
    let client = site.client(APP).await;

    for path in ["/other.json", "/moved.json", "/large.json", "/slow.json", "/absent.json"] {
        let page = client.asks(&browser, &request(&documents.id(path), &client)).await;
        assert_eq!(page.status, 400, "{path}: {}", page.text);
        assert!(!page.headers.contains_key("location"), "{path}");
    }
    let asked = documents.asked.load(Ordering::SeqCst);
    let again = client.asks(&browser, &request(&documents.id("/other.json"), &client)).await;
    assert_eq!(again.status, 400);
    assert_eq!(documents.asked.load(Ordering::SeqCst), asked, "a failure is remembered");
}

#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_and_clients_that_are_not_allowed_are_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let documents = Documents::start(folder.path()).await;
    for oauth in ["", "private_hosts = [\"127.0.0.1\"]\nclients = [\"https://claude.ai/*\"]"] {
        let site = documents.site(oauth);
        let browser = site.browser().await;
        let client = site.client(APP).await;

        let page = client.asks(&browser, &request(&documents.id("/app.json"), &client)).await;

        assert_eq!(page.status, 400, "{oauth}: {}", page.text);
    }
    assert_eq!(documents.asked.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_changes_after_the_page_was_shown_takes_nothing_along() {
    let folder = tempfile::tempdir().unwrap();
    let documents = Documents::start(folder.path()).await;
    let mut site = documents.site(NAMED);
    let id = documents.id("/changing.json");
    let session = "portcullis-session";
    let (cookie, code, fields) = {
        let browser = site.browser().await;
        let client = Client { id: id.clone(), ..site.client(APP).await };
        let code = client.code(&browser, &client.request()).await;
        let page = client.asks(&browser, &client.request()).await;
        let field = |name| (name, hidden(&page, name));
        let fields = ["form_token", "request", "shown"].map(field);
        (browser.cookie(session).unwrap(), code, fields)
    };
    // What was fetched is forgotten.
    site.gateway.stop();
    site.gateway.start();
    let browser = Browser::new(&site.gateway);
    browser.plant(session, &cookie);
    let mut sent: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    sent.push(("decision", "allow"));
    let client = Client { id, ..site.client(APP).await };
    let evil = Client { redirect_uri: EVIL.to_owned(), ..client.clone() };

    let decided = browser.submit("/oauth/authorize", &sent).await;
    let elsewhere = client.token(&evil.exchange(&code)).await;

    assert_eq!(documents.asked.load(Ordering::SeqCst), 2);
    assert_eq!(decided.status, 400, "{}", decided.text);
    assert!(!decided.headers.contains_key("location"));
    assert_eq!(error(&elsewhere), (400, "invalid_grant"));
    let page = evil.asks(&browser, &evil.request()).await;
    assert_eq!(page.status, 200, "a person is asked anew for where it leads now: {}", page.text);
    assert!(page.text.contains("evil.example"), "{}", page.text);
}
