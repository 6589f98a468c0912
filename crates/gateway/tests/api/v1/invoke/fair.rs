//! Orgs that share a node and its providers: whatever one of them does, the others are served.

use std::cell::Cell;

use axum::{Router, routing::post};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::prelude::*;

/// Input that makes the tool fail.
const POISON: &str = "poison";

/// A service account of another org.
fn other(scene: &Scene, name: &str) -> Principal {
    let org = scene.gateway.org(name, &ENOUGH);
    scene.gateway.service(&org, "mcps:read mcps:invoke")
}

fn reason(answer: &Answer) -> String {
    answer.at("/error/details/reason").as_str().unwrap_or_default().to_owned()
}

async fn call_of(scene: &Scene, who: &Principal, tool: &str, input: Value) -> Answer {
    scene.gateway.invoke(who, &format!("up:{tool}"), input).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_org_that_makes_a_tool_fail_stops_its_own_calls_only() {
    let tools = vec![tool("lookup", Script::EchoUnless(POISON))];
    let scene = scene(tools).await;
    let other = other(&scene, "other");

    let mut failed = 0;
    let mut refused = 0;
    for _ in 0..29 {
        let answer = scene.invoke("lookup", json!({"name": POISON})).await;
        match reason(&answer).as_str() {
            "http_5xx" => failed += 1,
            "circuit_open" => refused += 1,
            reason => panic!("{reason}: {}", answer.text),
        }
        let beside = call_of(&scene, &other, "lookup", json!({"name": "a"})).await;
        check(&scene.gateway, &other, &beside, SUCCESS).await;
    }

    assert!(failed >= 5 && refused >= 10, "{failed} failed, {refused} were refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_org_that_fills_a_provider_leaves_a_slot_to_the_others() {
    let done = json!({"content": [{"type": "text", "text": "done"}]}).to_string();
    let tools = vec![tool("held", Script::Held(done)), tool("echo", Script::Echo)];
    let scene = scene_with(tools, "max_in_flight = 4", |builder| builder).await;
    let other = other(&scene, "other");
    let first = call_of(&scene, &other, "echo", json!({})).await;
    assert_eq!(first.status, 200, "it is known that there is another org");

    let flood = join_all((0..8).map(|_| scene.invoke("held", json!({}))));
    let beside = async {
        scene.upstream.wait_for(4).await;
        let mut answers = Vec::new();
        for _ in 0..10 {
            answers.push(call_of(&scene, &other, "echo", json!({})).await);
        }
        scene.upstream.release();
        answers
    };
    let (flood, beside) = tokio::join!(flood, beside);

    assert!(beside.iter().all(|answer| answer.status == 200), "{beside:?}");
    let overloaded = flood.iter().filter(|answer| reason(answer) == "overloaded");
    assert_eq!((count(&flood, 200), overloaded.clone().count()), (3, 5), "{flood:?}");
    for turned_away in overloaded {
        scene.check(turned_away, OVERLOADED).await;
        assert!(!turned_away.header("retry-after").is_empty());
    }
}

/// A detector that does not answer to texts that mention this.
const UNANSWERED: &str = "hush";

/// Its address, and how many it answers nothing to.
async fn detector() -> (String, watch::Receiver<usize>) {
    let (unanswered, seen) = watch::channel(0);
    let answer = move |body: String| {
        let unanswered = unanswered.clone();
        async move {
            if body.contains(UNANSWERED) {
                unanswered.send_modify(|count| *count += 1);
                std::future::pending::<()>().await;
            }
            "{\"findings\":[]}"
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/scan", listener.local_addr().unwrap());
    let router = Router::new().route("/scan", post(answer));
    TaskTracker::new().spawn(async move { axum::serve(listener, router).await });
    (url, seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_detector_that_hangs_takes_no_place_from_another_org() {
    let (url, mut unanswered) = detector().await;
    let config = format!(
        "[dlp.external]\nurl = \"{url}\"\nallow_private = true\ntimeout_ms = 10000\n\
         output = false\n[dlp.external.detectors]\nperson_name = \"contact\"\n"
    );
    // One call is judged at a time, and no call may wait.
    let narrow = |it: Builder| it.config(&config).env("PORTCULLIS_SERVER__MAX_CALLS", "1");
    let scene = scene_with(vec![tool("echo", Script::Echo)], "", narrow).await;
    let other = other(&scene, "other");

    let ended = Cell::new(false);
    let hung = async {
        let answer = scene.invoke("echo", json!({"by": UNANSWERED})).await;
        ended.set(true);
        answer
    };
    let beside = async {
        unanswered.wait_for(|count| *count > 0).await.expect("the detector");
        let second = scene.invoke("echo", json!({"by": UNANSWERED})).await;
        let mut answers = Vec::new();
        for _ in 0..10 {
            answers.push(call_of(&scene, &other, "echo", json!({"by": "Ada"})).await);
        }
        (second, answers, !ended.get())
    };
    let (hung, (second, answers, hangs)) = tokio::join!(hung, beside);

    assert!(hangs, "the detector still hung");
    for answer in answers {
        check(&scene.gateway, &other, &answer, SUCCESS).await;
    }
    assert_eq!(reason(&second), "overloaded", "one of this org waits already: {}", second.text);
    scene.check(&second, Ending { decision: "", ..OVERLOADED }).await;
    assert_eq!(hung.code(), "policy_denied", "{}", hung.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn scans_and_large_calls_of_one_org_hold_up_no_other() {
    // A scan that takes long lets others have their turn.
    let scene = scene(vec![tool("echo", Script::Echo)]).await;
    let other = other(&scene, "other");
    // Names without a value that could be a secret: looked at, and never found.
    let costly = format!("{{\"input\":{{\"q\":\"{}\"}}}}", "secret-token:x1y2 ".repeat(25_000));
    // Large enough for the workers.
    let plain = json!({"q": "a sentence that holds nothing. ".repeat(1_200)});

    let mut costly = std::pin::pin!(scene.post("echo", &costly));
    let mut answered = 0;
    let costly = loop {
        tokio::select! {
            biased;
            answer = &mut costly => break answer,
            answer = call_of(&scene, &other, "echo", plain.clone()) => {
                assert_eq!(answer.status, 200, "{}", answer.text);
                answered += 1;
            }
        }
    };

    assert_eq!(costly.status, 200, "{:.200}", costly.text);
    assert!(answered >= 3, "{answered} calls of another org were answered meanwhile");

    // Large calls of one org hold up neither small ones nor health.
    let body = large();
    let ended = Cell::new(false);
    let flood = async {
        let large = join_all((0..6).map(|_| scene.post("echo", &body))).await;
        ended.set(true);
        large
    };
    let beside = async {
        let mut answered = 0;
        while !ended.get() {
            let call = call_of(&scene, &other, "echo", json!({"a": 1})).await;
            let health = scene.gateway.send(scene.gateway.request(Method::GET, "/healthz")).await;
            assert_eq!((call.status.as_u16(), health.status.as_u16()), (200, 200));
            answered += usize::from(!ended.get());
        }
        answered
    };

    let (large, answered) = tokio::join!(flood, beside);

    for answer in &large {
        let length = answer.at("/result/texts").as_array().map(Vec::len);
        assert_eq!((answer.status.as_u16(), length), (200, Some(TEXTS)), "{:.200}", answer.text);
    }
    assert!(answered >= 6, "{answered} small calls were answered before six large ones");
}

/// Texts of a large call: almost as many values and bytes as a body may have.
const TEXTS: usize = 15_000;

fn large() -> String {
    let text = "\"a sentence of the list, which is as long as the next one\"";
    let texts = vec![text; TEXTS].join(",");
    format!("{{\"input\":{{\"texts\":[{texts}]}}}}")
}
