//! HTTP/1 that can be read in two ways: a proxy in front would see other requests than the gateway.

use crate::prelude::*;

const GOOD: &str = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
/// A request that must not be answered where it is smuggled, and closes where it is one of its own.
const NEXT: &str = "GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
const BODY: &str = r#"{"input":{"title":"t","text":"u"}}"#;

/// Heads whose fields break the framing.
const BROKEN_FIELDS: [&str; 36] = [
    "transfer-encoding: identity\r\n",
    "transfer-encoding: xchunked\r\n",
    "transfer-encoding: chunked, identity\r\n",
    "transfer-encoding: identity, chunked\r\n",
    "transfer-encoding: gzip, chunked\r\n",
    "transfer-encoding: chunked, chunked\r\n",
    "transfer-encoding: ,chunked\r\n",
    "transfer-encoding: chunked;q=1\r\n",
    "transfer-encoding: \"chunked\"\r\n",
    "transfer-encoding: chunked \r\n",
    "transfer-encoding:\tchunked\r\n",
    "transfer-encoding: \u{b}chunked\r\n",
    "transfer-encoding:\r\n",
    "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
    "transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n",
    "transfer-encoding: chunked\r\ncontent-length: 5\r\n",
    "content-length: 5\r\ntransfer-encoding: chunked\r\n",
    "content-length: 5\r\ncontent-length: 5\r\n",
    "content-length: 5\r\ncontent-length: 6\r\n",
    "content-length: 5, 5\r\n",
    "content-length: +5\r\n",
    "content-length: -5\r\n",
    "content-length: 05\r\n",
    "content-length: 5 \r\n",
    "content-length:  5\r\n",
    "content-length: 5;\r\n",
    "content-length: 0x5\r\n",
    "content-length:\r\n",
    "content-length: 18446744073709551621\r\n",
    "content-length : 5\r\n",
    "transfer-encoding : chunked\r\n",
    " content-length: 5\r\n",
    "x: y\r\n content-length: 5\r\n",
    "x: y\ncontent-length: 5\r\n",
    "x: y\rcontent-length: 5\r\n",
    "content-length: 5\n",
];

/// Heads that break the framing, whole.
const BROKEN_HEADS: [&str; 6] = [
    "POST /v1/auth/token HTTP/1.1\nhost: x\r\n\r\n",
    "POST /v1/auth/token HTTP/1.1\r\nhost: x\n\n",
    "POST /v1/auth/token HTTP/1.1\r\nhost: x\r\n\n",
    "\nPOST /v1/auth/token HTTP/1.1\r\nhost: x\r\n\r\n",
    "POST /v1/auth/token HTTP/1.1\r\n host: x\r\n\r\n",
    "POST /v1/auth/token HTTP/1.0\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n",
];

/// Chunked bodies that break the framing.
const BROKEN_CHUNKS: [&str; 10] = [
    "22\n{body}\r\n0\r\n\r\n",
    "22\r\n{body}\n0\r\n\r\n",
    "22\r\n{body}\r\n0\n\n",
    "22 \r\n{body}\r\n0\r\n\r\n",
    "+22\r\n{body}\r\n0\r\n\r\n",
    "0x22\r\n{body}\r\n0\r\n\r\n",
    "22;a\nb\r\n{body}\r\n0\r\n\r\n",
    "21\r\n{body}\r\n0\r\n\r\n",
    "10000000000000022\r\n{body}\r\n0\r\n\r\n",
    "22\r\n{body}\r\n0\r\nx: y\n\r\n",
];

fn statuses(answer: &str) -> Vec<&str> {
    answer.match_indices("HTTP/1.1 ").filter_map(|(at, _)| answer.get(at + 9..at + 12)).collect()
}

/// A call of a tool, up to the fields that frame its body.
fn call(who: &Principal) -> String {
    format!(
        "POST /v1/mcps/sample:create_note/invoke HTTP/1.1\r\nhost: x\r\n\
         authorization: Bearer {}\r\ncontent-type: application/json\r\n",
        who.token
    )
}

/// Sends these parts one by one, each once the one before was taken, and reads to the end.
async fn in_parts(gateway: &Gateway, parts: &[&str]) -> String {
    let mut stream = connect(gateway).await;
    for part in parts {
        // The gateway may have ended the connection meanwhile.
        let _ = stream.write_all(part.as_bytes()).await;
        let _ = stream.flush().await;
        tokio::task::yield_now().await;
    }
    rest(&mut stream).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_can_be_read_in_two_ways_is_answered_400_and_nothing_behind_it() {
    let gateway = gateway().start();
    let framed = BROKEN_FIELDS
        .map(|fields| format!("POST /v1/auth/token HTTP/1.1\r\nhost: x\r\n{fields}\r\n"));
    let whole = BROKEN_HEADS.map(str::to_owned);

    for head in framed.iter().chain(&whole) {
        let smuggled = format!("0\r\n\r\n{NEXT}");
        let first = exchange(&gateway, format!("{head}{smuggled}").as_bytes()).await;
        let second = exchange(&gateway, format!("{GOOD}{head}{smuggled}").as_bytes()).await;
        let (start, end) = head.split_at(head.len() - 2);
        let parts = in_parts(&gateway, &[GOOD, start, end, &smuggled]).await;

        assert_eq!(statuses(&first), ["400"], "{head:?}: {first}");
        assert_eq!(statuses(&second), ["200", "400"], "{head:?}: {second}");
        assert_eq!(statuses(&parts), ["200", "400"], "{head:?}: {parts}");
        assert!(first.contains("connection: close"), "{head:?}: {first}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_can_be_read_in_two_ways_calls_nothing_and_requests_by_the_rules_are_answered()
{
    // A body that can be read in two ways calls nothing and ends the connection.
    let (gateway, who) = serve(gateway().sample());
    let head = format!("{}transfer-encoding: chunked\r\n\r\n", call(&who));

    for chunks in BROKEN_CHUNKS {
        let chunks = chunks.replace("{body}", BODY);
        let answer = exchange(&gateway, format!("{GOOD}{head}{chunks}{NEXT}").as_bytes()).await;
        let parts = in_parts(&gateway, &[&head, &chunks, NEXT]).await;

        assert_eq!(statuses(&answer), ["200", "400"], "{chunks:?}: {answer}");
        assert_eq!(statuses(&parts), ["400"], "{chunks:?}: {parts}");
    }
    let unread = "POST /v1/mcps HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    let unread = format!("{unread}5\nhello\r\n0\r\n\r\n{NEXT}");
    assert_eq!(statuses(&exchange(&gateway, unread.as_bytes()).await), ["401"]);

    // Requests that are framed by the rules are answered one after the other.
    let who = tenant(&gateway);
    let sized = format!("content-length: {}\r\n\r\n{BODY}", BODY.len());
    let chunked = format!("22\r\n{BODY}\r\n0\r\n\r\n");
    let good = [
        sized.clone(),
        format!("Content-Length:{}\r\n\r\n{BODY}", BODY.len()),
        format!("x:\t y \r\n{sized}"),
        format!("transfer-encoding: chunked\r\n\r\n{chunked}"),
        format!("TRANSFER-ENCODING:Chunked\r\n\r\n{chunked}"),
        format!(
            "transfer-encoding: chunked\r\n\r\n007;x=\"y z\"\r\n{}\r\n1b\r\n{}\r\n0;x\r\na: b\r\n\r\n",
            &BODY[..7],
            &BODY[7..],
        ),
    ];
    let mut all = String::new();
    for framed in &good {
        all.extend([&*call(&who), framed]);
    }
    let empty = "GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
    all.extend(["\r\n", empty, GOOD, NEXT]);

    let at_once = exchange(&gateway, all.as_bytes()).await;
    let bytes: Vec<String> = all.chars().map(String::from).collect();
    let bytewise = in_parts(&gateway, &bytes.iter().map(String::as_str).collect::<Vec<_>>()).await;

    let wanted = vec!["200"; good.len() + 3];
    assert_eq!(statuses(&at_once), wanted, "{at_once}");
    assert_eq!(statuses(&bytewise), wanted, "{bytewise}");
    let http2 = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let call = http2.post(format!("{}/v1/mcps/sample:create_note/invoke", gateway.url()));
    let call = call.bearer_auth(&who.token).header("content-type", "application/json");
    let answer = call.body(BODY).send().await.unwrap();
    assert_eq!(answer.version(), reqwest::Version::HTTP_2);
    assert_eq!(answer.status(), reqwest::StatusCode::OK);
}
