//! The script that needs no trust in our binary: an approval is bound to its call.

use std::process::Command;

use super::{asking_scene, decide, pending_approval};
use crate::prelude::*;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verify_audit.py");

/// Exit code of the script, and what it says.
fn run(arguments: &[&str]) -> (i32, String) {
    let output = Command::new("python3").arg(SCRIPT).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn the_digest_of_a_known_call_is_computed() {
    let (code, told) = run(&["self-test"]);

    assert_eq!(code, 0, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_verified_offline_against_the_event_of_its_call() {
    let (scene, admin) = asking_scene().await;
    let input = json!({"to": "DE", "amount": 7, "ratio": 1e3});
    let id = pending_approval(&scene.invoke("pay", input.clone()).await);
    decide(&scene.gateway, &admin, &id, "approve").await;
    let ran = scene.invoke("pay", input).await;
    let event = format!("/v1/audit/events/{}", ran.event_id());
    let event = scene.gateway.get(&admin, &event).await;
    let approval = scene.gateway.get(&admin, &format!("/v1/approvals/{id}")).await;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let verify = |approval: &str, event: &Answer| {
        let approval = write("approval", approval);
        let event = write("event", &event.text);
        run(&["approval", &approval, &event])
    };

    let (code, told) = verify(&approval.text, &event);
    let other: Value = serde_json::from_str(&approval.text.replace("\"DE\"", "\"FR\"")).unwrap();
    let (changed, why) = verify(&other.to_string(), &event);

    assert_eq!(code, 0, "{told}\n{}\n{}", approval.text, event.text);
    assert!(told.contains(approval.at("/data/digest").as_str().unwrap()), "{told}");
    assert_eq!(changed, 10, "{why}");
}
