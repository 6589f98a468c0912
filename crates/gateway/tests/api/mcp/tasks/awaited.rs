//! Tasks of providers whose end is waited for: by the gateway, by people, and over a stream.

use super::{
    EXTENSION, approved, call_as, error, id_of,
    provided::{EXPOSED, POLICIES, ask_with, asking, begin, done, ended, job, serving},
    status, tasks,
};
use crate::{
    approvals::{self, approver, decide},
    mcp::{own, streams},
    prelude::*,
};

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_waits_for_tasks_on_behalf_of_those_who_cannot() {
    let steps = [("working", json!({})), ("completed", done("Ask ada@acme.example."))];
    let failed = json!({"error": {"code": -32603, "message": "It broke."}});
    let jobs = vec![
        job("report", &steps),
        job("fails", &[("failed", failed)]),
        job("asks", &[("input_required", asking("Which?"))]),
        job("never", &[("working", json!({}))]),
    ];
    let tools = jobs.into_iter().flatten().collect();
    let more = format!("{EXPOSED}\ntimeout_seconds = 2");
    let scene = scene_with(tools, &more, |builder| builder.policies(POLICIES)).await;

    let answer = scene.invoke("report", json!({})).await;
    scene.check(&answer, SUCCESS).await;
    has!(answer, 200, "/result/content/0/text": "Ask [REDACTED:email].");
    assert_eq!(scene.upstream.count("#report"), 2);
    for (name, ending, given_up) in
        [("fails", FAILED, 0), ("asks", FAILED, 1), ("never", TIMED_OUT, 1)]
    {
        let answer = scene.invoke(name, json!({})).await;
        scene.check(&answer, ending).await;
        assert_eq!(scene.upstream.count(&format!("cancel#{name}")), given_up, "{name}");
    }
    assert!(ended(&scene).await.is_empty());
    // A client that declares no tasks is given none, and its server is told of none.
    scene.upstream.forget();
    let sync =
        call_as(&scene.gateway, &scene.who, "/mcp/up", "report", json!({}), &json!({})).await;
    has!(own(&sync, "error"), "/details/reason": "interaction_required");
    assert!(
        !scene.upstream.calls()[0].body.contains(EXTENSION) && scene.upstream.calls().len() == 1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn people_are_asked_about_a_call_and_about_answers_to_its_task() {
    let tools = job("pay", &[("completed", done("Paid."))]).to_vec();
    let scene = scene_with(tools, EXPOSED, |builder| builder.policies(approvals::POLICIES)).await;
    let admin = approver(&scene.gateway, &scene.who.org);
    let waiting = approved(&scene, &admin, "pay", json!({"n": 1})).await;

    let paid = super::got(&scene, &id_of(&waiting)).await;

    has!(paid, 200, "/result/status": "completed", "/result/result/content/0/text": "Paid.");
    let asked: Vec<_> = scene.upstream.calls().iter().map(|it| it.tool.clone()).collect();
    assert_eq!(asked, ["pay", "#pay"]);
    // A policy that came later asks about answers, and not again about the call.
    let jobs = vec![job("report", &[("input_required", asking("Which?"))])];
    let scene = serving(jobs).await;
    let admin = approver(&scene.gateway, &scene.who.org);
    let id = id_of(&begin(&scene, "report", json!({})).await);
    let asks = r#"@id("ask") @require_approval("approvers=finance ttl=15m uses=1")
        forbid (principal, action == Mcp::Action::"up:report", resource);"#;
    fs::write(scene.gateway.folder().join("policies/test.cedar"), format!("{POLICIES}{asks}"))
        .expect("a policy file");
    scene.gateway.hang_up();
    let is_asked =
        |it: &Answer| it.at("/result/taskId").as_str().is_some_and(|it| it.starts_with("tsk_"));
    until(|| begin(&scene, "report", json!({})), is_asked).await;
    scene.upstream.forget();

    let declared = json!({"extensions": {(EXTENSION): {}}, "elicitation": {}});
    let answers = json!({"inputResponses": {"q": {"action": "accept"}}});
    let state = ask_with(&scene, "tasks/get", &id, &json!({}), &declared).await;
    assert_eq!(status(&state), "input_required");
    let update = async || ask_with(&scene, "tasks/update", &id, &answers, &declared).await;
    let waits = update().await;
    assert_eq!(error(&waits).1, 403, "{}", waits.text);
    let details = waits.at("/error/data/dev.portcullis~1error/details/approval/id");
    decide(&scene.gateway, &admin, details.as_str().expect("an approval"), "approve").await;
    assert_eq!(scene.upstream.count("update#report"), 0);
    has!(update().await, 200, "/result/resultType": "complete");
    assert_eq!(error(&update().await).1, 403);
    assert_eq!(scene.upstream.count("update#report"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_tells_what_becomes_of_tasks() {
    let steps = [("working", json!({})), ("completed", done("Ask ada@acme.example."))];
    let scene = serving(vec![job("report", &steps)]).await;
    let id = id_of(&begin(&scene, "report", json!({})).await);
    let params = json!({
        "notifications": {"taskIds": [id, "ptk_0", 7], "toolsListChanged": false},
        "_meta": {"io.modelcontextprotocol/clientCapabilities": tasks()},
    });
    let asked =
        super::modern(&scene.gateway, &scene.who, "/mcp/up", "subscriptions/listen", &params);
    let mut stream = asked.send().await.expect("a stream");
    let mut next = async || streams::next(&mut stream).await.expect("news");

    has!(next().await, "/method": "notifications/subscriptions/acknowledged",
        "/params/notifications": {"taskIds": [id]});
    has!(next().await, "/method": "notifications/tasks", "/params/status": "working",
        "/params/taskId": id.as_str(), "/params/_meta/io.modelcontextprotocol~1subscriptionId": 7);
    has!(next().await, "/params/status": "completed",
        "/params/result/content/0/text": "Ask [REDACTED:email].");
    assert_eq!(scene.upstream.count("#report"), 2);
    assert_eq!(ended(&scene).await.len(), 1);
    let undeclared = json!({"notifications": {"taskIds": [id]}});
    let refused =
        super::modern(&scene.gateway, &scene.who, "/mcp/up", "subscriptions/listen", &undeclared);
    assert_eq!(error(&scene.gateway.send(refused).await), (400, -32021));
}
