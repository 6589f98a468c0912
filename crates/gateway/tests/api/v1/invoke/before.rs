//! Endings before any decision: nothing reaches the upstream, `governance` is absent, and there
//! is one event all the same.

use crate::prelude::*;

async fn echoing() -> Scene {
    scene(vec![tool("echo", Script::Echo)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_the_scope_is_denied_by_token_scopes() {
    // A token without the scope is denied by token scopes.
    let scene = echoing().await;
    let reader = scene.gateway.service(&scene.who.org, "mcps:read");
    let ending = Ending { code: "insufficient_scope", ..DENIED };

    // The scope is judged before the body and before the tool.
    for (path, body) in [
        ("/v1/mcps/up:echo/invoke", r#"{"input":{}}"#),
        ("/v1/mcps/up:echo/invoke", "no JSON"),
        ("/v1/mcps/up:nothing/invoke", r#"{"input":{}}"#),
    ] {
        let answer = scene.gateway.post(&reader, path, body).await;

        let event = check(&scene.gateway, &reader, &answer, ending).await;
        has!(answer, "/governance/policy": "token-scopes", "/governance/dlp_result": "skipped",
            "/error/details/policy": "token-scopes",
            "/error/details/required_scope": "mcps:invoke");
        assert!(answer.header("www-authenticate").contains("insufficient_scope"));
        has!(event, "/actor/id": reader.id.as_str(), "/actor/token_id": reader.token_id.as_str());
    }
    assert!(scene.upstream.calls().is_empty());

    // A query or header that is not understood is refused and recorded.
    let path = "/v1/mcps/up:echo/invoke";

    for (path, parameter) in [
        (format!("{path}?view=raw"), "view"),
        (format!("{path}?view=mcp&view=mcp"), "view"),
        (format!("{path}?verbose=1"), "verbose"),
    ] {
        let answer = scene.gateway.post(&scene.who, &path, r#"{"input":{}}"#).await;

        scene.check(&answer, INVALID).await;
        assert_eq!(answer.at("/error/details/parameter"), parameter);
    }
    assert!(scene.upstream.calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_no_invocation_is_refused_and_recorded() {
    let scene = echoing().await;

    // What is no JSON, or none without doubts, stands in `http.rs`.
    for body in ["", "{}", r#"{"input":[]}"#, r#"{"input":{},"inputs":{}}"#, r#"{"Input":{}}"#] {
        let answer = scene.post("echo", body).await;

        scene.check(&answer, INVALID).await;
    }
    let unwrapped = scene.post("echo", r#"{"id":"e1"}"#).await;
    scene.check(&unwrapped, INVALID).await;
    let message = unwrapped.at("/error/message").as_str().unwrap();
    assert!(message.ends_with("as `{\"input\": {…}}`."), "{message}");
    assert!(scene.upstream.calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_over_the_limit_or_of_another_type_are_refused_and_recorded() {
    // A body over the limit or of another type is refused and recorded.
    let scene = echoing().await;
    let too_large = Ending { status: 413, code: "payload_too_large", ..INVALID };
    let not_json = Ending { status: 415, code: "unsupported_media_type", ..INVALID };
    let body = json!({"input": {"text": "x".repeat(1 << 20)}}).to_string();

    let answer = scene.post("echo", &body).await;

    scene.check(&answer, too_large).await;
    assert_eq!(answer.at("/error/details/limit_bytes"), 1 << 20);
    let form = "application/x-www-form-urlencoded";
    for kind in ["text/plain", form, "application/json; charset=utf-16"] {
        let request = scene.request("echo").header("content-type", kind).body(r#"{"input":{}}"#);

        let answer = scene.gateway.send(request).await;

        scene.check(&answer, not_json).await;
    }
    let untyped = scene.request("echo").body(r#"{"input":{}}"#);
    let answer = scene.gateway.send(untyped).await;
    scene.check(&answer, SUCCESS).await;
    assert_eq!(scene.upstream.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn input_that_breaks_the_schema_is_refused_without_an_echo_of_it() {
    let schema = json!({
        "type": "object",
        "properties": {
            "limit": {"type": "integer", "maximum": 100},
            "kind": {"enum": ["a", "b"]},
            "many": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["limit"],
        "additionalProperties": false,
    });
    let scene = scene(vec![tool("strict", Script::Echo).taking(schema)]).await;
    let ending = Ending { code: "invalid_input", ..INVALID };
    let many: Vec<u32> = (0..30).collect();

    for (input, path) in [
        (json!({}), ""),
        (json!({"limit": 77_345_101}), "/limit"),
        (json!({"limit": "canary-77345101"}), "/limit"),
        (json!({"limit": 1, "kind": "canary-77345101"}), "/kind"),
        (json!({"limit": 1, "more": "canary-77345101"}), ""),
        (json!({"limit": 1, "many": many}), "/many/0"),
    ] {
        let answer = scene.invoke("strict", input.clone()).await;

        has!(scene.check(&answer, ending).await, "/target/id": "up:strict");
        let violations = answer.at("/error/details/violations").as_array().expect("violations");
        assert!((1..=20).contains(&violations.len()), "{}", answer.text);
        assert_eq!(violations[0]["path"], path, "{}", answer.text);
        assert!(violations[0]["keyword"].is_string(), "{}", answer.text);
        assert!(!answer.text.contains("77345101"), "{}", answer.text);
        assert!(!answer.text.contains(":  "), "{}", answer.text);
    }
    let answer = scene.invoke("strict", json!({"limit": 100})).await;
    scene.check(&answer, SUCCESS).await;
    assert_eq!(scene.upstream.calls().len(), 1);
}
