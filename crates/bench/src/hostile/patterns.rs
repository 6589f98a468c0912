//! Patterns that are large once compiled, or slow to match. A gateway is started without and with the
//! server that lists them; then four callers of one org send what they are slow to match.

use super::{
    bystanders::{add_traps, listed, measure, templates},
    schema, traps,
};
use crate::{
    Failure, Verdict, args::HostileArgs, gateway::Installation, process, say, upstream::Upstream,
};

/// Additional memory that a gateway may use when it lists the patterns, in MiB.
const GOAL_MIB: u64 = 64;

/// Prints what the patterns take when they are listed and matched, and whether the goals hold.
pub(super) async fn run(args: &HostileArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let trapped = Upstream::of_traps().await?;
    let installation = Installation::create(args.binary.as_deref(), upstream.address).await?;
    let attacker = installation.mint("attacker").await?;
    let plain = installation.start().await?;
    let without = process::peak_kib(plain.pid)?;
    plain.stop().await?;

    add_traps(&installation, &trapped)?;
    let running = installation.start().await?;
    listed(&running, &attacker).await?;
    let with = process::peak_kib(running.pid)?;
    running.stop().await?;
    let running = installation.start().await?;
    listed(&running, &attacker).await?;
    let again = process::peak_kib(running.pid)?;

    let calls = templates(running.address, &attacker, &traps::of_patterns())?;
    let seen = measure(&running, &installation.token, &calls, args.calls).await?;
    // It may be at work for minutes on what it was sent.
    running.kill().await?;
    let mib = |kib: u64| kib.saturating_sub(without) >> 10;
    say(&format!(
        "memory: {} MiB without the patterns; {} MiB more at listing, {} MiB more after a restart \
         (goal {GOAL_MIB})\n",
        without >> 10,
        mib(with),
        mib(again),
    ));
    let in_time = schema::verdict(&seen);
    Ok(if mib(with.max(again)) <= GOAL_MIB { in_time } else { Verdict::Broken })
}
