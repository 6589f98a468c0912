//! Cost of an export of the audit log: speed, memory, and how much
//! it slows down the calls that are made meanwhile.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    Failure, Verdict,
    args::ExportArgs,
    client::{Connection, Template, get, governed_call, post},
    gateway::{self, Installation, Running},
    load::{self, Measured, exact},
    payload, process, say, say_aside,
    upstream::Upstream,
};

/// Connections that fill the log.
const FILLING: usize = 64;
/// Time of filling between two looks at the size of the log.
const STRETCH: Duration = Duration::from_secs(2);
/// Interval between looks at memory and progress.
const LOOK: Duration = Duration::from_millis(100);
/// More than that above idle breaks the run, in KiB.
const MOST_KIB: u64 = 150 * 1_024;

/// Fills a log, exports it alone and then beside calls, and prints what that took. `Broken` when
/// an export fails or takes too much memory.
pub(crate) async fn run(args: &ExportArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let binary = gateway::binary(args.binary.as_deref()).await?;
    let installation = Installation::create(binary, upstream.address).await?;
    let running = installation.start().await?;
    fill(&running, &installation.token, args).await?;
    running.stop().await?;
    // Anew, so that what filling took in memory is not taken for that of an export.
    let running = installation.start().await?;
    let scene = Scene { address: running.address, pid: running.pid, token: &installation.token };
    let call =
        governed_call(running.address, &installation.token, &payload::of_size(args.payload))?;
    load::run(running.address, &call, args.connections, STRETCH).await?;
    let idle = process::resident_kib(running.pid)?;
    let alone = scene.export(&args.format).await?;
    say(&alone.line("alone"));
    let before = load::run(running.address, &call, args.connections, args.duration).await?;
    let (beside, during) = scene.export_under_load(&args.format, &call, args.connections).await?;
    let after = load::run(running.address, &call, args.connections, args.duration).await?;
    say(&beside.line("under load"));
    say(&calls("before", &before));
    say(&calls("during", &during));
    say(&calls("after", &after));
    let quiet = f64::midpoint(before.rate(), after.rate());
    let above = alone.peak_kib.max(beside.peak_kib).saturating_sub(idle);
    say(&format!(
        "calls during / without: {:.3}\nmemory: {:.1} MiB idle, {:.1} MiB above at most\n",
        during.rate() / quiet.max(0.001),
        exact(idle) / 1_024.0,
        exact(above) / 1_024.0,
    ));
    running.stop().await?;
    let failed = before.errors() + during.errors() + after.errors() > 0;
    Ok(if above > MOST_KIB || failed { Verdict::Broken } else { Verdict::Holds })
}

async fn fill(running: &Running, token: &str, args: &ExportArgs) -> Result<(), Failure> {
    let call = governed_call(running.address, token, &payload::of_size(args.payload))?;
    let mut answered = 0;
    while answered < args.events {
        answered += load::run(running.address, &call, FILLING, STRETCH).await?.answered;
        say_aside(&format!("{answered} of {} events\n", args.events));
    }
    Ok(())
}

fn calls(when: &str, load: &Measured) -> String {
    format!(
        "calls {when:<8} {:>9.0}/s  p50 {:>8.3} ms  p99 {:>8.3} ms  errors {}\n",
        load.rate(),
        load.percentile_ms(50),
        load.percentile_ms(99),
        load.errors(),
    )
}

/// Figures of one export.
struct Exported {
    events: u64,
    bytes: u64,
    took: Duration,
    cpu: Duration,
    peak_kib: u64,
}

impl Exported {
    fn line(&self, how: &str) -> String {
        let seconds = self.took.as_secs_f64().max(0.001);
        format!(
            "export {how:<11} {:>9} events  {:>8.1} MB  {seconds:>7.2} s  {:>7.1} MB/s  \
             {:>9.0} events/s  CPU {:>6.2} s\n",
            self.events,
            exact(self.bytes) / 1e6,
            exact(self.bytes) / 1e6 / seconds,
            exact(self.events) / seconds,
            self.cpu.as_secs_f64(),
        )
    }
}

struct Scene<'a> {
    address: SocketAddr,
    pid: u32,
    token: &'a str,
}

impl Scene<'_> {
    /// Exports the whole log and waits until it is ready.
    async fn export(&self, format: &str) -> Result<Exported, Failure> {
        let (cpu, begun) = (process::cpu_time(self.pid)?, Instant::now());
        let peak = Arc::new(AtomicU64::new(0));
        let watching = watch(self.pid, &peak);
        let mut connection = Connection::open(self.address).await?;
        let body = json!({ "format": format });
        let asked = post(self.address, self.token, "/v1/audit/export", &body)?;
        let mut answer = connection.send(asked).await?.json()?;
        let text = |answer: &Value, name: &str| {
            answer.pointer(&format!("/data/{name}")).and_then(Value::as_str).map(str::to_owned)
        };
        let id = text(&answer, "id").ok_or_else(|| format!("no export: {answer}"))?;
        while text(&answer, "status").as_deref() == Some("pending") {
            tokio::time::sleep(LOOK).await;
            let poll = get(self.address, self.token, &format!("/v1/audit/exports/{id}"))?;
            answer = connection.send(poll).await?.ok()?.json()?;
        }
        let took = begun.elapsed();
        drop(watching);
        if text(&answer, "status").as_deref() != Some("ready") {
            return Err(format!("the export came to nothing: {answer}").into());
        }
        let number = |name: &str| answer.pointer(&format!("/data/{name}")).and_then(Value::as_u64);
        Ok(Exported {
            events: number("events").unwrap_or_default(),
            bytes: number("bytes").unwrap_or_default(),
            took,
            cpu: process::cpu_time(self.pid)?.saturating_sub(cpu),
            peak_kib: peak.load(Ordering::Relaxed),
        })
    }

    /// The same while calls are made, as long as it takes.
    async fn export_under_load(
        &self,
        format: &str,
        call: &Template,
        connections: usize,
    ) -> Result<(Exported, Measured), Failure> {
        let done = AtomicBool::new(false);
        let calling = async {
            let mut all = Measured::default();
            while !done.load(Ordering::Acquire) {
                all.add(load::run(self.address, call, connections, STRETCH).await?);
            }
            Ok::<_, Failure>(all)
        };
        let exporting = async {
            let exported = self.export(format).await;
            done.store(true, Ordering::Release);
            exported
        };
        let (exported, load) = tokio::join!(exporting, calling);
        Ok((exported?, load?))
    }
}

/// Notes the most memory that the process has, until what it gives is dropped.
fn watch(pid: u32, peak: &Arc<AtomicU64>) -> JoinSet<()> {
    let (mut watching, peak) = (JoinSet::new(), Arc::clone(peak));
    watching.spawn(async move {
        while let Ok(now) = process::resident_kib(pid) {
            peak.fetch_max(now, Ordering::Relaxed);
            tokio::time::sleep(LOOK).await;
        }
    });
    watching
}
