//! Bodies of unknown callers that never end, on many streams of many connections, beside honest
//! exchanges. The figure is the growth of the gateway's memory.

use std::{convert::Infallible, net::SocketAddr, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{Method, Request};
use http_body_util::{BodyExt, StreamBody, combinators::BoxBody};
use hyper::{body::Frame, client::conn::http2::handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{Instant, interval, timeout},
};

use crate::{
    Failure, Verdict,
    args::HostileArgs,
    client::{Connection, post},
    gateway::{Installation, Running},
    load::Measured,
    process, say,
    upstream::Upstream,
};

/// Connections of the attack, and streams on each.
const CONNECTIONS: usize = 100;
const STREAMS: usize = 100;
/// Bytes of each body that are sent.
const SENT: usize = 60 << 10;
/// Duration of the attack.
const DURATION: Duration = Duration::from_secs(5);
const SAMPLE: Duration = Duration::from_millis(10);
/// Honest exchanges before the attack.
const ALONE: usize = 50;
/// Memory that it may cost.
const GOAL_MIB: u64 = 64;

/// Prints how memory grew and how long honest exchanges took, and whether the goal holds.
pub(super) async fn run(args: &HostileArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let installation = Installation::create(args.binary.as_deref(), upstream.address).await?;
    let running = installation.start().await?;
    let alone = exchanges(&running, &installation.token, ALONE, Instant::now() + DURATION).await?;
    let before = process::resident_kib(running.pid)?;
    let until = Instant::now() + DURATION;
    let mut attack = JoinSet::new();
    for _ in 0..CONNECTIONS {
        attack.spawn(hold(running.address));
    }
    let (most, beside) = tokio::join!(
        most_resident(running.pid, until),
        exchanges(&running, &installation.token, usize::MAX, until),
    );
    let grown = most?.saturating_sub(before) / 1024;
    let beside = beside?;
    attack.shutdown().await;
    running.stop().await?;
    for (name, measured) in [("alone", &alone), ("beside", &beside)] {
        let p50 = measured.percentile_ms(50);
        let p99 = measured.percentile_ms(99);
        let worst = measured.percentile_ms(100);
        let refused = measured.errors();
        say(&format!(
            "exchange {name:<8} p50 {p50:>8.2} ms  p99 {p99:>8.2} ms  worst {worst:>8.2} ms  \
             ({} answered, {refused} not)\n",
            measured.answered
        ));
    }
    say(&format!("resident memory grew by {grown} MiB (goal {GOAL_MIB})\n"));
    let holds = grown <= GOAL_MIB && beside.answered > 0 && beside.errors() == 0;
    Ok(if holds { Verdict::Holds } else { Verdict::Broken })
}

/// Honest exchanges one after the other.
async fn exchanges(
    running: &Running,
    token: &str,
    count: usize,
    until: Instant,
) -> Result<Measured, Failure> {
    let exchange = post(running.address, token, "/v1/auth/token", &json!({"expires_in": 60}))?;
    let mut connection = Connection::open(running.address).await?;
    let mut measured = Measured::default();
    for _ in 0..count {
        let sent = Instant::now();
        if sent >= until {
            break;
        }
        let Ok(answer) = timeout(DURATION, connection.send(exchange.clone())).await else {
            measured.lost += 1;
            break;
        };
        if answer?.status.is_success() {
            measured.note(sent.elapsed());
        } else {
            measured.refused += 1;
        }
    }
    Ok(measured)
}

/// The most memory that the process held at any sample.
async fn most_resident(pid: u32, until: Instant) -> Result<u64, Failure> {
    let mut most = 0;
    let mut sampling = interval(SAMPLE);
    while Instant::now() < until {
        sampling.tick().await;
        most = most.max(process::resident_kib(pid)?);
    }
    Ok(most)
}

/// One connection with as many streams as it may have, each with a body that does not end.
async fn hold(address: SocketAddr) -> Result<(), Failure> {
    let io = TokioIo::new(TcpStream::connect(address).await?);
    let (sender, connection) = handshake(TokioExecutor::new(), io).await?;
    let mut streams = JoinSet::new();
    streams.spawn(async move {
        let _ = connection.await;
    });
    for _ in 0..STREAMS {
        let mut sender = sender.clone();
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("http://{address}/v1/auth/token"))
            .body(unfinished())?;
        streams.spawn(async move {
            let _ = sender.send_request(request).await;
        });
    }
    while streams.join_next().await.is_some() {}
    Ok(())
}

fn unfinished() -> BoxBody<Bytes, Infallible> {
    let part = Ok(Frame::data(Bytes::from(vec![b' '; SENT])));
    let frames = stream::iter([part]).chain(stream::pending());
    BodyExt::boxed(StreamBody::new(frames))
}
