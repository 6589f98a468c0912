//! Large bodies of one org: their effect on small calls of another org and on health probes.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{AnswerCounts, again_and_again, one_by_one};
use crate::{
    Failure, Verdict,
    args::HostileArgs,
    client::{get, governed_call},
    gateway::Installation,
    load::Measured,
    payload, say,
    upstream::Upstream,
};

/// Rows of a large body: almost as many values and bytes as there may be.
const ROWS: usize = 4_000;
/// Their callers, at most.
const CALLERS: usize = 8;
/// The longest time of one measurement.
const LONGEST: Duration = Duration::from_secs(10);
const GOAL_MS: f64 = 100.0;

/// Prints the percentiles of calls and health, alone and beside the large ones.
pub(super) async fn run(args: &HostileArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let installation = Installation::create(args.binary.as_deref(), upstream.address).await?;
    let other = installation.mint("other").await?;
    let running = installation.start().await?;
    let address = running.address;
    let call = governed_call(address, &other, &payload::of_size(1024))?;
    let health = get(address, &other, "/healthz")?;
    let large = governed_call(address, &installation.token, &large_body())?;
    let mut alone = Measured::default();
    let mut beside = Measured::default();
    let mut healthy = Measured::default();
    let answered = AnswerCounts::default();
    for _ in 0..args.rounds {
        alone.add(one_by_one(&running, &call, args.calls, LONGEST).await?);
        let mut callers = JoinSet::new();
        for _ in 0..args.callers.min(CALLERS) {
            callers.spawn(again_and_again(address, large.clone(), answered.clone()));
        }
        let calls = one_by_one(&running, &call, args.calls, LONGEST);
        let health = one_by_one(&running, &health, args.calls, LONGEST);
        let (calls, health) = tokio::try_join!(calls, health)?;
        beside.add(calls);
        healthy.add(health);
        callers.shutdown().await;
    }
    running.stop().await?;
    answered.tell("large calls");
    for (name, measured) in [("alone", &alone), ("beside", &beside), ("health", &healthy)] {
        let p50 = measured.percentile_ms(50);
        let p99 = measured.percentile_ms(99);
        say(&format!("{name:<8} p50 {p50:>8.2} ms  p99 {p99:>8.2} ms\n"));
    }
    let worst = beside.percentile_ms(99).max(healthy.percentile_ms(99));
    say(&format!("p99 beside large bodies of another org: {worst:.2} ms (goal {GOAL_MS})\n"));
    Ok(if worst <= GOAL_MS { Verdict::Holds } else { Verdict::Broken })
}

fn large_body() -> Value {
    let title = "Rotate the signing keys of every region ".repeat(4);
    let row = |id| json!({"id": id, "title": title, "state": "open"});
    json!({"rows": (1..=ROWS).map(row).collect::<Vec<_>>()})
}
