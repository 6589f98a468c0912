//! Files beside the policies: cases that a set has to satisfy, the kill switch, and the events of a
//! node that starts with another set.

use super::{
    policies::{set, set_read},
    policies_reload::list,
};
use crate::{policy_commands::assert_printed, prelude::*};

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

fn write(gateway: &Gateway, name: &str, text: &str) {
    let file = gateway.folder().join("policies").join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// Version of the policies in force.
async fn version(gateway: &Gateway, who: &Principal) -> Value {
    set(gateway, who).await.at("/data/policy_set/version").clone()
}

/// Puts the cases beside the policies, and waits until they passed.
async fn write_cases(gateway: &Gateway, who: &Principal) {
    write(gateway, "tests/lists.yaml", CASES);
    until(|| set(gateway, who), |it| it.at("/data/policy_set/tests/passed") == 2).await;
}

async fn switch_off(gateway: &Gateway, ttl: &str) {
    let command = ["policy", "disable", "short", "--ttl", ttl];
    assert!(run(gateway, &command).await.status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_about_tools_that_the_node_does_not_know_keep_no_forbid_out() {
    let (gateway, who) = serve(gateway().sample().policies(POLICIES));
    write_cases(&gateway, &who).await;
    write(
        &gateway,
        "tests/added.yaml",
        "cases:\n- {tool: 'sample:nothing', expect: {decision: allow}}\n\
         - {tool: 'added:list', expect: {decision: allow}}",
    );
    write(
        &gateway,
        "stop.cedar",
        r#"@id("stop") @reason("Emergency") forbid (principal, action, resource);"#,
    );
    write(&gateway, "tests/lists.yaml", "cases: []");

    let reloaded = run(&gateway, &["policy", "reload"]).await;

    assert_printed(&reloaded, 0, "decides by the set sha256:");
    let taken = set(&gateway, &who).await;
    assert_eq!(list(&gateway, &who, 5).await.at("/error/details/policy"), "stop");
    assert_eq!(taken.at("/data/policy_set/tests/skipped"), 2, "{}", taken.text);
    for (at, line, why) in [(0, 2, "lists no such tool"), (1, 3, "no such provider")] {
        let case = &taken.at("/data/policy_set/tests/not_run")[at];
        assert_eq!((&case["path"], &case["line"]), (&json!("tests/added.yaml"), &json!(line)));
        assert!(case["message"].as_str().unwrap().contains(why), "{case}");
    }
    let validated = run(&gateway, &["policy", "validate"]).await;
    assert_printed(&validated, 0, "tests/added.yaml:2:3: `sample:nothing` is not run");
    assert_printed(&run(&gateway, &["policy", "validate", "--strict"]).await, 1, "is not run");
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_of_a_starting_node_are_run_when_the_tools_are_known() {
    let mut gateway = gateway().sample().policies(POLICIES).prepare();
    write(&gateway, "tests/lists.yaml", &CASES.replace("policy: short", "policy: long"));
    gateway.start();
    let who = gateway.service(&gateway.org("acme", &ENOUGH), ALL_SCOPES);

    let failed = |it: &Answer| it.at("/data/policy_set/tests/failed") == 1;
    let told = until(|| set(&gateway, &who), failed).await;

    has!(told, "/data/policy_set/tests/passed": 1, "/data/policy_set/tests/failures/0/line": 4);
    assert_eq!(list(&gateway, &who, 50).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_has_to_do_what_cases_expect_and_a_policy_can_be_switched_off() {
    // A policy that is switched off decides nothing until it is switched on.
    let (gateway, who) = serve(gateway().sample().policies(POLICIES));
    write_cases(&gateway, &who).await;
    let before = version(&gateway, &who).await;
    let short = || gateway.get(&who, "/v1/policies/short");

    switch_off(&gateway, "1h").await;
    let off = until(short, |it| it.at("/data/status") == "disabled").await;

    assert_eq!(off.at("/data/origin/override/status"), "disabled", "{}", off.text);
    assert!(off.at("/data/origin/override/until").is_string());
    let allowed = list(&gateway, &who, 50).await;
    assert_eq!((allowed.status.as_u16(), allowed.at("/governance/policy")), (200, &json!("base")));
    let event = gateway.event(&who, allowed.event_id()).await;
    assert_ne!(event.at("/data/governance/policy_set"), &before);
    let changes = wait_for_events(&gateway, &who, "policy.changed").await;
    assert_eq!(changes.len(), 1, "{changes:?}");

    assert!(run(&gateway, &["policy", "enable", "short"]).await.status.success());
    let on = until(short, |it| it.at("/data/status") == "active").await;
    assert_eq!(on.at("/data/origin").get("override"), None);
    assert_eq!(version(&gateway, &who).await, before);
    assert_eq!(list(&gateway, &who, 50).await.status, 403);

    // A set that does not do what a case expects is not taken.
    let version = version(&gateway, &who).await;

    write(&gateway, "test.cedar", &POLICIES.replace("> 10", "> 100"));
    let refused = set_read(&gateway, &who, "failed").await;

    let error = refused.at("/data/policy_set/last_reload/errors/0");
    has!(error, "/path": "tests/lists.yaml", "/line": 4, "/code": "test_failed");
    for part in ["`many`", "expected `deny`, got `allow`"] {
        assert!(error["message"].as_str().unwrap().contains(part), "{error}");
    }
    assert_eq!(refused.at("/data/policy_set/version"), &version);
    assert_eq!(list(&gateway, &who, 50).await.status, 403);
    write(&gateway, "tests/lists.yaml", &CASES.replace("limit: 50", "limit: 500"));
    let mended = set_read(&gateway, &who, "ok").await;
    assert_ne!(mended.at("/data/policy_set/version"), &version);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_switch_works_while_the_folder_is_broken_after_a_restart_and_ends_by_itself() {
    let (mut gateway, who) = serve(gateway().sample().policies(POLICIES));
    write(&gateway, "more.cedar", "permit (");
    set_read(&gateway, &who, "failed").await;

    switch_off(&gateway, "1h").await;
    let short = "/v1/policies/short";
    until(|| gateway.get(&who, short), |it| it.at("/data/status") == "disabled").await;
    has!(set(&gateway, &who).await, "/data/policy_set/last_reload/status": "failed");
    fs::remove_file(gateway.folder().join("policies/more.cedar")).unwrap();
    gateway.stop();
    gateway.start();
    assert_eq!(list(&gateway, &who, 50).await.status, 200);
    switch_off(&gateway, "2s").await;

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
        assert_fails(&gateway, &arguments, 1, says).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_starts_with_another_set_says_so_in_the_log() {
    let (mut gateway, who) = serve(gateway().sample().policies(POLICIES));
    let first = version(&gateway, &who).await;
    until(|| gateway.get(&who, "/v1/policies/short?version=x"), |it| it.status == 404).await;

    gateway.stop();
    gateway.start();
    wait_for_events(&gateway, &who, "system.started").await;
    gateway.stop();
    write(&gateway, "test.cedar", &POLICIES.replace("> 10", "> 20"));
    write(&gateway, "more.cedar", "@id(\"more\") permit (principal, action, resource);");
    gateway.start();

    let changed = wait_for_events(&gateway, &who, "policy.changed").await;
    assert_eq!(changed.len(), 1, "the restart with the same set is none: {changed:?}");
    let change = &changed[0]["detached"]["change"];
    has!(change, "/previous": first, "/added": ["more"], "/changed": ["short"], "/removed": []);
}
