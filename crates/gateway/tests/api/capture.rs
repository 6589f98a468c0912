//! Parts of a call's payload that its event keeps, by configuration and policies.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use portcullis_core::json::{canonical, sha256};

use crate::prelude::*;

const OPEN: &str = "@id(\"all\") permit (principal, action, resource);\n";

async fn echoing(config: &str, policies: &str) -> Scene {
    let tools = ["echo", "kept", "masked", "dropped"].map(|name| tool(name, Script::Echo));
    let policies = format!("{OPEN}{policies}");
    scene_with(tools.to_vec(), "", |it| it.config(config).policies(&policies)).await
}

/// The detached values, the commitments and the salts of the event of an answer.
async fn recorded_parts(scene: &Scene, answer: &Answer) -> (Value, Value, Value) {
    let mut found = events(&scene.gateway, &scene.who, &request_id(answer)).await;
    assert_eq!(found.len(), 1, "{}", answer.text);
    let mut event = found.remove(0);
    let salts = event["integrity"]["salts"].take();
    (event["detached"].take(), event["commitments"].take(), salts)
}

/// Fails unless the commitment opens with the salt and this value.
fn assert_opens(commitments: &Value, salts: &Value, member: &str, value: &Value) {
    let salt = STANDARD.decode(salts[member].as_str().expect("a salt")).expect("base64");
    let digest = sha256(&[&salt, canonical(value).as_bytes()]);
    assert_eq!(commitments[member], digest.as_str(), "{member}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_word_payloads_are_only_committed_to() {
    let scene = echoing("", "").await;
    let input = json!({"to": "ann@example.org", "n": 1});

    let answer = scene.invoke("echo", input.clone()).await;

    let (values, commitments, salts) = recorded_parts(&scene, &answer).await;
    for member in ["input", "output"] {
        assert!(values[member].is_null(), "{values}");
        assert_opens(&commitments, &salts, member, &input);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_say_what_is_kept_of_which_call() {
    let policies = ["kept\", \"full", "masked\", \"redacted", "dropped\", \"off"].map(|pair| {
        let (tool, mode) = pair.split_once("\", \"").expect("a pair");
        format!(
            "@id(\"log-{tool}\") @log(\"{mode}\") forbid (principal, \
             action == Mcp::Action::\"up:{tool}\", resource);\n"
        )
    });
    let scene = echoing("", &policies.concat()).await;
    let input = json!({"to": "ann@example.org", "n": 1});

    let full = scene.invoke("kept", input.clone()).await;
    let masked = scene.invoke("masked", input.clone()).await;
    let off = scene.invoke("dropped", input.clone()).await;

    for answer in [&full, &masked, &off] {
        has!("what is kept changes no answer"; answer, 200, "/result": input);
    }
    let (values, commitments, salts) = recorded_parts(&scene, &full).await;
    for member in ["input", "output"] {
        assert_eq!(values[member], input);
        assert_opens(&commitments, &salts, member, &input);
    }
    let (values, commitments, salts) = recorded_parts(&scene, &masked).await;
    for member in ["input", "output"] {
        let value = &values[member];
        assert_eq!(value["n"], 1, "{value}");
        assert!(!value.to_string().contains("ann@"), "{value}");
        assert_opens(&commitments, &salts, member, value);
    }
    let (values, commitments, salts) = recorded_parts(&scene, &off).await;
    for member in ["input", "output"] {
        assert!(values[member].is_null() && commitments.get(member).is_none(), "{commitments}");
        assert!(salts.get(member).is_none(), "{salts}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_speaks_where_policies_do_not_and_of_several_the_least_counts() {
    let policies = "@id(\"quiet\") @log(\"commit\") forbid (principal, \
                    action == Mcp::Action::\"up:masked\", resource);\n\
                    @id(\"loud\") @log(\"full\") forbid (principal, \
                    action == Mcp::Action::\"up:masked\", resource);\n\
                    @id(\"never\") forbid (principal, \
                    action == Mcp::Action::\"up:dropped\", resource);";
    let scene = echoing("[audit]\ncapture = \"full\"", policies).await;
    let input = json!({"n": 1});

    let full = scene.invoke("echo", input.clone()).await;
    let committed = scene.invoke("masked", input.clone()).await;
    let denied = scene.invoke("dropped", input.clone()).await;
    let long = scene.invoke("echo", json!({"text": "x".repeat(65 * 1024)})).await;

    assert_eq!(recorded_parts(&scene, &full).await.0["output"], input);
    let (values, commitments, _) = recorded_parts(&scene, &committed).await;
    assert!(values["input"].is_null() && commitments["input"].is_string(), "{values}");
    assert_eq!(denied.status, 403);
    assert_eq!(
        recorded_parts(&scene, &denied).await.0["input"],
        input,
        "what was denied is kept as well"
    );
    let (values, commitments, _) = recorded_parts(&scene, &long).await;
    assert!(values["input"].is_null() && commitments["input"].is_string(), "too long to be kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_off_not_even_a_refused_call_is_committed_to() {
    let scene = echoing("[audit]\ncapture = \"off\"", "").await;

    let answers = [scene.invoke("echo", json!({})).await, scene.invoke("nothing", json!({})).await];

    for answer in &answers {
        let (_, commitments, _) = recorded_parts(&scene, answer).await;
        assert!(commitments.get("input").is_none(), "{commitments}");
        assert!(commitments["source_ip"].is_string(), "{commitments}");
    }
}
