//! Idempotency keys when the node dies or its store takes nothing: a key never reaches its tool
//! twice, and is free again where nothing was sent.

use super::{Frail, assert_recorded_late, assert_unrecorded, frail};
use crate::prelude::*;

async fn keyed(gateway: &Gateway, who: &Principal, tool: &str) -> Answer {
    gateway.invoke_keyed(who, &format!("up:{tool}"), "k", &json!({"limit": 10})).await
}

impl Frail {
    async fn keyed(&self, tool: &str) -> Answer {
        keyed(&self.gateway, &self.who, tool).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_call_cut_off_by_a_crash_says_that_nobody_knows() {
    let upstream = Hostile::start(vec![tool("slow", Script::Silence)]).await;
    let (mut gateway, who) = serve_as("mcps:invoke", gateway().http("up", &upstream.url(), ""));
    tokio::select! {
        answer = keyed(&gateway, &who, "slow") => panic!("the tool is silent: {answer:?}"),
        () = upstream.wait_for(1) => {}
    }
    gateway.kill();

    gateway.start();

    let answers = [keyed(&gateway, &who, "slow").await, keyed(&gateway, &who, "slow").await];
    let found = list(&gateway, &who, "outcome=unknown").await;
    let [event] = found.as_slice() else { panic!("one event: {found:#?}") };
    assert_eq!(event["request"]["idempotent"], true);
    for answer in answers {
        assert_eq!(answer.refusal(), (504, "upstream_timeout"));
        let details = json!({"provider": "up", "timeout_ms": 30_000, "executed": "unknown"});
        has!(answer, "/error/details": details, "/meta/outcome": "unknown");
        assert_eq!(answer.header("idempotency-replayed"), "true");
        assert_eq!(answer.event_id(), event["id"].as_str().expect("an id"));
        assert_eq!(answer.at("/governance/decision"), "allow");
    }
    assert_eq!(upstream.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_is_answered_again_after_a_crash() {
    let upstream = Hostile::start(vec![tool("echo", Script::Echo)]).await;
    let (mut gateway, who) = serve_as("mcps:invoke", gateway().http("up", &upstream.url(), ""));
    let first = keyed(&gateway, &who, "echo").await;
    gateway.kill();

    gateway.start();
    let again = keyed(&gateway, &who, "echo").await;

    check(&gateway, &who, &first, SUCCESS).await;
    assert_eq!(again.header("idempotency-replayed"), "true", "{}", again.text);
    assert_eq!((again.at("/result"), again.event_id()), (first.at("/result"), first.event_id()));
    assert_eq!(upstream.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_intent_cannot_be_recorded_stays_free() {
    let scene = frail(None).await;
    assert_eq!(scene.echo().await.status, 200);
    scene.gateway.fail_writes();

    let refused = scene.keyed("echo").await;

    assert_unrecorded(&refused, "no");
    scene.gateway.allow_writes();
    scene.recovered().await;
    let answer = until(|| scene.keyed("echo"), |it| it.status == 200).await;
    check(&scene.gateway, &scene.who, &answer, SUCCESS).await;
    assert_recorded_late(&scene, &refused, "no").await;
    assert_eq!(scene.upstream.calls().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_outcome_could_not_be_recorded_says_so_and_reaches_no_tool_again() {
    let scene = frail(None).await;
    let ending = async {
        scene.upstream.wait_for(1).await;
        scene.gateway.fail_writes();
        scene.upstream.release();
    };
    let (answer, ()) = tokio::join!(scene.keyed("held"), ending);
    assert_unrecorded(&answer, "yes");

    let meanwhile = scene.keyed("held").await;
    scene.gateway.allow_writes();
    scene.recovered().await;
    let again = until(|| scene.keyed("held"), |it| it.code() == "unavailable").await;

    // The store can be read: the key is under way, and that refusal cannot be recorded.
    assert_unrecorded(&meanwhile, "no");
    has!(again, 503, "/error/details/executed": "yes");
    assert_recorded_late(&scene, &answer, "yes").await;
    assert_eq!(scene.upstream.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_cannot_be_recorded_is_not_given() {
    let scene = frail(None).await;
    scene.upstream.release();
    let first = scene.keyed("held").await.ok();
    scene.gateway.fail_writes();

    let refused = scene.keyed("held").await;

    assert_unrecorded(&refused, "yes");
    scene.gateway.allow_writes();
    scene.recovered().await;
    let again = scene.keyed("held").await;
    assert_eq!(again.header("idempotency-replayed"), "true", "{}", again.text);
    assert_eq!(again.at("/result"), first.at("/result"));
}
