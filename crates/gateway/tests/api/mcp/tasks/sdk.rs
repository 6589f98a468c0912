//! An official SDK client that declares tasks: the Rust SDK.

use rmcp::{
    RoleClient,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientCapabilities,
        ClientConfig, CreateTaskResult, GetTaskParams, Implementation, TaskPayload, TaskStatus,
    },
    service::RunningService,
};

use crate::{
    approvals::{asking_scene, decide},
    mcp::clients::{rust_sdk, stateless},
    prelude::*,
};

type Client = RunningService<RoleClient, ClientConfig>;

async fn client(scene: &Scene) -> Client {
    let url = format!("{}/mcp", scene.gateway.url());
    let capabilities = ClientCapabilities::builder().enable_tasks().build();
    let about = ClientConfig::new(capabilities, Implementation::new("test", "1"));
    rust_sdk(about, &url, &scene.who.token, stateless()).await
}

/// Calls the tool, which waits for people.
async fn begin_task(client: &Client, amount: u32) -> CreateTaskResult {
    let input = json!({ "amount": amount }).as_object().cloned().expect("an object");
    let params = CallToolRequestParams::new("up__pay").with_arguments(input);
    let answer = client.call_tool_once(params).await.expect("an answer");
    let CallToolResponse::Task(task) = answer else { panic!("no task: {answer:?}") };
    task
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_sdk_asks_for_a_call_until_it_is_approved() {
    let (scene, admin) = asking_scene().await;
    let client = client(&scene).await;
    assert!(client.peer_info().is_some_and(|server| server.capabilities.supports_tasks()));

    let task = begin_task(&client, 7).await.task;
    let id = task.task_id.clone();
    assert_eq!(task.status, TaskStatus::Working);
    let waits = client.get_task(GetTaskParams::new(&id)).await.expect("its state");
    assert_eq!(waits.task.status(), TaskStatus::Working);
    let pending = scene.gateway.get(&admin, "/v1/approvals?status=pending").await;
    let approval = items(&pending)[0]["id"].as_str().expect("an id").to_owned();
    decide(&scene.gateway, &admin, &approval, "approve").await;

    let done = eventually("an end of the task", async || {
        let seen = client.get_task(GetTaskParams::new(&id)).await.expect("its state");
        seen.task.status().is_terminal().then_some(seen)
    })
    .await;

    let TaskPayload::Completed { result } = &done.task.payload else { panic!("{done:?}") };
    assert_eq!(result["structuredContent"], json!({"amount": 7}), "{done:?}");
    assert_eq!(scene.upstream.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_sdk_gives_a_call_up() {
    let (scene, _) = asking_scene().await;
    let client = client(&scene).await;
    let id = begin_task(&client, 8).await.task.task_id;

    client.cancel_task(CancelTaskParams::new(&id)).await.expect("an acknowledgement");

    let state = client.get_task(GetTaskParams::new(&id)).await.expect("its state");
    assert_eq!(state.task.status(), TaskStatus::Cancelled);
    assert!(scene.upstream.calls().is_empty());
    let unknown = client.get_task(GetTaskParams::new("tsk_0")).await;
    assert!(unknown.is_err_and(|error| error.to_string().contains("no such task")));
}
