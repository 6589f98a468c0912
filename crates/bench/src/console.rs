//! Pages of the console before a log of many events, and what viewers of live events cost the calls.

use std::{net::SocketAddr, time::Duration};

use http::{
    HeaderValue, Method, Request,
    header::{CONTENT_TYPE, COOKIE, HOST, ORIGIN},
};
use http_body_util::Full;
use serde_json::Value;
use tokio::{task::JoinSet, time::Instant};

use crate::{
    Failure, Verdict,
    args::ConsoleArgs,
    client::{Connection, Template, get, governed_call},
    gateway::{Installation, Running, Setup},
    load::{self, Measured, exact},
    payload,
    report::Usage,
    say, say_aside,
    upstream::Upstream,
};

/// Pages that are asked for; `{id}` is an event.
const PAGES: [&str; 19] = [
    "/console",
    "/console/events",
    "/console/events?decision=deny",
    "/console/events?target=bench:echo&decision=allow",
    "/console/events/{id}",
    "/console/approvals",
    "/console/tools",
    "/console/tools/bench:echo",
    "/console/waiting",
    "/console/providers",
    "/console/policies",
    "/console/workbench",
    "/console/dlp",
    "/console/limits",
    "/console/log",
    "/console/people",
    "/console/tokens",
    "/console/sessions",
    "/console/clients",
];
/// Goal: milliseconds that a page takes at the p99.
const GOAL_MS: f64 = 50.0;
/// Goal: hundredths by which viewers make a call dearer.
const GOAL_COST: f64 = 5.0;
/// Requests for each page.
const TIMES: usize = 200;
/// Streams of one person: the most that the gateway gives.
const STREAMS: usize = 16;
const LOGIN: &str = "\n[login]\nlinks = true\n";
/// Connections that fill the log, and those whose calls are measured.
const FILLING: usize = 256;
const CALLING: usize = 32;
const PORTION: Duration = Duration::from_secs(10);
/// Time in which all that was answered gets its place in the log.
const SEALING: Duration = Duration::from_secs(5);

/// Fills a log, and prints the times of the pages and the cost of viewers.
pub(crate) async fn run(args: &ConsoleArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let setup = Setup { database: args.postgres.as_deref(), ..Setup::default() };
    let installation =
        Installation::set_up(args.binary.as_deref(), upstream.address, &setup).await?;
    installation.add_config(LOGIN)?;
    let running = installation.start().await?;
    let call = governed_call(running.address, &installation.token, &payload::of_size(240))?;
    fill(running.address, &call, args.events).await?;

    let cookie = log_in(&installation, &running, "viewer-0").await?;
    let slowest = time_pages(&installation, &running, &cookie).await?;
    let dearer = cost_of_viewers(&installation, &running, &call, args.viewers).await?;
    say(&format!(
        "slowest page: {slowest:.1} ms at the p99 (goal {GOAL_MS})\n\
         {} viewers make a call dearer by {dearer:+.1} % of processor time (goal {GOAL_COST})\n",
        args.viewers
    ));
    running.stop().await?;
    Ok(if slowest <= GOAL_MS && dearer <= GOAL_COST { Verdict::Holds } else { Verdict::Broken })
}

async fn fill(address: SocketAddr, call: &Template, events: u64) -> Result<(), Failure> {
    let mut made = 0;
    while made < events {
        made += load::run(address, call, FILLING, PORTION).await?.answered;
        say_aside(&format!("{made} of {events} events\n"));
    }
    tokio::time::sleep(SEALING).await;
    Ok(())
}

/// Makes an admin of this name, and logs a browser in as it; returns the cookie of the session.
async fn log_in(
    installation: &Installation,
    running: &Running,
    name: &str,
) -> Result<HeaderValue, Failure> {
    let link = installation.login_link(name).await?;
    let (_, code) = link.split_once("code=").ok_or("a link without a code")?;
    let request = Request::builder()
        .method(Method::POST)
        .uri("/login/link")
        .header(HOST, running.address.to_string())
        .header(ORIGIN, format!("http://{}", running.address))
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Full::from(format!("code={code}")))?;
    let answer = Connection::open(running.address).await?.send(request).await?;
    let status = answer.status;
    answer.cookie.ok_or_else(|| format!("the login was answered {status} without a cookie").into())
}

fn page(running: &Running, cookie: &HeaderValue, path: &str) -> Result<Template, Failure> {
    let request = Request::builder().uri(path).header(HOST, running.address.to_string());
    Ok(request.header(COOKIE, cookie).body(Full::default())?)
}

/// Prints what each page takes; returns the p99 of the slowest.
async fn time_pages(
    installation: &Installation,
    running: &Running,
    cookie: &HeaderValue,
) -> Result<f64, Failure> {
    let mut connection = Connection::open(running.address).await?;
    let newest = get(running.address, &installation.token, "/v1/audit/events?limit=1")?;
    let newest = connection.send(newest).await?.ok()?.json()?;
    let event = newest.pointer("/data/items/0/id").and_then(Value::as_str).ok_or("no event")?;
    let mut slowest = 0_f64;
    for path in PAGES {
        let request = page(running, cookie, &path.replace("{id}", event))?;
        let mut measured = Measured::default();
        for _ in 0..TIMES {
            let sent = Instant::now();
            connection.send(request.clone()).await?.ok()?;
            measured.note(sent.elapsed());
        }
        let p99 = measured.percentile_ms(99);
        say(&format!("{path:<50} p50 {:>7.1} ms  p99 {p99:>7.1} ms\n", measured.percentile_ms(50)));
        slowest = slowest.max(p99);
    }
    Ok(slowest)
}

/// Hundredths by which a call takes more processor time beside viewers, theirs included; alone and beside
/// them in turns.
async fn cost_of_viewers(
    installation: &Installation,
    running: &Running,
    call: &Template,
    viewers: usize,
) -> Result<f64, Failure> {
    let mut cookies = Vec::new();
    for person in 1..=viewers.div_ceil(STREAMS) {
        cookies.push(log_in(installation, running, &format!("viewer-{person}")).await?);
    }
    let mut alone = Usage::default();
    let mut beside = Usage::default();
    for _ in 0..3 {
        let load = || load::run(running.address, call, CALLING, PORTION);
        alone.add(running.pid, load()).await?;
        let mut streams = JoinSet::new();
        for cookie in cookies.iter().flat_map(|it| [it; STREAMS]).take(viewers) {
            let request = page(running, cookie, "/console/live")?;
            let stream = Connection::open(running.address).await?.listen(request).await?;
            streams.spawn(stream);
        }
        beside.add(running.pid, load()).await?;
        if streams.try_join_next().is_some() {
            return Err("a stream of live events ended".into());
        }
        streams.shutdown().await;
    }
    for (name, usage) in [("alone", &alone), ("viewers", &beside)] {
        let cpu = usage.cpu_us_per_call();
        let p99 = usage.load.percentile_ms(99);
        say(&format!(
            "{name:<8} {cpu:>6.1} µs a call, p99 {p99:.1} ms, {} calls\n",
            usage.load.answered
        ));
    }
    Ok((beside.cpu_us_per_call() / alone.cpu_us_per_call() - 1.0) * exact(100))
}
