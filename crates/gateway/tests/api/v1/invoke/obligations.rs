//! What policies ask for instead of forbidding: rates that are taken from, and notices.

use portcullis_testkit::Script;
use serde_json::json;

use super::decided::DENIED;
use crate::scene::{SUCCESS, check, scene_with, tool};

const POLICIES: &str = r#"
@id("all") permit (principal, action, resource);
@id("twice") @reason("Twice an hour is enough") @rate_limit("2/1h per=principal") @notify("log")
forbid (principal, action == Mcp::Action::"up:limited", resource)
when { context.input has n && context.input.n > 10 };
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_that_is_used_up_denies_by_the_name_of_its_policy() {
    let number = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let tools = vec![tool("limited", Script::Echo).taking(number), tool("free", Script::Echo)];
    let scene = scene_with(tools, "", |builder| builder.policies(POLICIES)).await;
    for _ in 0..2 {
        let answer = scene.invoke("limited", json!({"n": 11})).await;
        scene.check(&answer, SUCCESS).await;
    }

    let answer = scene.invoke("limited", json!({"n": 11})).await;

    let event = scene.check(&answer, DENIED).await;
    assert_eq!(answer.at("/error/details/policy"), "twice");
    assert_eq!(answer.at("/error/details/reason"), "Twice an hour is enough");
    let retry_after = answer.at("/error/details/retry_after").as_u64().expect("seconds");
    assert!((1..=1_800).contains(&retry_after), "{retry_after}");
    assert_eq!(
        *answer.at("/error/details/obligation"),
        json!({
            "type": "rate_limit", "policy": "twice",
            "properties": {
                "limit": 2, "period_s": 3_600, "per": "principal", "retry_after": retry_after,
            },
        })
    );
    assert_eq!(event["governance"]["policy"], "twice");
    assert_eq!(scene.upstream.calls().len(), 2);

    // Neither what the policy is not about nor anybody else is held up.
    for (tool, input) in [("limited", json!({"n": 10})), ("free", json!({"n": 11}))] {
        let answer = scene.invoke(tool, input).await;
        scene.check(&answer, SUCCESS).await;
    }
    let other = scene.gateway.service(&scene.who.org, "mcps:invoke");
    let body = r#"{"input":{"n":11}}"#;
    let answer = scene.gateway.post(&other, "/v1/mcps/up:limited/invoke", body).await;
    check(&scene.gateway, &other, &answer, SUCCESS).await;
}
