//! Connections that rest between requests.

use tokio::{net::TcpSocket, time::sleep};

use super::IMPATIENT;
use crate::prelude::*;

const PROBE: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
/// Time that a connection rests.
const A_WHILE: Duration = Duration::from_millis(1200);

/// Number of answers with 200 in what is read until so many came.
async fn answered(stream: &mut (impl AsyncReadExt + Unpin), count: usize) {
    let mut read = String::new();
    let reading = async {
        while read.matches("HTTP/1.1 200 ").count() < count || !read.ends_with('}') {
            let mut some = [0; 4096];
            let length = stream.read(&mut some).await.unwrap();
            assert!(length > 0, "the connection ended: {read}");
            read.push_str(&String::from_utf8_lossy(&some[..length]));
        }
    };
    timeout(PATIENCE, reading).await.expect("answers");
    assert_eq!(read.matches("HTTP/1.1 200 ").count(), count, "{read}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_after_a_rest_and_a_slow_reader_are_answered_whole() {
    // A request after a rest is answered however it comes.
    let gateway = gateway().start();
    let mut stream = connect(&gateway).await;

    for pieces in [&[PROBE][..], &[&PROBE[..1], &PROBE[1..9], &PROBE[9..]]] {
        stream.write_all(PROBE).await.unwrap();
        answered(&mut stream, 1).await;
        sleep(A_WHILE).await;
        for piece in pieces {
            stream.write_all(piece).await.unwrap();
            sleep(Duration::from_millis(700)).await;
        }
        answered(&mut stream, 1).await;
    }
    sleep(A_WHILE).await;
    stream.write_all(&PROBE.repeat(3)).await.unwrap();
    answered(&mut stream, 3).await;

    // A client that reads slowly gets the whole answer.
    let address = gateway.url().replace("http://", "").parse().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let request = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    sleep(A_WHILE).await;

    let answer = rest(&mut stream).await;

    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    assert!(body.len() > 100_000, "{} bytes stall nobody", body.len());
    assert_eq!(length, body.len().to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_drips_after_an_answer_is_cut_off_and_a_rest_gives_no_more_time() {
    // A head that drips after an answer is cut off.
    let gateway = gateway().config(IMPATIENT).start();
    let mut stream = connect(&gateway).await;
    stream.write_all(PROBE).await.unwrap();
    answered(&mut stream, 1).await;

    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nx: ").await.unwrap();
    let dripping = async {
        while stream.write_all(b"a").await.is_ok() {
            sleep(Duration::from_millis(50)).await;
        }
    };

    timeout(PATIENCE, dripping).await.expect("a connection that ends");

    // A rest does not give the next head more time.
    let mut stream = connect(&gateway).await;
    stream.write_all(PROBE).await.unwrap();
    answered(&mut stream, 1).await;
    sleep(Duration::from_millis(800)).await;
    stream.write_all(&PROBE[..9]).await.unwrap();

    let more = rest(&mut stream).await;

    assert!(!more.contains(" 200 "), "{more}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_nobody_reads_is_no_request_later() {
    let gateway = gateway().config("[server]\nmetrics_listen = \"127.0.0.1:0\"").start();
    let address = gateway.metrics_url().split('/').nth(2).unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut sent = b"GET /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 20000\r\n\r\n".to_vec();
    sent.extend_from_slice(&[b' '; 100]);
    stream.write_all(&sent).await.unwrap();
    let mut read = vec![0; 1 << 20];
    let first = timeout(PATIENCE, stream.read(&mut read)).await.expect("an answer").unwrap();
    read.truncate(first);
    sleep(A_WHILE).await;

    let inner = b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let _ = stream.write_all(&inner.repeat(20)).await;
    let _ = timeout(A_WHILE, stream.read_to_end(&mut read)).await;

    let read = String::from_utf8_lossy(&read);
    assert_eq!(read.matches("HTTP/1.1 200 ").count(), 1, "the body was taken for requests");
}
