//! `kill -9` under load, again and again: no answered invocation may be without its event, the log
//! may have no gap and has to be verified whole, and no idempotency key may reach the tool twice.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

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
    audit::{self, EventCounts},
    client::{Answer, Connection, get, governed_call, keyed_call, mcp_call},
    gateway::Installation,
    payload, say, say_aside,
    upstream::{MARK, TWICE, Upstream},
};

/// Address of the gateway; `None` while it is down, closed at the end.
type Whereabouts = watch::Receiver<Option<SocketAddr>>;

/// Observations of the callers.
#[derive(Debug, Default)]
struct Observations {
    /// The events named by answers with status 200.
    events: Vec<String>,
    /// Complete answers with another status.
    refused: u64,
    /// Calls that were cut off.
    lost: u64,
    /// Keys that were answered 200 or 504.
    keys: u64,
    /// Keys that were asked about again and had been answered before, or cut off.
    retried: u64,
    /// Keys that were given two different events.
    torn: u64,
}

/// Runs it and prints the counts; `Broken` when an answered call has no event, or an event no end.
pub(crate) async fn run(args: &KillLoopArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let installation =
        Arc::new(Installation::create(args.binary.as_deref(), upstream.address).await?);
    let arguments = Arc::new(payload::of_size(args.payload));
    let (place, whereabouts) = watch::channel(None);
    let mut callers = JoinSet::new();
    for number in 0..args.connections {
        let whereabouts = whereabouts.clone();
        let installation = installation.clone();
        let caller = Caller { number, installation, arguments: arguments.clone() };
        // Every second one sends keys, and repeats what was cut off until it is answered.
        if number % 2 == 0 {
            callers.spawn(call_on(whereabouts, caller));
        } else {
            callers.spawn(call_with_keys(whereabouts, caller));
        }
    }
    let slowest_start = kill_repeatedly(args, &installation, &place).await?;
    drop(place);
    let mut seen = Observations::default();
    while let Some(part) = callers.join_next().await {
        seen.add(part??);
    }
    let found = EndState::after(&seen, &installation, &upstream).await?;
    say(&format!(
        "kills: {}\nslowest start: {} ms\nanswered: {}\nanswered otherwise than 200: {}\n\
         cut off: {}\nkeys answered: {}\nkeys asked about again: {}\nkeys with two events: {}\n",
        args.kills,
        slowest_start.as_millis(),
        seen.events.len(),
        seen.refused,
        seen.lost,
        seen.keys,
        seen.retried,
        seen.torn,
    ));
    found.tell();
    let some = !seen.events.is_empty() && (seen.keys > 0 || args.connections < 2);
    let holds = some && seen.torn == 0 && found.is_whole();
    Ok(if holds { Verdict::Holds } else { Verdict::Broken })
}

struct EndState {
    /// Events that were named and are not there.
    missing: Vec<String>,
    counted: EventCounts,
    /// Keys that reached the tool more than once, each with how often.
    twice: HashMap<String, u64>,
    /// Fault that the verifier of the whole log found.
    fault: Option<String>,
}

impl EndState {
    async fn after(
        seen: &Observations,
        installation: &Installation,
        upstream: &Upstream,
    ) -> Result<Self, Failure> {
        let running = installation.start().await?;
        let address = running.address;
        let token = &installation.token;
        let missing = audit::missing(address, token, &seen.events).await?;
        let counted = audit::count(address, token).await?;
        let twice = twice(upstream).await?;
        running.stop().await?;
        Ok(Self { missing, counted, twice, fault: installation.verify().await? })
    }

    fn tell(&self) {
        let EventCounts { all, gaps, events, unknown, open } = self.counted;
        say(&format!(
            "answered without event: {}\nevents: {events}\nevents with unknown outcome: {unknown}\n\
             events left open: {open}\ngaps in the log of {all}: {gaps}\n\
             keys that reached the tool twice: {}\nverified: {}\n",
            self.missing.len(),
            self.twice.len(),
            self.fault.as_deref().unwrap_or("the whole log, against its signed tree"),
        ));
        for id in self.missing.iter().take(10) {
            say(&format!("lost: {id}\n"));
        }
        for (key, count) in self.twice.iter().take(10) {
            say(&format!("reached the tool {count} times: {key}\n"));
        }
    }

    fn is_whole(&self) -> bool {
        let in_order = self.counted.gaps == 0 && self.counted.all > 0;
        let ended = self.missing.is_empty() && self.counted.open == 0;
        in_order && ended && self.twice.is_empty() && self.fault.is_none()
    }
}

/// The keys that reached the tool more than once, each with how often.
async fn twice(upstream: &Upstream) -> Result<HashMap<String, u64>, Failure> {
    let mut connection = Connection::open(upstream.address).await?;
    let answer = connection.send(get(upstream.address, "", TWICE)?).await?.ok()?;
    Ok(serde_json::from_slice(&answer.body)?)
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

struct Caller {
    number: usize,
    installation: Arc<Installation>,
    arguments: Arc<Value>,
}

/// Invokes without pause while there is a gateway, and notes every event an answer named.
async fn call_on(mut whereabouts: Whereabouts, caller: Caller) -> Result<Observations, Failure> {
    let mut seen = Observations::default();
    while let Some(address) = next_place(&mut whereabouts).await {
        // Every second one of these speaks MCP.
        let make = if caller.number % 4 == 2 { mcp_call } else { governed_call };
        let call = make(address, &caller.installation.token, &caller.arguments)?;
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
    Ok(seen)
}

/// The same with a key for each call. What is cut off or under way is asked about again with the
/// same key; now and then also what was answered.
async fn call_with_keys(
    mut whereabouts: Whereabouts,
    caller: Caller,
) -> Result<Observations, Failure> {
    let mut seen = Observations::default();
    let mut number = 0_u64;
    let mut first = None::<String>;
    while let Some(address) = next_place(&mut whereabouts).await {
        if let Ok(mut connection) = Connection::open(address).await {
            while *whereabouts.borrow() == Some(address) {
                let key = format!("{}-{number}", caller.number);
                let arguments = marked(&caller.arguments, &format!("{MARK}{key}"));
                let call = keyed_call(address, &caller.installation.token, &arguments, &key)?;
                let Ok(answer) = connection.send(call).await else {
                    seen.lost += 1;
                    seen.retried += 1;
                    break;
                };
                let settled = [StatusCode::OK, StatusCode::GATEWAY_TIMEOUT];
                if !settled.contains(&answer.status) {
                    seen.refused += 1;
                    seen.retried += 1;
                    continue;
                }
                let event = event_of(&answer)?;
                seen.torn += u64::from(first.as_ref().is_some_and(|first| *first != event));
                if answer.status == StatusCode::OK {
                    seen.events.push(event.clone());
                }
                // Every fourth key is asked about twice.
                if number.is_multiple_of(4) && first.is_none() {
                    seen.retried += 1;
                    first = Some(event);
                } else {
                    seen.keys += 1;
                    number += 1;
                    first = None;
                }
            }
        }
        sleep(Duration::from_millis(1)).await;
    }
    Ok(seen)
}

/// A payload with this text in the title of its first row.
fn marked(payload: &Value, mark: &str) -> Value {
    let mut payload = payload.clone();
    if let Some(title) = payload.pointer_mut("/rows/0/title") {
        *title = Value::from(mark);
    }
    payload
}

/// Waits for the gateway's address; `None` at the end.
async fn next_place(whereabouts: &mut Whereabouts) -> Option<SocketAddr> {
    loop {
        let place = whereabouts.wait_for(Option::is_some).await.map(|place| *place);
        match place {
            Ok(Some(address)) => return Some(address),
            Ok(None) => {}
            Err(_) => return None,
        }
    }
}

fn event_of(answer: &Answer) -> Result<String, Failure> {
    let body = answer.json()?;
    let over_mcp = "/result/_meta/dev.portcullis~1governance/audit_event_id";
    let event = body.pointer("/governance/audit_event_id").or_else(|| body.pointer(over_mcp));
    let event = event.and_then(Value::as_str);
    Ok(event.ok_or("an answer names no event")?.to_owned())
}

impl Observations {
    fn note(&mut self, answer: &Answer) -> Result<(), Failure> {
        if answer.status == StatusCode::OK {
            self.events.push(event_of(answer)?);
        } else {
            self.refused += 1;
        }
        Ok(())
    }

    fn add(&mut self, part: Self) {
        self.events.extend(part.events);
        self.refused += part.refused;
        self.lost += part.lost;
        self.keys += part.keys;
        self.retried += part.retried;
        self.torn += part.torn;
    }
}
