//! Clients that describe themselves in a metadata document: `GET /oauth/authorize`.

mod floods;

use std::{
    net::SocketAddr,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::Map;
use tokio::net::TcpListener;

use super::{
    Site,
    client::{Client, Fields, Tokens, encoded, hidden},
    error,
    grants::{CLIENT_ASSERTION, Signer, proof_for, with},
};
use crate::{authority::Authority, login::browser::Browser, prelude::*};

const APP: &str = "https://app.example/cb";

/// State of the documents, which their owner changes.
#[derive(Default)]
struct State {
    /// The clients return to another address.
    moved: bool,
    /// The client with keys has none any more.
    public: bool,
    keys: Vec<Value>,
    /// The server has a fault.
    broken: bool,
}

/// A site under TLS that holds documents of clients, the good one at `/app.json`.
struct Documents {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    state: Arc<Mutex<State>>,
    authority: PathBuf,
    _serving: JoinSet<()>,
}

/// The answer to a request for this path; `None` if it never comes. `state` is what its owner can change.
fn answer(path: &str, address: SocketAddr, state: &State) -> Option<String> {
    let at = |path: &str| format!("https://{address}{path}");
    let document = |path: &str| {
        let uris = json!([if state.moved { "https://elsewhere.example/cb" } else { APP }]);
        json!({"client_id": at(path), "client_name": "Described", "redirect_uris": uris})
    };
    let by_key = |more: Value| {
        let mut document = document(path);
        document["token_endpoint_auth_method"] = json!("private_key_jwt");
        document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        document.to_string()
    };
    let keys = json!({ "keys": state.keys });
    let ok = |body: String| {
        let length = body.len();
        format!(
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
    };
    if state.broken {
        return Some("HTTP/1.1 503 Unavailable\r\ncontent-length: 0\r\n\r\n".to_owned());
    }
    match path {
        path if path.starts_with("/app") => Some(ok(document(path).to_string())),
        path if path.starts_with("/large-keys") => {
            let more: Map<String, Value> =
                (0..7_000).map(|number| (number.to_string(), json!(1))).collect();
            Some(ok(by_key(json!({ "jwks": {"keys": state.keys, "x": more} }))))
        }
        "/other.json" => Some(ok(document("/app.json").to_string())),
        "/key.json" if state.public => Some(ok(document(path).to_string())),
        "/key.json" => Some(ok(by_key(json!({ "jwks": keys })))),
        "/key-at.json" => Some(ok(by_key(json!({ "jwks_uri": at("/keys") })))),
        "/key-large.json" => Some(ok(by_key(json!({ "jwks_uri": at("/keys-large") })))),
        "/key-private.json" => {
            Some(ok(by_key(json!({ "jwks_uri": "https://169.254.169.254/keys" }))))
        }
        // A public name that resolves to this machine: the guard knows when it dials.
        "/key-local.json" => {
            let keys = format!("https://localhost:{}/keys", address.port());
            Some(ok(by_key(json!({ "jwks_uri": keys }))))
        }
        "/key-both.json" => Some(ok(by_key(json!({ "jwks_uri": at("/keys"), "jwks": keys })))),
        "/secret.json" => {
            let mut document = document(path);
            document["token_endpoint_auth_method"] = json!("client_secret_basic");
            Some(ok(document.to_string()))
        }
        "/keys" => Some(ok(keys.to_string())),
        "/keys-large" => Some(ok(format!("{keys}{}", " ".repeat(10 << 20)))),
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
        let authority = Authority::new(folder, "authority.pem");
        let acceptor = authority.acceptor();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<AtomicUsize>::default();
        let came = Arc::clone(&asked);
        let state = Arc::<Mutex<State>>::default();
        let owned = Arc::clone(&state);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                let came = Arc::clone(&came);
                let owned = Arc::clone(&owned);
                open.spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let mut request = vec![0; 4096];
                    let Ok(length) = stream.read(&mut request).await else { return };
                    came.fetch_add(1, Ordering::SeqCst);
                    let text = String::from_utf8_lossy(&request[..length]).into_owned();
                    let path = text.split(' ').nth(1).unwrap_or_default();
                    let answer = answer(path, address, &owned.lock().unwrap());
                    match answer {
                        Some(answer) => drop(stream.write_all(answer.as_bytes()).await),
                        None => std::future::pending().await,
                    }
                });
            }
        });
        Self { address, asked, state, authority: authority.file, _serving: serving }
    }

    fn id(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// A gateway that trusts the site, with these lines in `[oauth]`.
    fn site(&self, oauth: &str) -> Site {
        let oauth = format!("[oauth]\n{oauth}");
        let trust = self.authority.to_string_lossy().into_owned();
        let builder = gateway().config(super::LINKS).config(&oauth).sample();
        Site::built(builder.env("SSL_CERT_FILE", &trust))
    }
}

const NAMED: &str = "private_hosts = [\"127.0.0.1\"]";

fn request(id: &str, client: &Client<'_>) -> Fields {
    let mut request = client.request();
    request.insert("client_id", id.to_owned());
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_fetched_once_and_wrong_ones_are_none() {
    // A client is known by its document which is fetched once.
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
    has!(event, "/actor/client/id": client.id, "/actor/client/kind": "metadata_document");

    // A document of another client or that leads elsewhere is none.
    let client = site.client(APP).await;

    for path in ["/other.json", "/moved.json", "/large.json", "/slow.json", "/absent.json"] {
        let page = client.asks(&browser, &request(&documents.id(path), &client)).await;
        assert_eq!(page.status, 400, "{path}: {}", page.text);
        assert!(!page.headers.contains_key("location"), "{path}");
    }
    let asked = documents.asked.load(Ordering::SeqCst);
    has!(client.asks(&browser, &request(&documents.id("/other.json"), &client)).await, 400);
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

/// The fields with an assertion of the client.
fn signed(mut fields: Fields, assertion: String) -> Fields {
    fields.insert("client_assertion_type", CLIENT_ASSERTION.to_owned());
    fields.insert("client_assertion", assertion);
    fields
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_whose_document_names_keys_proves_itself_each_time() {
    // A client whose document names keys proves itself each time.
    let folder = tempfile::tempdir().unwrap();
    let documents = Documents::start(folder.path()).await;
    let key = Signer::new();
    documents.state.lock().unwrap().keys = vec![key.jwk()];
    let site = documents.site(NAMED);
    let browser = site.browser().await;
    for path in ["/key.json", "/key-at.json"] {
        let client = Client { id: documents.id(path), ..site.client(APP).await };
        let claims = || proof_for(&client.id, site.gateway.url());
        let code = client.code(&browser, &client.request()).await;
        let fields = client.exchange(&code);

        let bare = client.token(&fields).await;
        assert_eq!(error(&bare), (401, "invalid_client"), "{path}: {}", bare.text);
        for (who, changes) in [
            (&Signer::new(), json!({})),
            (&key, json!({ "aud": "https://other.example" })),
            (&key, json!({ "jti": null })),
            (&key, json!({ "iss": "x", "sub": "x" })),
        ] {
            let assertion = who.sign("JWT", &with(claims(), &changes));
            let refused = client.token(&signed(fields.clone(), assertion)).await;
            assert_eq!(error(&refused), (401, "invalid_client"), "{path} {changes}");
        }
        let once = key.sign("JWT", &claims());
        let tokens = Tokens::of(&client.token(&signed(fields, once.clone())).await);

        let refresh = client.refresh(&tokens.refresh);
        let bare = client.token(&refresh).await;
        assert_eq!(error(&bare), (401, "invalid_client"), "{path}: {}", bare.text);
        let twice = client.token(&signed(refresh.clone(), once)).await;
        assert_eq!(error(&twice), (401, "invalid_client"), "an assertion is used once");
        let proved = client.token(&signed(refresh, key.sign("JWT", &claims()))).await;
        Tokens::of(&proved);
    }

    // What a document holds beside its keys is not kept.
    let client = site.client(APP).await;
    let before = resident(&site.gateway);

    for number in 0..200 {
        let id = documents.id(&format!("/large-keys-{number}.json"));
        client.asks(&browser, &request(&id, &client)).await.ok();
    }

    // As trees these are 1.2 MiB each.
    let after = resident(&site.gateway);
    assert!(after < before + 64, "{before} MiB have become {after} MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_are_private_far_too_many_or_shared_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let documents = Documents::start(folder.path()).await;
    let key = Signer::new();
    documents.state.lock().unwrap().keys = vec![key.jwk()];
    let site = documents.site(NAMED);
    let browser = site.browser().await;
    let client = site.client(APP).await;
    for path in ["/key-both.json", "/key-private.json", "/secret.json"] {
        has!("{path}"; client.asks(&browser, &request(&documents.id(path), &client)).await, 400);
    }
    // Addresses of keys are gone to only when a client proves itself, through the guard and in bounds.
    for path in ["/key-large.json", "/key-local.json"] {
        let client = Client { id: documents.id(path), ..client.clone() };
        let code = client.code(&browser, &client.request()).await;
        let assertion = key.sign("JWT", &proof_for(&client.id, site.gateway.url()));
        let refused = client.token(&signed(client.exchange(&code), assertion)).await;
        assert_eq!(error(&refused), (401, "invalid_client"), "{path}");
        assert!(refused.text.contains("keys of the client cannot be fetched"), "{}", refused.text);
        assert!(refused.at("/access_token").is_null(), "{path}: {}", refused.text);
    }
    let asked = documents.asked.load(Ordering::SeqCst);
    assert_eq!(asked, 6, "five documents and the keys that are too large, nothing else");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_changes_between_consent_and_token_gives_nothing_away() {
    let folder = tempfile::tempdir().unwrap();
    let documents = Documents::start(folder.path()).await;
    let key = Signer::new();
    documents.state.lock().unwrap().keys = vec![key.jwk()];
    let mut site = documents.site(NAMED);
    let by_key = documents.id("/key.json");
    let public = documents.id("/app.json");
    let port = site.gateway.url().rsplit(':').next().unwrap().parse().unwrap();
    let (keyed_code, moved_code) = {
        let browser = site.browser().await;
        let keyed = Client { id: by_key.clone(), ..site.client(APP).await };
        let moved = Client { id: public.clone(), ..site.client(APP).await };
        let keyed_code = keyed.code(&browser, &keyed.request()).await;
        let moved_code = moved.code(&browser, &moved.request()).await;
        (keyed.exchange(&keyed_code), moved.exchange(&moved_code))
    };
    // A node that starts again knows the documents as they are now.
    {
        let mut state = documents.state.lock().unwrap();
        (state.moved, state.public) = (true, true);
    }
    site.gateway.stop();
    site.gateway.start_at(port);
    let redirect_uri = "https://elsewhere.example/cb".to_owned();
    let keyed = Client { gateway: &site.gateway, id: by_key, redirect_uri };
    let moved = Client { id: public, ..keyed.clone() };
    let browser = site.browser().await;

    // It has no keys any more: what was granted to one with keys is not given to one without.
    let bare = keyed.token(&keyed_code).await;
    let assertion = key.sign("JWT", &proof_for(&keyed.id, site.gateway.url()));
    let proved = keyed.token(&signed(keyed_code, assertion)).await;
    assert_eq!(error(&bare), (401, "invalid_client"), "{}", bare.text);
    assert_eq!(error(&proved), (401, "invalid_client"), "{}", proved.text);
    // It returns to another address: the code that went to the old one is worth nothing.
    let page = moved.asks(&browser, &moved.request()).await;
    assert_eq!(page.status, 200, "asked anew: {}", page.text);
    assert!(page.text.contains("elsewhere.example"), "{}", page.text);
    let refused = moved.token(&moved_code).await;
    assert_eq!(error(&refused), (400, "invalid_grant"), "{}", refused.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_changes_after_the_page_was_shown_takes_nothing_along() {
    let folder = tempfile::tempdir().unwrap();
    let documents = Documents::start(folder.path()).await;
    let mut site = documents.site(NAMED);
    let id = documents.id("/app.json");
    let session = "portcullis-session";
    let (cookie, fields) = {
        let browser = site.browser().await;
        let client = Client { id: id.clone(), ..site.client(APP).await };
        let page = client.asks(&browser, &client.request()).await;
        let field = |name| (name, hidden(&page, name));
        (browser.cookie(session).unwrap(), ["form_token", "request", "shown"].map(field))
    };
    documents.state.lock().unwrap().moved = true;
    // What was fetched is forgotten.
    site.gateway.stop();
    site.gateway.start();
    let browser = Browser::new(&site.gateway);
    browser.plant(session, &cookie);
    let mut sent: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    sent.push(("decision", "allow"));

    let decided = browser.submit("/oauth/authorize", &sent).await;

    assert_eq!(decided.status, 400, "{}", decided.text);
    assert!(!decided.headers.contains_key("location"));
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_never_come_keep_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let documents = Documents::start(folder.path()).await;
    let key = Signer::new();
    documents.state.lock().unwrap().keys = vec![key.jwk()];
    let silent = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let hosts: Vec<String> = (1..60).map(|last| format!("\"127.0.0.{last}\"")).collect();
    let trust = documents.authority.to_string_lossy().into_owned();
    let oauth = format!("[oauth]\nprivate_hosts = [{}]", hosts.join(", "));
    let proxies = "[server]\ntrusted_proxies = [\"127.0.0.0/8\"]";
    let builder = gateway().config(super::LINKS).config(&oauth).config(proxies).sample();
    let site = Site::built(builder.env("SSL_CERT_FILE", &trust));
    let browser = site.browser().await;
    let keyed = Client { id: documents.id("/key.json"), ..site.client(APP).await };
    let assertion = || key.sign("JWT", &proof_for(&keyed.id, site.gateway.url()));
    let code = keyed.code(&browser, &keyed.request()).await;
    let tokens = keyed.token(&signed(keyed.exchange(&code), assertion())).await;
    let mut refresh_token = Tokens::of(&tokens).refresh;
    // Four sources ask for documents of 56 hosts, which take the connection and never answer.
    let attack = (0..56).map(|number| {
        let id = format!("https://127.0.0.{}:{port}/client.json", 4 + number);
        let query = encoded(&request(&id, &keyed));
        let path = format!("/oauth/authorize?{query}");
        let from = format!("203.0.113.{}", number % 4);
        site.gateway.request(Method::GET, &path).header("x-forwarded-for", from).send()
    });
    let mut attack: JoinSet<_> = attack.collect();
    // Most are refused at once; two of each source are under way.
    while attack.len() > 8 {
        let refused = attack.join_next().await.unwrap().unwrap().unwrap();
        assert_eq!(refused.status(), 400);
    }

    for number in 0..10 {
        let id = documents.id(&format!("/app-{number}.json"));
        has!("{number}"; keyed.asks(&browser, &request(&id, &keyed)).await, 200);
        let refreshed = keyed.token(&signed(keyed.refresh(&refresh_token), assertion())).await;
        refresh_token = Tokens::of(&refreshed).refresh;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_not_public_while_its_document_cannot_be_had() {
    let folder = tempfile::tempdir().unwrap();
    let documents = Documents::start(folder.path()).await;
    let mut site = documents.site(NAMED);
    let port = site.gateway.url().rsplit(':').next().unwrap().parse().unwrap();
    let id = documents.id("/app.json");
    let fields = {
        let browser = site.browser().await;
        let client = Client { id: id.clone(), ..site.client(APP).await };
        let tokens = client.tokens(&browser, &client.request()).await;
        client.refresh(&tokens.refresh)
    };
    documents.state.lock().unwrap().broken = true;
    site.gateway.stop();
    site.gateway.start_at(port);
    let client = Client { gateway: &site.gateway, id, redirect_uri: APP.to_owned() };

    let refused = client.token(&fields).await;

    assert_eq!(error(&refused), (503, "temporarily_unavailable"), "{}", refused.text);
    assert!(refused.at("/access_token").is_null());
}
