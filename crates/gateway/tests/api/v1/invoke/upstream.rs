//! Endings after the upstream was asked: what it did wrong is told in our words, and whether the
//! tool may have run.

use crate::{mcp::call, prelude::*};

#[tokio::test(flavor = "multi_thread")]
async fn each_failure_of_an_upstream_has_its_reason() {
    let another = r#"{"jsonrpc":"2.0","id":0,"result":{"content":[]}}"#;
    let conversation = json!({"resultType": "input_required", "inputRequests": {}});
    let tools = vec![
        tool("closes", Script::CloseAtOnce),
        tool("breaks_off", Script::CloseInBody),
        tool("garbles", Script::Body("no JSON".to_owned())),
        tool("doubles", Script::Result(r#"{"content":[],"content":[]}"#.to_owned())),
        tool("mistypes", Script::Result(r#"{"content":"text"}"#.to_owned())),
        tool("answers_another", Script::Body(another.to_owned())),
        giving("asks_back", &conversation),
        tool("too_large", Script::Large((4 << 20) + 1)),
        tool("endless", Script::Endless),
        tool("fails", Script::Status(500)),
        tool("is_busy", Script::Status(503)),
        tool("errs", Script::Rpc(-32603)),
    ];
    let scene = scene(tools).await;
    let cases = [
        ("closes", "connection_reset", "unknown"),
        ("breaks_off", "connection_reset", "unknown"),
        ("garbles", "protocol_error", "unknown"),
        ("doubles", "protocol_error", "unknown"),
        ("mistypes", "protocol_error", "unknown"),
        ("answers_another", "protocol_error", "unknown"),
        ("asks_back", "interaction_required", "unknown"),
        ("too_large", "response_too_large", "yes"),
        ("endless", "response_too_large", "yes"),
        ("fails", "http_5xx", "unknown"),
        ("is_busy", "http_5xx", "unknown"),
        ("errs", "jsonrpc_error", "unknown"),
    ];

    for (tool, reason, executed) in cases {
        let answer = scene.invoke(tool, json!({"tool": tool})).await;

        let event = scene.check(&answer, Ending { executed, ..FAILED }).await;
        has!("{tool}"; answer, "/error/details/reason": reason, "/error/details/provider": "up");
        assert!(!answer.text.contains("hunter2"), "{tool}: {}", answer.text);
        assert_eq!(scene.upstream.count(tool), 1, "{tool} was called once, never again");
        assert!(event["detached"]["output"].is_null(), "{event}");
    }
    assert!(!scene.gateway.log().contains("hunter2"), "{}", scene.gateway.log());
}

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

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_is_gone_cannot_have_run_anything() {
    let mut scene = scene(vec![tool("echo", Script::Echo)]).await;
    scene.upstream.stop();

    let answer = scene.invoke("echo", json!({})).await;

    scene.check(&answer, Ending { executed: "no", ..FAILED }).await;
    assert_eq!(answer.at("/error/details/reason"), "connect_failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_beyond_those_in_flight_is_turned_away() {
    let done = json!({"content": []}).to_string();
    let tools = vec![tool("held", Script::Held(done)), tool("echo", Script::Echo)];
    let scene = scene_with(tools, "max_in_flight = 1", |builder| builder).await;
    let meanwhile = async {
        scene.upstream.wait_for(1).await;
        let turned_away = scene.invoke("echo", json!({})).await;
        scene.upstream.release();
        turned_away
    };

    let (held, turned_away) = tokio::join!(scene.invoke("held", json!({})), meanwhile);

    scene.check(&turned_away, OVERLOADED).await;
    assert_eq!(turned_away.at("/error/details/reason"), "overloaded");
    assert!(!turned_away.header("retry-after").is_empty());
    assert_eq!(scene.upstream.count("echo"), 0);
    scene.check(&held, SUCCESS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_is_silent_may_have_run_it() {
    let tools = vec![tool("silent", Script::Silence)];
    let scene = scene_with(tools, "timeout_seconds = 1", |builder| builder).await;

    let answer = scene.invoke("silent", json!({})).await;

    scene.check(&answer, TIMED_OUT).await;
    assert_eq!(answer.at("/error/details/timeout_ms"), 1000);
    assert_eq!(scene.upstream.count("silent"), 1);
}
