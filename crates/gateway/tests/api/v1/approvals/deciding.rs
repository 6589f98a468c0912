//! Decisions about approvals: people who may make one, and reasons for which one is refused.

use super::Waiting;
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn only_people_of_its_groups_and_admins_decide_and_never_about_calls_of_their_own() {
    let it = Waiting::start().await;
    let ana = it.person("ana", &["finance"]).await;
    let ben = it.person("ben", &["finance"]).await;
    let cat = it.person("cat", &["sales"]).await;
    let through = json!({"subject_token": ben.token, "scope": "approvals:decide"});
    let through = it.exchange(&it.agent.token, &through).await;
    let other = it.gateway.org("other", &ENOUGH);
    let other = it.gateway.user(&other, "admin", ALL_SCOPES);
    let theirs = it.ask(&it.agent, "pay", json!({"amount": 1})).await;
    let hers = it.ask(&ana, "pay", json!({"amount": 1})).await;
    let for_ana = json!({"subject_token": ana.token, "scope": "mcps:invoke"});
    let for_ana = it.exchange(&it.agent.token, &for_ana).await;
    let acted = it.ask(&for_ana, "pay", json!({"amount": 2})).await;

    let table = [
        ("whoever asked", &ana, &hers, (403, "policy_denied")),
        ("a service account that asked", &it.agent, &theirs, (403, "policy_denied")),
        ("a service account", &it.agent, &hers, (404, "not_found")),
        ("whoever is acted for", &ana, &acted, (403, "policy_denied")),
        ("whoever acts", &it.agent, &acted, (403, "policy_denied")),
        ("somebody of another group", &cat, &hers, (404, "not_found")),
        ("a token through which somebody acts", &through, &hers, (404, "not_found")),
        ("an admin of another org", &other, &hers, (404, "not_found")),
    ];
    for (who, principal, id, expected) in table {
        let answer = it.decide(principal, id, json!({"decision": "approve"})).await;
        assert_eq!(answer.refusal(), expected, "{who}: {}", answer.text);
    }
    assert_eq!(it.get(&other, &hers).await.refusal(), (404, "not_found"));
    assert_eq!(it.get(&ana, &hers).await.at("/data/decisions"), &json!([]));

    it.approve(&ben, &hers).await;
    let treasurer = it.person("tom", &["treasury"]).await;
    it.approve(&treasurer, &acted).await;
    it.approve(&it.person("ada", &["admins"]).await, &theirs).await;
    assert_eq!(it.invoke(&it.agent, "pay", json!({"amount": 1})).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_people_with_two_factors_approve_a_call_for_several_runs() {
    let it = Waiting::start().await;
    let ana = it.person("ana", &[]).await;
    let weak = it.person("ben", &["finance"]).await;
    let ben = it.login("ben", &["finance"], &["pwd", "mfa"], "").await;
    let cat = it.login("cat", &["finance"], &["pwd", "mfa"], "").await;
    let id = it.ask(&ana, "wire", json!({"amount": 9})).await;

    let refused = it.decide(&weak, &id, json!({"decision": "approve"})).await;
    assert_eq!(refused.refusal(), (403, "policy_denied"), "{}", refused.text);
    assert!(refused.at("/error/details/reason").as_str().unwrap().contains("second factor"));
    it.approve(&ben, &id).await;
    has!(it.decide(&ben, &id, json!({"decision": "approve"})).await, 409 "approval_settled",
        "/error/details/status": "pending", "/error/details/approval_id": id.as_str());
    assert_eq!(it.ask(&ana, "wire", json!({"amount": 9})).await, id);
    it.approve(&cat, &id).await;

    for _ in 0..2 {
        it.invoke(&ana, "wire", json!({"amount": 9})).await.ok();
    }
    assert_ne!(it.ask(&ana, "wire", json!({"amount": 9})).await, id);
    assert_eq!(it.upstream.count("wire"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_of_the_newest_login_and_of_the_operator_decide_and_comments_are_text() {
    // A group that the newest login lost counts no more for older tokens.
    let (it, ana, ben) = Waiting::with_two().await;
    let id = it.ask(&ana, "pay", json!({"amount": 7})).await;
    assert_eq!(it.get(&ben, &id).await.status, 200);

    let newest = it.person("ben", &["sales"]).await;

    for token in [&ben, &newest] {
        has!(it.decide(token, &id, json!({"decision": "approve"})).await, 404 "not_found");
    }
    assert_eq!(it.get(&ana, &id).await.at("/data/status"), "pending");

    // People whom the operator put into a group decide until they are taken out.
    let ana = it.person("ana", &[]).await;
    let ben = it.person("ben", &["sales"]).await;
    let seen_by = async |status: u16| {
        let seen = async || (it.get(&ben, &id).await.status == status).then_some(());
        eventually("the groups of the principal on this node", seen).await;
    };
    assert_eq!(it.get(&ben, &id).await.status, 404);

    it.gateway.admin(&["principal", "set-groups", &ben.id, "finance"]);
    seen_by(200).await;
    it.gateway.admin(&["principal", "set-groups", &ben.id, "--none"]);
    let late = it.decide(&ben, &id, json!({"decision": "approve"})).await;
    assert_eq!(late.refusal(), (404, "not_found"), "rights count at once: {}", late.text);
    it.gateway.admin(&["principal", "set-groups", &ben.id, "staff", "treasury"]);
    seen_by(200).await;

    it.approve(&ben, &id).await;
    assert_eq!(it.invoke(&ana, "pay", json!({"amount": 7})).await.status, 200);

    // A comment is text and secrets in it are masked.
    let ben = it.person("cam", &["finance"]).await;
    let id = it.ask(&ana, "pay", json!({"amount": 8})).await;
    let secret = concat!("AKIA", "Q3EGRZT5VJ7KXW2N");
    let comment = format!("<img src=x onerror=alert(1)>\nkey {secret}");

    let decided =
        it.decide(&ben, &id, json!({"decision": "approve", "comment": comment})).await.ok();

    assert_eq!(decided.header("content-type"), "application/json");
    let kept = decided.at("/data/decisions/0/comment").as_str().expect("a comment");
    assert!(kept.starts_with("<img src=x onerror=alert(1)>\nkey "), "{kept}");
    let stored = it.gateway.stored();
    for text in [it.get(&ana, &id).await.text, String::from_utf8_lossy(&stored).into_owned()] {
        assert!(!text.contains(secret), "a secret is not kept");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_made_once_about_the_call_that_was_read() {
    let (it, ana, ben) = Waiting::with_two().await;
    let id = it.ask(&ana, "pay", json!({"amount": 7})).await;
    let other = format!("sha256:{}", "0".repeat(64));

    for wrong in [
        json!({"decision": "approve", "digest": other}),
        json!({"decision": "approve", "digest": "sha256:00"}),
        json!({"decision": "maybe"}),
        json!({"comment": "yes"}),
        json!({"decision": "approve", "reason": "yes"}),
        json!({"decision": "approve", "comment": "\u{1b}[2J"}),
    ] {
        has!("{wrong}"; it.decide(&ben, &id, wrong.clone()).await, 400 "invalid_request");
    }
    for unknown in ["apr_01M754BKTK9TG1TCT7SPYHDJTD", "apr_", "up:pay", "%00"] {
        let answer = it.decide(&ben, unknown, json!({"decision": "approve"})).await;
        assert_eq!(answer.refusal(), (404, "not_found"), "{unknown}: {}", answer.text);
    }
    it.approve(&ben, &id).await;
    for decision in ["approve", "deny"] {
        let replayed = it.decide(&ben, &id, json!({ "decision": decision })).await;
        has!(replayed, 409 "approval_settled", "/error/details/status": "approved");
    }
    assert_eq!(it.invoke(&ana, "pay", json!({"amount": 7})).await.status, 200);
}
