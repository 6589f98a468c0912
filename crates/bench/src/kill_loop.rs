//! `kill -9` under load, again and again: no answered invocation may be without its event.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use http::StatusCode;
use serde_json::Value;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    Failure, Verdict,
    args::KillLoopArgs,
    audit,
    client::{Answer, Connection, governed_call},
    gateway::{self, Installation},
    payload, say, say_aside,
    upstream::Upstream,
};

/// Where the gateway listens at present; `None` while it is down, closed when all is over.
type Whereabouts = watch::Receiver<Option<SocketAddr>>;

/// What the callers saw.
#[derive(Debug, Default)]
struct Seen {
    /// The events named by answers with status 200.
    events: Vec<String>,
    /// Complete answers with another status.
    refused: u64,
    /// Calls that were cut off.
    lost: u64,
}

/// Runs it and prints the counts; `Broken` when an answered call has no event, or an event no end.
pub(crate) async fn run(args: &KillLoopArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let binary = gateway::binary(args.binary.as_deref()).await?;
    let installation = Arc::new(Installation::create(binary, upstream.address).await?);
    let arguments = Arc::new(payload::of_size(args.payload));
    let (place, whereabouts) = watch::channel(None);
    let mut callers = JoinSet::new();
    for _ in 0..args.connections {
        callers.spawn(call_on(whereabouts.clone(), installation.clone(), arguments.clone()));
    }
    let slowest_start = kill_repeatedly(args, &installation, &place).await?;
    drop(place);
    let mut seen = Seen::default();
    while let Some(part) = callers.join_next().await {
        let part = part??;
        seen.events.extend(part.events);
        seen.refused += part.refused;
        seen.lost += part.lost;
    }
    let running = installation.start().await?;
    let missing = audit::missing(running.address, &installation.token, &seen.events).await?;
    let counted = audit::count(running.address, &installation.token).await?;
    running.stop().await?;
    say(&format!(
        "kills: {}\nslowest start: {} ms\nanswered: {}\nanswered otherwise than 200: {}\n\
         cut off: {}\nanswered without event: {}\nevents: {}\nevents with unknown outcome: {}\n\
         events left open: {}\n",
        args.kills,
        slowest_start.as_millis(),
        seen.events.len(),
        seen.refused,
        seen.lost,
        missing.len(),
        counted.events,
        counted.unknown,
        counted.open,
    ));
    for id in missing.iter().take(10) {
        say(&format!("lost: {id}\n"));
    }
    let nothing_lost = missing.is_empty() && counted.open == 0 && !seen.events.is_empty();
    Ok(if nothing_lost { Verdict::Holds } else { Verdict::Broken })
}

/// Starts and kills in turn, at instants that wander through the work of the gateway.
async fn kill_repeatedly(
    args: &KillLoopArgs,
    installation: &Installation,
    place: &watch::Sender<Option<SocketAddr>>,
) -> Result<Duration, Failure> {
    let begun = Instant::now();
    let mut slowest = Duration::ZERO;
    for kill in 1..=args.kills {
        let starting = Instant::now();
        let running = installation.start().await?;
        slowest = slowest.max(starting.elapsed());
        place.send_replace(Some(running.address));
        let wander = Duration::from_micros(u64::from(kill) * 7_919 % 20_000);
        sleep_until(begun + args.within * kill / args.kills - wander.min(args.within)).await;
        running.kill().await?;
        place.send_replace(None);
        say_aside(&format!("kill {kill} of {}\n", args.kills));
    }
    Ok(slowest)
}

/// Invokes without pause while there is a gateway, and notes every event an answer named.
async fn call_on(
    mut whereabouts: Whereabouts,
    installation: Arc<Installation>,
    arguments: Arc<Value>,
) -> Result<Seen, Failure> {
    let mut seen = Seen::default();
    loop {
        let address = match whereabouts.wait_for(Option::is_some).await {
            Ok(place) => *place,
            Err(_) => return Ok(seen),
        };
        let Some(address) = address else { continue };
        let call = governed_call(address, &installation.token, &arguments)?;
        if let Ok(mut connection) = Connection::open(address).await {
            while *whereabouts.borrow() == Some(address) {
                let Ok(answer) = connection.send(call.clone()).await else {
                    seen.lost += 1;
                    break;
                };
                seen.note(&answer)?;
            }
        }
        sleep(Duration::from_millis(1)).await;
    }
}

impl Seen {
    fn note(&mut self, answer: &Answer) -> Result<(), Failure> {
        if answer.status != StatusCode::OK {
            self.refused += 1;
            return Ok(());
        }
        let body = answer.json()?;
        let event = body.pointer("/governance/audit_event_id").and_then(Value::as_str);
        self.events.push(event.ok_or("an answer names no event")?.to_owned());
        Ok(())
    }
}
