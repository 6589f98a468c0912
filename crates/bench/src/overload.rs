//! Twice as many calls as can be answered: how many of those that can be are, and how fast the
//! others hear that theirs is not.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::StatusCode;
use tokio::{task::JoinSet, time::Instant};

use crate::{
    Failure, Verdict,
    args::OverloadArgs,
    client::{Connection, Template, governed_call},
    gateway::{self, Installation},
    load::{self, Measured, exact},
    payload, say,
    upstream::Upstream,
};

/// How much of what is possible has to be answered.
const GOODPUT: f64 = 0.8;
/// How long those who are turned away may wait for it: half of them, and 99 of 100.
const SHED_MS: f64 = 50.0;
/// Calls are sent in portions, so often.
const TICK: Duration = Duration::from_millis(5);

/// Prints what is possible and what is left of it; `Broken` when it is too little.
pub(crate) async fn run(args: &OverloadArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let binary = gateway::binary(args.binary.as_deref()).await?;
    let installation = Installation::create(binary, upstream.address).await?;
    let running = installation.start().await?;
    let call =
        governed_call(running.address, &installation.token, &payload::of_size(args.payload))?;
    load::run(running.address, &call, args.connections, args.duration / 4).await?;
    let possible = load::run(running.address, &call, args.connections, args.duration).await?;
    let asked = possible.rate() * args.factor;
    let crowd = Arc::new(Crowd { address: running.address, call, idle: Mutex::default() });
    let Arrived { answered, shed, other } = crowd.arrive(asked, args.duration).await?;
    running.stop().await?;
    let goodput = answered.rate() / possible.rate().max(0.001);
    say(&format!(
        "possible: {:.0} calls/s with {} connections (p99 {:.1} ms)\n\
         asked for: {asked:.0} calls/s\n\
         answered: {:.0} calls/s, {:.0} % of what is possible (goal {:.0} %); p50 {:.1} ms, p99 {:.1} ms\n\
         turned away: {} calls; p50 {:.1} ms, p99 {:.1} ms (goal {SHED_MS} ms)\n\
         anything else: {other}\n",
        possible.rate(),
        args.connections,
        possible.percentile_ms(99),
        answered.rate(),
        goodput * 100.0,
        GOODPUT * 100.0,
        answered.percentile_ms(50),
        answered.percentile_ms(99),
        shed.answered,
        shed.percentile_ms(50),
        shed.percentile_ms(99),
    ));
    let fast = shed.answered > 0 && shed.percentile_ms(99) <= SHED_MS;
    let holds = goodput >= GOODPUT && fast && other == 0;
    Ok(if holds { Verdict::Holds } else { Verdict::Broken })
}

/// Callers who do not wait for each other.
struct Crowd {
    address: SocketAddr,
    call: Template,
    idle: Mutex<Vec<Connection>>,
}

/// What became of their calls.
#[derive(Default)]
struct Arrived {
    answered: Measured,
    shed: Measured,
    /// Neither answered nor turned away.
    other: u64,
}

impl Crowd {
    /// Sends so many calls a second, whatever becomes of those before, and waits for all answers.
    async fn arrive(self: &Arc<Self>, rate: f64, duration: Duration) -> Result<Arrived, Failure> {
        let (mut calls, mut all, mut sent) = (JoinSet::new(), Arrived::default(), 0_u64);
        let begun = Instant::now();
        let mut ticks = tokio::time::interval(TICK);
        while begun.elapsed() < duration {
            ticks.tick().await;
            while exact(sent) < begun.elapsed().as_secs_f64() * rate {
                calls.spawn(Arc::clone(self).call());
                sent += 1;
            }
            while let Some(ended) = calls.try_join_next() {
                all.take(ended?);
            }
        }
        while let Some(ended) = calls.join_next().await {
            all.take(ended?);
        }
        all.answered.elapsed = begun.elapsed();
        Ok(all)
    }

    async fn call(self: Arc<Self>) -> Option<(StatusCode, Duration)> {
        let begun = Instant::now();
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => Connection::open(self.address).await.ok()?,
        };
        let answer = connection.send(self.call.clone()).await.ok()?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Some((answer.status, begun.elapsed()))
    }
}

impl Arrived {
    fn take(&mut self, ended: Option<(StatusCode, Duration)>) {
        match ended {
            Some((StatusCode::OK, took)) => self.answered.note(took),
            Some((StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS, took)) => {
                self.shed.note(took);
            }
            Some(_) | None => self.other += 1,
        }
    }
}
