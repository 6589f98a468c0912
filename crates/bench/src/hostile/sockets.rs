//! Sockets of one address on which a request begins and never ends, beside an honest client of
//! another address. The figure is the 99th percentile of what the latter waits.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::{
    Failure, Verdict,
    args::HostileArgs,
    client::{Connection, get},
    gateway::{Installation, Setup},
    load::Measured,
    say,
    upstream::Upstream,
};

/// Slow sockets at once; one that is closed is opened again.
const SOCKETS: usize = 320;
/// Connections that the node holds: fewer than those, so that some clients go without.
const NODE: usize = 300;
/// Time between two bytes.
const DRIP: Duration = Duration::from_millis(500);
/// Pause before a socket that was closed is opened again.
const AGAIN: Duration = Duration::from_millis(100);
/// Duration of the attack.
const DURATION: Duration = Duration::from_secs(20);
/// Time between two honest requests, and the longest that one is waited for.
const BETWEEN: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(2);
/// The 99th percentile that is wanted.
const GOAL_MS: f64 = 50.0;
/// The other address.
const HONEST: [u8; 4] = [127, 0, 0, 2];

/// Prints percentiles of honest requests, each on a connection of its own, and whether the goal
/// holds.
pub(super) async fn run(args: &HostileArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let binary = args.binary.as_deref();
    let setup = Setup { bounded_connections: Some(NODE), ..Setup::default() };
    let installation = Installation::set_up(binary, upstream.address, &setup).await?;
    let running = installation.start().await?;
    let mut slow = JoinSet::new();
    for _ in 0..SOCKETS {
        slow.spawn(drip(running.address));
    }
    sleep(Duration::from_secs(1)).await;
    let request = get(running.address, &installation.token, "/v1/mcps")?;
    let mut measured = Measured::default();
    let begun = Instant::now();
    while begun.elapsed() < DURATION {
        let sent = Instant::now();
        let asking = async {
            let mut connection = Connection::open_from(HONEST.into(), running.address).await?;
            connection.send(request.clone()).await?.ok()
        };
        match timeout(PATIENCE, asking).await {
            Ok(Ok(_)) => measured.note(sent.elapsed()),
            Ok(Err(_)) => measured.refused += 1,
            // It has waited as long as it would.
            Err(_) => {
                measured.note(sent.elapsed());
                measured.lost += 1;
            }
        }
        sleep(BETWEEN).await;
    }
    slow.shutdown().await;
    running.stop().await?;
    let p99 = measured.percentile_ms(99);
    say(&format!(
        "honest client: p50 {:.2} ms  p99 {p99:.2} ms (goal {GOAL_MS})  worst {:.2} ms  \
         ({} answered, {} refused, {} waited in vain)\n",
        measured.percentile_ms(50),
        measured.percentile_ms(100),
        measured.answered - measured.lost,
        measured.refused,
        measured.lost,
    ));
    let holds = p99 <= GOAL_MS && measured.errors() == 0 && measured.answered > 0;
    Ok(if holds { Verdict::Holds } else { Verdict::Broken })
}

/// A head that goes on and on, again and again.
async fn drip(address: SocketAddr) {
    loop {
        if let Ok(stream) = TcpStream::connect(address).await {
            let (mut reader, mut writer) = stream.into_split();
            let dripping = async {
                writer.write_all(b"GET /v1/mcps HTTP/1.1\r\nhost: x\r\nx: ").await?;
                loop {
                    sleep(DRIP).await;
                    writer.write_all(b"a").await?;
                }
            };
            let mut rest = [0; 256];
            let closed = async { while let Ok(1..) = reader.read(&mut rest).await {} };
            tokio::select! {
                () = closed => {}
                failed = dripping => { let _: std::io::Result<()> = failed; }
            }
        }
        sleep(AGAIN).await;
    }
}
