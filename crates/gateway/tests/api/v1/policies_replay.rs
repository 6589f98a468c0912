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

/// A use of each kind that depends on what its policy reads: path and body, target of the event, and the policy that a
/// draft changes, with what it then denies.
const KINDS: [[&str; 5]; 4] = [
    [
        "/v1/prompts/sample:customer_letter/get",
        r#"{"input": {"customer": "cus_1001"}}"#,
        "prompt:sample:customer_letter",
        "letters",
        "cus_1001",
    ],
    [
        "/v1/resources/read",
        r#"{"uri": "sample://guide"}"#,
        "resource:sample:sample://guide",
        "notes",
        "sample://guide",
    ],
    [
        "/v1/resources/read",
        r#"{"uri": "sample://customers/cus_1002"}"#,
        "resource:sample:sample://customers/{id}",
        "notes",
        "sample://customers/cus_1002",
    ],
    [
        "/v1/resources/read",
        r#"{"uri": "skill://refund-policy/examples/email.md"}"#,
        "skill:sample:skill://refund-policy/SKILL.md",
        "files",
        "skill://refund-policy/examples/email.md",
    ],
];

/// The policy of this name, which denies this value.
fn about(name: &str, denied: &str) -> String {
    let (action, place) = match name {
        "letters" => ("prompt:sample:customer_letter", "input.customer"),
        "notes" => ("resource:sample", "resource.uri"),
        _ => ("skill:sample:refund-policy", "skill.uri"),
    };
    let head = format!("forbid (principal, action == Mcp::Action::\"{action}\", resource)");
    format!("@id(\"{name}\") @reason(\"no\") {head} when {{ context.{place} == \"{denied}\" }};")
}

#[tokio::test(flavor = "multi_thread")]
async fn uses_of_every_kind_are_replayed_and_simulated() {
    let exposed = r#"expose = ["tools", "prompts", "resources", "skills"]"#;
    let names = ["letters", "notes", "files"].map(|name| about(name, "nothing")).concat();
    let policies = format!("@id(\"base\") permit (principal, action, resource);{names}");
    let (gateway, who) = serve(gateway().sample_with(exposed).policies(&policies));
    for [path, body, ..] in KINDS {
        gateway.post(&who, path, body).await.ok();
    }
    gateway.invoke(&who, "sample:list_items", json!({"limit": 1})).await.ok();

    let same = replay(&gateway, &who, &json!({"replay": {}})).await;
    assert_eq!((number(&same, "scanned"), number(&same, "unchanged")), (5, 5), "{}", same.text);
    for (provider, scanned) in [("sample", 5), ("other", 0)] {
        let of_one = json!({"replay": {"filter": {"provider": provider}}});
        assert_eq!(
            number(&replay(&gateway, &who, &of_one).await, "scanned"),
            scanned,
            "{provider}"
        );
    }

    for [_, body, target, name, denied] in KINDS {
        let draft = json!({"upsert": [{"source": about(name, denied)}]});
        let answer = replay_over(&gateway, &who, draft.clone()).await;

        assert_eq!(number(&answer, "newly_denied"), 1, "{target}: {}", answer.text);
        assert_eq!(number(&answer, "changed"), 1, "{target}: {}", answer.text);
        has!("{target}"; answer, "/data/changes/0/tool": target, "/data/changes/0/change": "newly_denied",
            "/data/changes/0/baseline/policy": "base", "/data/changes/0/candidate/policy": name);
        let one = json!({"replay": {"filter": {"tool": target}}});
        assert_eq!(number(&replay(&gateway, &who, &one).await, "scanned"), 1, "{target}");

        let body: Value = serde_json::from_str(body).unwrap();
        let input = body.get("input").unwrap_or(&body);
        let mut asked = json!({"tool": target, "input": input});
        has!("{target}"; gateway.post(&who, PATH, &asked.to_string()).await, 200,
            "/data/results/0/decision": "allow", "/data/results/0/policy": "base");
        asked["policies"] = draft;
        asked["baseline"] = json!("live");
        has!("{target}"; gateway.post(&who, PATH, &asked.to_string()).await, 200,
            "/data/results/0/decision": "deny", "/data/results/0/policy": name,
            "/data/results/0/change": "newly_denied");
    }
}

const FACTS: &str = r#"
[facts."prompt:sample:customer_letter"]
letters = { type = "Long", from = "$.customer | len" }
[facts."resource:sample"]
name = { type = "String", from = "$.uri | basename" }
[facts."skill:sample:refund-policy"]
name = { type = "String", from = "$.uri | basename" }
"#;

const ON_FACTS: &str = r#"
@id("letters") @reason("no") forbid (principal, action == Mcp::Action::"prompt:sample:customer_letter", resource)
when { context.facts.letters > 8 };
@id("notes") @reason("no") forbid (principal, action == Mcp::Action::"resource:sample", resource)
when { context.facts.name == "cus_1003" };
@id("files") @reason("no") forbid (principal, action == Mcp::Action::"skill:sample:refund-policy", resource)
when { context.facts.name == "email.md" };
"#;

#[tokio::test(flavor = "multi_thread")]
async fn facts_are_declared_for_every_kind() {
    let exposed = r#"expose = ["tools", "prompts", "resources", "skills"]"#;
    let base = "@id(\"base\") permit (principal, action, resource);";
    let (gateway, who) = serve(gateway().sample_with(exposed).policies(base));
    fs::write(gateway.folder().join("policies/facts.toml"), FACTS).unwrap();
    write(&gateway, &format!("{base}{ON_FACTS}"));
    until(|| gateway.get(&who, "/v1/policies/files"), |it| it.status == 200).await;

    let letter = "/v1/prompts/sample:customer_letter/get";
    let read = "/v1/resources/read";
    let skill = "skill:sample:skill://refund-policy/SKILL.md";
    for (path, tool, body, policy) in [
        (
            letter,
            "prompt:sample:customer_letter",
            json!({"input": {"customer": "cus_1001"}}),
            "base",
        ),
        (
            letter,
            "prompt:sample:customer_letter",
            json!({"input": {"customer": "cus_10012"}}),
            "letters",
        ),
        (read, "resource:sample:sample://guide", json!({"uri": "sample://guide"}), "base"),
        (
            read,
            "resource:sample:sample://customers/{id}",
            json!({"uri": "sample://customers/cus_1003"}),
            "notes",
        ),
        (read, skill, json!({"uri": "skill://refund-policy/SKILL.md"}), "base"),
        (read, skill, json!({"uri": "skill://refund-policy/examples/email.md"}), "files"),
    ] {
        let input = body.get("input").unwrap_or(&body);
        let asked = json!({"tool": tool, "input": input}).to_string();
        has!("{body}"; gateway.post(&who, PATH, &asked).await, 200, "/data/results/0/policy": policy);
        let used = gateway.post(&who, path, &body.to_string()).await;
        let status = if policy == "base" { 200 } else { 403 };
        assert_eq!(used.status, status, "{body}: {}", used.text);
        has!("{body}"; used, "/governance/policy": policy);
    }
}
