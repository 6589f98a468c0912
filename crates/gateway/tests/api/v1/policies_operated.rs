//! Files beside the policies: cases that a set has to satisfy, the kill switch, and the events of a
//! node that starts with another set.

use std::fs;

use portcullis_testkit::{Answer, Gateway, Principal};
use serde_json::{Value, json};

use crate::{
    gateway,
    given::{ALL_SCOPES, ENOUGH, failure, items, run, serve, until},
};

const POLICIES: &str = r#"@id("base") permit (principal, action, resource);
@id("short") @reason("Lists are short")
forbid (principal, action == Mcp::Action::"sample:list_items", resource)
when { context.input has limit && context.input.limit > 10 };
"#;

const CASES: &str = "defaults: {tool: 'sample:list_items'}
cases:
- {id: few, input: {limit: 5}, expect: {decision: allow}}
- {id: many, input: {limit: 50}, expect: {decision: deny, policy: short}}
";

fn admin(gateway: &Gateway) -> Principal {
    gateway.service(&gateway.org("acme", &ENOUGH), ALL_SCOPES)
}

fn write(gateway: &Gateway, name: &str, text: &str) {
    let file = gateway.folder().join("policies").join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

async fn set(gateway: &Gateway, who: &Principal) -> Answer {
    gateway.get(who, "/v1/policies").await
}

fn status(answer: &Answer) -> &Value {
    answer.at("/data/policy_set/last_reload/status")
}

async fn list(gateway: &Gateway, who: &Principal, limit: u64) -> Answer {
    gateway.invoke(who, "sample:list_items", json!({"limit": limit})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_does_not_do_what_a_case_expects_is_not_taken() {
    let (gateway, who) = serve(gateway().sample().policies(POLICIES));
    write(&gateway, "tests/lists.yaml", CASES);
    let taken =
        until(|| set(&gateway, &who), |it| it.at("/data/policy_set/tests/passed") == 2).await;
    let version = taken.at("/data/policy_set/version").clone();

    write(&gateway, "test.cedar", &POLICIES.replace("> 10", "> 100"));
    let refused = until(|| set(&gateway, &who), |it| status(it) == "failed").await;

    let error = refused.at("/data/policy_set/last_reload/errors/0");
    assert_eq!(
        (&error["path"], &error["line"]),
        (&json!("tests/lists.yaml"), &json!(4)),
        "{error}"
    );
    assert_eq!(error["code"], "test_failed");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("`many`") && message.contains("expected `deny`, got `allow`"),
        "{error}"
    );
    assert_eq!(refused.at("/data/policy_set/version"), &version);
    assert_eq!(list(&gateway, &who, 50).await.status, 403);
    write(&gateway, "tests/lists.yaml", &CASES.replace("limit: 50", "limit: 500"));
    let mended = until(|| set(&gateway, &who), |it| status(it) == "ok").await;
    assert_ne!(mended.at("/data/policy_set/version"), &version);
    write(&gateway, "tests/lists.yaml", "cases: [{tool: 'sample:nothing', expect: {}}]");
    let unknown = until(|| set(&gateway, &who), |it| status(it) == "failed").await;
    assert!(unknown.text.contains("there is no such tool"), "{}", unknown.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_of_a_starting_node_are_run_when_the_tools_are_known() {
    let mut gateway = gateway().sample().policies(POLICIES).prepare();
    write(&gateway, "tests/lists.yaml", &CASES.replace("policy: short", "policy: long"));
    gateway.start();
    let who = admin(&gateway);

    let told =
        until(|| set(&gateway, &who), |it| it.at("/data/policy_set/tests/failed") == 1).await;

    assert_eq!(told.at("/data/policy_set/tests/passed"), 1);
    assert_eq!(told.at("/data/policy_set/tests/failures/0/line"), 4, "{}", told.text);
    assert_eq!(list(&gateway, &who, 50).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_is_switched_off_decides_nothing_until_it_is_switched_on() {
    let (gateway, who) = serve(gateway().sample().policies(POLICIES));
    write(&gateway, "tests/lists.yaml", CASES);
    until(|| set(&gateway, &who), |it| it.at("/data/policy_set/tests/passed") == 2).await;
    let before = set(&gateway, &who).await.at("/data/policy_set/version").clone();
    let short = || gateway.get(&who, "/v1/policies/short");

    assert!(run(&gateway, &["policy", "disable", "short", "--ttl", "1h"]).await.status.success());
    let off = until(short, |it| it.at("/data/status") == "disabled").await;

    assert_eq!(off.at("/data/origin/override/status"), "disabled", "{}", off.text);
    assert!(off.at("/data/origin/override/until").is_string());
    let allowed = list(&gateway, &who, 50).await;
    assert_eq!((allowed.status.as_u16(), allowed.at("/governance/policy")), (200, &json!("base")));
    let event = gateway.get(&who, &format!("/v1/audit/events/{}", allowed.event_id())).await;
    assert_ne!(event.at("/data/governance/policy_set"), &before);
    let changes = "/v1/audit/events?type=policy.changed";
    let changes = until(|| gateway.get(&who, changes), |it| !items(it).is_empty()).await;
    assert_eq!(items(&changes).len(), 1, "{}", changes.text);

    assert!(run(&gateway, &["policy", "enable", "short"]).await.status.success());
    let on = until(short, |it| it.at("/data/status") == "active").await;
    assert_eq!(on.at("/data/origin").get("override"), None);
    assert_eq!(set(&gateway, &who).await.at("/data/policy_set/version"), &before);
    assert_eq!(list(&gateway, &who, 50).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_switch_works_while_the_folder_is_broken_after_a_restart_and_ends_by_itself() {
    let (mut gateway, who) = serve(gateway().sample().policies(POLICIES));
    write(&gateway, "more.cedar", "permit (");
    until(|| set(&gateway, &who), |it| status(it) == "failed").await;

    assert!(run(&gateway, &["policy", "disable", "short", "--ttl", "1h"]).await.status.success());
    let short = "/v1/policies/short";
    until(|| gateway.get(&who, short), |it| it.at("/data/status") == "disabled").await;
    assert_eq!(status(&set(&gateway, &who).await), "failed");
    fs::remove_file(gateway.folder().join("policies/more.cedar")).unwrap();
    gateway.stop();
    gateway.start();
    assert_eq!(list(&gateway, &who, 50).await.status, 200);
    assert!(run(&gateway, &["policy", "disable", "short", "--ttl", "2s"]).await.status.success());

    until(|| gateway.get(&who, short), |it| it.at("/data/status") == "active").await;
    assert_eq!(list(&gateway, &who, 50).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_switched_off_is_said() {
    let gateway = gateway().sample().policies(POLICIES).prepare();
    for (arguments, says) in [
        (["policy", "disable", "shorts", "--ttl", "1h"], "no policy `shorts`"),
        (["policy", "disable", "default-deny", "--ttl", "1h"], "no policy `default-deny`"),
        (["policy", "disable", "short", "--ttl", "8d"], "7d at most"),
    ] {
        let (code, told) = failure(&gateway, &arguments).await;

        assert_eq!(code, 1, "{told}");
        assert!(told.contains(says), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_starts_with_another_set_says_so_in_the_log() {
    let (mut gateway, who) = serve(gateway().sample().policies(POLICIES));
    let first = set(&gateway, &who).await.at("/data/policy_set/version").clone();
    let restarts = |gateway: &mut Gateway| {
        gateway.stop();
        gateway.start();
    };
    let started = "/v1/audit/events?type=system.started";
    until(|| gateway.get(&who, "/v1/policies/short?version=x"), |it| it.status == 404).await;

    restarts(&mut gateway);
    until(|| gateway.get(&who, started), |it| !items(it).is_empty()).await;
    gateway.stop();
    write(&gateway, "test.cedar", &POLICIES.replace("> 10", "> 20"));
    write(&gateway, "more.cedar", "@id(\"more\") permit (principal, action, resource);");
    gateway.start();

    let changed = "/v1/audit/events?type=policy.changed";
    let changed = until(|| gateway.get(&who, changed), |it| !items(it).is_empty()).await;
    assert_eq!(items(&changed).len(), 1, "the restart with the same set is none: {}", changed.text);
    let id = items(&changed)[0]["id"].as_str().unwrap();
    let event = gateway.get(&who, &format!("/v1/audit/events/{id}")).await;
    let change = event.at("/data/detached/change");
    assert_eq!((&change["previous"], &change["added"]), (&first, &json!(["more"])), "{change}");
    assert_eq!((&change["changed"], &change["removed"]), (&json!(["short"]), &json!([])));
}
