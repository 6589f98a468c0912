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
    client::governed_call,
    gateway::Installation,
    load::{Measured, exact},
    payload, process, say,
    spare::{Connection, rendered},
    upstream::Upstream,
};

/// Goal: share of the possible rate that has to be answered.
const GOODPUT: f64 = 0.8;
/// Goals for the p50 and p99 of rejections.
const SHED_MS: f64 = 50.0;
/// Calls are sent in portions, so often.
const TICK: Duration = Duration::from_millis(5);

/// Prints what is possible and what is left of it; `Broken` when it is too little.
pub(crate) async fn run(args: &OverloadArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let installation = Installation::create(args.binary.as_deref(), upstream.address).await?;
    let running = installation.start().await?;
    let call =
        governed_call(running.address, &installation.token, &payload::of_size(args.payload))?;
    let call = rendered(call).await?;
    let crowd = Arc::new(Crowd { address: running.address, call, idle: Mutex::default() });
    crowd.take_turns(args.connections, args.duration / 4).await?;
    let possible = crowd.take_turns(args.connections, args.duration).await?.answered;
    let asked = possible.rate() * args.factor;
    let upstream_pid = upstream.pid().ok_or("the upstream has ended")?;
    let parties = [
        ("the gateway", running.pid),
        ("the upstream", upstream_pid),
        ("whoever sends", std::process::id()),
    ];
    let before = spent(parties)?;
    let CrowdAnswers { answered, shed, other } = crowd.arrive(asked, args.duration).await?;
    let after = spent(parties)?;
    running.stop().await?;
    let goodput = answered.rate() / possible.rate().max(0.001);
    let seconds = answered.elapsed.as_secs_f64().max(0.001);
    let used = parties.iter().zip(before).zip(after).map(|(((who, _), before), after)| {
        format!("{who} {:.2}", after.saturating_sub(before).as_secs_f64() / seconds)
    });
    let used = used.collect::<Vec<_>>().join(", ");
    say(&format!(
        "possible: {:.0} calls/s with {} connections (p99 {:.1} ms)\n\
         asked for: {asked:.0} calls/s\n\
         answered: {:.0} calls/s, {:.0} % of what is possible (goal {:.0} %); p50 {:.1} ms, p99 {:.1} ms\n\
         rejected: {} calls; p50 {:.1} ms, p99 {:.1} ms (goal {SHED_MS} ms)\n\
         anything else: {other}\n\
         processors used meanwhile: {used}\n",
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

/// The processor time of each so far.
fn spent(parties: [(&str, u32); 3]) -> Result<Vec<Duration>, Failure> {
    parties.into_iter().map(|(_, pid)| process::cpu_time(pid)).collect()
}

/// Callers of the same tool.
struct Crowd {
    address: SocketAddr,
    call: Vec<u8>,
    idle: Mutex<Vec<Connection>>,
}

/// Results of the calls.
#[derive(Default)]
struct CrowdAnswers {
    answered: Measured,
    shed: Measured,
    /// Neither answered nor rejected.
    other: u64,
}

impl Crowd {
    /// So many callers send their next call when the last one is answered.
    async fn take_turns(
        self: &Arc<Self>,
        callers: usize,
        duration: Duration,
    ) -> Result<CrowdAnswers, Failure> {
        let begun = Instant::now();
        let mut working = JoinSet::new();
        for _ in 0..callers {
            let crowd = Arc::clone(self);
            working.spawn(async move {
                let mut part = CrowdAnswers::default();
                while begun.elapsed() < duration {
                    part.take(crowd.call().await);
                }
                part
            });
        }
        let mut all = CrowdAnswers::default();
        while let Some(part) = working.join_next().await {
            all.add(part?);
        }
        all.answered.elapsed = begun.elapsed();
        Ok(all)
    }

    /// Sends so many calls a second, whatever becomes of those before, and waits for all answers.
    async fn arrive(
        self: &Arc<Self>,
        rate: f64,
        duration: Duration,
    ) -> Result<CrowdAnswers, Failure> {
        let mut calls = JoinSet::new();
        let mut all = CrowdAnswers::default();
        let mut sent = 0_u64;
        let begun = Instant::now();
        let mut ticks = tokio::time::interval(TICK);
        while begun.elapsed() < duration {
            ticks.tick().await;
            while exact(sent) < begun.elapsed().as_secs_f64() * rate {
                let crowd = Arc::clone(self);
                calls.spawn(async move { crowd.call().await });
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

    async fn call(&self) -> Option<(StatusCode, Duration)> {
        let begun = Instant::now();
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => Connection::open(self.address).await.ok()?,
        };
        let status = connection.send(&self.call).await.ok()?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Some((status, begun.elapsed()))
    }
}

impl CrowdAnswers {
    fn take(&mut self, ended: Option<(StatusCode, Duration)>) {
        match ended {
            Some((StatusCode::OK, took)) => self.answered.note(took),
            Some((StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS, took)) => {
                self.shed.note(took);
            }
            Some(_) | None => self.other += 1,
        }
    }

    fn add(&mut self, other: Self) {
        self.answered.add(other.answered);
        self.shed.add(other.shed);
        self.other += other.other;
    }
}
