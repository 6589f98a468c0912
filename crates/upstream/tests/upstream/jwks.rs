//! Issuers that publish their keys, and those that publish something else.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header::CONTENT_ENCODING, header::LOCATION},
    response::{IntoResponse, Response},
};
use portcullis_core::{oauth::TokenMethod, trust::KeySetError};
use portcullis_upstream::{Client, Discovery, Endpoint, FetchError, KeyLocation, Witness};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::outbound;

const DISCOVERY: &str = "/.well-known/openid-configuration";
const ED25519: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

type Answer = Arc<dyn Fn(&str) -> Response + Send + Sync>;

/// An issuer that answers by path; it ends when it is dropped.
struct Issuer {
    url: String,
    seen: Arc<Mutex<Vec<(String, HeaderMap)>>>,
    _stop: DropGuard,
}

#[derive(Clone)]
struct Script {
    answer: Answer,
    seen: Arc<Mutex<Vec<(String, HeaderMap)>>>,
}

impl Issuer {
    /// An issuer that answers with `answer`, which is told the issuer's URL and the path.
    async fn start(answer: impl Fn(&str, &str) -> Response + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let own = url.clone();
        let seen = Arc::default();
        let answer: Answer = Arc::new(move |path| answer(&own, path));
        let script = Script { answer, seen: Arc::clone(&seen) };
        let router = Router::new().fallback(serve).with_state(script);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
        tokio::spawn(async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                _ = axum::serve(listener, router).into_future() => {}
            }
        });
        Self { url, seen, _stop: stop.drop_guard() }
    }

    /// An issuer with this discovery document and a good key.
    async fn with_document(document: impl Fn(&str) -> Value + Send + Sync + 'static) -> Self {
        Self::start(move |own, path| match path {
            DISCOVERY => document(own).to_string().into_response(),
            "/keys" => keys().to_string().into_response(),
            _ => StatusCode::NOT_FOUND.into_response(),
        })
        .await
    }

    fn discovery(&self) -> KeyLocation {
        KeyLocation::Discovery(Discovery::of(&self.url, Endpoint::allowed).unwrap())
    }

    fn paths(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|(path, _)| path.clone()).collect()
    }
}

async fn serve(State(script): State<Script>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    script.seen.lock().unwrap().push((path.clone(), request.headers().clone()));
    (script.answer)(&path)
}

fn keys() -> Value {
    json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": ED25519}]})
}

async fn fetched(location: &KeyLocation) -> Result<usize, FetchError> {
    outbound().fetch_keys(location).await.map(|keys| keys.ids().count())
}

#[tokio::test]
async fn keys_are_found_by_the_discovery_document() {
    let issuer = Issuer::with_document(
        |own| json!({"issuer": own, "jwks_uri": format!("{own}/keys"), "more": [1, 2]}),
    )
    .await;

    assert_eq!(fetched(&issuer.discovery()).await, Ok(1));
    assert_eq!(issuer.paths(), [DISCOVERY, "/keys"]);
    let seen = issuer.seen.lock().unwrap();
    assert!(seen.iter().all(|(_, headers)| !headers.contains_key("authorization")
        && !headers.contains_key("accept-encoding")));
}

#[tokio::test]
async fn a_slash_at_the_end_of_an_issuer_is_part_of_it_and_not_of_the_path() {
    let issuer = Issuer::with_document(
        |own| json!({"issuer": format!("{own}/"), "jwks_uri": format!("{own}/keys")}),
    )
    .await;
    let slash = Discovery::of(&format!("{}/", issuer.url), Endpoint::allowed).unwrap();

    assert_eq!(fetched(&KeyLocation::Discovery(slash)).await, Ok(1));
    assert_eq!(fetched(&issuer.discovery()).await, Err(FetchError::WrongIssuer));
    assert_eq!(issuer.paths()[0], DISCOVERY);
}

#[tokio::test]
async fn a_discovery_document_of_somebody_else_is_refused() {
    for other in ["https://login.acme.example", "", "http://127.0.0.1"] {
        let issuer = Issuer::with_document(
            move |own| json!({"issuer": other, "jwks_uri": format!("{own}/keys")}),
        )
        .await;

        assert_eq!(fetched(&issuer.discovery()).await, Err(FetchError::WrongIssuer), "{other}");
        assert_eq!(issuer.paths(), [DISCOVERY], "nothing else is asked");
    }
}

#[tokio::test]
async fn a_discovery_document_leads_nowhere_but_to_the_issuer_or_the_public_internet() {
    let inside = Issuer::start(|_, _| keys().to_string().into_response()).await;
    let elsewhere = inside.url.replace("127.0.0.1", "127.0.0.2");
    for address in [
        elsewhere.as_str(),
        "http://169.254.169.254/latest/meta-data",
        "https://169.254.169.254/",
        "https://127.0.0.1/keys",
        "https://10.0.0.1/keys",
        "https://[::1]/keys",
        "http://example.com/keys",
        "file:///etc/passwd",
        "https://user:pw@example.com/keys",
        "keys",
        "",
    ] {
        let address = address.to_owned();
        let issuer =
            Issuer::with_document(move |own| json!({"issuer": own, "jwks_uri": address})).await;
        let outcome = fetched(&issuer.discovery()).await;

        assert!(matches!(outcome, Err(FetchError::JwksUri(_))), "{outcome:?}");
    }
    assert!(inside.paths().is_empty());
}

#[tokio::test]
async fn what_is_no_discovery_document_is_refused() {
    for text in [
        "",
        "<html>",
        "[]",
        "{}",
        r#"{"jwks_uri": "https://example.com/keys"}"#,
        r#"{"issuer": 7, "jwks_uri": "https://example.com/keys"}"#,
    ] {
        let issuer = Issuer::start(move |_, _| text.into_response()).await;

        assert_eq!(fetched(&issuer.discovery()).await, Err(FetchError::Discovery), "{text}");
    }
    let issuer = Issuer::with_document(|own| json!({"issuer": own})).await;
    assert_eq!(fetched(&issuer.discovery()).await, Err(FetchError::Discovery));
    let twice = Issuer::start(|own, _| {
        format!(r#"{{"issuer":"{own}","issuer":"{own}","jwks_uri":"{own}/keys"}}"#).into_response()
    })
    .await;
    assert_eq!(fetched(&twice.discovery()).await, Err(FetchError::Discovery));
}

#[tokio::test]
async fn redirects_errors_floods_and_packed_answers_are_no_keys() {
    let good = Issuer::start(|_, _| keys().to_string().into_response()).await;
    let aside = format!("{}/keys", good.url);
    let endless = || {
        let pieces =
            futures_util::stream::repeat(Ok::<_, std::convert::Infallible>("x".repeat(64 << 10)));
        Body::from_stream(pieces).into_response()
    };
    let trickle = || {
        let pieces = futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            Some((Ok::<_, std::convert::Infallible>(" "), ()))
        });
        Body::from_stream(pieces).into_response()
    };
    let cases: Vec<(Answer, FetchError)> = vec![
        (
            Arc::new(move |_| (StatusCode::FOUND, [(LOCATION, aside.clone())]).into_response()),
            FetchError::Status(302),
        ),
        (Arc::new(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response()), FetchError::Status(500)),
        (Arc::new(|_| StatusCode::NO_CONTENT.into_response()), FetchError::Status(204)),
        (Arc::new(|_| " ".repeat(300 << 10).into_response()), FetchError::TooLarge),
        (Arc::new(move |_| endless()), FetchError::TooLarge),
        (Arc::new(move |_| trickle()), FetchError::Timeout),
        (
            Arc::new(|_| ([(CONTENT_ENCODING, "gzip")], keys().to_string()).into_response()),
            FetchError::Encoded,
        ),
        (Arc::new(|_| "<html>".into_response()), FetchError::Keys(KeySetError::Json)),
        (Arc::new(|_| "{}".into_response()), FetchError::Keys(KeySetError::Keys)),
    ];
    for (answer, expected) in cases {
        let issuer = Issuer::start(move |_, path| answer(path)).await;
        let location = KeyLocation::Jwks(Endpoint::allowed(&format!("{}/k", issuer.url)).unwrap());

        assert_eq!(fetched(&location).await, Err(expected));
    }
    assert!(good.paths().is_empty(), "nobody followed");
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    // Bound, so that no other test gets the port, and not listening.
    let nobody = tokio::net::TcpSocket::new_v4().unwrap();
    nobody.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let url = format!("http://{}/keys", nobody.local_addr().unwrap());
    let location = KeyLocation::Jwks(Endpoint::allowed(&url).unwrap());

    assert_eq!(fetched(&location).await, Err(FetchError::Unreachable));
}

#[test]
fn an_issuer_that_may_not_be_dialled_is_refused_before() {
    for issuer in [
        "http://login.acme.example",
        "https://127.0.0.1",
        "https://login.acme.example?tenant=1",
        "https://login.acme.example#a",
        "https://user@login.acme.example",
        "login.acme.example",
        "kubernetes/serviceaccount",
        "",
    ] {
        assert!(Discovery::of(issuer, Endpoint::public).is_err(), "{issuer}");
    }
    assert!(Discovery::of("https://login.acme.example/tenant/", Endpoint::public).is_ok());
    assert!(Discovery::of("http://8.8.8.8", Endpoint::allowed).is_err());
}

#[tokio::test]
async fn every_status_of_success_is_one_that_brings_what_was_asked_for() {
    for (status, answered) in [(200, true), (201, true), (203, true), (204, false), (404, false)] {
        let status = StatusCode::from_u16(status).unwrap();
        let issuer = Issuer::start(move |_, path| match path {
            "/keys" => (status, keys().to_string()).into_response(),
            _ => (status, "{}").into_response(),
        })
        .await;
        let at = |path: &str| Endpoint::allowed(&format!("{}{path}", issuer.url)).unwrap();
        let outbound = outbound();
        let client = Client { id: "c".to_owned(), secret: None, method: TokenMethod::None };
        let witness = Witness::new(&outbound, &at("/w/")).unwrap();

        assert_eq!(fetched(&KeyLocation::Jwks(at("/keys"))).await.is_ok(), answered, "{status}");
        assert_eq!(outbound.fetch_json(&at("/")).await.is_ok(), answered, "{status}");
        let registered = outbound.register_client(&at("/"), &json!({})).await;
        assert_eq!(registered.is_ok(), answered, "{status}");
        let signed = witness.add_checkpoint(0, &[], "x").await;
        assert_eq!(signed.is_ok(), answered, "{status}");
        let revoked = outbound.revoke_token(&at("/"), &client, &[]).await;
        assert_eq!(revoked.is_ok(), status.is_success(), "{status}");
    }
}
