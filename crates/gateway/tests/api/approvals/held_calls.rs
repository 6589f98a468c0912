//! Calls over MCP whose caller opened the address of the approval: held until people decided, and never
//! asked a second time. With the Python SDK and `FastMCP`, which show the address again at once whenever
//! they are asked.

use tokio::process::Command;

use super::{asking_scene_with, decide};
use crate::{
    mcp::{clients::script, modern},
    prelude::*,
};

/// The longest that a client may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// Says over MCP what the user did with the address.
async fn answer_url(scene: &Scene, action: Value) -> Answer {
    let declared = json!({"elicitation": {"url": {}}});
    let params = json!({
        "name": "up__pay", "arguments": {"amount": 7},
        "inputResponses": {"approval": {"action": action}},
        "_meta": {"io.modelcontextprotocol/clientCapabilities": declared},
    });
    scene.gateway.send(modern(&scene.gateway, &scene.who, "/mcp", "tools/call", &params)).await
}

/// Output of a client in Python whose user always answers so.
async fn run_client(scene: &Scene, client: &str, action: &str) -> Value {
    let mut command = Command::new(servers().join("venv/bin/python"));
    command
        .arg(script("approving.py"))
        .args([client, action, "up__pay", r#"{"amount":7}"#])
        .env("TOKEN", &scene.who.token)
        .env("GATEWAY", scene.gateway.url())
        .kill_on_drop(true);
    let output = timeout(PATIENCE, command.output()).await.expect("an end in time");
    let output = output.expect("a client that starts");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Decides once so many calls were told to wait.
async fn decided_after(scene: &Scene, admin: &Principal, calls: usize, vote: &str) {
    eventually("calls that wait", async || {
        let waiting = list(&scene.gateway, admin, "outcome=approval_pending").await;
        (waiting.len() >= calls).then_some(())
    })
    .await;
    let listed = scene.gateway.get(admin, "/v1/approvals?status=pending").await;
    let id = items(&listed)[0]["id"].as_str().expect("an id").to_owned();
    decide(&scene.gateway, admin, &id, vote).await.ok();
}

/// Fails unless it is the refusal with the address.
fn assert_refused(scene: &Scene, result: &Value, what: &str) {
    assert_eq!(result["isError"], true, "{what}: {result}");
    assert!(result["resultType"] != "input_required", "{what}: {result}");
    let text = result["content"][0]["text"].as_str().expect("a sentence");
    assert!(text.contains(&format!("{}/approvals/apr_", scene.gateway.url())), "{what}: {text}");
    assert!(scene.upstream.calls().is_empty(), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_held_until_it_is_approved_and_python_clients_are_asked_once() {
    for client in ["sdk", "fastmcp"] {
        let (scene, admin) = asking_scene_with("").await;

        // The first is asked to open the address, the second is held.
        let decided = decided_after(&scene, &admin, 2, "approve");
        let (said, ()) = tokio::join!(run_client(&scene, client, "accept"), decided);

        assert_eq!(said["opened"].as_array().map(Vec::len), Some(1), "{client}: {said}");
        assert_eq!(said["result"]["structuredContent"], json!({"amount": 7}), "{client}: {said}");
        assert_eq!(scene.upstream.calls().len(), 1, "{client}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn python_clients_whose_user_does_not_want_to_are_told_the_address_at_once() {
    for (client, action) in [("sdk", "decline"), ("fastmcp", "cancel")] {
        let (scene, _) = asking_scene_with("").await;

        let said = run_client(&scene, client, action).await;

        assert_eq!(said["opened"].as_array().map(Vec::len), Some(1), "{client}: {said}");
        assert_refused(&scene, &said["result"], client);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_call_ends_with_the_address_and_without_a_second_question() {
    let (scene, _) = asking_scene_with("[mcp]\napproval_wait_seconds = 1").await;

    for action in [json!("accept"), json!("decline"), json!("cancel"), json!("?"), json!(7)] {
        let answer = answer_url(&scene, action.clone()).await;

        assert_refused(&scene, answer.at("/result"), &action.to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_call_is_told_of_a_denial() {
    let (scene, admin) = asking_scene_with("").await;

    let decided = decided_after(&scene, &admin, 1, "deny");
    let (answer, ()) = tokio::join!(answer_url(&scene, json!("accept")), decided);

    assert_eq!(answer.at("/result/isError"), true, "{}", answer.text);
    let details = &answer.at("/result/_meta")["dev.portcullis/error"]["details"];
    assert_eq!(details["approval"]["status"], "denied", "{}", answer.text);
    assert!(scene.upstream.calls().is_empty());
}
