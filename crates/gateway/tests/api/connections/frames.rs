//! Frames of HTTP/2, as clients send them that do not mean well.

use tokio::{
    io::{copy, sink},
    time::sleep,
};

use super::IMPATIENT;
use crate::prelude::*;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Kinds of frames, and flags (RFC 9113 §6).
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const NO_FLAGS: u8 = 0;
const ACK: u8 = 1;
const END_OF_STREAM_AND_HEADERS: u8 = 5;
/// `SETTINGS_INITIAL_WINDOW_SIZE` of 0: no byte of an answer may be sent.
const NO_WINDOW: [u8; 6] = [0, 4, 0, 0, 0, 0];
/// Frames that are sent at once.
const FRAMES: usize = 4096;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let stream = stream.to_be_bytes();
    [&length[1..], &[kind, flags], &stream, payload].concat()
}

/// A request without a body, its fields as literals (RFC 7541 §6.2.2) of less than 127 bytes.
fn get(stream: u32, path: &str, token: Option<&str>) -> Vec<u8> {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let all = [(":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "x")];
    let fields = all.into_iter().chain(bearer.iter().map(|it| ("authorization", it.as_str())));
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()][..], text.as_bytes()].concat();
    let literal = |(name, value): (&str, &str)| [vec![0], text(name), text(value)].concat();
    frame(HEADERS, END_OF_STREAM_AND_HEADERS, stream, &fields.flat_map(literal).collect::<Vec<_>>())
}

async fn begun(gateway: &Gateway, settings: &[u8]) -> TcpStream {
    let mut stream = connect(gateway).await;
    let settings = frame(SETTINGS, NO_FLAGS, 0, settings);
    stream.write_all(&[PREFACE, &settings].concat()).await.unwrap();
    stream
}

/// Reads until these bytes came.
async fn read_until(stream: &mut TcpStream, wanted: &[u8]) {
    let mut read = Vec::new();
    let reading = async {
        while !read.windows(wanted.len()).any(|it| it == wanted) {
            assert!(stream.read_buf(&mut read).await.unwrap() > 0, "the connection ended");
        }
    };
    timeout(PATIENCE, reading).await.expect("the bytes that are waited for");
}

/// Sends the same so many times while all that comes is read. Fails when the connection ended.
async fn flood(stream: &mut TcpStream, frames: &[u8], times: usize) -> std::io::Result<()> {
    let (mut reader, mut writer) = stream.split();
    let sending = async {
        for _ in 0..times {
            writer.write_all(frames).await?;
        }
        Ok::<(), std::io::Error>(())
    };
    let reading = async { copy(&mut reader, &mut sink()).await };
    tokio::select! {
        sent = sending => sent,
        _ = reading => Err(std::io::ErrorKind::ConnectionReset.into()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_frames_ends_the_connection_of_an_unknown_caller() {
    let (gateway, who) = serve(gateway());
    let priority = frame(PRIORITY, NO_FLAGS, 1, &[0, 0, 0, 0, 16]);

    for repeated in [&priority, &frame(PING, NO_FLAGS, 0, b"12345678")] {
        let frames = repeated.repeat(FRAMES);
        let mut stream = begun(&gateway, &[]).await;
        let flooding = timeout(PATIENCE, flood(&mut stream, &frames, usize::MAX));
        assert!(flooding.await.expect("an end").is_err(), "{repeated:?}");
    }

    // One whom the gateway knows is answered, for requests on one connection may be many.
    let mut known = begun(&gateway, &[]).await;
    known.write_all(&get(1, "/v1/mcps", Some(&who.token))).await.unwrap();
    read_until(&mut known, b"\"meta\"").await;
    let frames = priority.repeat(FRAMES);
    let flooding = timeout(PATIENCE, flood(&mut known, &frames, 60));
    flooding.await.expect("an end").unwrap();
    known.write_all(&frame(PING, NO_FLAGS, 0, b"still on")).await.unwrap();
    read_until(&mut known, &frame(PING, ACK, 0, b"still on")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_nobody_takes_ends_its_connection_whatever_else_is_asked() {
    let (gateway, who) = serve(gateway().config(IMPATIENT));
    for (path, token) in [("/v1/mcps", Some(who.token.as_str())), ("/openapi.json", None)] {
        let mut stream = begun(&gateway, &NO_WINDOW).await;
        stream.write_all(&get(1, path, token)).await.unwrap();
        let (mut reader, mut writer) = stream.split();
        let asking = async {
            for id in (3..).step_by(2) {
                let reset = frame(RST_STREAM, NO_FLAGS, id, &[0, 0, 0, 8]);
                if writer.write_all(&get(id, "/healthz", None)).await.is_err()
                    || writer.write_all(&reset).await.is_err()
                {
                    return;
                }
                sleep(Duration::from_millis(100)).await;
            }
        };
        let reading = async { copy(&mut reader, &mut sink()).await };

        let ended = async {
            tokio::select! { () = asking => {} _ = reading => {} }
        };
        timeout(PATIENCE, ended).await.unwrap_or_else(|_| panic!("{path} is held"));
    }
}

/// Policies of which one answer lists about half a MiB, and connections with as many streams as may
/// be.
const POLICIES: usize = 200;
const CONNECTIONS: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn an_org_whose_answers_nobody_takes_gets_no_further_ones() {
    let reason = "x".repeat(2_000);
    let policy = |number: usize| {
        format!(
            "@id(\"large-{number}\") @reason(\"{reason}\") @mode(\"disabled\")\n\
             forbid (principal, action, resource);\n"
        )
    };
    let policies = (0..POLICIES).map(policy).collect::<Vec<_>>().concat();
    // The connections are held for longer than the test takes.
    let patient = "[server]\nheader_timeout_seconds = 120";
    let gateway = gateway().config(patient).policies(&policies).start();
    let [greedy, other] = ["acme", "other"]
        .map(|name| gateway.user(&gateway.org(name, &ENOUGH), "admin", ALL_SCOPES));
    let path = format!("/v1/policies?limit={POLICIES}");
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = begun(&gateway, &NO_WINDOW).await;
        for id in (1..200).step_by(2) {
            stream.write_all(&get(id, &path, Some(&greedy.token))).await.unwrap();
        }
        held.push(stream);
    }

    let refused = until(|| gateway.get(&greedy, "/v1/mcps"), |it| it.status == 503).await;
    gateway.get(&other, &path).await.ok();

    assert_eq!(refused.at("/error/details/reason"), "overloaded");
    assert!(!refused.header("retry-after").is_empty());
    drop(held);
    until(|| gateway.get(&greedy, &path), |it| it.status == 200).await;
}
