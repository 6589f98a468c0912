//! `POST /v1/policies/simulate` with drafts that take long: time, slots, clients that leave, and the end
//! of the node.

use super::{PATH, POLICIES, call, call_with, decisions, simulate};
use crate::prelude::*;

/// A draft of so many policies that concern every tool.
fn draft(policies: usize) -> Value {
    let mut texts = vec![String::new()];
    for number in 0..policies {
        if texts.last().unwrap().len() > 60_000 {
            texts.push(String::new());
        }
        let policy = format!("@id(\"{number}\")permit(principal,action,resource);");
        texts.last_mut().unwrap().push_str(&policy);
    }
    let upsert: Vec<Value> = texts.iter().map(|text| json!({"source": text})).collect();
    call_with(5, "policies", json!({"upsert": upsert}))
}

/// The same of 18,000, which takes so many milliseconds at most.
fn slow(timeout_ms: u32) -> Value {
    let mut body = draft(18_000);
    body["options"] = json!({"timeout_ms": timeout_ms});
    body
}

/// Number of threads that compute something long.
fn long_work(gateway: &Gateway) -> usize {
    let threads = fs::read_dir(format!("/proc/{}/task", gateway.pid())).unwrap();
    let names = threads.filter_map(|it| fs::read_to_string(it.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "aside").count()
}

/// Waits until so many threads compute something long.
async fn until_long_work(gateway: &Gateway, count: usize) {
    let reached = async {
        while long_work(gateway) != count {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, reached).await.expect("other long work");
}

/// Begins a simulation that takes a minute; the client leaves when the set is dropped.
fn begin_simulation(gateway: &Gateway, who: &Principal, body: &Value) -> JoinSet<Option<u16>> {
    let request = gateway.json(who, PATH, &body.to_string());
    let mut running = JoinSet::new();
    running.spawn(async move { request.send().await.ok().map(|it| it.status().as_u16()) });
    running
}

#[tokio::test(flavor = "multi_thread")]
async fn long_work_ends_with_its_client_its_time_and_its_node() {
    // A client that leaves stops its simulation and only then frees its slot.
    let (mut gateway, who) = serve(gateway().sample().policies(POLICIES));
    let minute = slow(60_000);
    let hurried = call_with(5, "options", json!({"timeout_ms": 50}));

    // An org alone has both slots; a third simulation waits as long as its time lasts.
    let left =
        [begin_simulation(&gateway, &who, &minute), begin_simulation(&gateway, &who, &minute)];
    let refused = eventually("a simulation that finds no slot", async || {
        let answer = simulate(&gateway, &who, &hurried).await;
        (answer.status != 200).then_some(answer)
    })
    .await;
    drop(left);
    until_long_work(&gateway, 0).await;
    let answered = simulate(&gateway, &who, &call(5)).await;

    assert_eq!(refused.status, 503, "{}", refused.text);
    assert_eq!(decisions(&answered), ["allow base"]);

    // The time limit covers the loading of a draft.
    let late = simulate(&gateway, &who, &slow(300)).await;

    has!(late, 400, "/error/details/violations/0/path": "/options/timeout_ms");
    until_long_work(&gateway, 0).await;

    // Sigterm is obeyed while a large draft is loaded.
    let slow = slow(60_000);
    assert!(slow.to_string().len() > 850_000);
    let mut running = begin_simulation(&gateway, &who, &slow);
    until_long_work(&gateway, 1).await;

    let code = gateway.stop();

    assert_eq!(code, Some(0));
    assert_eq!(running.join_next().await.unwrap().unwrap(), Some(503));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_of_too_many_checks_is_refused_with_the_figures() {
    let tools: Vec<_> = (0..300).map(|n| tool(&format!("t{n}"), Script::Echo)).collect();
    let upstream = Hostile::start(tools).await;
    let all = "@id(\"all\") permit (principal, action, resource);";
    let (gateway, who) = serve(gateway().policies(all).http("up", &upstream.url(), ""));
    let simulated = async |policies: usize| {
        let policies = draft(policies)["policies"].clone();
        let call = json!({"tool": "up:t0", "input": {}, "policies": policies});
        simulate(&gateway, &who, &call).await
    };

    let refused = simulated(700).await;
    simulated(3).await.ok();

    assert_eq!(refused.status, 400, "{}", refused.text);
    let violation = refused.at("/error/details/violations/0");
    assert_eq!(violation["path"], "/policies");
    let message = violation["message"].as_str().unwrap();
    assert!(message.contains("700 policies against 300 tools"), "{message}");
    assert!(message.contains("more than 200000"), "{message}");
}
