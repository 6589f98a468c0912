//! Connections that clients use again after a refusal.

use futures_util::{StreamExt, stream};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::tcp::OwnedReadHalf,
};

use crate::prelude::*;

const INVOKE: &str = "/v1/mcps/sample:create_note/invoke";
const NEXT: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";

/// A request that is refused, its body, and the pause between its head and that.
#[derive(Clone)]
struct Refused {
    what: &'static str,
    head: String,
    body: Vec<u8>,
    pause: Duration,
}

/// One answer: its status line and headers, its body read.
async fn answer(reader: &mut BufReader<OwnedReadHalf>) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length?.parse().unwrap()];
    reader.read_exact(&mut body).await.ok()?;
    Some(head)
}

/// Sends it and then another request on the same connection, unless the answer says that it ends.
/// Tells what went wrong.
async fn goes_on(gateway: &Gateway, it: &Refused) -> Result<(), String> {
    let (reader, mut writer) = connect(gateway).await.into_split();
    let mut reader = BufReader::new(reader);
    let asking = async {
        writer.write_all(it.head.as_bytes()).await.map_err(|error| format!("head: {error}"))?;
        if !it.pause.is_zero() {
            tokio::time::sleep(it.pause).await;
        }
        // The gateway may end the connection while it comes; then the answer has to say so.
        let sent = writer.write_all(&it.body).await;
        let head = answer(&mut reader).await.ok_or("no answer")?;
        if !head.starts_with("HTTP/1.1 4") {
            return Err(head);
        }
        if head.contains("\r\nconnection: close\r\n") {
            return Ok(());
        }
        sent.map_err(|error| format!("body: {error}"))?;
        writer.write_all(NEXT).await.map_err(|error| format!("next: {error}"))?;
        let next = answer(&mut reader).await.ok_or("no next answer")?;
        if next.starts_with("HTTP/1.1 200 ") { Ok(()) } else { Err(next) }
    };
    let asked = timeout(PATIENCE, asking).await.unwrap_or_else(|_| Err("no end".to_owned()));
    asked.map_err(|wrong| format!("{}, {} bytes, {:?}: {wrong}", it.what, it.body.len(), it.pause))
}

fn refusals(token: &str, poor: &str) -> Vec<Refused> {
    let bearer = |token: &str| format!("authorization: Bearer {token}\r\n");
    let kinds = [
        ("no token", INVOKE, String::new()),
        ("no path", "/nothing", String::new()),
        ("no scheme", INVOKE, "authorization: Basic x\r\n".to_owned()),
        ("no credential", "/v1/auth/token", "authorization: Bearer x\r\n".to_owned()),
        ("no JSON", INVOKE, format!("{}content-type: text/plain\r\n", bearer(token))),
        ("no permits", INVOKE, bearer(poor)),
        ("too large", "/v1/audit/export", bearer(token)),
    ];
    let mut all = Vec::new();
    for (what, path, more) in kinds {
        for size in [1, 1_000, 16 << 10, (16 << 10) + 1, 100_000, 1 << 20] {
            if what == "too large" && size < 100_000 {
                continue;
            }
            for pause in [0, 1, 5, 50] {
                let pause = Duration::from_millis(pause);
                let start = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{more}");
                let head = format!("{start}content-length: {size}\r\n\r\n");
                let body = vec![b' '; size];
                all.push(Refused { what, head, body: body.clone(), pause });
                let head = format!("{start}transfer-encoding: chunked\r\n\r\n");
                let mut chunked = format!("{size:x}\r\n").into_bytes();
                chunked.extend(body);
                chunked.extend(b"\r\n0\r\n\r\n");
                all.push(Refused { what, head, body: chunked, pause });
            }
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_client_goes_on_or_is_told_that_the_connection_ends() {
    let (gateway, who) = serve(gateway().sample());
    let poor = gateway.service(&gateway.org("poor", &plan("1", "1")), ALL_SCOPES);
    gateway.get(&poor, "/v1/mcps").await;
    let all = refusals(&who.token, &poor.token);
    let many = all.iter().cycle().take(4 * all.len());

    let ended: Vec<_> =
        stream::iter(many).map(|it| goes_on(&gateway, it)).buffer_unordered(16).collect().await;

    let wrong: Vec<&String> = ended.iter().filter_map(|it| it.as_ref().err()).collect();
    let some = &wrong[..wrong.len().min(5)];
    let count = wrong.len();
    assert!(wrong.is_empty(), "{count} of {}: {some:#?}", ended.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_says_that_the_connection_ends_when_the_body_is_not_waited_for() {
    let gateway = gateway().sample().start();

    for more in [
        "content-length: 10\r\n",
        "content-length: 100000\r\n",
        "transfer-encoding: chunked\r\n",
        "content-length: 10\r\nexpect: 100-continue\r\n",
    ] {
        let head = format!("POST {INVOKE} HTTP/1.1\r\nhost: x\r\n{more}\r\n");
        let answer = exchange(&gateway, head.as_bytes()).await;

        assert!(answer.starts_with("HTTP/1.1 401 "), "{more}: {answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{more}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_body_keeps_its_connection_when_it_is_refused() {
    let gateway = gateway().start();
    let (reader, mut writer) = connect(&gateway).await.into_split();
    let mut reader = BufReader::new(reader);

    for _ in 0..10 {
        writer.write_all(b"GET /v1/mcps HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let head = answer(&mut reader).await.unwrap();

        assert!(head.starts_with("HTTP/1.1 401 ") && !head.contains("connection:"), "{head}");
    }
}
