//! Attacks, and what others notice of them. The first: calls of a healthy provider, alone and beside
//! another one that hangs, drips and floods. The figure is the ratio of the 99th percentiles.

mod approvals;
mod bodies;
mod bystanders;
mod circuit;
mod drafts;
mod large;
mod patterns;
mod renaming;
mod schema;
mod sockets;
mod strangers;
mod traps;

pub(crate) use self::traps::serve as serve_traps;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
    routing::post,
};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    Failure, Verdict,
    args::{Attack, HostileArgs},
    client::{Answer, Connection, Template, governed_call, post as posted},
    gateway::{Installation, Running},
    load::Measured,
    payload, say,
    upstream::{self, MODERN, Upstream},
};

/// Goal: factor by which the slowest of a hundred calls may be slower.
const GOAL: f64 = 1.5;
/// Pause of callers without a `Retry-After`.
const BETWEEN_CALLS: Duration = Duration::from_millis(20);
/// The last two answer: what calls of any other provider cost, and one that fails when it is told to.
const KINDS: [&str; 5] = ["hangs", "drips", "floods", "answers", "wavers"];
/// Makes the last one fail.
const POISON: &str = "poison";

/// Runs one attack and says whether its goal holds.
pub(crate) async fn run(args: &HostileArgs) -> Result<Verdict, Failure> {
    match args.attack {
        Attack::Neighbour => neighbour(args).await,
        Attack::Schema => schema::run(args, &traps::of_schemas()).await,
        Attack::Assignments => schema::run(args, &traps::of_assignments()).await,
        Attack::Patterns => patterns::run(args).await,
        Attack::Bodies => bodies::run(args).await,
        Attack::Sockets => sockets::run(args).await,
        Attack::Circuit => circuit::run(args).await,
        Attack::Large => large::run(args).await,
        Attack::Renaming => renaming::run(args).await,
        Attack::Drafts => drafts::run(args).await,
        Attack::Approvals => approvals::run(args).await,
        Attack::Strangers => strangers::run(args).await,
    }
}

/// Prints both percentiles and their ratio, and whether the goal holds.
async fn neighbour(args: &HostileArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let wretch = Upstream::hostile().await?;
    let installation = install(args, &upstream, &wretch).await?;
    let running = installation.start().await?;
    let call = governed_call(running.address, &installation.token, &payload::of_size(1024))?;
    let mut alone = Measured::default();
    let mut beside = Measured::default();
    let answered = AnswerCounts::default();
    for _ in 0..args.rounds {
        alone.add(one_by_one(&running, &call, args.calls, Duration::MAX).await?);
        let mut wretched = JoinSet::new();
        for number in 0..args.callers {
            let kinds = args.kinds.len().max(1);
            let kind = args.kinds.get(number % kinds).map_or("hangs", String::as_str);
            let path = format!("/v1/mcps/hostile:{kind}/invoke");
            let body = json!({"input": {}});
            let call = posted(running.address, &installation.token, &path, &body)?;
            wretched.spawn(again_and_again(running.address, call, answered.clone()));
        }
        beside.add(one_by_one(&running, &call, args.calls, Duration::MAX).await?);
        wretched.shutdown().await;
    }
    running.stop().await?;
    if answered.tell("the other provider's calls") {
        return Err("its calls were denied, so they say nothing about it".into());
    }
    let ratio = beside.percentile_ms(99) / alone.percentile_ms(99).max(0.001);
    for (name, measured) in [("alone", &alone), ("beside", &beside)] {
        let p50 = measured.percentile_ms(50);
        let p99 = measured.percentile_ms(99);
        say(&format!("{name:<8} p50 {p50:>7.2} ms  p99 {p99:>7.2} ms\n"));
    }
    say(&format!("p99 beside a hostile provider / alone: {ratio:.2} (goal {GOAL})\n"));
    Ok(if ratio <= GOAL { Verdict::Holds } else { Verdict::Broken })
}

/// A gateway before a healthy provider and a hostile one.
async fn install(
    args: &HostileArgs,
    upstream: &Upstream,
    wretch: &Upstream,
) -> Result<Installation, Failure> {
    let installation = Installation::create(args.binary.as_deref(), upstream.address).await?;
    let address = format!("{}/mcp", wretch.address);
    installation.add_provider("hostile", &address, "timeout_seconds = 2\nmax_in_flight = 64\n")?;
    Ok(installation)
}

/// Counts of answers.
#[derive(Debug, Clone, Default)]
struct AnswerCounts(Arc<Mutex<BTreeMap<String, u64>>>);

impl AnswerCounts {
    /// Prints them. Returns whether any was denied.
    fn tell(&self, whose: &str) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (how, count) in all.iter() {
            say(&format!("{whose}: {count:>7} {how}\n"));
        }
        all.keys().any(|how| how.starts_with("403"))
    }

    fn note(&self, answer: &Answer) {
        let text = |pointer| answer.json().ok()?.pointer(pointer)?.as_str().map(str::to_owned);
        let reason = || text("/error/details/reason").or_else(|| text("/error/code"));
        let reason = if answer.status.is_success() { None } else { reason() };
        let how = format!("{} {}", answer.status.as_u16(), reason.unwrap_or_default());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(how).or_default() += 1;
    }
}

/// One request after the other, as many as are made in this time.
async fn one_by_one(
    running: &Running,
    request: &Template,
    count: usize,
    longest: Duration,
) -> Result<Measured, Failure> {
    let mut connection = Connection::open(running.address).await?;
    let mut measured = Measured::default();
    let begun = Instant::now();
    for _ in 0..count {
        if begun.elapsed() > longest {
            break;
        }
        let sent = Instant::now();
        connection.send(request.clone()).await?.ok()?;
        measured.note(sent.elapsed());
    }
    Ok(measured)
}

async fn again_and_again(address: SocketAddr, call: Template, answered: AnswerCounts) {
    while let Ok(mut connection) = Connection::open(address).await {
        while let Ok(answer) = connection.send(call.clone()).await {
            answered.note(&answer);
            // As long as it is told to, as clients do: an open circuit answers at once, and
            // asking without pause would measure the asking.
            tokio::time::sleep(answer.retry_after.unwrap_or(BETWEEN_CALLS)).await;
        }
    }
}

/// A server that meets its calls with silence, drops and floods; in a process of its own, so that
/// what is measured does not wait for it.
pub(crate) async fn serve() -> Result<(), Failure> {
    let router =
        Router::new().route("/mcp", post(answer)).route(renaming::PATH, post(renaming::answer));
    upstream::serve_at(upstream::ANYWHERE, router).await
}

async fn answer(body: Bytes) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |path: &str| message.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let tool = text("/params/name");
    let lists = matches!(text("/method"), "server/discover" | "tools/list");
    if !lists && !answers(tool, &body) {
        return wretched(tool).await;
    }
    let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
    reply(&body, || KINDS.map(tool).into())
}

/// The reply of a server with these tools, all of which answer the same.
fn reply(body: &[u8], tools: impl FnOnce() -> Value) -> Response {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let result = match message.get("method").and_then(Value::as_str) {
        Some("server/discover") => json!({
            "resultType": "complete", "supportedVersions": [MODERN], "capabilities": {"tools": {}},
        }),
        Some("tools/list") => json!({"resultType": "complete", "tools": tools()}),
        _ => json!({"resultType": "complete", "content": [{"type": "text", "text": "Here."}]}),
    };
    let id = message.get("id");
    let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

fn answers(tool: &str, body: &[u8]) -> bool {
    let poisoned = String::from_utf8_lossy(body).contains(POISON);
    tool == "answers" || (tool == "wavers" && !poisoned)
}

async fn wretched(kind: &str) -> Response {
    let json = [(CONTENT_TYPE, "application/json")];
    match kind {
        "drips" => {
            let drops = stream::unfold((), |()| async {
                tokio::time::sleep(Duration::from_millis(10)).await;
                Some((Ok::<_, Infallible>(Bytes::from_static(b" ")), ()))
            });
            (json, Body::from_stream(drops)).into_response()
        }
        "floods" => {
            let piece = Bytes::from(vec![b' '; 64 << 10]);
            let flood = stream::repeat_with(move || Ok::<_, Infallible>(piece.clone()));
            (json, Body::from_stream(flood)).into_response()
        }
        "wavers" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        _ => std::future::pending().await,
    }
}
