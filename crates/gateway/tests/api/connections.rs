//! Clients that are slow, silent, many, or speak HTTP/2.

mod addresses;
mod frames;
mod framing;
mod known;
mod resting;
mod reused;
mod strangers;

use crate::prelude::*;

/// A gateway that waits for a client no longer than a second; by default it would wait for longer
/// than these tests do.
const IMPATIENT: &str = "[server]\nheader_timeout_seconds = 1\nbody_timeout_seconds = 1";

fn head(who: &Principal, more: &str) -> String {
    format!(
        "POST /v1/mcps/sample:create_note/invoke HTTP/1.1\r\nhost: x\r\n\
         authorization: Bearer {}\r\n{more}\r\n",
        who.token
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_get_on_with_a_request_is_cut_off() {
    // A client that does not get to its request is cut off.
    let (gateway, who) = serve(gateway().config(IMPATIENT).sample());
    let slow: [&[u8]; 5] = [
        b"",
        b"G",
        b"PRI * HTTP/2.0\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: x\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: x\r\nx: ",
    ];

    let cut = join_all(slow.map(|bytes| exchange(&gateway, bytes))).await;

    for (bytes, answer) in slow.iter().zip(cut) {
        assert!(!answer.contains(" 200 "), "{bytes:?}: {answer}");
    }

    // A header that drips is cut off although it never pauses.
    let (mut reader, mut writer) = connect(&gateway).await.into_split();
    let dripping = async {
        writer.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nx: ").await?;
        loop {
            writer.write_all(b"a").await?;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let ended = async {
        let mut answer = Vec::new();
        let _ = reader.read_to_end(&mut answer).await;
        answer
    };

    let cut = async {
        tokio::select! {
            answer = ended => answer,
            failed = dripping => { let _: std::io::Result<()> = failed; Vec::new() }
        }
    };
    let answer = timeout(PATIENCE, cut).await.expect("a connection that ends");

    assert!(!String::from_utf8_lossy(&answer).contains(" 200 "));

    // A kept connection that falls silent ends.
    let mut stream = connect(&gateway).await;
    for _ in 0..2 {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut some = [0; 4096];
        let read = stream.read(&mut some).await.unwrap();
        assert!(String::from_utf8_lossy(&some[..read]).contains(" 200 "), "it is kept");
    }

    let more = rest(&mut stream).await;

    assert_eq!(more, "");

    // A silent http2 connection ends.
    let mut stream = connect(&gateway).await;
    // The preface and empty settings; whatever the server says is not answered.
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();

    let told = rest(&mut stream).await;

    assert!(!told.is_empty(), "settings at least, and the end");

    // A body that stalls is answered and the connection ends.
    for more in ["content-length: 100\r\n", "transfer-encoding: chunked\r\n"] {
        let answer = exchange(&gateway, head(&who, more).as_bytes()).await;

        assert!(answer.starts_with("HTTP/1.1 400 "), "{more}: {answer}");
        assert!(answer.contains("did not arrive within 1 seconds"), "{more}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_no_calls_if_they_are_cut_off_and_http2_is_spoken() {
    // A body that is cut off is no call.
    let (gateway, who) = serve(gateway().sample());
    let mut stream = connect(&gateway).await;
    let sent = head(&who, "content-length: 1000\r\n") + "{\"input\":{";
    stream.write_all(sent.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();

    let answer = rest(&mut stream).await;

    assert!(!answer.contains(" 200 "), "{answer}");

    // A body over the limit is refused whether its length is told or not.
    let who = tenant(&gateway);
    let size = 3 << 20;
    let told = || reqwest::Body::from(vec![b' '; size]);
    let chunked = || {
        let pieces = vec![Ok::<_, std::convert::Infallible>(vec![b' '; 1 << 16]); size >> 16];
        reqwest::Body::wrap_stream(futures_util::stream::iter(pieces))
    };
    for body in [told(), chunked(), told(), chunked(), told(), chunked()] {
        let request = gateway.request(Method::POST, "/v1/mcps/sample:create_note/invoke");
        let answer = gateway.send(request.bearer_auth(&who.token).body(body)).await;

        assert_eq!(answer.refusal(), (413, "payload_too_large"));
        assert_eq!(answer.at("/error/details/limit_bytes").to_string(), "1048576");
    }

    // A refused client sees the answer although its body was not read.
    let who = tenant(&gateway);
    let path = "/v1/mcps/sample:create_note/invoke";

    for _ in 0..5 {
        let request = gateway.request(Method::POST, path).bearer_auth("mcp_live_no");
        let stranger = gateway.send(request.body(vec![b' '; 3 << 20])).await;
        let request = gateway.request(Method::PUT, path).bearer_auth(&who.token);
        let lost = gateway.send(request.body(vec![b' '; 3 << 20])).await;

        assert_eq!((stranger.status.as_u16(), lost.status.as_u16()), (401, 405));
    }

    // Http2 without tls and without upgrade is spoken.
    let who = tenant(&gateway);
    let client = reqwest::Client::builder().http2_prior_knowledge().no_proxy().build().unwrap();
    let url = format!("{}/v1/mcps/sample:create_note/invoke", gateway.url());

    let calls = (0..50).map(|_| {
        let body = r#"{"input":{"title":"a","text":"b"}}"#;
        client.post(&url).bearer_auth(&who.token).body(body).send()
    });
    let answers = join_all(calls).await;

    for answer in answers {
        let answer = answer.unwrap();
        assert_eq!((answer.status().as_u16(), answer.version()), (200, http::Version::HTTP_2));
        assert!(answer.headers().contains_key("x-ratelimit-limit"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_idle_connections_leave_room_for_a_call() {
    let many = "[server]\nmax_connections_per_address = 1000";
    let (gateway, who) = serve(gateway().config(many).sample());
    let idle = join_all((0..400).map(|_| connect(&gateway))).await;

    let answer = gateway.get(&who, "/v1/mcps").await;

    assert_eq!((answer.status.as_u16(), idle.len()), (200, 400));
}
