//! Effect of policy reloads on calls: one line changes among many policies, again and again, while
//! the real gateway answers calls.

use std::{fmt::Write as _, fs, path::Path, time::Duration};

use serde_json::Value;
use tokio::time::Instant;

use crate::{
    Failure, Verdict,
    args::ReloadArgs,
    client::{Connection, get, governed_call},
    gateway::{self, Installation, Running},
    load::{self, Measured},
    payload, process, say,
    upstream::Upstream,
};

/// Policies in one file.
const A_FILE: usize = 500;
/// The longest a change may take to come into force.
const PATIENCE: Duration = Duration::from_secs(30);
/// Interval between looks.
const LOOK: Duration = Duration::from_millis(10);

/// Measures calls without and with reloads in turns, and prints both; `Broken` when a call was not
/// answered.
pub(crate) async fn run(args: &ReloadArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let binary = gateway::binary(args.binary.as_deref()).await?;
    let installation = Installation::create(binary, upstream.address).await?;
    let folder = installation.folder().join("policies");
    write(&folder, args.policies)?;
    let running = installation.start().await?;
    let mut reloader = Reloader::new(&running, &installation.token, &folder).await?;
    let call =
        governed_call(running.address, &installation.token, &payload::of_size(args.payload))?;
    let (mut quiet, mut busy) = (Stretch::default(), Stretch::default());
    for _ in 0..args.rounds {
        quiet
            .add(&running, load::run(running.address, &call, args.connections, args.duration))
            .await?;
        let end = Instant::now() + args.duration;
        let load = load::run(running.address, &call, args.connections, args.duration);
        let (reloads, loaded) = tokio::join!(reloader.until(end), busy.add(&running, load));
        loaded?;
        reloads?;
    }
    running.stop().await?;
    say(&format!(
        "{:<10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>12}\n",
        "", "calls", "p50 ms", "p99 ms", "max ms", "errors", "CPU µs/call"
    ));
    say(&quiet.line("quiet"));
    say(&busy.line("reloading"));
    say(&format!(
        "{} reloads of one line among {} policies, in force {:.0} ms after they were written (p50; \
         250 ms of it the watch waits)\n",
        reloader.took.len(),
        args.policies,
        reloader.median_ms()
    ));
    let errors = quiet.measured.errors() + busy.measured.errors();
    Ok(if errors == 0 { Verdict::Holds } else { Verdict::Broken })
}

/// Calls of one kind over all rounds.
#[derive(Default)]
struct Stretch {
    measured: Measured,
    cpu: Duration,
}

impl Stretch {
    async fn add(
        &mut self,
        running: &Running,
        load: impl Future<Output = Result<Measured, Failure>>,
    ) -> Result<(), Failure> {
        let before = process::cpu_time(running.pid)?;
        self.measured.add(load.await?);
        self.cpu += process::cpu_time(running.pid)?.saturating_sub(before);
        Ok(())
    }

    fn line(&self, name: &str) -> String {
        let Self { measured, cpu } = self;
        format!(
            "{name:<10} {:>9} {:>9.2} {:>9.2} {:>9.2} {:>9} {:>12.0}\n",
            measured.answered,
            measured.percentile_ms(50),
            measured.percentile_ms(99),
            measured.percentile_ms(100),
            measured.errors(),
            cpu.as_secs_f64() * 1e6 / load::exact(measured.answered.max(1)),
        )
    }
}

/// Changes one line and waits until that is in force.
struct Reloader<'a> {
    file: std::path::PathBuf,
    token: &'a str,
    address: std::net::SocketAddr,
    connection: Connection,
    turn: usize,
    took: Vec<Duration>,
}

impl<'a> Reloader<'a> {
    async fn new(running: &Running, token: &'a str, folder: &Path) -> Result<Self, Failure> {
        Ok(Self {
            file: folder.join("changing.cedar"),
            token,
            address: running.address,
            connection: Connection::open(running.address).await?,
            turn: 0,
            took: Vec::new(),
        })
    }

    async fn until(&mut self, end: Instant) -> Result<(), Failure> {
        while Instant::now() < end {
            let before = self.version().await?;
            self.turn += 1;
            let begun = Instant::now();
            fs::write(&self.file, policy(0, 1_000 + self.turn))?;
            while self.version().await? == before {
                if begun.elapsed() > PATIENCE {
                    return Err("a changed policy does not come into force".into());
                }
                tokio::time::sleep(LOOK).await;
            }
            self.took.push(begun.elapsed());
        }
        Ok(())
    }

    async fn version(&mut self) -> Result<Value, Failure> {
        let request = get(self.address, self.token, "/v1/policies?limit=1")?;
        let answer = self.connection.send(request).await?.ok()?.json()?;
        answer.pointer("/data/policy_set/version").cloned().ok_or_else(|| "no version".into())
    }

    fn median_ms(&self) -> f64 {
        let mut sorted = self.took.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).map_or(0.0, |took| took.as_secs_f64() * 1e3)
    }
}

/// Policies of teams about the tool that is called; the caller is in none of the teams.
pub(crate) fn write(folder: &Path, count: usize) -> Result<(), Failure> {
    let numbers: Vec<usize> = (1..count).collect();
    for (at, numbers) in numbers.chunks(A_FILE).enumerate() {
        let mut text = String::new();
        for number in numbers {
            let _ = write!(text, "{}", policy(*number, 1_024));
        }
        fs::write(folder.join(format!("teams-{at}.cedar")), text)?;
    }
    fs::write(folder.join("changing.cedar"), policy(0, 1_000))?;
    Ok(())
}

fn policy(number: usize, bytes: usize) -> String {
    format!(
        "@id(\"team-{number}\")\n@reason(\"Rule {number} of the benchmark\")\n\
         forbid (principal in Mcp::Group::\"team-{number}\", action == Mcp::Action::\"bench:echo\", \
         resource)\nwhen {{ context.request.bytes > {bytes} }};\n\n"
    )
}
