//! Cost of recording a call: CPU of the whole process for one intent and one outcome through
//! the real writer, which commits what waits together, while the log is sealed as a node does it.
//!
//! Rows are as large as those of a real call. Making them is counted too; it is a small part.

use std::{fs, path::PathBuf, process, sync::Arc, time::Duration};

use portcullis_core::{
    audit::{
        Actor, Auth, Detached, DlpResult, Event, EventType, Governance, Outcome, RecordedDecision,
        Request, Target,
    },
    id::{EventId, Ids, PrincipalId, PrincipalKind, RequestId, TokenId},
    refusal::Executed,
};
use portcullis_store::{
    AuditSettings, DatabaseSettings, DatabaseUrl, EventTexts, NewEvent, NewIntent, StoreError,
    Sync, TextColumn,
};
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};

use crate::{
    Failure, Verdict,
    args::RecordingArgs,
    disk,
    evidence::Bench,
    load::{Measured, exact},
    process::cpu_time,
    say,
};

/// Interval of sealing.
const SEALED_EVERY: Duration = Duration::from_millis(250);

/// Prints what recording a call costs, for each number of callers.
pub(crate) async fn run(args: &RecordingArgs) -> Result<Verdict, Failure> {
    let folder = match &args.folder {
        None => tempfile::tempdir()?,
        Some(folder) => tempfile::tempdir_in(folder)?,
    };
    let synced = disk::sync_times(folder.path())?;
    let sync = if args.process_crash { Sync::ProcessCrash } else { Sync::PowerLoss };
    say(&format!(
        "one fsync takes {:.2} ms (p50)\n{:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
        synced.percentile_ms(50),
        "callers",
        "pairs/s",
        "CPU µs",
        "p50 ms",
        "p99 ms",
        "commits",
        "writes",
        "KB",
    ));
    for callers in &args.callers {
        let path = folder.path().join(format!("{callers}.db"));
        let figures = measure(path, sync, *callers, args.duration).await?;
        say(&figures.line(*callers));
    }
    Ok(Verdict::Holds)
}

/// Cost of a stretch of load; all but the latencies are sums.
struct Figures {
    measured: Measured,
    cpu: Duration,
    commits: u64,
    writes: u64,
    written: u64,
}

impl Figures {
    fn line(&self, callers: usize) -> String {
        let pairs = exact(self.measured.answered.max(1));
        format!(
            "{callers:>8} {:>9.0} {:>9.1} {:>9.2} {:>9.2} {:>9.3} {:>9.1} {:>9.1}\n",
            self.measured.rate(),
            self.cpu.as_secs_f64() * 1e6 / pairs,
            self.measured.percentile_ms(50),
            self.measured.percentile_ms(99),
            exact(self.commits) / pairs,
            exact(self.writes) / pairs,
            exact(self.written) / pairs / 1024.0,
        )
    }
}

async fn measure(
    path: PathBuf,
    sync: Sync,
    callers: usize,
    duration: Duration,
) -> Result<Figures, Failure> {
    let settings = DatabaseSettings { sync, ..DatabaseSettings::new(DatabaseUrl::sqlite(path)) };
    let bench = Arc::new(Bench::open(&settings, AuditSettings::new("bench".to_owned())).await?);
    let rows = Arc::new(Rows::of(&bench));
    let sealing = seal_on(Arc::clone(&bench));
    // The first calls make pages and prepare statements.
    load(&bench, &rows, callers, duration / 10).await?;
    let (cpu, done, io) = (cpu_time(process::id())?, bench.writer.progress(), Io::so_far()?);
    let measured = load(&bench, &rows, callers, duration).await?;
    let cpu = cpu_time(process::id())?.saturating_sub(cpu);
    let commits = bench.writer.progress().commits - done.commits;
    let io = Io::so_far()?.since(&io);
    drop(sealing);
    Ok(Figures { measured, cpu, commits, writes: io.writes, written: io.written })
}

/// Seals as long as the set lives.
fn seal_on(bench: Arc<Bench>) -> JoinSet<Result<(), StoreError>> {
    let mut sealing = JoinSet::new();
    sealing.spawn(async move {
        let mut ticks = interval(SEALED_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut known = 0;
        loop {
            ticks.tick().await;
            let (orgs, now) = bench.store.committed_since(known).await?;
            known = now;
            for org in orgs {
                bench.store.seal(org, &bench.signer).await?;
            }
        }
    });
    sealing
}

async fn load(
    bench: &Arc<Bench>,
    rows: &Arc<Rows>,
    callers: usize,
    duration: Duration,
) -> Result<Measured, Failure> {
    let begun = Instant::now();
    let end = begun + duration;
    let mut calls = JoinSet::new();
    for _ in 0..callers {
        calls.spawn(call(Arc::clone(bench), Arc::clone(rows), end));
    }
    let mut all = Measured::default();
    while let Some(part) = calls.join_next().await {
        all.add(part??);
    }
    all.elapsed = begun.elapsed();
    Ok(all)
}

/// One caller: call after call.
async fn call(bench: Arc<Bench>, rows: Arc<Rows>, end: Instant) -> Result<Measured, StoreError> {
    let mut part = Measured::default();
    loop {
        let begun = Instant::now();
        if begun >= end {
            return Ok(part);
        }
        let id = EventId::new(Ids { clock: &*bench.clock, random: &*bench.random });
        let deadline = begun + Duration::from_secs(30);
        // Without a key every call may begin.
        let _at_work = bench.writer.at_work();
        bench.writer.intent(rows.intent(&bench, id), deadline).await?;
        bench.writer.finish(rows.event(&bench, id), deadline).await?;
        part.note(begun.elapsed());
    }
}

/// The rows of a call; each call gets a copy with ids of its own.
struct Rows {
    event: NewEvent,
    record: String,
}

impl Rows {
    fn of(bench: &Bench) -> Self {
        let event = event(bench);
        let detached = event.detached.values_json();
        let salts = event.detached.salts_json();
        let core = event.core_json();
        let record = format!(r#"{{"core":{core},"detached":{detached},"salts":{salts}}}"#);
        let event = NewEvent {
            id: event.id,
            org_id: event.org_id,
            kind: event.kind.as_str().into(),
            occurred_at: event.occurred_at,
            actor_id: event.actor.id,
            via: None,
            token_id: event.actor.token_id,
            decision: Some("allow".into()),
            dlp_result: Some("passed".into()),
            outcome: Some("success".into()),
            request_id: event.request.map(|request| request.id),
            texts: EventTexts::default()
                .with(TextColumn::Target, "bench:echo")
                .with(TextColumn::Policy, "bench-allows")
                .with(TextColumn::Core, &core)
                .with(TextColumn::Detached, &detached)
                .with(TextColumn::Salts, &salts),
            has_payload: false,
        };
        Self { event, record }
    }

    fn intent(&self, bench: &Bench, id: EventId) -> NewIntent {
        let opened_at = bench.clock.now();
        let record = self.record.clone();
        NewIntent { id, org_id: bench.org, opened_at, record, key: None, approvals: Vec::new() }
    }

    fn event(&self, bench: &Bench, id: EventId) -> NewEvent {
        let ids = Ids { clock: &*bench.clock, random: &*bench.random };
        NewEvent { id, request_id: Some(RequestId::new(ids)), ..self.event.clone() }
    }
}

fn event(bench: &Bench) -> Event {
    let ids = Ids { clock: &*bench.clock, random: &*bench.random };
    let digest = || Some(format!("sha256:{}", "5e".repeat(32)));
    let inputs = json!({
        "principal": {"roles": ["developer"], "scopes": ["mcps:invoke", "audit:read"], "groups": []},
        "request": {"bytes": 1040, "mfa": false},
        "dlp": {"findings": 0, "entities": {}},
        "input": {"rows": 8}, "input_paths": ["rows"], "facts": {}, "facts_paths": [],
    });
    let mut detached = Detached::default()
        .keep("actor_name", Some("bench"), &*bench.random)
        .keep("source_ip", Some("203.0.113.7"), &*bench.random)
        .keep("user_agent", Some("bench/1.0"), &*bench.random)
        .keep("decision_inputs", Some(inputs), &*bench.random);
    detached.commit("input", &json!({"rows": 8}), &*bench.random);
    detached.commit("output", &json!({"rows": 8}), &*bench.random);
    Event {
        id: EventId::new(ids),
        org_id: bench.org,
        kind: EventType::McpInvocation,
        occurred_at: bench.clock.now(),
        count: None,
        actor: Actor {
            auth: Auth { method: "operator", trust: None },
            id: Some(PrincipalId::new(PrincipalKind::Service, ids)),
            token_id: Some(TokenId::new(ids)),
            ..Actor::system()
        },
        request: Some(Request { id: RequestId::new(ids), idempotent: false, trace_id: None }),
        target: Some(Target {
            credential: None,
            id: Some("bench:echo".to_owned()),
            provider_id: None,
            kind: "mcp",
            version: digest(),
        }),
        governance: Some(Governance {
            approvals: Vec::new(),
            decision: Some(RecordedDecision::Allow),
            determining_policies: vec!["bench-allows".to_owned()],
            dlp_findings: Vec::new(),
            dlp_result: DlpResult::Passed,
            policy: Some("bench-allows".to_owned()),
            policy_set: digest(),
            policy_version: digest(),
            reason: None,
            shadow: Vec::new(),
        }),
        outcome: Outcome::success(Executed::Yes),
        detached,
    }
}

/// Bytes written by this process, as the kernel counts them.
struct Io {
    writes: u64,
    written: u64,
}

impl Io {
    fn so_far() -> Result<Self, Failure> {
        let text = fs::read_to_string("/proc/self/io")?;
        let field = |name: &str| -> Result<u64, Failure> {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            Ok(line.ok_or("the kernel counts no writes")?.trim().parse()?)
        };
        Ok(Self { writes: field("syscw:")?, written: field("wchar:")? })
    }

    fn since(&self, before: &Self) -> Self {
        Self { writes: self.writes - before.writes, written: self.written - before.written }
    }
}
