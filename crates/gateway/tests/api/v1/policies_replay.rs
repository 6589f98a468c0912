//! `POST /v1/policies/simulate` over recorded calls.

use super::policies::write;
use crate::prelude::*;

const PATH: &str = "/v1/policies/simulate";

const POLICIES: &str = r#"@id("base") permit (principal, action, resource);
@id("short-lists") @reason("Lists are short")
forbid (principal, action == Mcp::Action::"sample:list_items", resource)
when { context.input has limit && context.input.limit > 10 };"#;

const STRICTER: &str = r#"@id("short-lists") @reason("Lists are shorter")
forbid (principal, action == Mcp::Action::"sample:list_items", resource)
when { context.input has limit && context.input.limit > 3 };"#;

/// A gateway whose log knows three short lists, two of five, one too long, and one note.
async fn played() -> (Gateway, Principal) {
    let (gateway, who) = serve(gateway().sample().policies(POLICIES));
    for limit in [1, 2, 3, 5, 5, 50] {
        gateway.invoke(&who, "sample:list_items", json!({"limit": limit})).await;
    }
    let note = json!({"title": "a", "text": "b"});
    assert_eq!(gateway.invoke(&who, "sample:create_note", note).await.status, 200);
    (gateway, who)
}

async fn replay(gateway: &Gateway, who: &Principal, body: &Value) -> Answer {
    gateway.post(who, PATH, &body.to_string()).await.ok()
}

/// Replays everything over a draft.
async fn replay_over(gateway: &Gateway, who: &Principal, policies: Value) -> Answer {
    replay(gateway, who, &json!({"replay": {}, "policies": policies})).await
}

fn number(answer: &Answer, name: &str) -> u64 {
    let value = answer.at(&format!("/data/summary/{name}"));
    value.as_u64().unwrap_or_else(|| panic!("{name} in {}", answer.text))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_told_by_what_it_would_have_changed_and_whom_it_would_have_asked() {
    // The set in force changes nothing of what it decided.
    let (gateway, who) = played().await;

    let answer = replay(&gateway, &who, &json!({"replay": {}})).await;

    assert_eq!((number(&answer, "scanned"), number(&answer, "unchanged")), (7, 7));
    assert_eq!((number(&answer, "changed"), number(&answer, "drift")), (0, 0));
    has!(answer, "/data/summary/complete": true, "/data/next_cursor": null, "/data/changes": []);

    // A draft is told by what it would have changed.
    let answer = replay_over(&gateway, &who, json!({"upsert": [{"source": STRICTER}]})).await;

    assert_eq!(number(&answer, "newly_denied"), 2, "{}", answer.text);
    assert_eq!((number(&answer, "unchanged"), number(&answer, "changed")), (5, 2));
    let by_policy = r#"[{"policy": "short-lists", "newly_denied": 2, "newly_allowed": 0}]"#;
    let by_policy: Value = serde_json::from_str(by_policy).unwrap();
    assert_eq!(answer.at("/data/by_policy"), &by_policy);
    let change = answer.at("/data/changes/0");
    has!(change, "/change": "newly_denied", "/tool": "sample:list_items");
    assert_eq!(change["count"].to_string(), "2");
    has!(change, "/principal/id": who.id.as_str(), "/baseline/policy": "base",
        "/candidate/policy": "short-lists", "/candidate/reason": "Lists are shorter");
    gateway.event(&who, change["example_event_ids"][0].as_str().unwrap()).await.ok();

    // Approvals that a draft would ask for are counted by policy and day.
    let asking = |id: &str, action: &str, least: u32| {
        let source = format!(
            "@id(\"{id}\") @require_approval(\"approvers=staff\") @reason(\"Staff looks\")\n\
             forbid (principal, action == Mcp::Action::\"sample:{action}\", resource)\n\
             when {{ context.input has limit && context.input.limit > {least} }};"
        );
        json!({"source": source})
    };
    let drafts = [asking("large", "list_items", 3), asking("any", "list_items", 1)];

    has!(replay(&gateway, &who, &json!({"replay": {}})).await, "/data/approvals/calls": 0);
    let answer = replay_over(&gateway, &who, json!({"upsert": drafts})).await;

    // The one of 50 is denied by another policy: no approver would be asked.
    let approvals = answer.at("/data/approvals");
    assert_eq!((&approvals["calls"], &approvals["per_day"]), (&json!(4), &json!(4.0)));
    let policies = &approvals["policies"];
    for (at, policy, calls) in [(0_usize, "any", 4), (1, "large", 2)] {
        assert_eq!(policies[at]["policy"], policy, "{}", answer.text);
        assert_eq!(policies[at]["calls"], calls, "{}", answer.text);
    }
    gateway.event(&who, policies[1]["example_event_ids"][0].as_str().unwrap()).await.ok();
    assert_eq!(number(&answer, "obligations_changed"), 4);

    // Dropping a forbid is told as newly allowed.
    let answer = replay_over(&gateway, &who, json!({"remove": ["short-lists"]})).await;

    assert_eq!((number(&answer, "newly_allowed"), number(&answer, "changed")), (1, 1));
    assert_eq!(answer.at("/data/changes/0/baseline/policy"), "short-lists");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_chosen_and_what_they_do_not_tell_or_nobody_decided_is_told_apart() {
    // What an event does not tell is a maybe.
    let (gateway, who) = played().await;
    // No policy read the text of notes when the call was made.
    let reading = r#"@id("no-drafts") @reason("x") forbid (principal, action == Mcp::Action::"sample:create_note", resource)
        when { context.input.text like "*draft*" };"#;

    let answer = replay_over(&gateway, &who, json!({"upsert": [{"source": reading}]})).await;

    assert_eq!(number(&answer, "maybe_denied"), 1, "{}", answer.text);
    assert_eq!(number(&answer, "changed"), 0, "{}", answer.text);
    assert_eq!(answer.at("/data/changes/0/missing"), &json!(["context.input.text"]));

    // Events are chosen by filter by id by share and in portions.
    let events = gateway.get(&who, "/v1/audit/events?type=mcp.invocation&order=asc").await;
    let id = items(&events)[3]["id"].as_str().unwrap();
    for (wanted, scanned) in [
        (json!({"filter": {"tool": "sample:create_note"}}), 1),
        (json!({"filter": {"provider": "sample"}}), 7),
        (json!({"filter": {"provider": "other"}}), 0),
        (json!({"filter": {"decision": "deny"}}), 1),
        (json!({"filter": {"policy": "base"}}), 6),
        (json!({"filter": {"principal": who.id}}), 7),
        (json!({"event_ids": [id]}), 1),
        (json!({"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z"}), 0),
        (json!({"sample": 0.000_001}), 0),
    ] {
        let answer = replay(&gateway, &who, &json!({"replay": wanted})).await;
        assert_eq!(number(&answer, "scanned"), scanned, "{wanted}: {}", answer.text);
    }

    let first = replay(&gateway, &who, &json!({"replay": {"limit": 4}})).await;
    assert_eq!((number(&first, "scanned"), first.at("/data/summary/complete")), (4, &json!(false)));
    let cursor = first.at("/data/next_cursor");
    let rest = replay(&gateway, &who, &json!({"replay": {"cursor": cursor}})).await;
    assert_eq!((number(&rest, "scanned"), rest.at("/data/summary/complete")), (3, &json!(true)));

    // Calls that no policy decided are told apart.
    gateway.invoke(&who, "sample:list_items", json!({"limit": "many"})).await;
    gateway.invoke(&who, "sample:nothing", json!({})).await;

    let answer = replay(&gateway, &who, &json!({"replay": {}})).await;

    assert_eq!((number(&answer, "scanned"), number(&answer, "undecided")), (9, 2));
    assert_eq!(number(&answer, "evaluated"), 7);

    // Without audit read only own calls are replayed.
    let other = gateway.service(&who.org, "policies:read mcps:invoke");
    gateway.invoke(&other, "sample:list_items", json!({"limit": 1})).await;

    let own = replay(&gateway, &other, &json!({"replay": {}})).await;

    assert_eq!(number(&own, "scanned"), 1);
    let unknown = r#"{"replay": {"event_ids": ["evt_01M7W9Y2TKP17G0AVDQZTD2P3X"]}}"#;
    has!(gateway.post(&other, PATH, unknown).await, 404 "not_found");

    // Drift is told when the policies have moved on.
    let base = "@id(\"base\") permit (principal, action, resource);";
    write(&gateway, &format!("{base}{STRICTER}"));
    let lists = || gateway.get(&who, "/v1/policies/short-lists");
    until(lists, |it| it.at("/data/reason") == "Lists are shorter").await;

    let live = replay(&gateway, &who, &json!({"replay": {}})).await;
    let recorded = replay(&gateway, &who, &json!({"replay": {}, "baseline": "recorded"})).await;

    assert_eq!((number(&live, "drift"), number(&live, "changed")), (2, 0), "{}", live.text);
    assert_eq!(number(&recorded, "newly_denied"), 2, "{}", recorded.text);
}
