//! `GET /v1/policies/{id}`: what reloads leave behind, and what calls meet meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use portcullis_testkit::tool;

use super::policies::{set, set_read, set_with, write};
use crate::prelude::*;

const BASE: &str = "@id(\"base\") permit (principal, action, resource);\n";

/// The base, and a forbid of this name on long lists.
fn short(name: &str) -> String {
    format!(
        "{BASE}@id(\"{name}\") @reason(\"Lists are short\")
        forbid (principal, action == Mcp::Action::\"sample:list_items\", resource)
        when {{ context has input && context.input has limit && context.input.limit > 10 }};\n"
    )
}

/// Asks for a list of this length.
pub(super) async fn list(gateway: &Gateway, who: &Principal, limit: u64) -> Answer {
    gateway.invoke(who, "sample:list_items", json!({"limit": limit})).await
}

/// The policy that decided and the set it stood in, as the event says.
async fn recorded(gateway: &Gateway, who: &Principal, answer: &Answer) -> (String, String) {
    let event = gateway.event(who, answer.event_id()).await;
    let text = |name: &str| {
        event.at(&format!("/data/governance/{name}")).as_str().unwrap_or_default().to_owned()
    };
    (text("policy"), text("policy_set"))
}

#[tokio::test(flavor = "multi_thread")]
async fn reloads_are_logged_kept_in_versions_and_outlive_a_folder_that_is_gone() {
    // The log says what changed and what was not taken.
    let (mut gateway, who) = serve(gateway().sample().policies(&short("short")));
    let before = set(&gateway, &who).await;

    write(&gateway, &short("shorter"));
    set_with(&gateway, &who, "shorter").await;
    write(&gateway, "permit (principal");
    set_read(&gateway, &who, "failed").await;

    let failures = wait_for_events(&gateway, &who, "policy.reload_failed").await;
    let changes = list_of(&gateway, &who, "policy.changed", "").await;
    assert_eq!(changes.len(), 1, "{changes:?}");
    let change = &changes[0]["detached"]["change"];
    has!(change, "/added": ["shorter"], "/removed": ["short"]);
    assert_eq!(&change["previous"], before.at("/data/policy_set/version"));
    let error = &failures.last().unwrap()["detached"]["reload"]["errors"][0];
    has!("{failures:?}"; error, "/path": "test.cedar", "/code": "syntax");

    // Every version that was in force can be read also after a restart.
    write(&gateway, &short("short"));
    set_with(&gateway, &who, "short").await;
    let denied = list(&gateway, &who, 50).await;
    let event = gateway.event(&who, denied.event_id()).await;
    let version = event.at("/data/governance/policy_version").as_str().unwrap().to_owned();

    write(&gateway, &format!("{BASE}@id(\"other\") permit (principal, action, resource);"));
    set_with(&gateway, &who, "other").await;
    gateway.stop();
    gateway.start();

    let gone = gateway.get(&who, "/v1/policies/short").await;
    assert_eq!(gone.refusal(), (404, "not_found"));
    let kept = gateway.get(&who, &format!("/v1/policies/short?version={version}")).await.ok();
    has!(kept, "/data/version": version.as_str(), "/data/reason": "Lists are short");
    assert!(kept.at("/data/source").as_str().unwrap().contains("limit > 10"), "{}", kept.text);
    for path in ["short?version=sha256:00", "base?version=short"] {
        assert_eq!(gateway.get(&who, &format!("/v1/policies/{path}")).await.status, 404, "{path}");
    }

    // A folder that is gone leaves the last good set and is loaded when it is back.
    write(&gateway, &short("short"));
    set_with(&gateway, &who, "short").await;
    let policies = gateway.folder().join("policies");

    fs::remove_dir_all(&policies).unwrap();
    set_read(&gateway, &who, "failed").await;
    has!(list(&gateway, &who, 50).await, 403, "/governance/policy": "short");

    fs::create_dir(&policies).unwrap();
    write(&gateway, &short("back"));
    set_with(&gateway, &who, "back").await;
    // The new folder is watched like the old one.
    write(&gateway, &short("again"));
    set_with(&gateway, &who, "again").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_starts_with_the_last_good_set_only_when_it_is_told_to_and_says_so() {
    // A node starts with the last good set only when it is told to.
    let (mut gateway, who) = serve(gateway().sample().policies(&short("short")));
    gateway.stop();
    write(&gateway, "permit (principal");

    let (code, told) = failure(&gateway, &["serve"]).await;
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("policies cannot be loaded") && told.contains("test.cedar:1:"), "{told}");
    gateway.start_with(&["--last-good"]);

    has!(list(&gateway, &who, 50).await, 403, "/governance/policy": "short");
    let shown = set(&gateway, &who).await;
    assert_eq!(shown.at("/data/policy_set/last_reload/status"), "failed");
    assert_eq!(shown.at("/data/policy_set/last_reload/errors/0/path"), "test.cedar");
    write(&gateway, &short("mended"));
    set_with(&gateway, &who, "mended").await;

    // Log and commands say that a node decides by what was last in force.
    gateway.stop();
    write(&gateway, "permit (principal");
    gateway.start_with(&["--last-good"]);

    let (_, checked) = failure(&gateway, &["check"]).await;
    let shown = run(&gateway, &["check"]).await;
    let (_, validated) = failure(&gateway, &["policy", "validate"]).await;
    write(&gateway, &short("mended"));

    for told in [gateway.starting_log(), &checked, &validated] {
        assert!(told.contains("decides by the policies that were last in force"), "{told}");
    }
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    for counted in ["policies    2, built in ", "would not be loaded"] {
        assert!(shown.contains(counted), "{shown}");
    }
    eventually("a command that has nothing to say of it", async || {
        let listed = run(&gateway, &["policy", "list"]).await;
        assert!(listed.status.success());
        listed.stderr.is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_names_a_tool_before_it_is_there_holds_once_it_is() {
    let upstream = McpServer::start(vec![tool("first")]).await;
    let provider = gateway().http("up", &upstream.url(), "pin = \"on\"");
    let (gateway, who) = serve(provider.policies(BASE));
    let early = "@id(\"early\") @reason(\"r\") forbid (principal, action == Mcp::Action::\"up:later\", resource);";
    write(&gateway, &format!("{BASE}{early}"));
    eventually("a reload that fails", async || {
        let shown = set(&gateway, &who).await;
        (shown.at("/data/policy_set/last_reload/status") == "failed").then_some(())
    })
    .await;

    upstream.change_tools(vec![tool("first"), tool("later")]);

    set_with(&gateway, &who, "early").await;
    has!(gateway.invoke(&who, "up:later", json!({})).await, 403, "/governance/policy": "early");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_tell_what_became_of_each_policy() {
    let policies = format!(
        "{}@id(\"watch\") @mode(\"shadow\") @reason(\"x\") forbid (principal, action, resource);",
        short("short")
    );
    let (gateway, who) = serve(gateway().sample().policies(&policies));
    for limit in [5, 5, 50] {
        list(&gateway, &who, limit).await;
    }
    let reader = gateway.service(&who.org, "mcps:read");
    list(&gateway, &reader, 5).await;

    let stats = async |id: &str| {
        let record = gateway.get(&who, &format!("/v1/policies/{id}")).await;
        let stats = record.at("/data/stats").clone();
        assert_eq!(stats["applies_to_tools"].as_u64(), Some(if id == "short" { 1 } else { 5 }));
        let numbers = ["matched", "decided", "errors", "would_flip"];
        let numbers = numbers.map(|name| stats[name].as_u64().unwrap());
        (numbers, stats["last_matched_at"].is_string())
    };

    assert_eq!(stats("base").await, ([2, 2, 0, 0], true));
    assert_eq!(stats("short").await, ([1, 1, 0, 0], true));
    assert_eq!(stats("watch").await, ([0, 0, 0, 2], false));
    assert_eq!(stats("token-scopes").await, ([1, 1, 0, 0], true));
    // Answers that pass are decided by what permitted their calls.
    assert_eq!(stats("dlp-default").await, ([0, 0, 0, 0], false));
    let listed = set(&gateway, &who).await;
    assert!(items(&listed).iter().all(|record| record["stats"].is_object()), "{}", listed.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_storm_of_reloads_every_call_is_decided_by_one_set_and_its_event_says_which() {
    let (gateway, who) = serve(gateway().sample().policies(&short("a")));
    let first = set(&gateway, &who).await.at("/data/policy_set/version").clone();
    write(&gateway, &short("b"));
    let second = set_with(&gateway, &who, "b").await;
    let second = second.at("/data/policy_set/version").clone();
    let done = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&done);
    let file = gateway.folder().join("policies/test.cedar");
    let storm = std::thread::spawn(move || {
        let texts = [short("a"), "permit (".to_owned(), short("b"), String::new()];
        for text in texts.iter().cycle() {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            fs::write(&file, text).unwrap();
            std::thread::park_timeout(Duration::from_millis(60));
        }
    });

    let mut seen = BTreeSet::new();
    for turn in 0..400_u32 {
        let (limit, status) = if turn % 4 == 0 { (50, 403) } else { (5, 200) };
        let answer = list(&gateway, &who, limit).await;
        assert_eq!(answer.status, status, "{}", answer.text);
        let (policy, version) = recorded(&gateway, &who, &answer).await;
        let known = [("a", &first), ("b", &second)];
        let named = known.iter().find(|(_, it)| **it == version.as_str());
        let (name, _) = named.unwrap_or_else(|| panic!("no set {version}"));
        assert_eq!(policy, if status == 200 { "base" } else { *name });
        seen.insert(*name);
    }
    done.store(true, Ordering::Relaxed);
    storm.join().unwrap();
    assert!(!seen.is_empty());
}
