//! Several builds of the gateway, and direct calls without one, in very short turns.
//!
//! The speed of a shared machine changes by the second. What is measured in turns of less than a
//! second meets the same machine, so that differences of a few percent can be seen.

use std::time::Duration;

use crate::{
    Failure, Verdict,
    args::BuildsArgs,
    audit,
    client::{Template, direct_call, governed_call},
    gateway::{Installation, Running, Setup},
    load, payload, say, say_aside,
    upstream::Upstream,
    usage::Usage,
};

const TURN: Duration = Duration::from_millis(600);
/// Turns of each build that are not counted.
const WARM_UP: u128 = 2;

/// One that answers the call, and what it took.
struct Contender {
    name: String,
    call: Template,
    used: Usage,
    /// Calls that were answered, warm-up included.
    answered: u64,
    /// Keeps the gateway alive, and tells where it listens; the upstream without it has none.
    gateway: Option<(Running, Installation)>,
}

/// Prints one row for each build and number of connections; `Broken` when a call failed or its event
/// is not in the log.
pub(crate) async fn run(args: &BuildsArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let arguments = payload::of_size(args.payload);
    let call = direct_call(upstream.address, &arguments)?;
    let mut all = vec![Contender::new("direct".to_owned(), call, None)];
    let mut databases = args.postgres.iter().map(String::as_str);
    for binary in &args.binaries {
        let setup = Setup { database: databases.next(), ..Setup::default() };
        let installation = Installation::set_up(Some(binary), upstream.address, &setup).await?;
        let running = installation.start().await?;
        let call = governed_call(running.address, &installation.token, &arguments)?;
        let name = binary.display().to_string();
        all.push(Contender::new(name, call, Some((running, installation))));
    }
    say("connections       req/s   p50 ms   p99 ms   CPU µs/call   of the first   build\n");
    let mut failed = false;
    for &connections in &args.connections {
        say_aside(&format!("{connections} connections\n"));
        let turns = args.duration.as_millis().div_ceil(TURN.as_millis());
        for turn in 0..WARM_UP + turns {
            for contender in &mut all {
                contender.take_turn(&upstream, connections, turn >= WARM_UP).await?;
            }
        }
        failed |= all.iter().any(|contender| contender.used.load.errors() > 0);
        print(connections, &mut all);
    }
    for Contender { name, answered, gateway, .. } in all {
        let Some((running, installation)) = gateway else { continue };
        let events = audit::count(running.address, &installation.token).await?.events;
        say(&format!("{answered} calls answered, {events} events: {name}\n"));
        failed |= events != answered;
        running.stop().await?;
    }
    Ok(if failed { Verdict::Broken } else { Verdict::Holds })
}

impl Contender {
    fn new(name: String, call: Template, gateway: Option<(Running, Installation)>) -> Self {
        Self { name, call, used: Usage::default(), answered: 0, gateway }
    }

    async fn take_turn(
        &mut self,
        upstream: &Upstream,
        connections: usize,
        counts: bool,
    ) -> Result<(), Failure> {
        let (pid, address) = match &self.gateway {
            Some((running, _)) => (running.pid, running.address),
            None => (upstream.pid().ok_or("the upstream has ended")?, upstream.address),
        };
        let load = load::run(address, &self.call, connections, TURN);
        let used = if counts { &mut self.used } else { &mut Usage::default() };
        self.answered += used.add(pid, load).await?;
        Ok(())
    }
}

/// Prints what was used, and forgets it.
fn print(connections: usize, all: &mut [Contender]) {
    let first = all.get(1).map_or(f64::NAN, |first| first.used.cpu_us_per_call());
    for contender in all {
        let used = std::mem::take(&mut contender.used);
        let relative = if contender.gateway.is_some() {
            format!("{:.3}", used.cpu_us_per_call() / first)
        } else {
            String::new()
        };
        say(&format!(
            "{connections:>11} {:>11.0} {:>8.1} {:>8.1} {:>13.1} {relative:>14}   {}\n",
            used.load.rate(),
            used.load.percentile_ms(50),
            used.load.percentile_ms(99),
            used.cpu_us_per_call(),
            contender.name,
        ));
    }
}
