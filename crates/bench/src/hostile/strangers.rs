//! Strangers who begin authorizations, a thousand a second and each from another address, while an org makes plain
//! calls: what those wait, and what processor time a request of a stranger takes beside a governed call.

use std::{net::SocketAddr, time::Duration};

use http::{HeaderValue, Request, StatusCode, Uri, header::HOST};
use http_body_util::Full;
use portcullis_core::{
    clock::Timestamp,
    token::{Token, TokenHash},
    trust::{DpopProof, ProofTarget, TargetUri},
};
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};

use super::{
    AnswerCounts,
    bystanders::{CALLERS, beside, tell},
};
use crate::{
    Failure, Verdict,
    args::HostileArgs,
    client::{Connection, Template, governed_call, post},
    gateway::{Installation, Running},
    load::exact,
    payload, process, proof, say,
    upstream::Upstream,
};

/// Requests of strangers in a second.
const RATE: u32 = 1_000;
/// Requests of one portion of one caller.
const PORTION: u32 = 5;
/// Goal: milliseconds by which the p99 of another org's calls may grow.
const GOAL_MS: f64 = 5.0;
/// Requests by which the cost of one is measured.
const COUNTED: u32 = 4_000;
/// Goal for finding a token that is known, in nanoseconds.
const GOAL_TOKEN_NS: f64 = 1_000.0;
/// Goal for checking a proof of possession, in microseconds.
const GOAL_PROOF_US: f64 = 100.0;
/// Login is offered, and with it the authorization server.
const LOGIN: &str = "\n[login]\nlinks = true\n";

/// Prints the costs and what others notice, and whether the goals hold.
pub(super) async fn run(args: &HostileArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let installation = Installation::create(args.binary.as_deref(), upstream.address).await?;
    installation.add_config(LOGIN)?;
    let running = installation.start().await?;
    let request = authorization(running.address).await?;
    let token = &installation.token;
    let call = governed_call(running.address, token, &payload::of_size(1024))?;

    let call_us = cost(&running, &call).await?;
    let request_us = cost_of_strangers(&running, &request).await?;
    let alone = beside(&running, token, JoinSet::new(), args.calls).await?;
    let answered = AnswerCounts::default();
    let mut strangers = JoinSet::new();
    for number in 0..CALLERS {
        strangers.spawn(keep_asking(running.address, request.clone(), number, answered.clone()));
    }
    let disturbed = beside(&running, token, strangers, args.calls).await?;
    running.stop().await?;

    tell(&alone, &disturbed, &answered);
    let grown = disturbed.calls.percentile_ms(99) - alone.calls.percentile_ms(99);
    let token_ns = known_token(token);
    let proof_us = known_key(token)?;
    say(&format!(
        "processor time of a request of a stranger: {request_us:.0} µs, of a governed call: {call_us:.0} µs\n\
         p99 of calls beside strangers: {grown:+.2} ms (goal +{GOAL_MS})\n\
         a known token is parsed, hashed and compared in {token_ns:.0} ns (goal {GOAL_TOKEN_NS:.0})\n\
         a proof of possession (DPoP, ES256) is checked in {proof_us:.0} µs (goal {GOAL_PROOF_US:.0})\n"
    ));
    let holds = grown <= GOAL_MS && token_ns <= GOAL_TOKEN_NS && proof_us <= GOAL_PROOF_US;
    Ok(if holds { Verdict::Holds } else { Verdict::Broken })
}

/// A request for authorization of a client that registered itself.
async fn authorization(address: SocketAddr) -> Result<Template, Failure> {
    let back = "http://127.0.0.1:43210/callback";
    let metadata = json!({"client_name": "Bench", "redirect_uris": [back]});
    let request = post(address, "", "/oauth/register", &metadata)?;
    let mut connection = Connection::open(address).await?;
    let registered = connection.send(request).await?;
    let registered = registered.json()?;
    let id =
        registered.get("client_id").and_then(Value::as_str).ok_or("no client was registered")?;
    let uri: Uri = format!(
        "/oauth/authorize?response_type=code&client_id={id}&redirect_uri=http%3A%2F%2F127.0.0.1%3A43210%2Fcallback\
         &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&state=x"
    )
    .parse()?;
    let request = Request::builder().uri(uri).header(HOST, address.to_string());
    Ok(request.body(Full::default())?)
}

/// The same request from another address, as the proxy in front tells.
fn from_elsewhere(request: &Template, number: u32) -> Template {
    let [_, a, b, c] = number.to_be_bytes();
    let mut request = request.clone();
    if let Ok(source) = HeaderValue::from_str(&format!("10.{a}.{b}.{c}")) {
        request.headers_mut().insert("x-forwarded-for", source);
    }
    request
}

/// Microseconds of processor time of the gateway for a request of its own.
async fn cost(running: &Running, request: &Template) -> Result<f64, Failure> {
    let mut connection = Connection::open(running.address).await?;
    let before = process::cpu_time(running.pid)?;
    for _ in 0..COUNTED {
        connection.send(request.clone()).await?.ok()?;
    }
    each(running, before)
}

async fn cost_of_strangers(running: &Running, request: &Template) -> Result<f64, Failure> {
    let mut connection = Connection::open(running.address).await?;
    let before = process::cpu_time(running.pid)?;
    for number in 0..COUNTED {
        let status = connection.send(from_elsewhere(request, number)).await?.status;
        if status != StatusCode::FOUND {
            return Err(format!("a stranger was answered {status}").into());
        }
    }
    each(running, before)
}

fn each(running: &Running, before: Duration) -> Result<f64, Failure> {
    let spent = process::cpu_time(running.pid)?.saturating_sub(before);
    Ok(spent.as_secs_f64() * 1e6 / f64::from(COUNTED))
}

/// One of the callers who together ask [`RATE`] times a second.
async fn keep_asking(
    address: SocketAddr,
    request: Template,
    caller: usize,
    answered: AnswerCounts,
) {
    let callers = u32::try_from(CALLERS).unwrap_or(u32::MAX);
    let mut ticks = interval(Duration::from_secs(1) * PORTION * callers / RATE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut number = u32::try_from(caller).unwrap_or_default() << 20;
    while let Ok(mut connection) = Connection::open(address).await {
        'connected: loop {
            ticks.tick().await;
            for _ in 0..PORTION {
                number += 1;
                match connection.send(from_elsewhere(&request, number)).await {
                    Ok(answer) => answered.note(&answer),
                    Err(_) => break 'connected,
                }
            }
        }
    }
}

/// Nanoseconds in which a token is parsed, hashed and compared with one that is known, as at each request.
fn known_token(token: &str) -> f64 {
    let known: Option<TokenHash> = Token::parse(token).ok().map(|token| token.hash());
    fastest(|| {
        let hash = Token::parse(std::hint::black_box(token)).ok().map(|token| token.hash());
        assert!(std::hint::black_box(hash == known), "a token is itself");
    })
}

/// Microseconds in which a proof of possession is checked, its signature included.
fn known_key(token: &str) -> Result<f64, Failure> {
    let address = "https://gateway.example/v1/mcps";
    let proof = proof::prove(address, token, 0).ok_or("no proof was made")?;
    let address = TargetUri::parse(address);
    let target = ProofTarget { method: "GET", addresses: address.as_slice(), token: Some(token) };
    let check =
        || DpopProof::check(std::hint::black_box(&proof), target, Timestamp::from_micros(0));
    check()?;
    Ok(fastest(|| assert!(check().is_ok(), "a proof is right twice")) / 1e3)
}

/// Nanoseconds of one run in the fastest of several turns.
fn fastest(run: impl Fn()) -> f64 {
    let turn = |_| {
        let begun = Instant::now();
        (0..COUNTED).for_each(|_| run());
        begun.elapsed().as_secs_f64() * 1e9 / exact(u64::from(COUNTED))
    };
    (0..10).map(turn).fold(f64::MAX, f64::min)
}
