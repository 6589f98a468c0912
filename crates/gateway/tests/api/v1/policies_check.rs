//! `POST /v1/policies/check`: drafts that are only loaded.

use crate::prelude::*;

const POLICIES: &str = "@id(\"all\") permit (principal, action, resource);";

async fn check(gateway: &Gateway, who: &Principal, policies: Value) -> Answer {
    gateway.post(who, "/v1/policies/check", &json!({ "policies": policies }).to_string()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_told_its_errors_at_their_lines_and_no_event_is_left() {
    // A draft is told its errors at their lines and no event is left.
    let (gateway, who) = serve(gateway().sample().policies(POLICIES));
    let good = "@id(\"no-lists\")\nforbid (principal, action == Mcp::Action::\"sample:list_items\", resource);";
    let bad = format!("{good}\nforbid (principal, action, resource) when {{ nonsense }};");
    let before = gateway.get(&who, "/v1/audit/events?limit=200").await.ok();

    let loads = check(&gateway, &who, json!({"upsert": [{"source": good}]})).await;
    let fails = check(&gateway, &who, json!({"upsert": [{"source": good}, {"source": bad}]})).await;
    let removed = check(&gateway, &who, json!({"remove": ["nobody"]})).await;

    assert_enveloped(&loads, "a check");
    has!(loads, "/data/valid": true, "/data/candidate/added": ["no-lists"]);
    has!(fails, 200, "/data/valid": false);
    assert!(fails.at("/data/candidate").is_null(), "{}", fails.text);
    let errors = fails.at("/data/errors").as_array().unwrap();
    let placed = |error: &Value| (error["path"] == "/policies/upsert/1/source", error["line"] == 3);
    assert!(errors.iter().any(|error| placed(error) == (true, true)), "{}", fails.text);
    assert_eq!(removed.at("/data/errors/0/path"), "/policies/remove/0", "{}", removed.text);
    let after = gateway.get(&who, "/v1/audit/events?limit=200").await.ok();
    assert_eq!(items(&after).len(), items(&before).len(), "{}", after.text);
    assert_eq!(gateway.get(&who, "/v1/policies/no-lists").await.status, 404);

    // A body that is no draft is refused.
    for body in [
        json!({}),
        json!({"policies": null}),
        json!({"policies": {"upsert": [{"text": "x"}]}}),
        json!({"policies": {}, "replay": {}}),
        json!({"policies": {"upsert": [{"source": "x".repeat(65_537)}]}}),
    ] {
        has!(gateway.post(&who, "/v1/policies/check", &body.to_string()).await, 400);
    }
}
