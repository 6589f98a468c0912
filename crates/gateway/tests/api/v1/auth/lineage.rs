//! The lineage of a token is checked on every use, and rights that were passed on reach down only.

use super::trusting::{Trusting, exchange, get, list_items, operators, revoke, text};
use crate::prelude::*;

/// A token made from this one, with this body.
async fn derive_token(it: &Trusting, from: &str, body: &Value) -> (String, String) {
    let answer = it.exchange(from, body).await.ok();
    (text(&answer, "/data/access_token"), text(&answer, "/data/token_id"))
}

/// A token through which `actor` acts for the subject of `from`.
async fn delegate(it: &Trusting, from: &str, actor: &str) -> String {
    derive_token(it, actor, &json!({"subject_token": from})).await.0
}

/// Starts the gateway again with another configuration.
fn reconfigure(it: &mut Trusting, change: impl FnOnce(String) -> String) {
    it.gateway.stop();
    let file = it.gateway.config_file();
    let changed = change(fs::read_to_string(&file).unwrap());
    fs::write(&file, changed).unwrap();
    it.gateway.start();
}

/// Starts the gateway again without the rule `people`.
fn without_people(it: &mut Trusting) {
    let rule = "[[trust]]\nname = \"people\"";
    reconfigure(it, |config| config.split(rule).next().unwrap().to_owned());
}

/// The configuration with another text in the rule `people`, which comes last.
fn in_people(config: &str, from: &str, to: &str) -> String {
    let (before, rule) = config.split_once("[[trust]]\nname = \"people\"").unwrap();
    assert!(rule.contains(from), "{rule}");
    format!("{before}[[trust]]\nname = \"people\"{}", rule.replace(from, to))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_is_taken_away_takes_every_token_of_its_chain_along() {
    let mut it = Trusting::start("");
    let agent = operators(&it.gateway, &it.agent);
    let (first, refresh) = it.login("ana", &[]).await;
    let (second, _) = derive_token(&it, &first, &Value::Null).await;
    let (third, _) = derive_token(&it, &second, &json!({"scope": "mcps:read"})).await;
    let through = delegate(&it, &third, &agent).await;
    let (last, _) = derive_token(&it, &through, &Value::Null).await;
    let chain = [&first, &second, &third, &through, &last];
    for token in chain {
        assert_eq!(it.status(token).await, 200);
    }

    without_people(&mut it);

    for token in chain {
        assert_eq!(it.status(token).await, 401);
        has!("it buys nothing"; it.exchange(token, &Value::Null).await, 401 "token_revoked");
    }
    assert_eq!(it.refresh(&refresh).await.refusal(), (401, "token_revoked"));
    assert_eq!(it.status(&agent).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_actor_of_a_chain_is_named_and_bounds_what_comes_after() {
    let mut it = Trusting::start("");
    let one = it.agent.clone();
    let other = it.ci.clone();
    let delegation = format!("delegation = [\"{one}\"]");
    let both = format!("delegation = [\"{one}\", \"{other}\"]");
    reconfigure(&mut it, |config| in_people(&config, &delegation, &both));
    let first = operators(&it.gateway, &one);
    let second = operators(&it.gateway, &other);
    let (access, _) = it.login("ana", &[]).await;
    let passed_on = delegate(&it, &access, &first).await;

    let twice = it.exchange(&second, &json!({"subject_token": passed_on})).await;

    let chain = json!({"sub": other, "act": {"sub": one}});
    has!(twice, "/data/principal/via": other.as_str(), "/data/principal/act": chain);
    let token = text(&twice, "/data/access_token");
    let invoked = list_items(&it.gateway, &token).await.ok();
    let path = format!("/v1/audit/events/{}", invoked.event_id());
    has!(get(&it.gateway, &token, &path).await, "/data/actor/act": chain);
    let known = it.gateway.admin(&["token", "inspect", &text(&twice, "/data/token_id")]);
    assert_eq!(known["lineage"]["actors"], json!([other, one]));
    let call = || list_items(&it.gateway, &token);
    it.gateway.admin(&["principal", "set-role", &one, "--scopes", "mcps:read"]);
    assert_eq!(until(call, |answer| answer.status == 403).await.code(), "insufficient_scope");
    it.gateway.admin(&["principal", "disable", &one]);
    assert_eq!(until(call, |answer| answer.status == 401).await.code(), "token_revoked");
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_that_were_passed_on_reach_down_only() {
    // A token that was handed on ends what came of it and nothing above or beside.
    let it = Trusting::start("");
    let agent = operators(&it.gateway, &it.agent);
    let answer = it.logged_in("ana", &[]).await;
    let root = text(&answer, "/data/access_token");
    let root_id = text(&answer, "/data/token_id");
    let (child, child_id) = derive_token(&it, &root, &Value::Null).await;
    let (sibling, sibling_id) = derive_token(&it, &root, &Value::Null).await;
    let (grandchild, grandchild_id) = derive_token(&it, &child, &Value::Null).await;
    let delegated = delegate(&it, &child, &agent).await;

    for (bearer, above) in [
        (&child, &root_id),
        (&child, &sibling_id),
        (&grandchild, &child_id),
        (&grandchild, &root_id),
        (&delegated, &child_id),
        (&delegated, &grandchild_id),
        (&delegated, &root_id),
    ] {
        has!(revoke(&it.gateway, bearer, Some(above)).await, 404 "not_found");
    }
    assert_eq!(revoke(&it.gateway, &child, Some(&grandchild_id)).await.status, 200);
    assert_eq!(it.status(&grandchild).await, 401);
    assert_eq!(revoke(&it.gateway, &child, Some(&child_id)).await.status, 200);
    assert_eq!((it.status(&child).await, it.status(&delegated).await), (401, 401));
    assert_eq!((it.status(&root).await, it.status(&sibling).await), (200, 200));
    assert_eq!(
        revoke(&it.gateway, &root, Some(&sibling_id)).await.status,
        200,
        "its principal's own"
    );

    // An agent ends what was delegated to it.
    let (root, _) = it.login("ana", &[]).await;
    let answer = it.exchange(&agent, &json!({"subject_token": root})).await;

    revoke(&it.gateway, &agent, answer.at("/data/token_id").as_str()).await.ok();

    assert_eq!(it.status(&text(&answer, "/data/access_token")).await, 401);
    assert_eq!(it.status(&root).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_handed_on_shows_what_was_done_with_it() {
    let gateway = gateway().sample().start();
    let org = gateway.org("acme", &ENOUGH);
    let parent = gateway.service(&org, "mcps:read mcps:invoke audit:export");
    let auditor = gateway.user(&org, "admin", ALL_SCOPES);
    let narrow = async |from: &str, scope: &str| {
        let answer = exchange(&gateway, from, &json!({"scope": scope})).await;
        text(&answer, "/data/access_token")
    };
    let done =
        async |token: &str| text(&list_items(&gateway, token).await, "/governance/audit_event_id");
    let before = done(&parent.token).await;
    let child = narrow(&parent.token, "mcps:invoke").await;
    let grandchild = narrow(&child, "mcps:invoke").await;
    let of_child = done(&child).await;
    let of_grandchild = done(&grandchild).await;
    let after = done(&parent.token).await;

    let list = async |token: &str, query: &str| {
        let path = format!("/v1/audit/events?type=mcp.invocation&order=asc{query}");
        let answer = get(&gateway, token, &path).await;
        members(&answer, "id").into_iter().map(str::to_owned).collect::<Vec<_>>()
    };

    assert_eq!(list(&child, "").await, [of_child.clone(), of_grandchild.clone()]);
    assert_eq!(list(&grandchild, "").await, std::slice::from_ref(&of_grandchild));
    assert_eq!(list(&child, &format!("&actor={}", parent.id)).await.len(), 2);
    assert_eq!(list(&child, &format!("&actor={}", parent.token_id)).await, [""; 0]);
    let all = [before.clone(), of_child.clone(), of_grandchild.clone(), after.clone()];
    assert_eq!(list(&parent.token, "").await, all);
    assert_eq!(list(&auditor.token, "").await, all);
    for (event, seen) in [(&before, 404), (&after, 404), (&of_child, 200), (&of_grandchild, 200)] {
        let path = format!("/v1/audit/events/{event}");
        assert_eq!(get(&gateway, &child, &path).await.status, seen);
        let proof = get(&gateway, &child, &format!("{path}/proof")).await;
        assert_eq!(proof.status, seen, "{}", proof.text);
    }
    let issued = get(&gateway, &child, "/v1/audit/events?type=token.issued").await;
    assert_eq!(items(&issued).len(), 1, "the grandchild, not itself: {}", issued.text);
}
