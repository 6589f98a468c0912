//! Tasks: calls that wait for people, whose clients ask for the answer later.

mod attacks;
mod awaited;
mod endings;
mod lost;
mod provided;
mod sdk;

use super::{ask, ask_legacy, error, modern, own};
use crate::{
    approvals::{POLICIES, approver, asking_anew, asking_scene, decide},
    prelude::*,
};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// Milliseconds to decide within 15 minutes, to use the approval within others, and to ask for the answer.
const LIFE_MS: i64 = (2 * 15 * 60 + 24 * 60 * 60) * 1_000;

/// Capabilities of a client that asks for answers later.
fn tasks() -> Value {
    json!({"extensions": {(EXTENSION): {}}})
}

/// Calls a tool as a client of these capabilities.
async fn call_as(
    gateway: &Gateway,
    who: &Principal,
    path: &str,
    name: &str,
    input: Value,
    declared: &Value,
) -> Answer {
    let params = json!({
        "name": name, "arguments": input,
        "_meta": {"io.modelcontextprotocol/clientCapabilities": declared},
    });
    gateway.send(modern(gateway, who, path, "tools/call", &params)).await
}

/// Calls `up:pay` or another tool of the scene, and gives the answer with the task.
async fn begin_task(scene: &Scene, name: &str, input: Value) -> Answer {
    call_as(&scene.gateway, &scene.who, "/mcp/up", name, input, &tasks()).await
}

/// The same once an admin has approved the call.
async fn approved(scene: &Scene, admin: &Principal, name: &str, input: Value) -> Answer {
    let task = begin_task(scene, name, input).await;
    decide(&scene.gateway, admin, &approval_of(&task), "approve").await;
    task
}

fn id_of(answer: &Answer) -> String {
    let id = answer.at("/result/taskId").as_str();
    id.unwrap_or_else(|| panic!("no task: {}", answer.text)).to_owned()
}

/// The approval that a new task waits for.
fn approval_of(answer: &Answer) -> String {
    let id = own(answer, "error")["details"]["approval"]["id"].as_str();
    id.unwrap_or_else(|| panic!("no approval: {}", answer.text)).to_owned()
}

/// Asks about a task.
async fn about(gateway: &Gateway, who: &Principal, path: &str, method: &str, id: &str) -> Answer {
    let params = json!({
        "taskId": id, "_meta": {"io.modelcontextprotocol/clientCapabilities": tasks()},
    });
    let request = modern(gateway, who, path, method, &params).header("mcp-name", id);
    gateway.send(request).await
}

async fn got(scene: &Scene, id: &str) -> Answer {
    about(&scene.gateway, &scene.who, "/mcp/up", "tasks/get", id).await
}

async fn cancelled(scene: &Scene, id: &str) -> Answer {
    about(&scene.gateway, &scene.who, "/mcp/up", "tasks/cancel", id).await
}

fn status(answer: &Answer) -> &str {
    answer.at("/result/status").as_str().unwrap_or_else(|| panic!("no task: {}", answer.text))
}

fn disposition(answer: &Answer) -> &Value {
    &answer.at("/result/result/_meta")["io.modelcontextprotocol/tool-approval-disposition"]
}

/// Fails unless the answer was given before, and its event says so.
async fn assert_replayed(scene: &Scene, admin: &Principal, answer: &Answer) {
    assert_eq!(answer.header("idempotency-replayed"), "true", "{}", answer.text);
    let request = answer.header("x-request-id");
    let path = format!("/v1/audit/events?type=mcp.replayed&request_id={request}");
    let told = scene.gateway.get(admin, &path).await;
    assert_eq!(items(&told).len(), 1, "{}", told.text);
}

/// Fails unless a task ended without a call, in words and in `_meta`.
fn assert_not_called(answer: &Answer) {
    assert_eq!(status(answer), "completed", "{}", answer.text);
    assert_eq!(disposition(answer), "denied-not-executed", "{}", answer.text);
    assert_eq!(answer.at("/result/result/isError"), true, "{}", answer.text);
    let text = answer.at("/result/result/content/0/text").as_str().expect("a sentence");
    assert!(text.contains("The tool was not called"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_is_a_task_and_runs_once_it_is_approved() {
    // A call that waits is a task and runs once it is approved.
    let (scene, admin) = asking_scene().await;

    let begun = begin_task(&scene, "pay", json!({"amount": 7, "big": 1.50})).await.ok();

    let id = id_of(&begun);
    let approval = approval_of(&begun);
    let task = begun.at("/result");
    has!(task, "/resultType": "task", "/status": "working", "/ttlMs": LIFE_MS,
        "/pollIntervalMs": 5_000, "/createdAt": task["lastUpdatedAt"]);
    assert!(task["content"].is_null() && task["isError"].is_null(), "{task}");
    let message = task["statusMessage"].as_str().expect("a sentence");
    let url = format!("{}/approvals/{approval}", scene.gateway.url());
    for part in ["Payouts need a second person", &url] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(task["_meta"]["io.modelcontextprotocol/model-immediate-response"], message);
    let event = events(&scene.gateway, &scene.who, begun.header("x-request-id")).await.remove(0);
    assert_eq!(event["outcome"]["status"], "approval_pending");
    let waits = got(&scene, &id).await;
    assert_eq!((status(&waits), waits.at("/result/resultType")), ("working", &json!("complete")));
    assert_eq!(waits.at("/result/taskId"), &json!(id));
    assert!(scene.upstream.calls().is_empty());

    decide(&scene.gateway, &admin, &approval, "approve").await;
    let done = got(&scene, &id).await;

    assert_eq!(status(&done), "completed", "{}", done.text);
    assert_eq!(done.at("/result/resultType"), "complete");
    assert_eq!(done.at("/result/result/structuredContent"), &json!({"amount": 7, "big": 1.50}));
    assert_eq!(disposition(&done), "approved-executed");
    assert_eq!(done.at("/result/_meta/io.modelcontextprotocol~1serverInfo/name"), "portcullis");
    let event = events(&scene.gateway, &scene.who, done.header("x-request-id")).await.remove(0);
    assert_eq!(event["governance"]["approvals"][0]["id"], json!(approval));
    assert_eq!(event["governance"]["approvals"][0]["approvers"], json!([admin.id]));
    let own = &done.at("/result/result/_meta")["dev.portcullis/governance"];
    assert_eq!((&own["audit_event_id"], &own["decision"]), (&event["id"], &json!("allow")));
    let sent = scene.upstream.calls();
    assert_eq!(sent.len(), 1);
    assert!(!sent[0].message.to_string().contains("extensions"), "{}", sent[0].message);

    // Asking costs a request and the call that it makes an invocation.
    let (scene, admin) = asking_anew(scene);
    let task = begin_task(&scene, "pay", json!({})).await;
    let id = id_of(&task);

    let waits = got(&scene, &id).await;
    decide(&scene.gateway, &admin, &approval_of(&task), "approve").await;
    let done = got(&scene, &id).await;

    assert_eq!(waits.header("x-ratelimit-resource"), "requests");
    assert_eq!(done.header("x-ratelimit-resource"), "invocations");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_given_again_and_takes_one_use_whichever_way_the_tool_is_called() {
    // An answer that was given is given again and the tool is called once.
    let (scene, admin) = asking_scene().await;
    let first = begin_task(&scene, "pay", json!({"amount": 7})).await;
    let second = begin_task(&scene, "pay", json!({ "amount": 7 })).await;
    assert_eq!(approval_of(&first), approval_of(&second), "the same call is the same task");
    decide(&scene.gateway, &admin, &approval_of(&first), "approve").await;

    let done = got(&scene, &id_of(&first)).await;
    let again = [got(&scene, &id_of(&first)).await, got(&scene, &id_of(&second)).await];

    for answer in &again {
        assert_eq!(answer.at("/result/result/structuredContent"), &json!({"amount": 7}));
        assert_eq!(disposition(answer), "approved-executed");
        assert_replayed(&scene, &admin, answer).await;
    }
    assert_eq!(status(&done), "completed", "{}", done.text);
    assert_eq!(scene.upstream.calls().len(), 1);
    let later = begin_task(&scene, "pay", json!({"amount": 7})).await;
    assert_ne!(approval_of(&later), approval_of(&first), "a later call is another one");

    // A task takes one use and leaves the others to calls.
    let (scene, admin) = asking_anew(scene);
    let task = approved(&scene, &admin, "export", json!({"n": 1})).await;

    for _ in 0..3 {
        assert_eq!(disposition(&got(&scene, &id_of(&task)).await), "approved-executed");
    }
    assert_eq!(scene.upstream.calls().len(), 1);
    for calls in [2, 3] {
        let answer = begin_task(&scene, "export", json!({"n": 1})).await;
        assert_eq!(answer.at("/result/structuredContent"), &json!({"n": 1}), "{}", answer.text);
        assert_eq!(scene.upstream.calls().len(), calls);
    }

    // A call by the tool that calls others and one with progress are tasks too.
    let (scene, admin) = asking_anew(scene);
    let capabilities = json!({"io.modelcontextprotocol/clientCapabilities": tasks()});
    let mut meta = capabilities.clone();
    meta["progressToken"] = json!("p");
    let found = json!({"name": "call_tool", "_meta": capabilities,
        "arguments": {"id": "up:pay", "input": {"amount": 1}}});
    let watched = json!({"name": "up__pay", "_meta": meta, "arguments": {"amount": 2}});
    for (params, amount) in [(found, 1), (watched, 2)] {
        let request = modern(&scene.gateway, &scene.who, "/mcp", "tools/call", &params);
        let task = scene.gateway.send(request).await;
        let id = id_of(&task);
        decide(&scene.gateway, &admin, &approval_of(&task), "approve").await;

        let done = about(&scene.gateway, &scene.who, "/mcp", "tasks/get", &id).await;

        let got = done.at("/result/result/structuredContent");
        assert_eq!(got, &json!({"amount": amount}), "{}", done.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_declares_tasks_is_given_one_after_an_address_if_it_opens_any() {
    // Only a client of the stateless era that declares tasks is given one.
    let (scene, _) = asking_scene().await;
    let gateway = &scene.gateway;
    let who = &scene.who;

    let told = call_as(gateway, who, "/mcp/up", "pay", json!({}), &json!({})).await;
    assert_eq!(told.at("/result/isError"), true, "{}", told.text);
    let task = id_of(&begin_task(&scene, "pay", json!({})).await);
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({"taskId": task});
        let request = modern(gateway, who, "/mcp/up", method, &params).header("mcp-name", &task);
        let answer = gateway.send(request).await;
        assert_eq!(error(&answer), (400, -32021), "{}", answer.text);
        assert_eq!(answer.at("/error/data/requiredCapabilities"), &tasks());
        let old = ask_legacy(gateway, who, "/mcp/up", method, params).await;
        assert_eq!(error(&old), (200, -32601), "{}", old.text);
    }
    let heard = json!({"notifications": {"taskIds": [task]}});
    let listens = ask(gateway, who, "/mcp/up", "subscriptions/listen", heard).await;
    assert_eq!(error(&listens), (400, -32021), "{}", listens.text);
    let list = about(gateway, who, "/mcp/up", "tasks/list", &task).await;
    assert_eq!(error(&list), (404, -32601), "{}", list.text);
    let known = ask(gateway, who, "/mcp/up", "server/discover", json!({})).await;
    assert_eq!(known.at("/result/capabilities/extensions")[EXTENSION], json!({}));
    let params = json!({"name": "pay", "arguments": {}, "task": {"ttl": 60_000}});
    has!(ask_legacy(gateway, who, "/mcp/up", "tools/call", params).await, "/result/isError": true);

    // A client that opens addresses is shown one before its task.
    let scene = scene.anew();
    let mut declared = tasks();
    declared["elicitation"] = json!({"url": {}});
    let call = async |answers: Option<Value>| {
        let mut params = json!({
            "name": "pay", "arguments": {"amount": 7},
            "_meta": {"io.modelcontextprotocol/clientCapabilities": declared},
        });
        if let Some(answers) = answers {
            params["inputResponses"] = answers;
        }
        let request = modern(&scene.gateway, &scene.who, "/mcp/up", "tools/call", &params);
        scene.gateway.send(request).await
    };

    let asks = call(None).await;
    let task = call(Some(json!({"approval": {"action": "accept"}}))).await;

    assert_eq!(asks.at("/result/resultType"), "input_required", "{}", asks.text);
    assert_eq!(asks.at("/result/inputRequests/approval/params/mode"), "url");
    assert_eq!(task.at("/result/resultType"), "task", "{}", task.text);
    assert!(task.at("/result/inputRequests").is_null());
    assert_eq!(status(&got(&scene, &id_of(&task)).await), "working");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_takes_long_is_asked_for_again() {
    let held = Script::Held(json!({"content": [], "structuredContent": {"n": 1}}).to_string());
    let scene = scene_under(POLICIES, vec![tool("pay", held)]).await;
    let admin = approver(&scene.gateway, &scene.who.org);
    let task = approved(&scene, &admin, "pay", json!({})).await;
    let id = id_of(&task);

    let calling = got(&scene, &id).await;
    let still = got(&scene, &id).await;

    for answer in [&calling, &still] {
        assert_eq!(status(answer), "working", "{}", answer.text);
        assert_eq!(answer.at("/result/pollIntervalMs"), 1_000);
    }
    assert_eq!(cancelled(&scene, &id).await.at("/result/resultType"), "complete");
    scene.upstream.release();
    let done = until(|| got(&scene, &id), |it| status(it) != "working").await;
    assert_eq!(done.at("/result/result/structuredContent"), &json!({"n": 1}), "{}", done.text);
    assert_eq!(scene.upstream.calls().len(), 1, "what is under way is not given up");
}
