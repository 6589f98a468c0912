//! `GET /v1/audit/events/{id}?explain=1`, `portcullis policy explain`: why a call was denied, and the permit
//! that would have allowed it.

use crate::prelude::*;

const POLICIES: &str = r#"@id("admins") permit (principal in Mcp::Role::"admin", action, resource);

@id("short-lists")
permit (principal in Mcp::Role::"service", action == Mcp::Action::"sample:list_items", resource)
when { context.input has limit && context.input.limit <= 3 };

@id("customers")
permit (principal in Mcp::Role::"service", action == Mcp::Action::"sample:get_customer", resource);

@id("no-failing")
@reason("It would only fail")
forbid (principal, action == Mcp::Action::"sample:always_fails", resource);

@id("quiet")
@reason("Echoes are short")
forbid (principal, action == Mcp::Action::"sample:slow_echo", resource)
when { context.input.text like "*loud*" };
"#;

/// Everything is permitted, with obligations and a look at answers.
const OPEN: &str = r#"@id("open") permit (principal, action, resource);

@id("inside")
@phase("response")
@reason("Lists stay inside.")
forbid (principal, action == Mcp::Action::"sample:list_items", resource);

@id("rarely")
@reason("Customers are looked up rarely")
@rate_limit("1/1h per=principal")
forbid (principal, action == Mcp::Action::"sample:get_customer", resource);
"#;

const REDACTED: &str = "[audit]\ncapture = \"redacted\"";
const PEM: &str = concat!(
    "-----BEGIN RSA ",
    "PRIVATE KEY-----\nMIIBF4k3abcdefghijklmnop0123456789F4k3\n-----END RSA ",
    "PRIVATE KEY-----"
);

/// A gateway that keeps masked inputs, with these policies, and a caller with every scope.
fn start(policies: &str) -> (Gateway, Principal) {
    serve(gateway().sample().config(REDACTED).policies(policies))
}

async fn explained(gateway: &Gateway, who: &Principal, event: &str) -> Answer {
    gateway.get(who, &format!("/v1/audit/events/{event}?explain=1")).await
}

/// The explanation of a call that ended with this status.
async fn explanation(gateway: &Gateway, who: &Principal, call: &Answer, status: u16) -> Value {
    assert_eq!(call.status, status, "{}", call.text);
    let answer = explained(gateway, who, call.event_id()).await.ok();
    answer.at("/data/explanation").clone()
}

/// The sentences of an explanation.
fn summary(explanation: &Value) -> String {
    let sentences = explanation["summary"].as_array().expect("sentences");
    sentences.iter().map(|it| it.as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

/// Adds the suggested permit to the folder and waits until it is in force.
async fn add_permit(gateway: &Gateway, who: &Principal, explanation: &Value) {
    let permit = explanation["suggested_permit"].as_str();
    let permit = permit.unwrap_or_else(|| panic!("{explanation}"));
    let id = permit.split('"').nth(1).expect("an id").to_owned();
    fs::write(gateway.folder().join(format!("policies/{id}.cedar")), permit).unwrap();
    let path = format!("/v1/policies/{id}");
    until(|| gateway.get(who, &path), |it| it.status == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_by_default_comes_with_a_permit_that_allows_just_this_call_also_masked() {
    // A denial by default comes with a permit that allows just this call.
    let (gateway, who) = start(POLICIES);
    let other = gateway.service(&who.org, "mcps:invoke");
    let quoted = json!({"title": "a \"quoted\" one", "text": "b\n\u{202e}"});
    let plain = json!({"title": "a", "text": "b"});
    for (tool, input, another, differs) in [
        // No permit is for this tool and principal.
        ("sample:create_note", quoted, plain, "principal"),
        // The head of a permit matches and its condition does not hold.
        ("sample:list_items", json!({"limit": 5}), json!({"limit": 6}), "condition"),
        ("sample:list_items", json!({}), json!({"limit": 7}), "condition"),
    ] {
        let denied = gateway.invoke(&who, tool, input.clone()).await;

        let explanation = explanation(&gateway, &who, &denied, 403).await;

        let context = explanation.to_string();
        has!("{context}"; explanation, "/decision/cause": "default_deny", "/permit_helps": true,
            "/near_misses/0/differs": differs,
            "/policy_set/recorded": explanation["policy_set"]["in_force"], "/missing": []);
        add_permit(&gateway, &who, &explanation).await;
        let allowed = gateway.invoke(&who, tool, input.clone()).await;
        assert_eq!(allowed.status, 200, "{}\n{context}", allowed.text);
        for (who, input) in [(&who, another), (&other, input)] {
            let denied = gateway.invoke(who, tool, input).await;
            assert_eq!(denied.at("/governance/policy"), "default-deny", "{context}");
        }
    }

    // What is masked stays masked and is left open.
    let note = json!({"title": "to ana", "text": "write to ana@example.com"});
    let denied = gateway.invoke(&who, "sample:create_note", note.clone()).await;

    let explanation = explanation(&gateway, &who, &denied, 403).await;

    let permit = explanation["suggested_permit"].as_str().unwrap();
    assert!(permit.contains("context.input.title == \"to ana\""), "{permit}");
    assert!(permit.contains("// context.input.text.\n"), "{permit}");
    assert!(!explanation.to_string().contains("example.com"), "{explanation}");
    add_permit(&gateway, &who, &explanation).await;
    assert_eq!(gateway.invoke(&who, "sample:create_note", note).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_explanation_tells_the_permit_to_those_who_may_read_it() {
    // Of a permitted call the permit is told and of an undecided one that nobody was asked.
    let (gateway, who) = start(POLICIES);
    let allowed = gateway.invoke(&who, "sample:list_items", json!({"limit": 2})).await;
    has!(gateway.invoke(&who, "sample:list_items", json!({"limit": "x"})).await, 400);
    let page = gateway.get(&who, "/v1/audit/events?outcome=invalid").await;
    let undecided = items(&page)[0]["id"].as_str().unwrap();

    let permitted = explanation(&gateway, &who, &allowed, 200).await;
    let unasked = explained(&gateway, &who, undecided).await;

    assert!(summary(&permitted).contains("`short-lists` permits it: nothing has to be added."));
    has!(permitted, "/permit_helps": false, "/near_misses": []);
    let unasked = unasked.at("/data/explanation");
    assert!(summary(unasked).contains("No policy was asked"), "{unasked}");
    assert_eq!((&unasked["decision"], &unasked["permit_helps"]), (&Value::Null, &json!(false)));

    // An explanation is for those who may read event and policies.
    let caller = gateway.service(&who.org, "mcps:invoke");
    let reader = gateway.service(&who.org, "mcps:invoke policies:read");
    let stranger = gateway.service(&gateway.org("other", &ENOUGH), ALL_SCOPES);
    let denied = gateway.invoke(&caller, "sample:list_items", json!({"limit": 5})).await;
    let id = denied.event_id();
    let logins = gateway.get(&who, "/v1/audit/events?type=token.issued").await;
    let login = members(&logins, "id")[0];

    has!(explained(&gateway, &caller, id).await, 403 "insufficient_scope");
    let unseen = [explained(&gateway, &reader, id).await, explained(&gateway, &stranger, id).await];
    let unknown = gateway.get(&who, &format!("/v1/audit/events/{id}?explain=yes")).await;
    let no_call = explained(&gateway, &who, login).await;
    let plain = gateway.event(&who, id).await;
    let not_asked = gateway.get(&caller, &format!("/v1/audit/events/{id}?explain=0")).await;

    assert!(unseen.iter().all(|answer| answer.status == 404));
    has!(unknown, 400 "invalid_request", "/error/details/parameter": "explain");
    for answer in [plain, not_asked, no_call] {
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.at("/data").get("explanation"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_permit_does_not_help_it_is_said_what_does() {
    let (gateway, who) = start(&format!("{POLICIES}{OPEN}"));
    let narrow = gateway.service(&who.org, "mcps:read");
    let echo = json!({"text": "a loud word", "seconds": 0});
    let note = json!({"title": "key", "text": PEM});

    let always = gateway.invoke(&who, "sample:always_fails", json!({})).await;
    let matched = gateway.invoke(&who, "sample:slow_echo", echo).await;
    let blocked = gateway.invoke(&who, "sample:create_note", note).await;
    let unscoped = gateway.invoke(&narrow, "sample:list_items", json!({})).await;
    let withheld = gateway.invoke(&who, "sample:list_items", json!({})).await;
    let customer = json!({"id": "cus_1001"});
    gateway.invoke(&who, "sample:get_customer", customer.clone()).await;
    let spent = gateway.invoke(&who, "sample:get_customer", customer).await;

    for (call, told) in [
        (always, &["The forbid `no-failing` is true", "It would only fail"][..]),
        (matched, &["The forbid `quiet` is true", "`context.input.text = \"a loud word\"`"]),
        (blocked, &["`dlp-default`", "private_key", "governance.dlp_findings", "by `open`"]),
        (unscoped, &["`token-scopes`", "mcps:invoke", "needs a token with that scope"]),
        (withheld, &["The forbid `inside` is true", "Lists stay inside"]),
        (spent, &["denied by `rarely`", "asks for an obligation that was not fulfilled"]),
    ] {
        let explanation = explanation(&gateway, &who, &call, 403).await;
        let summary = summary(&explanation);
        assert!(told.iter().all(|part| summary.contains(part)), "{told:?} in {summary}");
        assert!(summary.contains("permit does not help"), "{summary}");
        assert_eq!(explanation["permit_helps"], false, "{explanation}");
        assert!(explanation["suggested_permit"].is_null(), "{explanation}");
        assert!(!explanation.to_string().contains("BEGIN RSA"), "{explanation}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_set_and_parts_that_were_erased_are_said_to_be_so() {
    let (gateway, who) = start(POLICIES);
    let denied = gateway.invoke(&who, "sample:list_items", json!({"limit": 5})).await;
    let more = "@id(\"five\") permit (principal in Mcp::Role::\"service\", action, resource);";
    fs::write(gateway.folder().join("policies/more.cedar"), more).unwrap();
    until(|| gateway.get(&who, "/v1/policies/five"), |it| it.status == 200).await;

    let now = explanation(&gateway, &who, &denied, 403).await;
    let erase = format!("audit erase --org acme --event {} --reason asked", denied.event_id());
    assert!(run(&gateway, &words(&erase)).await.status.success());
    let erased = explanation(&gateway, &who, &denied, 403).await;

    assert!(summary(&now).contains("It was denied by `default-deny`"), "{now}");
    assert!(summary(&now).contains("`five` permits it: nothing has to be added."), "{now}");
    assert!(summary(&now).contains("decided under another policy set"), "{now}");
    has!(erased, "/missing": ["decision_inputs"], "/decision": null, "/policies": []);
    assert!(summary(&erased).contains("allow this call, unless a forbid is true"), "{erased}");
    let permit = erased["suggested_permit"].as_str().unwrap();
    assert!(permit.contains("Any value is allowed") && permit.contains("context.input.limit"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suggestion_names_what_it_does_not_settle() {
    let forbids = r#"@id("rare-notes") @reason("Notes are rare") @rate_limit("5/1h per=principal")
        forbid (principal, action == Mcp::Action::"sample:create_note", resource);
        @id("no-shouting") @reason("Notes are quiet")
        forbid (principal, action == Mcp::Action::"sample:create_note", resource)
        when { context.input.text like "*!*" };"#;
    let (gateway, who) = start(&format!("{POLICIES}{forbids}"));
    let note = json!({"title": "to ana", "text": "write to ana@example.com"});
    let denied = gateway.invoke(&who, "sample:create_note", note).await;

    let explanation = explanation(&gateway, &who, &denied, 403).await;

    let summary = summary(&explanation);
    assert!(summary.contains("unless `no-shouting` is true, which is not known."), "{summary}");
    assert!(summary.contains("the obligation of `rare-notes` has to be fulfilled"), "{summary}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_explains_a_call_from_the_shell() {
    let (gateway, who) = start(POLICIES);
    let denied = gateway.invoke(&who, "sample:list_items", json!({"limit": 5})).await;
    let forbidden = gateway.invoke(&who, "sample:always_fails", json!({})).await;
    let by_api = explanation(&gateway, &who, &denied, 403).await;
    let page = gateway.get(&who, "/v1/audit/events?type=token.issued").await;

    let text = run(&gateway, &["policy", "explain", denied.event_id()]).await;
    let json = run(&gateway, &["policy", "explain", denied.event_id(), "--json"]).await;
    let token = gateway.folder().join("token");
    fs::write(&token, &who.token).unwrap();
    let there = ["--url", gateway.url(), "--token-file", token.to_str().unwrap(), "--json"];
    let there = [&["policy", "explain", denied.event_id()][..], &there].concat();
    let of_gateway = run(&gateway, &there).await;
    run(&gateway, &["policy", "disable", "no-failing", "--ttl", "1h"]).await;
    let off = run(&gateway, &["policy", "explain", forbidden.event_id()]).await;
    fs::write(gateway.folder().join("policies/broken.cedar"), "permit (principal").unwrap();
    let broken = run(&gateway, &["policy", "explain", denied.event_id()]).await;

    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    for part in [
        "No permit is true for it.",
        "short-lists (active permit): false",
        "false    context.input.limit <= 3    [context.input.limit = 5]",
        "admins: permit (principal in Mcp::Role::\"admin\", action, resource)",
        by_api["suggested_permit"].as_str().unwrap(),
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["suggested_permit"], by_api["suggested_permit"]);
    assert_eq!(serde_json::from_slice::<Value>(&of_gateway.stdout).unwrap(), json);
    assert!(String::from_utf8_lossy(&off.stdout).contains("No permit is true for it."));
    let by_last = String::from_utf8_lossy(&broken.stdout);
    assert!(by_last.contains("short-lists (active permit): false"), "{by_last}");
    let told = String::from_utf8_lossy(&broken.stderr);
    assert!(told.contains("were last in force; the folder as it is would not"), "{told}");
    assert!(told.contains("policies/broken.cedar:1:"), "{told}");
    let login = members(&page, "id")[0];
    assert_fails(&gateway, &["policy", "explain", login], 1, "token.issued").await;
    let unknown = "evt_01M7W9Y2TK0000000000000000";
    assert_fails(&gateway, &["policy", "explain", unknown], 1, "no event `evt_").await;
}
