//! The same call five ways, in turns: directly, through a hop that does nothing, in a bare durable
//! bracket, through Portcullis on SQLite, and through Portcullis on PostgreSQL with Redis. A text of the
//! same size is the answer of a tool and of a resource besides, through the first gateway.

use std::{fmt::Write as _, net::SocketAddr, path::Path, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    Failure, Verdict,
    args::SystemsArgs,
    audit, bracket,
    client::{Connection, Template, direct_call, get, governed_call, read, text_call},
    disk,
    gateway::{self, Installation, Running, Setup},
    load::{self, exact},
    payload, process, say, say_aside,
    upstream::Upstream,
    usage::Usage,
};

const WARM_UP: Duration = Duration::from_secs(1);
/// Connections that are open and idle when memory is looked at.
const IDLE_CONNECTIONS: usize = 5_000;

/// Systems besides gateways, with which these are compared.
const PLAIN: [&str; 3] = ["direct", "pass-through", "bracket"];

/// Kind of the requests of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Workload {
    Echo,
    Text,
    Resource,
}

/// Systems of a gateway that answers texts.
const TEXT_WORKLOADS: [(&str, Workload); 2] =
    [("text: tool", Workload::Text), ("text: read", Workload::Resource)];

/// One of the ways.
struct System<'a> {
    name: &'static str,
    workload: Workload,
    address: SocketAddr,
    pid: u32,
    /// Token of the call, if it needs one.
    token: Option<&'a str>,
}

impl System<'_> {
    fn plain(name: &'static str, server: &Upstream) -> Result<Self, Failure> {
        let pid = server.pid().ok_or_else(|| format!("the server of `{name}` has ended"))?;
        Ok(Self { name, workload: Workload::Echo, address: server.address, pid, token: None })
    }

    fn call(&self, bytes: usize) -> Result<Template, Failure> {
        match (self.token, self.workload) {
            (None, _) => direct_call(self.address, &payload::of_size(bytes)),
            (Some(token), Workload::Echo) => {
                governed_call(self.address, token, &payload::of_size(bytes))
            }
            (Some(token), Workload::Text) => text_call(self.address, token, bytes),
            (Some(token), Workload::Resource) => read(self.address, token, bytes),
        }
    }
}

/// A gateway and what is known of it besides its calls.
struct Gateway {
    name: &'static str,
    installation: Installation,
    running: Running,
    started: Duration,
    idle_kib: u64,
}

impl Gateway {
    async fn start(
        name: &'static str,
        binary: &Path,
        upstream: SocketAddr,
        setup: &Setup<'_>,
    ) -> Result<Self, Failure> {
        let installation = Installation::set_up(Some(binary), upstream, setup).await?;
        // Once before, for the first start makes tables and keys.
        installation.start().await?.stop().await?;
        let begun = Instant::now();
        let running = installation.start().await?;
        let started = begun.elapsed();
        tokio::time::sleep(WARM_UP).await;
        let idle_kib = process::resident_kib(running.pid)?;
        Ok(Self { name, installation, running, started, idle_kib })
    }

    fn system(&self, name: &'static str, workload: Workload) -> System<'_> {
        System {
            name,
            workload,
            address: self.running.address,
            pid: self.running.pid,
            token: Some(&self.installation.token),
        }
    }

    /// Says what it took besides calls; whether every answered call is in the log.
    async fn conclude(self, answered: u64) -> Result<bool, Failure> {
        let loaded = process::resident_kib(self.running.pid)?;
        let address = self.running.address;
        let token = &self.installation.token;
        let events = audit::count(address, token).await?.events;
        let mut open = Vec::with_capacity(IDLE_CONNECTIONS);
        for _ in 0..IDLE_CONNECTIONS {
            let mut connection = Connection::open(address).await?;
            connection.send(get(address, token, "/v1/mcps/bench:echo")?).await?.ok()?;
            open.push(connection);
        }
        let crowded = process::resident_kib(self.running.pid)?;
        drop(open);
        let mib = |kib: u64| exact(kib) / 1_024.0;
        say(&format!(
            "{:<12} start to first answer {} ms; memory {:.1} MiB idle, {:.1} after load, {:.1} with \
             {IDLE_CONNECTIONS} idle connections; {answered} calls answered, {events} events\n",
            self.name,
            self.started.as_millis(),
            mib(self.idle_kib),
            mib(loaded),
            mib(crowded),
        ));
        self.running.stop().await?;
        Ok(events == answered)
    }
}

/// Runs it and prints the tables; `Broken` when a call failed or its event is not in the log.
pub(crate) async fn run(args: &SystemsArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let to = upstream.address.to_string();
    let passing = Upstream::spawn(&["serve-passing", &to]).await?;
    let bracket_folder = gateway::folder()?;
    let database = bracket_folder.path().join("bracket.db");
    let path = database.to_str().ok_or("a folder whose name is no text")?;
    let bracket = Upstream::spawn(&["serve-bracket", &to, path]).await?;
    let binary = gateway::binary(args.binary.as_deref()).await?;
    let plain = Setup { reads: true, ..Setup::default() };
    let mut gateways = vec![Gateway::start("sqlite", &binary, upstream.address, &plain).await?];
    let grown = Setup {
        database: args.postgres.as_deref(),
        redis: args.redis.as_deref(),
        ..Setup::default()
    };
    if grown.database.is_some() {
        gateways.push(Gateway::start("postgres", &binary, upstream.address, &grown).await?);
    } else {
        say_aside("PostgreSQL is left out: name an empty database with --postgres\n");
    }
    let disk = gateways.first().map(|it| disk::sync_times(it.installation.folder()));
    let plain = PLAIN.into_iter().zip([&upstream, &passing, &bracket]);
    let mut systems =
        plain.map(|(name, server)| System::plain(name, server)).collect::<Result<Vec<_>, _>>()?;
    systems.extend(gateways.iter().map(|it| it.system(it.name, Workload::Echo)));
    let first = gateways.first();
    systems.extend(
        first
            .iter()
            .flat_map(|it| TEXT_WORKLOADS.map(|(name, workload)| it.system(name, workload))),
    );
    let mut table =
        Table { args, answered: vec![0; systems.len()], rows: Vec::new(), failed: false };
    for &payload in &args.payloads {
        for &connections in &args.connections {
            table.measure(&systems, payload, connections).await?;
        }
    }
    let Table { answered, rows, mut failed, .. } = table;
    drop(systems);
    if args.json {
        say(&format!("{:#}\n", json!({ "rows": rows })));
    }
    if let Some(disk) = disk {
        let disk = disk?;
        let half = disk.percentile_ms(50);
        let most = disk.percentile_ms(99);
        say(&format!("\ndisk: {half:.3} ms to sync a write (p50), {most:.3} ms (p99)\n"));
    }
    say(&format!("binary: {:.1} MiB\n", exact(std::fs::metadata(&binary)?.len()) / 1_048_576.0));
    failed |= answered.get(2).copied() != Some(bracket::outcomes(&database)?);
    let (own, texts) = answered.split_at(PLAIN.len() + gateways.len());
    let mut texts: u64 = texts.iter().sum();
    for (gateway, answered) in gateways.into_iter().zip(own.iter().skip(PLAIN.len())) {
        // Texts are those of the first gateway.
        failed |= !gateway.conclude(answered + std::mem::take(&mut texts)).await?;
    }
    Ok(if failed { Verdict::Broken } else { Verdict::Holds })
}

struct Table<'a> {
    args: &'a SystemsArgs,
    /// Calls answered by each system, warm-up included.
    answered: Vec<u64>,
    rows: Vec<Value>,
    failed: bool,
}

impl Table<'_> {
    /// All systems at one size and one number of connections, in turns.
    async fn measure(
        &mut self,
        systems: &[System<'_>],
        bytes: usize,
        connections: usize,
    ) -> Result<(), Failure> {
        let mut used: Vec<Usage> = systems.iter().map(|_| Usage::default()).collect();
        for round in 0..=self.args.rounds {
            say_aside(&format!("{bytes} bytes, {connections} connections, round {round}\n"));
            let each = systems.iter().zip(&mut used).zip(&mut self.answered);
            for ((system, used), answered) in each {
                let call = system.call(bytes)?;
                // The first round warms up.
                let time = if round == 0 { WARM_UP } else { self.args.duration };
                let load = load::run(system.address, &call, connections, time);
                let used = if round == 0 { &mut Usage::default() } else { used };
                *answered += used.add(system.pid, load).await?;
            }
        }
        self.print(systems, &used, bytes, connections);
        Ok(())
    }

    fn print(&mut self, systems: &[System<'_>], used: &[Usage], bytes: usize, connections: usize) {
        if self.rows.is_empty() {
            say(
                "   bytes connections  system           req/s    p50 ms    p99 ms   ratio CPU µs/call  ÷direct    ÷pass ÷bracket  errors\n",
            );
        }
        let direct = used.first().map_or(0.0, |it| it.load.rate());
        let bases: Vec<f64> =
            used.iter().take(PLAIN.len()).map(|it| it.cpu_us_per_call().max(0.001)).collect();
        for (system, used) in systems.iter().zip(used) {
            self.failed |= used.load.errors() > 0 || used.load.answered == 0;
            let cpu = used.cpu_us_per_call();
            let ratio = used.load.rate() / direct.max(0.001);
            let mut times = String::new();
            for base in &bases {
                let _ = write!(times, " {:>8.2}", cpu / base);
            }
            say(&format!(
                "{bytes:>8} {connections:>11}  {:<12} {:>9.0} {:>9.3} {:>9.3} {ratio:>7.3} {cpu:>11.1}{times} {:>7}\n",
                system.name,
                used.load.rate(),
                used.load.percentile_ms(50),
                used.load.percentile_ms(99),
                used.load.errors(),
            ));
            let mut row = used.json();
            if let Some(row) = row.as_object_mut() {
                row.insert("system".to_owned(), json!(system.name));
                row.insert("payload_bytes".to_owned(), json!(bytes));
                row.insert("connections".to_owned(), json!(connections));
                for (name, base) in PLAIN.iter().zip(&bases) {
                    row.insert(format!("cpu_over_{name}"), json!(cpu / base));
                }
            }
            self.rows.push(row);
        }
    }
}
