//! An official SDK client that opens addresses for its user.

use tokio::process::Command;

use super::asking_scene;
use crate::{
    mcp::clients::{node, script},
    prelude::*,
};

/// The longest that a client may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_sdk_opens_the_address_and_calls_again_once_it_is_approved() {
    let (scene, admin) = asking_scene().await;
    let mut command = Command::new(node());
    command
        .arg(script("approving.mjs"))
        .args(["up__pay", r#"{"amount":7}"#])
        .env("TOKEN", &scene.who.token)
        .env("APPROVER", &admin.token)
        .env("GATEWAY", scene.gateway.url())
        .env("PORTCULLIS_TEST_SERVERS", servers())
        .kill_on_drop(true);

    let output = timeout(PATIENCE, command.output()).await.expect("an end in time");

    let output = output.expect("a client that starts");
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let opened = said["opened"].as_array().expect("a list");
    assert_eq!(opened.len(), 1, "{said}");
    assert_eq!((&opened[0]["mode"], &opened[0]["status"]), (&json!("url"), &json!(200)), "{said}");
    let page = opened[0]["text"].as_str().expect("a page");
    assert!(page.contains("approvals:decide") && !page.contains("amount"), "{page}");
    assert_eq!(said["result"]["structuredContent"], json!({"amount": 7}), "{said}");
    assert_eq!(scene.upstream.calls().len(), 1);
}
