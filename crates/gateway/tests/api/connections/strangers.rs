//! Bodies of callers of whom nothing is known yet.

use std::convert::Infallible;

use futures_util::{StreamExt, stream};
use reqwest::header::{HeaderMap, HeaderValue};

use crate::prelude::*;

/// Connections of the attack, and requests on each.
const CONNECTIONS: usize = 20;
const STREAMS: usize = 100;
/// Bytes that are sent of each body.
const SENT: usize = 60 << 10;
/// Bodies in which an address may try credentials in a minute when its requests are used up.
const LOOK_UPS: usize = 1_210;

fn http2() -> reqwest::Client {
    reqwest::Client::builder().http2_prior_knowledge().no_proxy().build().unwrap()
}

/// A body of which a part comes and never the rest.
fn unfinished(bytes: usize) -> reqwest::Body {
    let part = Ok::<_, Infallible>(vec![b' '; bytes]);
    reqwest::Body::wrap_stream(stream::iter([part]).chain(stream::pending()))
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_bodies_on_many_streams_take_little_memory() {
    let (gateway, who) = serve(gateway());
    assert_eq!(gateway.get(&who, "/v1/mcps").await.status, 200);
    let before = resident(&gateway);
    let url = format!("{}/v1/auth/token", gateway.url());
    let mut attack = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let client = http2();
        for _ in 0..STREAMS {
            attack.spawn(client.post(&url).body(unfinished(SENT)).send());
        }
    }

    let mut most = before;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(4) {
        most = most.max(resident(&gateway));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    // All that is sent is 120 MB; streams and buffers come on top of what is kept of bodies.
    assert!(most - before < 64, "{before} MiB have become {most} MiB");
    assert_eq!(gateway.get(&who, "/v1/mcps").await.status, 200);
}

/// A gateway behind a proxy, so that the source of a request can be chosen, at which people log in.
fn proxied() -> Gateway {
    let proxies = "[server]\ntrusted_proxies = [\"127.0.0.0/8\"]\n[login]\nlinks = true";
    gateway().config(proxies).start()
}

fn post(path: &str, source: &str, more: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: x\r\nx-forwarded-for: {source}\r\n{more}\r\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_greedy_sources_leave_room_for_the_small_body_of_a_ninth() {
    /// Bodies of each source, as large as they may be: without the others, its whole share.
    const BODIES: usize = 16;
    const LARGEST: usize = 64 << 10;
    let gateway = proxied();
    let host = gateway.url().split_once("://").unwrap().1.to_owned();
    let mut bodies = JoinSet::new();
    for number in 0..8 * BODIES {
        let source = format!("203.0.113.{}", 1 + number % 8);
        let head = format!(
            "POST /v1/auth/token HTTP/1.1\r\nhost: {host}\r\nx-forwarded-for: {source}\r\n"
        );
        let host = host.clone();
        bodies.spawn(async move { status_of_unfinished(&host, &head, LARGEST - 1).await });
    }

    let refused = timeout(PATIENCE, bodies.join_next()).await.unwrap().unwrap().unwrap();
    let ninth = gateway.request(Method::POST, "/v1/auth/token").body("{}");
    has!(gateway.send(ninth.header("x-forwarded-for", "203.0.113.9")).await, 401 "missing_token");

    assert_eq!(refused, 503, "of 8 MiB something is left for others");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_in_the_header_is_looked_at_before_the_body_is_waited_for() {
    let gateway = proxied();
    let who = gateway.service(&gateway.org("acme", &ENOUGH), ALL_SCOPES);
    let unknown = "mcp_live_000000000000000000000000000000000000";
    let begun = Instant::now();

    let paths = ["/v1/auth/token", "/v1/auth/refresh"];
    for (path, bearer) in paths.into_iter().flat_map(|path| [(path, "nonsense"), (path, unknown)]) {
        let more = format!("authorization: Bearer {bearer}\r\ncontent-length: 100\r\n");
        let answer = exchange(&gateway, post(path, "203.0.113.7", &more).as_bytes()).await;

        assert!(answer.starts_with("HTTP/1.1 401 "), "{path}, {bearer}: {answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{path}, {bearer}: {answer}");
    }
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    gateway.post(&who, "/v1/auth/token", "{}").await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_whose_bucket_is_empty_is_refused_before_its_body() {
    let gateway = proxied();
    let who = gateway.service(&gateway.org("acme", &ENOUGH), ALL_SCOPES);
    while now(&gateway).await.as_seconds() % 60 > 35 {
        tokio::task::yield_now().await;
    }
    let bad = "203.0.113.7";
    let from = |request: RequestBuilder| request.header("x-forwarded-for", bad);
    let ask = || from(gateway.request(Method::POST, "/v1/auth/token")).body("{}");
    join_all((0..60).map(|_| gateway.send(from(gateway.request(Method::GET, "/v1/mcps"))))).await;

    // Many more may still try, for a valid credential may be among them.
    let tries = stream::iter((0..LOOK_UPS).map(|_| gateway.send(ask())));
    let answers: Vec<Answer> = tries.buffer_unordered(50).collect().await;
    let head = post("/v1/auth/token", bad, "content-length: 100\r\n");
    let unread = exchange(&gateway, head.as_bytes()).await;
    gateway.send(ask().bearer_auth(&who.token)).await.ok();

    assert!(answers.iter().all(|it| it.status == 429), "{answers:?}");
    assert!(unread.starts_with("HTTP/1.1 429 "), "{unread}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_has_few_streams_until_somebody_has_authenticated() {
    let (gateway, who) = serve(gateway());
    let client = http2();
    let url = gateway.url().to_owned();
    let healthz = || client.get(format!("{url}/healthz")).send();
    let mut attack = JoinSet::new();
    let hold = |attack: &mut JoinSet<_>, count: usize| {
        for _ in 0..count {
            attack.spawn(client.post(format!("{url}/v1/auth/token")).body(unfinished(1)).send());
        }
    };
    assert_eq!(healthz().await.unwrap().status(), 200);

    hold(&mut attack, 8);
    let refused = async || Some(healthz().await.unwrap()).filter(|it| it.status() == 503);
    let crowded = eventually("a ninth stream that is refused", refused).await;
    assert_eq!(crowded.headers()["retry-after"], "5");
    attack.shutdown().await;
    let known = client.get(format!("{url}/v1/mcps")).bearer_auth(&who.token);
    assert_eq!(known.send().await.unwrap().status(), 200);
    hold(&mut attack, 40);

    for _ in 0..20 {
        assert_eq!(healthz().await.unwrap().status(), 200, "somebody has authenticated");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_on_many_streams_of_unknown_callers_have_a_bound() {
    let gateway = gateway().start();
    // About 40 KiB in memory: there is room for 200 such requests of an address.
    let header = |n: u16| (format!("x-{n}").parse().unwrap(), HeaderValue::from_static("1"));
    let headers: HeaderMap = (0..300).map(header).collect();
    let url = gateway.url();
    let mut attack = JoinSet::new();
    for client in std::iter::repeat_with(http2).take(30) {
        for _ in 0..8 {
            let post = client.post(format!("{url}/v1/auth/token")).headers(headers.clone());
            attack.spawn(post.body(unfinished(1)).send());
        }
    }
    let client = http2();
    let probe = || client.get(format!("{url}/healthz")).headers(headers.clone()).send();

    let refused = async || Some(probe().await.unwrap()).filter(|it| it.status() == 503);
    let crowded = eventually("headers for which there is no room", refused).await;

    assert_eq!(crowded.headers()["retry-after"], "5");
    assert_eq!(gateway.send(gateway.request(Method::GET, "/readyz")).await.status, 200);
    attack.shutdown().await;
    let let_in = async || Some(probe().await.unwrap()).filter(|it| it.status() == 200);
    eventually("room for them again", let_in).await;
}

/// Bodies that a source holds at each operation, and bytes of each that are sent: 2 MiB.
const HELD: usize = 264;
const HELD_BYTES: usize = 8_000;
/// Those of them for which there is room: each takes two steps of 4 KiB of the share of 1 MiB.
const WITHIN_SHARE: usize = 128;

/// The operations that read what a sender of whom nothing is known says.
const READ_FROM_ANYBODY: [&str; 8] = [
    "/login/link", "/logout", "/oauth/authorize", "/oauth/register", "/oauth/revoke",
    "/oauth/token", "/v1/auth/refresh", "/v1/auth/token",
];

/// The status of the answer to a body of which so many bytes come and never the last.
pub(super) async fn status_of_unfinished(address: &str, head: &str, sent: usize) -> u16 {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut begun = format!("{head}content-length: {}\r\n\r\n", sent + 1).into_bytes();
    begun.resize(begun.len() + sent, b'a');
    // An answer may come, and the connection end, before all of it is sent.
    let _ = stream.write_all(&begun).await;
    let mut answer = [0; 12];
    match stream.read_exact(&mut answer).await {
        Ok(_) => String::from_utf8_lossy(&answer[9..]).parse().unwrap(),
        Err(_) => 0,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_operation_holds_more_bodies_of_a_source_than_its_share() {
    let gateway = proxied();
    let document = gateway.send(gateway.request(Method::GET, "/openapi.json")).await.json;
    let host = gateway.url().split_once("://").unwrap().1.to_owned();
    let before = resident(&gateway);
    let mut read = Vec::new();
    let operations = document["paths"].as_object().unwrap().iter().flat_map(|(path, item)| {
        let methods = ["post", "put", "patch"].into_iter().map(|name| (name, &item[name]));
        methods.filter(|(_, it)| it.is_object()).map(move |(name, it)| (name, path, it))
    });
    let mcp = json!({"requestBody": {"content": {"application/json": {}}}});
    let message = ["/mcp".to_owned(), "/mcp/sample".to_owned()];
    let messages = message.iter().map(|path| ("post", path, &mcp));
    for (number, (method, path, operation)) in operations.chain(messages).enumerate() {
        let content = operation.pointer("/requestBody/content").and_then(|it| it.as_object());
        let kind =
            content.and_then(|it| it.keys().next()).map_or("application/json", String::as_str);
        let method = method.to_uppercase();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\n\
             x-forwarded-for: 203.0.113.{number}\r\ncontent-type: {kind}\r\n"
        );
        let mut answers = JoinSet::new();
        for _ in 0..HELD {
            let (address, head) = (host.clone(), head.clone());
            answers.spawn(async move { status_of_unfinished(&address, &head, HELD_BYTES).await });
        }

        let mut statuses = Vec::new();
        while statuses.len() < HELD - WITHIN_SHARE {
            let next = timeout(PATIENCE, answers.join_next()).await;
            let left = HELD - statuses.len();
            let next = next.unwrap_or_else(|_| panic!("{method} {path} holds {left} bodies"));
            statuses.push(next.unwrap().unwrap());
        }

        if statuses.contains(&503) {
            read.push(path.as_str());
        }
        // While this source holds its share, others have the rest.
        let other = gateway.request(Method::POST, "/v1/auth/token");
        let other = other.header("x-forwarded-for", format!("198.51.100.{number}")).body("{}");
        has!("{path}"; gateway.send(other).await, 401 "missing_token");
    }
    read.sort_unstable();
    assert_eq!(read, READ_FROM_ANYBODY);
    let after = resident(&gateway);
    assert!(after < before + 64, "{before} MiB have become {after} MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_a_stranger_has_five_seconds_whatever_others_have() {
    let gateway = gateway().config("[login]\nlinks = true").start();
    let kind = "content-type: application/x-www-form-urlencoded\r\ncontent-length: 100\r\n";
    for path in ["/oauth/token", "/oauth/revoke"] {
        let mut stream = connect(&gateway).await;
        stream.write_all(post(path, "x", kind).as_bytes()).await.unwrap();

        let answer = rest(&mut stream).await;

        assert!(answer.contains("did not arrive within 5 seconds"), "{path}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_a_foreign_page_is_refused_and_charged_before_it_comes() {
    let gateway = proxied();
    let foreign =
        "origin: https://evil.example\r\ncontent-type: application/x-www-form-urlencoded\r\n";
    for (path, source) in [
        ("/login/link", "203.0.113.7"),
        ("/logout", "203.0.113.8"),
        ("/oauth/authorize", "203.0.113.9"),
    ] {
        let head = post(path, source, &format!("{foreign}content-length: 100\r\n"));

        let answer = exchange(&gateway, head.as_bytes()).await;

        assert!(answer.starts_with("HTTP/1.1 400 "), "{path}: {answer}");
        assert!(answer.contains("\r\nx-ratelimit-remaining: 59\r\n"), "{path}: {answer}");
    }
}
