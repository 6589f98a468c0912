//! The two faces side by side: the same call over REST and over MCP, and lists and searches of a
//! large catalogue.

mod instructions;

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Uri};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::{fs, time::Instant};

use crate::{
    Failure, Verdict,
    args::FacesArgs,
    client::{Connection, Template, direct_call, governed_call, mcp_call, mcp_message},
    gateway::{self, Installation, Running, Setup},
    load::{self, Measured},
    payload, process,
    report::Usage,
    say, say_aside,
    upstream::Upstream,
};

/// Duration of a turn.
const TURN: Duration = Duration::from_millis(600);
/// Turns of each face that are not counted.
const WARM_UP: u128 = 2;
/// A call over MCP may take so many times what it takes over REST.
const GOAL_RATIO: f64 = 1.10;
/// Goal for the median of a list or search.
const GOAL_MS: f64 = 1.0;
/// Besides the policies of every benchmark, of which one permits the called tool only.
const ALL_TOOLS: &str = "@id(\"bench-all\") permit (principal is Mcp::Service, action, resource);";

/// The requests that are measured.
struct Requests {
    rest: Template,
    mcp: Template,
    list: Template,
    find: Template,
}

impl Requests {
    fn new(address: SocketAddr, token: &str, arguments: &Value) -> Result<Self, Failure> {
        let question = json!({ "query": "take the number of a thing" });
        let find =
            mcp_message("tools/call", json!({ "name": "find_tools", "arguments": question }));
        let list = mcp_message("tools/list", json!({}));
        let mut all = direct_call(address, arguments)?;
        *all.uri_mut() = Uri::from_static("/mcp?tools=list");
        let bearer = HeaderValue::from_str(&format!("Bearer {token}"))?;
        all.headers_mut().insert(http::header::AUTHORIZATION, bearer);
        let about = |method: &'static str, name: Option<&'static str>, message: &Value| {
            let mut request = all.clone();
            let headers = request.headers_mut();
            headers.insert("mcp-method", HeaderValue::from_static(method));
            match name {
                Some(name) => headers.insert("mcp-name", HeaderValue::from_static(name)),
                None => headers.remove("mcp-name"),
            };
            *request.body_mut() = Full::from(Bytes::from(message.to_string()));
            request
        };
        Ok(Self {
            rest: governed_call(address, token, arguments)?,
            mcp: mcp_call(address, token, arguments)?,
            list: about("tools/list", None, &list),
            find: about("tools/call", Some("find_tools"), &find),
        })
    }
}

/// Prints what calls, lists and searches take; `Broken` when a goal is missed or a request failed.
pub(crate) async fn run(args: &FacesArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let setup = Setup { more_tools: args.tools.saturating_sub(1), ..Setup::default() };
    let binary = gateway::binary(args.binary.as_deref()).await?;
    let installation = Installation::set_up(binary, upstream.address, &setup).await?;
    fs::write(installation.folder().join("policies/all.cedar"), ALL_TOOLS).await?;
    let arguments = payload::of_size(args.payload);
    if let Some(calls) = args.count {
        let counting = instructions::Counting::start(&installation).await?;
        let requests = Requests::new(counting.address(), &installation.token, &arguments)?;
        return instructions::run(counting, &requests, calls).await;
    }
    let running = installation.start().await?;
    let requests = Requests::new(running.address, &installation.token, &arguments)?;
    let mut holds = true;
    say("connections       req/s   p50 ms   CPU µs/call   of REST   face\n");
    for &connections in &args.connections {
        holds &= side_by_side(args, &running, &requests, connections).await?;
    }
    say("\n        KiB   p50 ms   p90 ms    CPU µs   request\n");
    for (name, request) in [("tools/list", &requests.list), ("find_tools", &requests.find)] {
        holds &= one_by_one(args, &running, (name, request)).await?;
    }
    running.stop().await?;
    Ok(if holds { Verdict::Holds } else { Verdict::Broken })
}

/// The same call over either face, in turns; true if the goal holds.
async fn side_by_side(
    args: &FacesArgs,
    running: &Running,
    requests: &Requests,
    connections: usize,
) -> Result<bool, Failure> {
    say_aside(&format!("{connections} connections\n"));
    let mut faces =
        [("REST", &requests.rest), ("MCP", &requests.mcp)].map(|it| (it, Usage::default()));
    let turns = args.duration.as_millis().div_ceil(TURN.as_millis());
    for turn in 0..WARM_UP + turns {
        for ((_, call), used) in &mut faces {
            let before = process::cpu_time(running.pid)?;
            let measured = load::run(running.address, call, connections, TURN).await?;
            if turn >= WARM_UP {
                used.cpu += process::cpu_time(running.pid)?.saturating_sub(before);
                used.load.add(measured);
            }
        }
    }
    let first = faces.first().map_or(f64::NAN, |(_, used)| used.cpu_us_per_call());
    let mut holds = true;
    for ((name, _), used) in &faces {
        let ratio = used.cpu_us_per_call() / first;
        holds &= ratio <= GOAL_RATIO && used.load.errors() == 0;
        say(&format!(
            "{connections:>11} {:>11.0} {:>8.2} {:>13.1} {ratio:>9.3}   {name}\n",
            used.load.rate(),
            used.load.percentile_ms(50),
            used.cpu_us_per_call(),
        ));
    }
    Ok(holds)
}

/// The same request again and again on one connection; true if the goal holds.
async fn one_by_one(
    args: &FacesArgs,
    running: &Running,
    (name, request): (&str, &Template),
) -> Result<bool, Failure> {
    let mut connection = Connection::open(running.address).await?;
    for _ in 0..args.requests / 10 {
        connection.send(request.clone()).await?.ok()?;
    }
    let (mut load, mut bytes) = (Measured::default(), 0);
    let before = process::cpu_time(running.pid)?;
    for _ in 0..args.requests {
        let sent = Instant::now();
        let answer = connection.send(request.clone()).await?.ok()?;
        load.note(sent.elapsed());
        bytes = answer.body.len();
    }
    let cpu = process::cpu_time(running.pid)?.saturating_sub(before);
    let used = Usage { load, cpu };
    let (median, p90) = (used.load.percentile_ms(50), used.load.percentile_ms(90));
    let (kib, cpu) = (bytes / 1024, used.cpu_us_per_call());
    say(&format!("{kib:>11} {median:>8.3} {p90:>8.3} {cpu:>9.1}   {name}\n"));
    Ok(median <= GOAL_MS)
}
