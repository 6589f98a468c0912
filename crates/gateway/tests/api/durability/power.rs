//! Power cuts: what was answered is on the disk, a key never reaches its tool twice, and the log continues
//! every checkpoint that was given out.

use std::sync::{Mutex, PoisonError};

use portcullis_testkit::PowerCut;
use reqwest::Client;

use crate::{
    audit_log::{live, write},
    prelude::*,
};

const ROUNDS: usize = 8;
const CALLERS: usize = 16;
const CALLS: usize = 6;
/// Calls of a caller that ends with the connection: many more than fill the log file of SQLite.
const ENDLESS: usize = 10_000;
/// Bytes of each result, which are kept for its key: the file is carried over from its log now and then.
const PADDING: usize = 20_000;

/// Keys that were answered 200, each with the event that the answer named.
type Answered = Mutex<BTreeMap<String, String>>;

/// Asks for checkpoints, which gives events their places, until the connection breaks; gives the last one.
async fn watch(client: &Client, url: &str, who: &Principal) -> Option<String> {
    let mut last = None;
    loop {
        let request = client.get(format!("{url}/v1/audit/checkpoint")).bearer_auth(&who.token);
        let Ok(answer) = request.send().await else { return last };
        let is_given = answer.status() == 200;
        let Ok(note) = answer.text().await else { return last };
        last = if is_given { Some(note) } else { last };
    }
}

/// Makes calls one after the other, each with a key of its own, until the connection breaks.
async fn call(
    client: &Client,
    url: &str,
    who: &Principal,
    keys: impl Iterator<Item = String>,
    answered: &Answered,
) {
    let padding = "x".repeat(PADDING);
    for key in keys {
        let request = client
            .post(format!("{url}/v1/mcps/up:echo/invoke"))
            .bearer_auth(&who.token)
            .header("idempotency-key", &key)
            .body(json!({"input": {"key": key, "padding": padding}}).to_string());
        let Ok(answer) = request.send().await else { return };
        let status = answer.status();
        let Ok(text) = answer.text().await else { return };
        if status == 200 {
            let body: Value = serde_json::from_str(&text).expect("JSON");
            let event = body["governance"]["audit_event_id"].as_str().expect("an event");
            let mut answered = answered.lock().unwrap_or_else(PoisonError::into_inner);
            answered.insert(key, event.to_owned());
        }
    }
}

/// Number of times that each key reached the tool.
fn dispatched(upstream: &Hostile) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for call in upstream.calls() {
        let arguments: Value = serde_json::from_str(&call.arguments()).expect("arguments");
        *counts.entry(arguments["key"].as_str().expect("a key").to_owned()).or_default() += 1;
    }
    counts
}

/// The sequences of the whole log, in its order.
async fn sequences(gateway: &Gateway, who: &Principal) -> Vec<u64> {
    let mut sequences = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/v1/audit/events?order=asc&limit=200{cursor}");
        let page = gateway.get(who, &path).await.ok();
        let items = page.at("/data/items").as_array().expect("a list");
        sequences.extend(items.iter().map(|item| item["sequence"].as_u64().expect("a place")));
        match page.at("/meta/pagination/next_cursor").as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return sequences,
        }
    }
}

/// A gateway on a disk whose power can be cut, and the calls of its clients.
struct Scene {
    power: PowerCut,
    upstream: Hostile,
    gateway: Gateway,
    who: Principal,
    client: Client,
    answered: Answered,
}

impl Scene {
    async fn start() -> Self {
        let power = PowerCut::build();
        let upstream = Hostile::start(vec![tool("echo", Script::Echo)]).await;
        let builder = power.on(gateway().http("up", &upstream.url(), ""));
        let (gateway, who) = serve_as("mcps:invoke audit:read", builder);
        let client = Client::builder().no_proxy().build().expect("a client");
        Self { power, upstream, gateway, who, client, answered: Answered::default() }
    }
}

/// The keys of a caller in a round.
fn keys(round: usize, caller: usize, calls: usize) -> impl Iterator<Item = String> {
    (0..calls).map(move |number| format!("{round}-{caller}-{number}"))
}

/// Checks that the log continues this checkpoint.
async fn check_continues(gateway: &Gateway, note: &str) {
    let kept = write(&gateway.folder().join("kept.txt"), note);
    live(gateway, &["--since", kept.to_str().unwrap()], 0, "continues the log").await;
}

/// Checks that what was answered stands, that each key reached the tool once, and that the log is whole.
async fn check(gateway: &Gateway, who: &Principal, upstream: &Hostile, answered: Answered) {
    let answered = answered.into_inner().unwrap_or_else(PoisonError::into_inner);
    let counts = dispatched(upstream);
    assert!(answered.len() > ROUNDS, "too little was answered to tell: {}", answered.len());
    assert!(counts.values().all(|count| *count == 1), "a key was called twice: {counts:?}");
    for (key, event) in &answered {
        let found = gateway.get(who, &format!("/v1/audit/events/{event}")).await;
        assert_eq!(found.at("/data/outcome/status"), "success", "{key}: {}", found.text);
    }
    // A client that asks again, also for what was cut off, is told its fate and reaches no tool.
    for key in counts.keys() {
        let input = json!({ "key": key, "padding": "x".repeat(PADDING) });
        let again = gateway.invoke_keyed(who, "up:echo", key, &input).await;
        assert_eq!(again.header("idempotency-replayed"), "true", "{key}: {}", again.text);
        match answered.get(key) {
            Some(event) => assert_eq!(again.event_id(), event),
            None => assert!([200, 504].contains(&again.status.as_u16()), "{}", again.text),
        }
    }
    assert_eq!(dispatched(upstream), counts);
    let places = sequences(gateway, who).await;
    let whole: Vec<u64> = (0..).take(places.len()).collect();
    assert_eq!(places, whole, "a gap in the log");
    live(gateway, &[], 0, "complete").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_survives_a_power_cut_and_no_key_is_called_twice() {
    let Scene { power, upstream, mut gateway, who, client, answered } = Scene::start().await;

    for round in 0..ROUNDS {
        let url = gateway.url().to_owned();
        let before = upstream.calls().len();
        let calls = (0..CALLERS)
            .map(|caller| call(&client, &url, &who, keys(round, caller, CALLS), &answered));
        let cut = async {
            upstream.wait_for(before + 20 + 9 * round).await;
            gateway.kill_at_once();
        };
        let (note, _, ()) = tokio::join!(watch(&client, &url, &who), join_all(calls), cut);
        // Of what was not synced a disk may keep nothing, or anything.
        if round % 2 == 0 {
            power.cut(&mut gateway);
        } else {
            power.tear(&mut gateway, round as u64);
        }
        gateway.start();
        if let Some(note) = note {
            check_continues(&gateway, &note).await;
        }
    }

    check(&gateway, &who, &upstream, answered).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_power_cut_while_the_log_file_is_carried_over_leaves_the_log_whole() {
    let Scene { power, upstream, mut gateway, who, client, answered } = Scene::start().await;

    // The first and the second page, one among them, and one of the last.
    for (round, write) in [1, 2, 200, 1_500].into_iter().enumerate() {
        power.cut_at_write(write);
        let url = gateway.url().to_owned();
        let calls = (0..CALLERS)
            .map(|caller| call(&client, &url, &who, keys(round, caller, ENDLESS), &answered));
        let (note, _) = tokio::join!(watch(&client, &url, &who), join_all(calls));
        assert_eq!(gateway.ended(), None, "no page was carried over");
        if round % 2 == 0 {
            power.tear(&mut gateway, round as u64);
        } else {
            power.cut(&mut gateway);
        }
        power.spare();
        gateway.start();
        check_continues(&gateway, &note.expect("a checkpoint")).await;
    }

    check(&gateway, &who, &upstream, answered).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_waiting_for_the_disk_a_power_cut_does_lose_events() {
    let power = PowerCut::build();
    let upstream = Hostile::start(vec![tool("echo", Script::Echo)]).await;
    let builder = power.on(gateway().http("up", &upstream.url(), ""));
    let (mut gateway, who) =
        serve_as("mcps:invoke", builder.config("[audit]\nsync = \"process-crash\""));
    let answer = gateway.invoke(&who, "up:echo", json!({})).await.ok();

    power.cut(&mut gateway);
    gateway.start();

    // If nothing could get lost here, the test above would prove nothing.
    let found = gateway.get(&who, &format!("/v1/audit/events/{}", answer.event_id())).await;
    assert_ne!(found.status, 200, "{}", found.text);
}
