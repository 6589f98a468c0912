//! Recorded before, recorded after: what crashes and a store that takes nothing leave behind.

mod agents;
mod full_disk;
mod keys;
mod postgres;
mod power;
mod promised;

use portcullis_testkit::unsignalled;

use crate::prelude::*;

const UNRECORDED: &str = "unavailable";

/// A gateway whose files can be made to grow no more.
struct Frail {
    gateway: Gateway,
    upstream: Hostile,
    who: Principal,
    _program: TempDir,
}

async fn frail(policies: Option<&str>) -> Frail {
    let done = json!({"content": [], "structuredContent": {"canary": "result"}}).to_string();
    let upstream =
        Hostile::start(vec![tool("echo", Script::Echo), tool("held", Script::Held(done))]).await;
    let program = tempfile::tempdir().expect("a folder");
    let binary = unsignalled(env!("CARGO_BIN_EXE_portcullis"), program.path());
    let builder = Builder::new(binary).http("up", &upstream.url(), "");
    let gateway = match policies {
        Some(policies) => builder.policies(policies).start(),
        None => builder.start(),
    };
    let who = gateway.service(&gateway.org("acme", &ENOUGH), "mcps:invoke audit:read");
    Frail { gateway, upstream, who, _program: program }
}

impl Frail {
    async fn ready(&self) -> Answer {
        self.gateway.send(self.gateway.request(Method::GET, "/readyz")).await
    }

    async fn echo(&self) -> Answer {
        self.gateway.invoke(&self.who, "up:echo", json!({})).await
    }

    /// Asks until it is ready again.
    async fn recovered(&self) {
        until(|| self.ready(), |answer| answer.status == 200).await;
    }
}

fn assert_unrecorded(answer: &Answer, executed: &str) {
    has!(answer, 503, "/error/code": UNRECORDED, "/error/details/reason": "audit",
        "/error/details/executed": executed);
    assert!(!answer.header("retry-after").is_empty());
    assert!(answer.at("/governance").is_null(), "{}", answer.text);
    assert!(answer.at("/meta/outcome").is_null(), "{}", answer.text);
    assert!(!answer.text.contains("canary"), "{}", answer.text);
}

/// Waits for the one event of a call that was answered 503.
async fn assert_recorded_late(scene: &Frail, answer: &Answer, executed: &str) {
    let found = eventually("the event of the call", async || {
        let found = events(&scene.gateway, &scene.who, &request_id(answer)).await;
        (!found.is_empty()).then_some(found)
    })
    .await;
    let told = json!({
        "status": "unavailable", "http_status": 503, "error_code": UNRECORDED,
        "executed": executed,
    });
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0]["outcome"], told);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_intent_nothing_is_sent() {
    let scene = frail(None).await;
    check(&scene.gateway, &scene.who, &scene.echo().await, SUCCESS).await;
    assert_eq!(scene.ready().await.status, 200);
    scene.gateway.fail_writes();

    let answers = [scene.echo().await, scene.echo().await];

    for answer in &answers {
        assert_unrecorded(answer, "no");
    }
    assert_eq!(scene.upstream.calls().len(), 1, "only the call before the fault was sent");
    until(|| scene.ready(), |answer| answer.status == 503).await;
    scene.gateway.allow_writes();
    scene.recovered().await;
    check(&scene.gateway, &scene.who, &scene.echo().await, SUCCESS).await;
    assert_eq!(scene.upstream.calls().len(), 2);
    for answer in &answers {
        assert_recorded_late(&scene, answer, "no").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_that_cannot_be_recorded_is_not_told() {
    let closed = "@id(\"secret-rule\") forbid (principal, action, resource);";
    let scene = frail(Some(closed)).await;
    assert_eq!(scene.echo().await.status, 403);
    scene.gateway.fail_writes();

    let denied = scene.echo().await;
    let unknown = scene.gateway.invoke(&scene.who, "up:nothing", json!({})).await;

    for answer in [&denied, &unknown] {
        assert_unrecorded(answer, "no");
        assert!(!answer.text.contains("secret-rule"), "{}", answer.text);
    }
    scene.gateway.allow_writes();
    scene.recovered().await;
    assert_eq!(scene.echo().await.status, 403);
    for answer in [&denied, &unknown] {
        assert_recorded_late(&scene, answer, "no").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_whose_outcome_cannot_be_recorded_is_withheld_and_recorded_later() {
    let scene = frail(None).await;
    let ending = async {
        scene.upstream.wait_for(1).await;
        scene.gateway.fail_writes();
        scene.upstream.release();
    };

    let call = scene.gateway.invoke(&scene.who, "up:held", json!({}));
    let (answer, ()) = tokio::join!(call, ending);

    assert_unrecorded(&answer, "yes");
    scene.gateway.allow_writes();
    scene.recovered().await;
    assert_recorded_late(&scene, &answer, "yes").await;
    let open = list(&scene.gateway, &scene.who, "outcome=unknown").await;
    assert!(open.is_empty(), "{open:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_cut_off_by_a_crash_is_closed_once_as_unknown() {
    let upstream = Hostile::start(vec![tool("slow", Script::Silence), tool("echo", Script::Echo)]);
    let upstream = upstream.await;
    let (mut gateway, who) = serve_as("mcps:invoke", gateway().http("up", &upstream.url(), ""));
    let before = gateway.invoke(&who, "up:echo", json!({})).await;
    let slow = gateway.json(&who, "/v1/mcps/up:slow/invoke", r#"{"input":{"limit":10}}"#).send();
    let cut = async {
        upstream.wait_for(2).await;
        gateway.kill();
    };
    let (answer, ()) = tokio::join!(slow, cut);
    assert!(answer.is_err(), "an answer from the dead: {answer:?}");

    gateway.start();

    let found = list(&gateway, &who, "outcome=unknown").await;
    let [event] = found.as_slice() else { panic!("one event: {found:#?}") };
    let told = json!({
        "status": "unknown", "http_status": 0, "error_code": null, "executed": "unknown",
    });
    has!(event, "/outcome": told, "/target/id": "up:slow", "/governance/decision": "allow",
        "/actor/id": who.id.as_str());
    assert!(event["commitments"]["input"].is_string(), "{event}");
    check(&gateway, &who, &before, SUCCESS).await;
    let all = list(&gateway, &who, "").await;
    gateway.kill();
    gateway.start();
    assert_eq!(list(&gateway, &who, "").await, all, "another start closes nothing more");
    assert_eq!(all.len(), 2);
    let after = gateway.invoke(&who, "up:echo", json!({})).await;
    check(&gateway, &who, &after, SUCCESS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_is_recorded_even_if_the_node_dies_at_once() {
    let upstream = Hostile::start(vec![tool("echo", Script::Echo)]).await;
    let (mut gateway, who) = serve_as("mcps:invoke", gateway().http("up", &upstream.url(), ""));
    let calls = (0..32).map(|number| {
        let tool = if number % 2 == 0 { "up:echo" } else { "up:nothing" };
        gateway.invoke(&who, tool, json!({"number": number}))
    });
    let answers = join_all(calls).await;
    gateway.kill();

    gateway.start();

    let mut places: Vec<Value> = Vec::new();
    for (number, answer) in answers.iter().enumerate() {
        let ending = if number % 2 == 0 { SUCCESS } else { NOT_FOUND };
        let event = check(&gateway, &who, answer, ending).await;
        assert_eq!(event["integrity"]["sealed"], true);
        places.push(event["sequence"].clone());
    }
    places.sort_by_key(Value::as_u64);
    places.dedup();
    assert_eq!(places.len(), answers.len());
}
