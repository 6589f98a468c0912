//! `POST /v1/policies/simulate` with hypothetical calls.

mod long_work;

use super::policies::of_two_orgs;
use crate::prelude::*;

const PATH: &str = "/v1/policies/simulate";

const POLICIES: &str = r#"@id("base")
permit (principal, action, resource);

@id("short-lists")
@reason("Lists are short")
forbid (principal, action == Mcp::Action::"sample:list_items", resource)
when { context has input && context.input has limit && context.input.limit > 10 };

@id("staff-only")
@mode("shadow")
@reason("Notes are for staff")
forbid (principal, action == Mcp::Action::"sample:create_note", resource)
unless { principal in Mcp::Group::"staff" };
"#;

async fn simulate(gateway: &Gateway, who: &Principal, body: &Value) -> Answer {
    gateway.post(who, PATH, &body.to_string()).await
}

/// `allow base`, and so on for each result.
fn decisions(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let results = answer.at("/data/results").as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    results.iter().map(|it| format!("{} {}", text(&it["decision"]), text(&it["policy"]))).collect()
}

fn call(limit: u64) -> Value {
    json!({"tool": "sample:list_items", "input": {"limit": limit}})
}

/// The same with this member.
fn call_with(limit: u64, member: &str, value: Value) -> Value {
    let mut call = call(limit);
    call[member] = value;
    call
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_is_answered_as_it_would_be_for_those_who_may_ask() {
    // One call is answered as it would be and nothing is done.
    let (gateway, who) = serve(gateway().sample().policies(POLICIES));

    let allowed = simulate(&gateway, &who, &call(5)).await;
    let denied = simulate(&gateway, &who, &call(50)).await;

    assert_enveloped(&allowed, "a simulation");
    assert_eq!(decisions(&allowed), ["allow base"]);
    assert_eq!(decisions(&denied), ["deny short-lists"]);
    let result = denied.at("/data/results/0");
    has!(result, "/cause": "explicit_deny", "/reason": "Lists are short",
        "/determining_policies": ["short-lists"]);
    assert_eq!(denied.at("/data/simulated"), true);
    let events = gateway.get(&who, "/v1/audit/events?type=mcp.invocation").await;
    assert!(items(&events).is_empty(), "{}", events.text);
    let events = list_of(&gateway, &who, "policy.simulated", "").await;
    assert_eq!(events.len(), 2);
    assert_eq!(events[1]["detached"]["simulation"]["summary"]["deny"].to_string(), "1");
    assert_eq!(events[1]["target"]["type"], "policy_set");

    // Null stands for absent.
    let principal = json!({
        "type": null, "id": null, "role": null, "roles": null, "scopes": null, "groups": null,
        "claims": null,
    });
    let body = json!({
        "tool": "sample:list_items", "input": null, "principal": principal, "agent": null,
        "phase": null, "output": null, "context": null, "dlp": null, "dlp_output": null,
        "expect": null, "policies": null, "baseline": null, "options": null, "requests": null,
        "replay": null,
    });

    let answer = simulate(&gateway, &who, &body).await;

    assert_eq!(decisions(&answer), ["allow base"]);

    // An expectation that is not met says what was got.
    let body = call_with(50, "expect", json!({"decision": "allow", "cause": "permit"}));

    let answer = simulate(&gateway, &who, &body).await;

    let expectation = answer.at("/data/results/0/expectation");
    has!(expectation, "/met": false, "/unmet/0": "decision: expected `allow`, got `deny`");
    assert_eq!(answer.at("/data/summary/expectations_failed").to_string(), "1");

    // A tool that is not there is not found.
    let answer = simulate(&gateway, &who, &json!({"tool": "sample:nothing"})).await;

    assert_eq!(answer.refusal(), (404, "not_found"));

    // Asking as somebody else needs admin.
    let who = gateway.service(&fresh_org(&gateway), "policies:read");
    for (principal, status) in [
        (Value::Null, 200),
        (json!({"id": who.id}), 200),
        (json!({"id": who.id, "groups": ["staff"]}), 403),
        (json!({"type": "user", "id": "ana"}), 403),
    ] {
        let body = call_with(5, "principal", principal.clone());

        let answer = simulate(&gateway, &who, &body).await;

        assert_eq!(answer.status, status, "{principal}: {}", answer.text);
        if status == 403 {
            assert_eq!(answer.at("/error/details/required_scope"), "admin");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_simulated_is_what_happens_also_in_a_batch() {
    // What is simulated is what happens.
    let (gateway, who) = serve(gateway().sample().policies(POLICIES));
    let secret = "-----BEGIN RSA PRIVATE KEY-----\nMIIBF4k3abcdefghijklmnop0123456789F4k3\n-----END RSA PRIVATE KEY-----";
    for (tool, input) in [
        ("sample:list_items", json!({"limit": 5})),
        ("sample:list_items", json!({"limit": 50})),
        ("sample:create_note", json!({"title": "a", "text": "b"})),
        ("sample:create_note", json!({"title": "a", "text": secret})),
    ] {
        let body = json!({"tool": tool, "input": input});

        let simulated = simulate(&gateway, &who, &body).await;
        let invoked = gateway.invoke(&who, tool, input).await;

        let decided = |name: &str| invoked.at(&format!("/governance/{name}")).clone();
        let result = simulated.at("/data/results/0");
        assert_eq!(result["decision"], decided("decision"), "{tool}: {}", simulated.text);
        assert_eq!(result["policy"], decided("policy"), "{tool}: {}", simulated.text);
        if result["decision"] == "deny" {
            assert_eq!(&result["reason"], invoked.at("/error/details/reason"), "{tool}");
        }
    }
    let body = json!({"tool": "sample:create_note", "input": {"title": 7}});
    let simulated = simulate(&gateway, &who, &body).await;
    let result = simulated.at("/data/results/0");
    assert_eq!((&result["decision"], &result["cause"]), (&Value::Null, &json!("invalid_input")));
    assert!(!result["violations"].as_array().unwrap().is_empty(), "{}", simulated.text);

    // A batch is asked as others at other times and checked against expectations.
    let note = json!({"title": "a", "text": "b"});
    let body = json!({
        "requests": [
            {"id": "r1", "tool": "sample:create_note", "input": note,
             "principal": {"type": "user", "id": "ana", "groups": ["staff"]},
             "expect": {"decision": "allow", "policy": "base"}},
            {"id": "r2", "tool": "sample:create_note", "input": note,
             "principal": {"type": "user", "id": "bob"},
             "expect": {"decision": "deny"}},
        ],
        "policies": {"set_status": {"staff-only": "active"}},
        "baseline": "live",
    });

    let answer = simulate(&gateway, &who, &body).await;

    assert_eq!(decisions(&answer), ["allow base", "deny staff-only"]);
    let results = answer.at("/data/results");
    assert_eq!((&results[0]["id"], &results[0]["change"]), (&json!("r1"), &json!("none")));
    assert_eq!((&results[1]["id"], &results[1]["change"]), (&json!("r2"), &json!("newly_denied")));
    assert_eq!(results[1]["baseline"]["decision"], "allow");
    assert_eq!(results[1]["expectation"], json!({"met": true}));
    assert_eq!(answer.at("/data/policy_set/candidate/changed"), &json!(["staff-only"]));
    let summary = answer.at("/data/summary");
    assert_eq!(summary["changed"].to_string(), "1", "{summary}");
    assert_eq!(summary["expectations_failed"].to_string(), "0", "{summary}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_laid_over_the_set_in_force_or_refused_with_the_places() {
    // A draft is laid over the set in force.
    let (gateway, who) = serve(gateway().sample().policies(POLICIES));
    let stricter = r#"@id("short-lists") @reason("x") forbid (principal, action == Mcp::Action::"sample:list_items", resource)
        when { context has input && context.input has limit && context.input.limit > 3 };"#;
    for (policies, wanted) in [
        (json!({"upsert": [{"source": stricter}]}), "deny short-lists"),
        (json!({"remove": ["base"]}), "deny default-deny"),
        (json!({"base": "empty"}), "deny default-deny"),
        (json!({"set_status": {"base": "disabled"}}), "deny default-deny"),
    ] {
        let body = call_with(5, "policies", policies.clone());

        let answer = simulate(&gateway, &who, &body).await;

        assert_eq!(decisions(&answer), [wanted], "{policies}: {}", answer.text);
    }
    let live = gateway.get(&who, "/v1/policies").await;
    let version = live.at("/data/policy_set/version").as_str().unwrap();
    let body = call_with(50, "policies", json!({"base": version}));
    let kept = simulate(&gateway, &who, &body).await;
    assert_eq!(decisions(&kept), ["deny short-lists"]);
    assert_eq!(kept.at("/data/policy_set/candidate/version"), version);

    // A draft that does not load is refused with the places.
    let upsert = |source: &str| json!({"upsert": [{"source": source}]});
    let mistyped = "@id(\"a\")\npermit (principal, action, resource)\nwhen { context.inptu.x };";
    let unknown = json!({"set_status": {"nothing": "active"}});
    for (policies, place, said) in [
        (upsert(mistyped), "upsert/0/source", "line 3"),
        (json!({"remove": ["default-deny"]}), "remove/0", "is no policy"),
        (unknown, "set_status/nothing", "is no policy"),
        (json!({"base": "sha256:00"}), "base", "ever in force"),
    ] {
        let body = call_with(5, "policies", policies.clone());
        let answer = simulate(&gateway, &who, &body).await;

        assert_eq!(answer.refusal(), (400, "invalid_request"), "{policies}");
        let violation = answer.at("/error/details/violations/0");
        assert_eq!(violation["path"], format!("/policies/{place}"), "{}", answer.text);
        assert!(violation["message"].as_str().unwrap().contains(said), "{}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_explanation_names_no_policy_that_can_only_concern_another_org() {
    let (gateway, ours, theirs) = of_two_orgs(|_, theirs| {
        format!(
            "@id(\"theirs\") permit (principal == Mcp::User::\"{}\", action, resource);\n\
             @id(\"secret\") forbid (principal == Mcp::User::\"{}\", \
                 action == Mcp::Action::\"sample:list_items\", resource);\n\
             @id(\"ours\") permit (principal == Mcp::User::\"usr_nobody\", action, resource);\n\
             @id(\"inside\") permit (principal, action, resource) \
                 when {{ principal in Mcp::Org::\"{}\" }};",
            theirs.id, theirs.id, theirs.org,
        )
    });
    let body = call_with(5, "options", json!({"explain": "full"}));

    let answer = simulate(&gateway, &ours, &body).await;

    let explained = answer.at("/data/results/0/explain");
    has!(explained, "/near_misses/0/permits": [{"policy": "ours"}], "/candidates": []);
    assert_eq!(explained["considered"].to_string(), "0");
    for foreign in [&theirs.id, &theirs.org] {
        assert!(!answer.text.contains(foreign), "{}", answer.text);
    }
    // Nor when it is asked how their person would fare, now or without the set in force.
    let asked = json!({
        "tool": "sample:list_items", "input": {}, "principal": {"type": "user", "id": theirs.id},
    });
    for policies in [json!({}), json!({"base": "empty"})] {
        let body = json!({"requests": [asked], "policies": policies});
        let answer = simulate(&gateway, &ours, &body).await;
        let named = ["\"theirs\"", "\"secret\"", "\"inside\""];
        assert!(!named.iter().any(|name| answer.text.contains(name)), "{}", answer.text);
    }
}

/// The answer without what is of this request alone, and with one name in the place of the other.
fn told_of(answer: &Answer, id: &str) -> String {
    let mut text = answer.text.replace(id, "the-policy");
    // The digest of a set with another name in it is another one.
    if let Some(version) = answer.at("/data/policy_set/candidate/version").as_str() {
        text = text.replace(version, "-");
    }
    let mut value: Value = serde_json::from_str(&text).unwrap();
    value.as_object_mut().unwrap().remove("meta");
    if let Some(data) = value.get_mut("data").and_then(Value::as_object_mut) {
        data.remove("duration_ms");
        let results = data.get_mut("results").and_then(Value::as_array_mut);
        for result in results.into_iter().flatten() {
            result.as_object_mut().unwrap().remove("evaluated_us");
        }
    }
    format!("{} {value}", answer.status)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_does_not_tell_whether_another_org_has_a_policy_of_that_name() {
    let (gateway, ours, theirs) = of_two_orgs(|_, theirs| {
        format!(
            "@id(\"base\") permit (principal, action, resource);\n\
             @id(\"x-org\") permit (principal in Mcp::Org::\"{}\", action, resource);\n\
             @id(\"x-user\") @mode(\"shadow\") \
                 forbid (principal == Mcp::User::\"{}\", action, resource);",
            theirs.org, theirs.id,
        )
    });
    let source = |id: &str| {
        format!(
            "@id(\"{id}\") @reason(\"no\") forbid (principal, \
             action == Mcp::Action::\"sample:list_items\", resource);"
        )
    };
    let drafts = |id: &str| {
        let upsert = json!([{ "source": source(id) }]);
        [
            json!({"remove": [id]}),
            json!({"set_status": {id: "disabled"}}),
            json!({"set_status": {id: "active"}, "remove": [id, "nothing"]}),
            json!({"upsert": upsert}),
            json!({"upsert": upsert, "remove": [id]}),
            json!({"upsert": upsert, "set_status": {id: "shadow"}}),
        ]
    };
    for known in ["x-org", "x-user"] {
        for (draft, same) in drafts(known).into_iter().zip(drafts("y-none")) {
            let asked = async |draft: &Value| {
                simulate(&gateway, &ours, &call_with(5, "policies", draft.clone())).await
            };

            let theirs = asked(&draft).await;
            let nobodys = asked(&same).await;

            assert_eq!(told_of(&theirs, known), told_of(&nobodys, "y-none"), "{draft}");
        }
    }
    let body = call_with(5, "policies", json!({"remove": ["x-org"]}));
    let owner = simulate(&gateway, &theirs, &body).await;
    assert_eq!(decisions(&owner), ["allow base"], "to whom it belongs it is there");
}
