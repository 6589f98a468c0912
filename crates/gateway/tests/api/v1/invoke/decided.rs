//! Endings with a decision and without an upstream call.

use crate::prelude::*;

const POLICIES: &str = r#"
@id("open") permit (principal, action == Mcp::Action::"up:open", resource);
@id("guarded") permit (principal, action == Mcp::Action::"up:guarded", resource);
@id("not-today")
@reason("guarded calls are closed")
forbid (principal, action == Mcp::Action::"up:guarded", resource);
@id("broken") permit (principal, action == Mcp::Action::"up:adds", resource);
@id("adds-up")
@reason("sums over 100 are forbidden")
forbid (principal, action == Mcp::Action::"up:adds", resource)
when { context.input.a + context.input.b > 100 };
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_names_its_policy_and_touches_nothing() {
    let number = json!({"type": "integer"});
    let adds = json!({
        "type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"],
    });
    let tools = vec![
        tool("open", Script::Echo),
        tool("guarded", Script::Echo),
        tool("other", Script::Echo),
        tool("adds", Script::Echo).taking(adds),
    ];
    let scene = scene_with(tools, "", |builder| builder.policies(POLICIES)).await;
    let cases = [
        ("guarded", json!({}), "not-today", "guarded calls are closed"),
        ("other", json!({}), "default-deny", ""),
        ("adds", json!({"a": 60, "b": 60}), "adds-up", "sums over 100 are forbidden"),
        // The sum does not fit: a forbid that cannot be evaluated denies.
        ("adds", json!({"a": i64::MAX, "b": 1}), "adds-up", "could not be evaluated"),
    ];

    for (tool, input, policy, reason) in cases {
        let answer = scene.invoke(tool, input).await;

        let event = scene.check(&answer, DENIED).await;
        has!(answer, "/governance/policy": policy, "/governance/dlp_result": "passed",
            "/error/details/policy": policy);
        let told = answer.at("/error/details/reason").as_str().expect("a reason");
        assert!(told.contains(reason) && !told.is_empty(), "{told}");
        has!(event, "/governance/reason": told, "/target/id": format!("up:{tool}"));
        assert!(event["governance"]["policy_set"].is_string(), "{event}");
    }
    assert!(scene.upstream.calls().is_empty());
    for (tool, input) in [("open", json!({})), ("adds", json!({"a": 1, "b": 2}))] {
        let answer = scene.invoke(tool, input).await;

        scene.check(&answer, SUCCESS).await;
    }
    assert_eq!(scene.upstream.calls().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_refuses_our_credential_asks_for_a_new_connection() {
    let tools = vec![tool("closed", Script::Status(401)), tool("open", Script::Echo)];
    let scene = scene_with(tools, "", |builder| builder).await;
    let ending = Ending { status: 409, code: "provider_auth_required", ..OVERLOADED };

    let answer = scene.invoke("closed", json!({})).await;

    scene.check(&answer, ending).await;
    assert_eq!(answer.at("/error/details/provider"), "up");
    assert_eq!(answer.at("/error/details/connect"), "/v1/providers/up/connect");
    let id = answer.at("/error/details/provider_id").as_str();
    assert!(id.is_some_and(|id| id.starts_with("prv_")), "{}", answer.text);
}
