//! Bodies that are slow to check or to scan: four callers of one org send them, and another org
//! makes plain calls meanwhile. The figure is how long the slowest of its calls and probes take.

use super::{
    bystanders::{Measurement, add_traps, listed, measure, templates},
    traps::Trap,
};
use crate::{
    Failure, Verdict, args::HostileArgs, gateway::Installation, process, say, upstream::Upstream,
};

/// Upper bound on the 99th percentile of the latency, in milliseconds.
const GOAL_P99_MS: f64 = 250.0;
/// Upper bound on the maximum latency, in milliseconds.
const GOAL_WORST_MS: f64 = 1_000.0;

/// Prints what others notice of an attack by bodies, and whether the goal holds.
pub(super) async fn run(args: &HostileArgs, traps: &[Trap]) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let trapped = Upstream::of_traps().await?;
    let installation = Installation::create(args.binary.as_deref(), upstream.address).await?;
    let attacker = installation.mint("attacker").await?;
    add_traps(&installation, &trapped)?;
    let running = installation.start().await?;
    listed(&running, &attacker).await?;
    let calls = templates(running.address, &attacker, traps)?;

    let before = process::resident_kib(running.pid)?;
    let seen = measure(&running, &installation.token, &calls, args.calls).await?;
    let grown = process::peak_kib(running.pid)?.saturating_sub(before);
    // It may be at work for minutes on what it was sent.
    running.kill().await?;
    say(&format!("memory grew by {} MiB at most\n", grown >> 10));
    Ok(verdict(&seen))
}

/// Says whether bystanders were served in time.
pub(super) fn verdict(seen: &Measurement) -> Verdict {
    say(&format!("goal: p99 within {GOAL_P99_MS} ms, worst within {GOAL_WORST_MS} ms\n"));
    let in_time = [&seen.calls, &seen.probes].into_iter().all(|measured| {
        measured.percentile_ms(99) <= GOAL_P99_MS && measured.percentile_ms(100) <= GOAL_WORST_MS
    });
    if in_time { Verdict::Holds } else { Verdict::Broken }
}
