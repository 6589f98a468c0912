//! Cost of a `tools/call` in the MCP client: CPU of this whole process, in
//! which nothing else runs, for calls one after the other and 32 at a time, in both eras; beside it
//! the same message sent by a bare HTTP client, which is the floor.

use std::{process, sync::Arc};

use aws_lc_rs::rand;
use portcullis_core::{
    audit::Capture,
    call::{Asker, Cleared, Limiter, PinState, ToolCall},
    clock::Timestamp,
    dlp::{Engine, FingerprintKey, Settings, Subject},
    id::{Ids, OrgId, PrincipalId, PrincipalKind, TokenId},
    json::Document,
    policy::{Catalogue, Full, PolicyFile, PolicySet, Principal, Rate},
    principal::{AuthMethod, Caller, Plan, Role, ScopeSet},
    random::Random,
    tool::{Tool, ToolDefinition},
};
use portcullis_upstream::{Endpoint, Outbound, Protocol, Server, ServerSettings, Trace, Transport};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    Failure, Verdict,
    args::UpstreamArgs,
    client::{Connection, direct_call},
    load::exact,
    payload,
    process::cpu_time,
    say,
    upstream::{PATH, Upstream},
};

/// Goal for a call.
const GOAL_US: f64 = 25.0;
const AT_A_TIME: usize = 32;

#[derive(Debug)]
struct SystemRandom;

impl Random for SystemRandom {
    #[expect(clippy::expect_used, reason = "without randomness there is nothing to measure")]
    fn fill(&self, bytes: &mut [u8]) {
        rand::fill(bytes).expect("the random source of the operating system works");
    }
}

/// Prints what a call costs, and whether the goal holds.
pub(crate) async fn run(args: &UpstreamArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let url = format!("http://{}{PATH}", upstream.address);
    let arguments = payload::of_size(args.payload);
    let call = Arc::new(cleared(&arguments)?);
    let outbound = Outbound::new(Arc::new(SystemRandom));
    let mut figures = Vec::new();
    for (name, protocol) in [("modern", Protocol::Modern), ("legacy", Protocol::Legacy)] {
        let transport = Transport::Http { endpoint: Endpoint::named(&url)?, credential: None };
        let settings =
            ServerSettings { protocol, ..ServerSettings::new("bench".parse()?, transport) };
        let server = Server::new(settings, &outbound)?;
        for at_a_time in [1, AT_A_TIME] {
            let cost = least(args, || governed(&server, &call, args.calls, at_a_time)).await?;
            figures.push((format!("{name}, {at_a_time} at a time"), cost));
        }
        server.shutdown().await;
    }
    let template = direct_call(upstream.address, &arguments)?;
    let bare = least(args, async || {
        let mut connection = Connection::open(upstream.address).await?;
        for _ in 0..args.calls {
            connection.send(template.clone()).await?.ok()?;
        }
        Ok(())
    });
    figures.push(("bare HTTP, 1 at a time".to_owned(), bare.await?));
    tell(args, &figures);
    let holds = figures.iter().take(4).all(|(_, cost)| *cost <= GOAL_US);
    Ok(if holds { Verdict::Holds } else { Verdict::Broken })
}

fn tell(args: &UpstreamArgs, figures: &[(String, f64)]) {
    if args.json {
        let all: Vec<Value> =
            figures.iter().map(|(name, cost)| json!({"name": name, "cpu_us": cost})).collect();
        say(&format!("{}\n", Value::from(all)));
        return;
    }
    let payload = args.payload;
    say(&format!("CPU per tools/call of {payload} bytes (goal {GOAL_US} µs):\n"));
    for (name, cost) in figures {
        say(&format!("  {name:<26} {cost:>7.1} µs\n"));
    }
}

/// The least CPU time of a call over all rounds, in microseconds.
async fn least<F: Future<Output = Result<(), Failure>>>(
    args: &UpstreamArgs,
    work: impl Fn() -> F,
) -> Result<f64, Failure> {
    let mut least = f64::INFINITY;
    for _ in 0..args.rounds {
        let before = cpu_time(process::id())?;
        work().await?;
        let spent = cpu_time(process::id())?.saturating_sub(before);
        least = least.min(spent.as_secs_f64() * 1e6 / exact(u64::from(args.calls.max(1))));
    }
    Ok(least)
}

async fn governed(
    server: &Server,
    call: &Arc<Cleared<ToolCall>>,
    calls: u32,
    at_a_time: usize,
) -> Result<(), Failure> {
    let share = calls / u32::try_from(at_a_time)?.max(1);
    let mut workers = JoinSet::new();
    let org = OrgId::new(Ids { clock: &Epoch, random: &SystemRandom });
    for _ in 0..at_a_time {
        let (server, call) = (server.clone(), Arc::clone(call));
        workers.spawn(async move {
            for _ in 0..share {
                server.call_tool(org, &call, Trace::default()).await?;
            }
            Ok::<_, portcullis_upstream::CallError>(())
        });
    }
    while let Some(ended) = workers.join_next().await {
        ended??;
    }
    Ok(())
}

/// A call that went through DLP and a policy that permits everything.
fn cleared(arguments: &Value) -> Result<Cleared<ToolCall>, Failure> {
    let slug: portcullis_core::tool::ProviderSlug = "bench".parse()?;
    let definition = ToolDefinition {
        name: "echo".parse()?,
        title: None,
        description: None,
        input_schema: payload::schema(),
        output_schema: None,
        annotations: Value::Null,
    };
    let (time, random) = (Timestamp::default(), SystemRandom);
    let tool = Arc::new(Tool::new(&slug, definition, time)?);
    let catalogue = Catalogue::new([(slug, Some(vec![Arc::clone(&tool)]))]);
    let text = "@id(\"all\") permit (principal, action, resource);".to_owned();
    let file = PolicyFile { path: "all.cedar".to_owned(), text };
    let set = PolicySet::load(vec![file], &catalogue, &[], time);
    let set = set.map_err(|_| "the policy does not load")?;
    let engine = Engine::new(&Settings::default()).map_err(|error| error.to_string())?;
    let principal = Principal::of(&caller(&random));
    let asker = Asker { principal: &principal, time, source_ip: None, capture: Capture::Commit };
    let subject = Subject::of(FingerprintKey::new([7; 32]));
    let call = ToolCall::new(&engine, tool, PinState::Accepted, Document::of(arguments), 0)
        .map_err(|denial| denial.reason)?;
    let scanned = call.scan(&engine, &subject).map_err(|denial| denial.reason)?;
    let permitted = scanned.decide(&set, &engine, asker).map_err(|denial| denial.reason)?;
    Ok(permitted.fulfil(&engine, &Unlimited).map_err(|denial| denial.reason)?)
}

struct Unlimited;

impl Limiter for Unlimited {
    fn take(&self, _: &str, _: Rate) -> Result<(), Full> {
        Ok(())
    }

    fn give_back(&self, _: &str, _: Rate) {}
}

#[derive(Debug)]
struct Epoch;

impl portcullis_core::clock::Clock for Epoch {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }
}

fn caller(random: &SystemRandom) -> Caller {
    let ids = Ids { clock: &Epoch, random };
    Caller {
        org_id: OrgId::new(ids),
        plan: Plan::Free,
        principal_id: PrincipalId::new(PrincipalKind::Service, ids),
        principal_name: "bench".to_owned(),
        role: Role::Admin,
        via: None,
        token_id: TokenId::new(ids),
        label: None,
        scopes: ScopeSet::ALL,
        method: AuthMethod::Operator,
        allowed_from: None,
        lineage: Arc::default(),
    }
}
