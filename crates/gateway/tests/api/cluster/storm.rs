//! Three nodes behind a load balancer while everything around them fails: nothing that was
//! answered is lost, and the log verifies.

use std::{
    env,
    net::SocketAddr,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use portcullis_testkit::{Condition, LoadBalancer, PostgresServer, Wire};

use super::Common;
use crate::{audit_log::keys, prelude::*};

/// Number of rounds in which everything fails once; set by `PORTCULLIS_TEST_CLUSTER_ROUNDS`.
const ROUNDS: u32 = 1;
const CALLERS: usize = 8;
/// The longest that calls may fail in a row.
const PATIENCE: Duration = Duration::from_secs(30);

struct Storm {
    nodes: Vec<Gateway>,
    ports: Vec<u16>,
    wires: Vec<Wire>,
    postgres: PostgresServer,
    redis: RedisServer,
    upstream: Hostile,
    common: Common,
    who: Principal,
    balancer: LoadBalancer,
}

fn port(node: &Gateway) -> u16 {
    address(node).port()
}

fn address(node: &Gateway) -> SocketAddr {
    node.url().split_once("://").unwrap().1.parse().unwrap()
}

async fn storm(balancer: fn(&[SocketAddr]) -> LoadBalancer) -> Option<Storm> {
    if env::var("PORTCULLIS_TEST_SQLITE_ONLY").is_ok_and(|only| only == "1") {
        return None;
    }
    let upstream =
        Hostile::start(vec![tool("echo", Script::Echo), tool("closed", Script::Echo)]).await;
    let common = Common::new();
    let redis = RedisServer::start();
    let postgres = tokio::task::block_in_place(PostgresServer::start);
    let mut nodes = Vec::new();
    let mut wires = Vec::new();
    for name in ["node-a", "node-b", "node-c"] {
        let wire = Wire::to(postgres.address().to_string()).await;
        let there = postgres.config_at(wire.address());
        let node = common.node(name, &redis.url()).config(&there).http("up", &upstream.url(), "");
        nodes.push(node.env("PORTCULLIS_SERVER__DRAIN_LISTEN_SECONDS", "2").start());
        wires.push(wire);
    }
    let who = nodes[0].service(&nodes[0].org("acme", &ENOUGH), ALL_SCOPES);
    let balancer = balancer(&nodes.iter().map(address).collect::<Vec<_>>());
    let ports = nodes.iter().map(port).collect();
    Some(Storm { nodes, ports, wires, postgres, redis, upstream, common, who, balancer })
}

/// Calls without end, by way of the load balancer.
struct Load {
    answered: Arc<AtomicU64>,
    events: Arc<Mutex<Vec<String>>>,
    refused: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    callers: JoinSet<()>,
}

impl Load {
    fn begin(url: &str, who: &Principal) -> Self {
        let mut load = Self {
            answered: Arc::default(),
            events: Arc::default(),
            refused: Arc::default(),
            stop: Arc::default(),
            callers: JoinSet::new(),
        };
        for _ in 0..CALLERS {
            let url = format!("{url}/v1/mcps/up:echo/invoke");
            let token = who.token.clone();
            let answered = Arc::clone(&load.answered);
            let events = Arc::clone(&load.events);
            let refused = Arc::clone(&load.refused);
            let stop = Arc::clone(&load.stop);
            load.callers.spawn(async move {
                let client = reqwest::Client::builder().no_proxy().build().unwrap();
                while !stop.load(Ordering::SeqCst) {
                    let call = client.post(&url).bearer_auth(&token).body(r#"{"input":{}}"#);
                    let Ok(answer) = call.timeout(PATIENCE).send().await else {
                        refused.fetch_add(1, Ordering::SeqCst);
                        continue;
                    };
                    let status = answer.status().as_u16();
                    let body = answer.text().await;
                    if status != 200 {
                        // Of the gateway, or of the balancer whose node died.
                        assert!([502, 503, 504].contains(&status), "{status}: {body:?}");
                        refused.fetch_add(1, Ordering::SeqCst);
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        continue;
                    }
                    let Ok(body) = body else { continue };
                    let body: Value = serde_json::from_str(&body).unwrap();
                    let event = body["governance"]["audit_event_id"].as_str().unwrap().to_owned();
                    events.lock().unwrap().push(event);
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        load
    }

    /// Waits until so many more calls were answered.
    async fn goes_on(&mut self, after: &str) {
        let wanted = self.answered.load(Ordering::SeqCst) + 100;
        eventually(&format!("a hundred answers after {after}"), async || {
            if let Some(ended) = self.callers.try_join_next() {
                ended.unwrap();
            }
            (self.answered.load(Ordering::SeqCst) >= wanted).then_some(())
        })
        .await;
    }

    async fn end(mut self) -> Vec<String> {
        self.stop.store(true, Ordering::SeqCst);
        while let Some(ended) = self.callers.join_next().await {
            ended.unwrap();
        }
        std::mem::take(&mut *self.events.lock().unwrap())
    }
}

impl Storm {
    async fn round(&mut self, load: &mut Load, round: u32) {
        for n in 0..3 {
            self.nodes[n].kill();
            load.goes_on("a node was killed").await;
            self.nodes[n].start_at(self.ports[n]);
            load.goes_on("it was started again").await;
        }
        self.wires[1].set(Condition::Cut);
        load.goes_on("a node was cut off").await;
        until(|| self.nodes[1].get(&self.who, "/readyz"), |answer| answer.status == 503).await;
        load.goes_on("a node was out of the turns").await;
        self.wires[1].set(Condition::Whole);
        tokio::task::block_in_place(|| {
            self.postgres.crash();
            self.postgres.start_again();
        });
        load.goes_on("the database crashed").await;
        tokio::task::block_in_place(|| {
            self.redis.kill();
            self.redis.start_again();
        });
        load.goes_on("the counters died").await;
        for node in &self.nodes {
            until(|| node.get(&self.who, "/readyz"), |answer| answer.status == 200).await;
        }
        self.close(round).await;
        load.goes_on("a policy changed").await;
    }

    /// Closes a tool by a policy that all nodes read.
    async fn close(&self, round: u32) {
        let name = format!("closed-{round}");
        self.common.policies(&format!(
            "@id(\"all\") permit (principal, action, resource);\n@id(\"{name}\") @reason(\"r\")\n\
             forbid (principal, action == Mcp::Action::\"up:closed\", resource);"
        ));
        for node in &self.nodes {
            let call = || node.invoke(&self.who, "up:closed", json!({}));
            until(call, |answer| answer.at("/error/details/policy") == name.as_str()).await;
        }
    }

    /// Begins an export on one node and fetches it from another; gives the file.
    async fn export(&self) -> String {
        let begun = self.nodes[0].post(&self.who, "/v1/audit/export", "").await;
        assert!([200, 202].contains(&begun.status.as_u16()), "{}", begun.text);
        let path = format!("/v1/audit/exports/{}", begun.at("/data/id").as_str().unwrap());
        let ask = || self.nodes[2].get(&self.who, &path);
        let made = until(ask, |answer| answer.at("/data/status") != "pending").await;
        assert_eq!(made.at("/data/complete"), true, "{}", made.text);
        self.nodes[2].get(&self.who, &format!("{path}/file")).await.text
    }

    /// Fails unless the file proves itself.
    fn verify(&self, name: &str, file: &str) {
        let path = self.nodes[0].folder().join(name);
        fs::write(&path, file).unwrap();
        let keys = keys(&self.nodes[0], &self.who.org);
        let path = path.to_string_lossy();
        let key = keys[0].to_string();
        self.nodes[0].run(&["audit", "verify", &path, "--key", &key]);
    }
}

/// The ids of the events in a complete export, with how each ended.
fn events(file: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    file.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["kind"] == "event" && line["event"]["type"] == "mcp.invocation")
        .map(|line| (text(&line["event"]["id"]), text(&line["event"]["outcome"]["status"])))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn while_everything_fails_in_turn_nothing_answered_is_lost_and_the_log_verifies() {
    let Some(mut storm) = storm(LoadBalancer::start).await else { return };
    let rounds = env::var("PORTCULLIS_TEST_CLUSTER_ROUNDS").ok().and_then(|it| it.parse().ok());
    let mut load = Load::begin(&storm.balancer.url(), &storm.who);
    load.goes_on("the beginning").await;

    for round in 0..rounds.unwrap_or(ROUNDS) {
        storm.round(&mut load, round).await;
        let while_writing = storm.export().await;
        storm.verify("while-writing.jsonl", &while_writing);
    }
    let answered = load.end().await;
    let open = || storm.nodes[0].get(&storm.who, "/readyz");
    until(open, |answer| answer.status == 200).await;

    let file = settled(&storm).await;
    storm.verify("whole.jsonl", &file);
    let recorded = events(&file);
    let known: BTreeSet<&str> = recorded.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(known.len(), recorded.len(), "no event twice");
    let succeeded: BTreeSet<&str> = recorded
        .iter()
        .filter(|(_, status)| status == "success")
        .map(|(id, _)| id.as_str())
        .collect();
    let lost: Vec<_> = answered.iter().filter(|id| !succeeded.contains(id.as_str())).collect();
    assert!(lost.is_empty(), "answered and not recorded: {lost:?}");
    // Whatever reached the tool was recorded, as what it was or as unknown.
    let reached = storm.upstream.calls().len();
    let dispatched = recorded.iter().filter(|(_, status)| status != "denied").count();
    assert!(reached <= dispatched, "{reached} calls, {dispatched} events");
    println!("{} answered, {} events, {reached} calls", answered.len(), recorded.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_nodes_one_by_one_refuses_no_call() {
    let Some(mut storm) = storm(LoadBalancer::trying_once).await else { return };
    let mut load = Load::begin(&storm.balancer.url(), &storm.who);
    load.goes_on("the beginning").await;

    for n in 0..3 {
        assert_eq!(storm.nodes[n].stop(), Some(0));
        load.goes_on("a node ended").await;
        storm.nodes[n].start_at(storm.ports[n]);
        until(|| storm.nodes[n].get(&storm.who, "/readyz"), |answer| answer.status == 200).await;
        load.goes_on("it was started again").await;
    }

    assert_eq!(load.refused.load(Ordering::SeqCst), 0);
    assert!(load.end().await.len() > 300);
}

/// An export of everything, once what the dead left open is closed.
async fn settled(storm: &Storm) -> String {
    let reached = storm.upstream.calls().len();
    eventually("an event for each call", async || {
        let file = storm.export().await;
        let recorded = events(&file);
        let dispatched = recorded.iter().filter(|(_, status)| status != "denied").count();
        (dispatched >= reached).then_some(file)
    })
    .await
}
