//! Obligations of policies that do not forbid: rates.

use crate::prelude::*;

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
    let scene = scene_under(POLICIES, tools).await;
    for _ in 0..2 {
        let answer = scene.invoke("limited", json!({"n": 11})).await;
        scene.check(&answer, SUCCESS).await;
    }

    let answer = scene.invoke("limited", json!({"n": 11})).await;

    has!(scene.check(&answer, DENIED).await, "/governance/policy": "twice");
    assert_eq!(answer.at("/error/details/policy"), "twice");
    assert_eq!(answer.at("/error/details/reason"), "Twice an hour is enough");
    let retry_after = answer.at("/error/details/retry_after").as_u64().expect("seconds");
    assert!((1..=1_800).contains(&retry_after), "{retry_after}");
    let obligation = json!({
        "type": "rate_limit", "policy": "twice",
        "properties": {
            "limit": 2, "period_s": 3_600, "per": "principal", "retry_after": retry_after,
        },
    });
    assert_eq!(answer.at("/error/details/obligation"), &obligation);
    assert_eq!(scene.upstream.calls().len(), 2);

    // Neither what the policy is not about nor anybody else is held up.
    for (tool, input) in [("limited", json!({"n": 10})), ("free", json!({"n": 11}))] {
        let answer = scene.invoke(tool, input).await;
        scene.check(&answer, SUCCESS).await;
    }
    let other = scene.gateway.service(&scene.who.org, "mcps:invoke");
    let answer = scene.gateway.invoke(&other, "up:limited", json!({"n": 11})).await;
    check(&scene.gateway, &other, &answer, SUCCESS).await;
}
