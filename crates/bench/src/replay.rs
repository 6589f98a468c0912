//! Duration of deciding recorded calls again: real events, the real endpoint.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    Failure, Verdict,
    args::ReplayArgs,
    client::{Connection, governed_call, post},
    gateway::{self, Installation, Running},
    load::{self, exact},
    payload, process, say, say_aside,
    upstream::Upstream,
};

/// Connections that fill the log.
const CONNECTIONS: usize = 64;
/// Time of filling between two looks at the size of the log.
const STRETCH: Duration = Duration::from_secs(2);

/// A set that is asked, and what is said of it.
struct Question {
    name: &'static str,
    policies: Value,
}

fn questions() -> [Question; 3] {
    let forbid = |tool: &str| {
        format!(
            "@id(\"bench-replay\") @reason(\"x\") forbid (principal is Mcp::Service, \
             action in Mcp::Action::\"{tool}\", resource) when {{ context.request.bytes > 100 }};"
        )
    };
    let changed = forbid("bench:*");
    let elsewhere = forbid("hint:destructive");
    [
        Question { name: "nothing changed", policies: json!({}) },
        Question {
            name: "another tool's policy changed",
            policies: json!({ "upsert": [{ "source": elsewhere }] }),
        },
        Question {
            name: "a policy of this tool changed",
            policies: json!({ "upsert": [{ "source": changed }] }),
        },
    ]
}

/// Fills a log, replays it, and prints a table; `Broken` when not all events were replayed.
pub(crate) async fn run(args: &ReplayArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let binary = gateway::binary(args.binary.as_deref()).await?;
    let installation = Installation::create(binary, upstream.address).await?;
    let running = installation.start().await?;
    fill(&running, &installation.token, args).await?;
    let mut verdict = Verdict::Holds;
    say(&format!(
        "{:<32} {:>9} {:>10} {:>9} {:>10} {:>12}\n",
        "", "events", "seconds", "CPU s", "events/s", "newly denied"
    ));
    for question in questions() {
        let asked = ask(&running, &installation.token, args, &question).await?;
        say(&asked.line(question.name));
        if asked.scanned < args.events {
            verdict = Verdict::Broken;
        }
    }
    running.stop().await?;
    Ok(verdict)
}

async fn fill(running: &Running, token: &str, args: &ReplayArgs) -> Result<(), Failure> {
    let call = governed_call(running.address, token, &payload::of_size(args.payload))?;
    let mut answered = 0;
    while answered < args.events {
        answered += load::run(running.address, &call, CONNECTIONS, STRETCH).await?.answered;
        say_aside(&format!("{answered} of {} events\n", args.events));
    }
    Ok(())
}

/// Figures of one replay.
struct Asked {
    scanned: u64,
    newly_denied: u64,
    took: Duration,
    cpu: Duration,
}

impl Asked {
    fn line(&self, name: &str) -> String {
        let seconds = self.took.as_secs_f64();
        format!(
            "{name:<32} {:>9} {seconds:>10.2} {:>9.2} {:>10.0} {:>12}\n",
            self.scanned,
            self.cpu.as_secs_f64(),
            exact(self.scanned) / seconds.max(0.001),
            self.newly_denied,
        )
    }
}

async fn ask(
    running: &Running,
    token: &str,
    args: &ReplayArgs,
    question: &Question,
) -> Result<Asked, Failure> {
    let body = json!({
        "replay": { "limit": args.events },
        "policies": question.policies,
        "options": { "timeout_ms": 60_000 },
    });
    let request = post(running.address, token, "/v1/policies/simulate", &body)?;
    let mut connection = Connection::open(running.address).await?;
    let (before, started) = (process::cpu_time(running.pid)?, Instant::now());
    let answer = connection.send(request).await?.ok()?.json()?;
    let took = started.elapsed();
    let cpu = process::cpu_time(running.pid)?.saturating_sub(before);
    let number = |name: &str| {
        let found = answer.pointer(&format!("/data/summary/{name}")).and_then(Value::as_u64);
        found.ok_or_else(|| format!("the answer has no `{name}`"))
    };
    Ok(Asked { scanned: number("scanned")?, newly_denied: number("newly_denied")?, took, cpu })
}
