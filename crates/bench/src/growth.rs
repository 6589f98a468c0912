//! Cost of a call, and duration of a start, while one thing at a time grows: policies, tools,
//! orgs, recorded events, open connections.

use std::{
    fmt::Write as _, net::SocketAddr, num::NonZeroU32, path::Path, sync::Arc, time::Duration,
};

use portcullis_core::principal::Plan;
use portcullis_store::{AuditSettings, DatabaseSettings, DatabaseUrl, Store, Sync};
use tokio::time::Instant;

use crate::{
    Failure, Verdict,
    args::{GrowthArgs, Thing},
    client::{Connection, Template, get, governed_call},
    evidence::{self, Bench},
    gateway::{self, Installation, Running, Setup},
    load::{self, exact},
    payload, people, process, reload,
    report::Usage,
    say, say_aside,
    upstream::{PATH, Upstream},
};

/// Tools that one server may list.
const A_SERVER: usize = 1_000;
/// Growth beyond this factor is no longer flat.
const FLAT: f64 = 1.5;
const WARM_UP: Duration = Duration::from_secs(2);

/// Prints a table for each thing that was asked for; `Broken` when a call failed.
pub(crate) async fn run(args: &GrowthArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let binary = gateway::binary(args.binary.as_deref()).await?;
    let mut failed = false;
    for &thing in &args.things {
        say(&format!(
            "{:>12} {:>9} {:>9} {:>10} {:>9} {:>9} {:>9} {:>11}\n",
            thing.name(),
            "start ms",
            "idle MiB",
            "after MiB",
            "req/s",
            "p50 ms",
            "p99 ms",
            "CPU µs/call",
        ));
        let mut costs = Vec::new();
        for size in thing.sizes(args.most) {
            say_aside(&format!("{size} {}\n", thing.name()));
            let grown = Grown::to(thing, size, &binary, upstream.address).await?;
            let usage = grown.measure(args).await?;
            failed |= usage.load.errors() > 0;
            costs.push(usage.cpu_us_per_call());
        }
        let least = costs.iter().copied().fold(f64::MAX, f64::min);
        let most = costs.iter().copied().fold(0.0, f64::max);
        let growth = most / least.max(0.001);
        let word = if growth <= FLAT { "flat" } else { "not flat" };
        say(&format!(
            "dearest call against cheapest: {growth:.2} ({word}; the goal is {FLAT})\n\n"
        ));
    }
    Ok(if failed { Verdict::Broken } else { Verdict::Holds })
}

/// An installation in which one thing has a certain size.
struct Grown {
    thing: Thing,
    size: usize,
    installation: Installation,
    /// Tokens of the callers, used in turns.
    tokens: Vec<String>,
}

impl Grown {
    async fn to(
        thing: Thing,
        size: usize,
        binary: &Path,
        upstream: SocketAddr,
    ) -> Result<Self, Failure> {
        let setup = match thing {
            Thing::Tools => tools(size, upstream),
            Thing::Policies if size < gateway::POLICIES => {
                Setup { few_policies: Some(size), ..Setup::default() }
            }
            Thing::Policies | Thing::Orgs | Thing::Events | Thing::Connections => Setup::default(),
        };
        let installation = Installation::set_up(binary.to_owned(), upstream, &setup).await?;
        // The first start makes keys, and compiles and keeps policies.
        installation.start().await?.stop().await?;
        let mut tokens = vec![installation.token.clone()];
        match thing {
            Thing::Policies => {
                let folder = installation.folder().join("policies");
                reload::write(&folder, size.saturating_sub(gateway::POLICIES))?;
                installation.start().await?.stop().await?;
            }
            Thing::Orgs => tokens = orgs(&installation, size).await?,
            Thing::Events => events(&installation, size).await?,
            Thing::Tools | Thing::Connections => {}
        }
        Ok(Self { thing, size, installation, tokens })
    }

    /// Prints a line of the table.
    async fn measure(&self, args: &GrowthArgs) -> Result<Usage, Failure> {
        let begun = Instant::now();
        let running = self.installation.start().await?;
        let started = begun.elapsed();
        self.sealed(&running).await?;
        tokio::time::sleep(WARM_UP).await;
        let open = self.open_connections(&running).await?;
        let idle = process::resident_kib(running.pid)?;
        let arguments = payload::of_size(args.payload);
        let calls =
            self.tokens.iter().map(|token| governed_call(running.address, token, &arguments));
        let calls: Arc<[Template]> = calls.collect::<Result<Vec<_>, _>>()?.into();
        let warm = load::run_each(running.address, &calls, args.connections, WARM_UP).await?;
        // Everybody has called once: what is looked up for a first call is not what is measured.
        let round = exact(calls.len() as u64) / warm.rate().max(1.0) * 1.5;
        if round > WARM_UP.as_secs_f64() {
            let round = Duration::from_secs_f64(round);
            load::run_each(running.address, &calls, args.connections, round).await?;
        }
        let before = process::cpu_time(running.pid)?;
        let load = load::run_each(running.address, &calls, args.connections, args.duration).await?;
        let cpu = process::cpu_time(running.pid)?.saturating_sub(before);
        let after = process::resident_kib(running.pid)?;
        drop(open);
        running.stop().await?;
        let usage = Usage { load, cpu };
        say(&format!(
            "{:>12} {:>9} {:>9.1} {:>10.1} {:>9.0} {:>9.2} {:>9.2} {:>11.1}{}\n",
            self.size,
            started.as_millis(),
            exact(idle) / 1_024.0,
            exact(after) / 1_024.0,
            usage.load.rate(),
            usage.load.percentile_ms(50),
            usage.load.percentile_ms(99),
            usage.cpu_us_per_call(),
            if usage.load.errors() > 0 { "  CALLS FAILED" } else { "" },
        ));
        Ok(usage)
    }

    /// Waits until every event that was written is in the signed log.
    async fn sealed(&self, running: &Running) -> Result<(), Failure> {
        if self.thing != Thing::Events {
            return Ok(());
        }
        let mut connection = Connection::open(running.address).await?;
        let path = "/v1/audit/checkpoint";
        loop {
            let asked = get(running.address, &self.installation.token, path)?;
            let answer = connection.send(asked).await?.ok()?;
            // The second line of a checkpoint is the size of its log.
            let note = String::from_utf8_lossy(&answer.body);
            let size: u64 = note.lines().nth(1).ok_or("no checkpoint")?.parse()?;
            if size >= u64::try_from(self.size)? {
                return Ok(());
            }
            say_aside(&format!("{size} events sealed\n"));
            tokio::time::sleep(WARM_UP).await;
        }
    }

    /// Connections that each had one answer and stay open.
    async fn open_connections(&self, running: &Running) -> Result<Vec<Connection>, Failure> {
        let mut open = Vec::new();
        if self.thing == Thing::Connections {
            for _ in 0..self.size {
                let mut connection = Connection::open(running.address).await?;
                let asked = get(running.address, &self.installation.token, "/v1/mcps/bench:echo")?;
                connection.send(asked).await?.ok()?;
                open.push(connection);
            }
        }
        Ok(open)
    }
}

/// As many servers as so many tools need.
fn tools(size: usize, upstream: SocketAddr) -> Setup<'static> {
    let mut more = String::new();
    for number in 1..size.div_ceil(A_SERVER) {
        let _ = write!(
            more,
            "\n[[providers]]\nslug = \"bench-{number}\"\nurl = \"http://{upstream}{PATH}/{}\"\n\
             auth = \"none\"\nallow_private = true\n",
            A_SERVER - 1,
        );
    }
    Setup { more_tools: size.min(A_SERVER).saturating_sub(1), more, ..Setup::default() }
}

async fn store(installation: &Installation) -> Result<Store, Failure> {
    let url = DatabaseUrl::sqlite(installation.folder().join("data/portcullis.db"));
    // How it is filled is not what is measured.
    Ok(Store::open(&DatabaseSettings { sync: Sync::ProcessCrash, ..DatabaseSettings::new(url) })
        .await?)
}

/// Makes orgs until there are so many, each with a service account and a token; gives the tokens.
async fn orgs(installation: &Installation, size: usize) -> Result<Vec<String>, Failure> {
    let store = store(installation).await?;
    let mut tokens = vec![installation.token.clone()];
    let most = NonZeroU32::new(1_000_000_000).ok_or("no limit")?;
    let plan = Plan::Enterprise { requests: most, invocations: most };
    for number in 1..size {
        let org = people::org(&store, &format!("org-{number}"), plan).await?;
        let service = people::service(&store, org).await?;
        tokens.push(people::token(&store, org, service).await?);
    }
    Ok(tokens)
}

/// Writes so many events to the log of the org whose calls are made.
async fn events(installation: &Installation, size: usize) -> Result<(), Failure> {
    let store = store(installation).await?;
    let org = store.find_org_by_name("bench").await?.ok_or("there is no org")?;
    let audit = AuditSettings { batch: 1024, ..AuditSettings::new("filling".to_owned()) };
    let bench = Bench::of(store, org.id, audit)?;
    let mut left = u64::try_from(size)?;
    while left > 0 {
        let portion = left.min(evidence::PORTION);
        bench.write(portion).await?;
        left -= portion;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_tools_take_so_many_servers() {
        let upstream = ([127, 0, 0, 1], 1).into();

        let few = tools(10, upstream);
        let many = tools(10_000, upstream);

        assert_eq!((few.more_tools, few.more.as_str()), (9, ""));
        assert_eq!(many.more_tools, 999);
        assert_eq!(many.more.matches("[[providers]]").count(), 9);
    }
}
