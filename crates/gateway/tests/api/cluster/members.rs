//! Nodes that may take part, and the fate of those that die.

use super::{Common, trio};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_second_node_of_the_same_name_is_refused_and_told_what_to_do() {
    let Some(database) = PostgresDatabase::create("names") else { return };
    let common = Common::new();
    let redis = RedisServer::start();
    let node = || common.node("twin", &redis.url()).config(&database.config());
    let mut first = node().start();
    let second = node().prepare();

    for part in ["another node `twin`", "server.node"] {
        assert_fails(&second, &["serve", "--port", "0"], 1, part).await;
    }
    first.kill();
    first.start();
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_would_each_count_for_themselves_do_not_serve_together() {
    let Some(database) = PostgresDatabase::create("alone") else { return };
    let named = |name: &str| {
        let name = format!("[server]\nnode = \"{name}\"\n");
        gateway().config(&name).config(&database.config())
    };
    let mut first = named("a").start();
    let second = named("b").prepare();

    let (code, told) = failure(&second, &["serve", "--port", "0"]).await;

    assert_eq!(code, 1);
    assert!(told.contains("[limits] redis") && !told.contains(database.url().as_str()), "{told}");
    first.stop();
    let mut second = second;
    second.start();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_node_left_open_another_closes() {
    let upstream = Hostile::start(vec![tool("slow", Script::Silence)]).await;
    let there = upstream.url();
    let Some(mut trio) = trio("dead", |builder| builder.http("up", &there, "")).await else {
        return;
    };
    let who = trio.nodes[0].service(&trio.nodes[0].org("acme", &ENOUGH), ALL_SCOPES);
    let request = trio.nodes[0].json(&who, "/v1/mcps/up:slow/invoke", r#"{"input":{}}"#);
    let call = request.header("idempotency-key", "k").send();
    tokio::select! {
        answer = call => panic!("an answer of a tool that is silent: {answer:?}"),
        () = upstream.wait_for(1) => {}
    }

    trio.nodes[0].kill();
    let unknown = "/v1/audit/events?type=mcp.invocation&outcome=unknown";
    let found = until(|| trio.nodes[1].get(&who, unknown), |it| !items(it).is_empty()).await;

    let [event] = items(&found).as_slice() else { panic!("one event: {}", found.text) };
    assert_eq!(event["outcome"]["executed"], "unknown");
    let again = trio.nodes[2].invoke_keyed(&who, "up:slow", "k", &json!({})).await;
    assert_eq!(again.refusal(), (504, "upstream_timeout"), "{}", again.text);
    assert_eq!(upstream.calls().len(), 1);
    trio.nodes[0].start();
    let after = trio.nodes[0].get(&who, unknown).await;
    assert_eq!(items(&after).len(), 1, "closed once");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calls_of_a_living_node_are_left_alone() {
    let held = json!({"content": [], "structuredContent": {"done": true}}).to_string();
    let upstream = Hostile::start(vec![tool("held", Script::Held(held))]).await;
    let there = upstream.url();
    let Some(mut trio) = trio("alive", |builder| builder.http("up", &there, "")).await else {
        return;
    };
    let who = trio.nodes[0].service(&trio.nodes[0].org("acme", &ENOUGH), ALL_SCOPES);
    let [first, second, third] = &mut trio.nodes;
    let (answer, ()) = tokio::join!(first.invoke(&who, "up:held", json!({})), async {
        upstream.wait_for(1).await;
        // A starting node closes what is abandoned, and this is not.
        third.kill();
        third.start();
        let listed = second.get(&who, "/v1/audit/events?type=mcp.invocation").await;
        assert!(items(&listed).is_empty(), "{}", listed.text);
        upstream.release();
    });

    assert_eq!(answer.status, 200, "{}", answer.text);
    let listed = third.get(&who, "/v1/audit/events?type=mcp.invocation").await;
    let outcomes: Vec<&Value> = items(&listed).iter().map(|it| &it["outcome"]["status"]).collect();
    assert_eq!(outcomes, ["success"]);
}
