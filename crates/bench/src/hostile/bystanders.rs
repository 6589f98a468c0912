//! Calls and probes of those who have nothing to do with an attack, measured while it goes on.

use std::{net::SocketAddr, time::Duration};

use http::StatusCode;
use tokio::{task::JoinSet, time::Instant};

use super::{
    AnswerCounts,
    traps::{PLAIN, Trap},
};
use crate::{
    Failure,
    client::{Connection, Template, get, governed_call, post},
    gateway::{Installation, Running},
    load::Measured,
    payload, process, say,
    upstream::{PATH, Upstream},
};

/// Pause between two calls of one who has nothing to do with it.
const PAUSE: Duration = Duration::from_millis(10);
/// The longest measurement.
const LONGEST: Duration = Duration::from_secs(20);
/// Timeout of a measured call; a call without an answer by then counts with about this time.
const PATIENCE: Duration = Duration::from_secs(30);
/// Timeout for listing the tools of a server.
const LISTING: Duration = Duration::from_mins(1);
/// Callers that attack.
pub(super) const CALLERS: usize = 4;

/// Results of one measurement.
#[derive(Debug, Default)]
pub(super) struct Measurement {
    pub(super) calls: Measured,
    pub(super) probes: Measured,
    /// Processor time of the gateway meanwhile.
    cpu: Duration,
    elapsed: Duration,
}

impl Measurement {
    /// Prints the figures under a name.
    fn tell(&self, name: &str) {
        for (of, measured) in [("calls", &self.calls), ("/healthz", &self.probes)] {
            say(&format!(
                "{name:<7} {of:<8} p50 {:>8.2} ms  p99 {:>8.2} ms  worst {:>8.2} ms  ({} of them)\n",
                measured.percentile_ms(50),
                measured.percentile_ms(99),
                measured.percentile_ms(100),
                measured.answered,
            ));
        }
        let cpu = self.cpu.as_secs_f64();
        let elapsed = self.elapsed.as_secs_f64();
        say(&format!("{name:<7} processor time {cpu:.2} s in {elapsed:.2} s\n"));
    }
}

/// Adds the provider of traps to an installation.
pub(super) fn add_traps(installation: &Installation, traps: &Upstream) -> Result<(), Failure> {
    installation.add_provider("traps", &format!("{}{PATH}", traps.address), "auth = \"none\"\n")
}

/// Waits until the traps are listed.
pub(super) async fn listed(running: &Running, token: &str) -> Result<(), Failure> {
    let question = get(running.address, token, &format!("/v1/mcps/traps:{PLAIN}"))?;
    let mut connection = Connection::open(running.address).await?;
    let end = Instant::now() + LISTING;
    while connection.send(question.clone()).await?.status != StatusCode::OK {
        if Instant::now() > end {
            return Err("the traps were not listed in time".into());
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Measures `count` plain calls, and as many probes, alone and while [`CALLERS`] send these calls again
/// and again; prints both.
pub(super) async fn measure(
    running: &Running,
    token: &str,
    attack: &[Template],
    count: usize,
) -> Result<Measurement, Failure> {
    let alone = beside(running, token, JoinSet::new(), count).await?;
    let answered = AnswerCounts::default();
    let mut callers = JoinSet::new();
    for number in 0..CALLERS {
        let mut calls = attack.to_vec();
        calls.rotate_left(number % attack.len().max(1));
        callers.spawn(again_and_again(running.address, calls, answered.clone()));
    }
    let disturbed = beside(running, token, callers, count).await?;
    tell(&alone, &disturbed, &answered);
    Ok(disturbed)
}

/// Prints what was seen alone and beside an attack, and how that was answered.
pub(super) fn tell(alone: &Measurement, disturbed: &Measurement, answered: &AnswerCounts) {
    alone.tell("alone");
    disturbed.tell("beside");
    answered.tell("the attack's calls");
}

/// Measures `count` plain calls, and as many probes, while an attack goes on; ends it.
pub(super) async fn beside(
    running: &Running,
    token: &str,
    mut attack: JoinSet<()>,
    count: usize,
) -> Result<Measurement, Failure> {
    let plain = governed_call(running.address, token, &payload::of_size(1024))?;
    let probe = get(running.address, token, "/healthz")?;
    let begun = Instant::now();
    let cpu = process::cpu_time(running.pid)?;
    let (calls, probes) = tokio::try_join!(
        paced(running.address, &plain, count),
        paced(running.address, &probe, count)
    )?;
    let cpu = process::cpu_time(running.pid)?.saturating_sub(cpu);
    attack.shutdown().await;
    Ok(Measurement { calls, probes, cpu, elapsed: begun.elapsed() })
}

/// The calls of an attack.
pub(super) fn templates(
    address: SocketAddr,
    token: &str,
    traps: &[Trap],
) -> Result<Vec<Template>, Failure> {
    let call = |trap: &Trap| {
        let path = format!("/v1/mcps/traps:{}/invoke", trap.tool);
        // As text: a number keeps the exponent that it was written with.
        let body = format!("{{\"input\":{}}}", trap.input);
        let mut request = post(address, token, &path, &serde_json::Value::Null)?;
        *request.body_mut() = body.into();
        Ok(request)
    };
    traps.iter().map(call).collect()
}

async fn again_and_again(address: SocketAddr, calls: Vec<Template>, answered: AnswerCounts) {
    while let Ok(mut connection) = Connection::open(address).await {
        for call in calls.iter().cycle() {
            let Ok(answer) = connection.send(call.clone()).await else { break };
            answered.note(&answer);
        }
    }
}

/// One call after the other, with a pause between them, for as long as a measurement may take.
async fn paced(address: SocketAddr, call: &Template, count: usize) -> Result<Measured, Failure> {
    let mut connection = Connection::open(address).await?;
    let mut measured = Measured::default();
    let end = Instant::now() + LONGEST;
    for _ in 0..count {
        let sent = Instant::now();
        if sent > end {
            break;
        }
        match tokio::time::timeout(PATIENCE, connection.send(call.clone())).await {
            Ok(answer) => drop(answer?),
            Err(_) => connection = Connection::open(address).await?,
        }
        measured.note(sent.elapsed());
        tokio::time::sleep(PAUSE).await;
    }
    Ok(measured)
}
