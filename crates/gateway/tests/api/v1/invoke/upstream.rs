//! Endings after the upstream was asked: what it did wrong is told in our words, and whether the
//! tool may have run.

use crate::{mcp::call, prelude::*};

/// A tool that answers with an error of these words.
fn saying(name: &str, words: &str) -> HostileTool {
    let error = json!({"code": -32603, "message": words}).to_string();
    let body = format!(r#"{{"jsonrpc":"2.0","id":{{id}},"error":{error}}}"#);
    tool(name, Script::Typed("application/json", body))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_words_of_a_server_reach_the_caller_and_the_log_masked_and_cut() {
    let card = "card 4111 1111 1111 1111 was declined";
    let tools = vec![
        saying("plain", "relation \"users\" does not exist"),
        saying("leaks", "cannot log in with Bearer opaque-key-of-ours"),
        saying("pays", card),
        saying("long", &"x".repeat(5_000)),
        saying("forges", "a\nERROR forged"),
        saying("hides", "a\u{202e}b"),
        saying("says_nothing", " "),
    ];
    let more = "auth = \"api_key\"\napi_key = { env = \"UP_KEY\" }";
    let policies = "@id(\"permit\") permit (principal, action, resource);\n\
        @id(\"no-cards\") @phase(\"response\") forbid (principal, action == Mcp::Action::\"up:pays\", \
        resource) when { context.dlp_output.count > 0 };";
    let change = |it: Builder| it.policies(policies).env("UP_KEY", "opaque-key-of-ours");
    let scene = scene_with(tools, more, change).await;
    let cut = "x".repeat(1_000);
    let told = [
        ("plain", Some("relation \"users\" does not exist")),
        ("leaks", Some("cannot log in with Bearer [REDACTED]")),
        ("pays", None),
        ("long", Some(cut.as_str())),
        ("forges", Some("a\nERROR forged")),
        ("hides", Some("ab")),
        ("says_nothing", None),
    ];

    for (tool, expected) in told {
        let answer = scene.invoke(tool, json!({})).await;
        let name = format!("up__{tool}");
        let message = call(&scene.gateway, &scene.who, "/mcp", &name, json!({})).await;

        scene.check(&answer, FAILED).await;
        let words = &answer.at("/error/details/upstream_message");
        assert_eq!(words.as_str(), expected, "{tool}: {}", answer.text);
        let sentence = message.at("/result/content/0/text").as_str().expect("a sentence");
        assert_eq!(sentence.contains("Its server says:"), expected.is_some(), "{sentence}");
        assert!(expected.is_none_or(|words| sentence.contains(words)), "{sentence}");
    }
    let log = scene.gateway.log();
    assert!(log.contains("relation \"users\" does not exist"), "{log}");
    assert!(log.contains("a ERROR forged"), "a line of a server begins none of ours: {log}");
    assert!(!log.contains("opaque-key-of-ours") && !log.contains("card 4111"), "{log}");
}
