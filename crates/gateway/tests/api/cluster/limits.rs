//! Limits that nodes count together: exact, shown right, and never open.

use portcullis_testkit::{Condition, Wire};

use super::{Trio, trio};
use crate::prelude::*;

async fn calls(trio: &Trio, who: &Principal, number: usize) -> Vec<Answer> {
    let note = json!({"title": "a", "text": "b"});
    let call = |n: usize| trio.nodes[n % 3].invoke(who, "sample:create_note", note.clone());
    join_all((0..number).map(call)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_together_let_pass_exactly_what_the_plan_allows() {
    let Some(trio) = trio("limits", Builder::sample).await else { return };
    let org = org_with_time_left(&trio.nodes[0], &plan("70", "25")).await;
    let who = trio.nodes[0].service(&org, ALL_SCOPES);

    let called = calls(&trio, &who, 60).await;
    let asked = join_all((0..60).map(|n| trio.nodes[n % 3].get(&who, "/v1/mcps"))).await;

    assert_eq!((count(&called, 200), count(&called, 429)), (25, 35));
    assert_eq!((count(&asked, 200), count(&asked, 429)), (10, 50), "sixty were calls");
    for answer in called.iter().chain(&asked) {
        assert_framed(answer, "one of many");
        assert_enveloped(answer, "one of many");
    }
    for answer in called.iter().filter(|answer| answer.status == 200) {
        let left: i64 = answer.header("x-ratelimit-remaining").parse().unwrap();
        assert!((0..25).contains(&left), "{left}");
    }
    let resets: Vec<&str> = asked.iter().map(|it| it.header("x-ratelimit-reset")).collect();
    assert!(resets.windows(2).all(|pair| pair[0] == pair[1]), "one window: {resets:?}");
    let limited = called.iter().find(|answer| answer.status == 429).unwrap();
    has!(limited, "/error/details/resource": "invocations", "/error/details/executed": "no");
}

#[tokio::test(flavor = "multi_thread")]
async fn rates_of_policies_are_counted_over_all_nodes() {
    let Some(trio) = trio("rates", Builder::sample).await else { return };
    trio.common.policies(
        "@id(\"all\") permit (principal, action, resource);\n\
         @id(\"few\") @reason(\"Few a day\") @rate_limit(\"5/24h per=org\")\n\
         forbid (principal, action, resource);",
    );
    let who = trio.nodes[0].service(&trio.nodes[0].org("acme", &ENOUGH), ALL_SCOPES);
    trio.until_found(&who, "/v1/policies/few").await;

    let called = calls(&trio, &who, 30).await;

    assert_eq!((count(&called, 200), count(&called, 403)), (5, 25));
    let denied = called.iter().find(|answer| answer.status == 403).unwrap();
    assert_eq!(denied.at("/error/details/policy"), "few");
    assert!(denied.at("/error/details/retry_after").as_u64().unwrap() > 60, "{}", denied.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_counters_a_node_refuses_and_recovers_by_itself() {
    let Some(mut trio) = trio("uncounted", Builder::sample).await else {
        return;
    };
    let who = trio.nodes[0].service(&trio.nodes[0].org("acme", &ENOUGH), ALL_SCOPES);
    for node in &trio.nodes {
        assert_eq!(node.get(&who, "/v1/mcps").await.status, 200);
    }

    // Nothing comes back, and no connection ends: the first to ask finds out.
    trio.counter_wires[0].set(Condition::Frozen);
    let frozen = trio.nodes[0].get(&who, "/v1/mcps").await;
    let called = trio.nodes[0].invoke(&who, "sample:create_note", json!({})).await;

    for answer in [&frozen, &called] {
        assert_uncounted(answer);
        assert_enveloped(answer, "uncounted");
    }
    assert_eq!(called.at("/error/details/executed"), "no");
    let unready = trio.nodes[0].send(trio.nodes[0].request(Method::GET, "/readyz")).await;
    assert_uncounted(&unready);
    assert_eq!(trio.nodes[1].get(&who, "/v1/mcps").await.status, 200, "the others count on");
    trio.counter_wires[0].set(Condition::Whole);
    until(|| trio.nodes[0].get(&who, "/v1/mcps"), |answer| answer.status == 200).await;

    trio.redis.kill();
    for node in &trio.nodes {
        assert_uncounted(&node.get(&who, "/v1/mcps").await);
    }
    trio.redis.start_again();
    trio.until_found(&who, "/v1/mcps").await;
    for node in &trio.nodes {
        assert!(!node.log().contains(trio.redis.password()), "{}", node.log());
    }
}

/// Fails unless it says that limits cannot be counted, and when to come back.
fn assert_uncounted(answer: &Answer) {
    has!(answer, 503 "unavailable", "/error/details/reason": "limits");
    assert_framed(answer, "uncounted");
    assert!(answer.header("retry-after").parse::<u32>().unwrap() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_that_answer_late_are_waited_for_as_long_as_is_set() {
    let redis = RedisServer::start();
    let wire = Wire::to(redis.address().to_string()).await;
    let node = |more: &str| {
        let limits = format!("[limits]\nredis = {{ env = \"COUNTERS\" }}\n{more}");
        let url = redis.url_at(wire.address());
        gateway().env("COUNTERS", &url).config(&limits).sample().start()
    };
    let hasty = node("timeout_ms = 50");
    let patient = node("timeout_ms = 10000");
    let [in_haste, in_patience] =
        [&hasty, &patient].map(|it| it.service(&it.org("acme", &ENOUGH), ALL_SCOPES));
    until(|| hasty.get(&in_haste, "/v1/mcps"), |answer| answer.status == 200).await;

    wire.set(Condition::Late(Duration::from_millis(400)));

    assert_uncounted(&hasty.get(&in_haste, "/v1/mcps").await);
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}).to_string();
    let over_mcp = hasty.post(&in_haste, "/mcp", &message).await;
    assert_eq!(over_mcp.status, 503, "{over_mcp:?}");
    assert_framed(&over_mcp, "uncounted over MCP");
    let input = json!({"title": "a", "text": "b"});
    patient.invoke(&in_patience, "sample:create_note", input).await.ok();
    assert_eq!(patient.get(&in_patience, "/v1/mcps").await.status, 200);
    wire.set(Condition::Whole);
    until(|| hasty.get(&in_haste, "/v1/mcps"), |answer| answer.status == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_not_ready_while_the_counters_take_no_writes() {
    let redis = RedisServer::start();
    let limits = "[limits]\nredis = { env = \"COUNTERS\" }\n";
    let gateway = gateway().env("COUNTERS", &redis.url()).config(limits).start();
    let who = gateway.service(&gateway.org("acme", &ENOUGH), ALL_SCOPES);
    let ready = || gateway.send(gateway.request(Method::GET, "/readyz"));
    until(ready, |answer| answer.status == 200).await;
    for (broken, mended) in [
        ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
        ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
    ] {
        redis.tell(broken);

        until(ready, |answer| answer.status == 503).await;
        for _ in 0..100 {
            assert_uncounted(&gateway.get(&who, "/v1/mcps").await);
            assert_uncounted(&ready().await);
        }

        redis.tell(mended);
        until(ready, |answer| answer.status == 200).await;
        assert_eq!(gateway.get(&who, "/v1/mcps").await.status, 200);
    }
}
