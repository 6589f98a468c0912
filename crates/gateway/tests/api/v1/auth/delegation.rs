//! `POST /v1/auth/token` with two credentials: an agent that acts for a user.

use super::trusting::{Trusting, exchange, get, list_items, operators, revoke, text};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_acts_for_a_person_as_far_as_both_may_and_is_named_in_every_event() {
    let it = Trusting::start("");
    let agent = operators(&it.gateway, &it.agent);
    let person = it.person("ana", &["mcp-admins"]);

    let body = json!({"subject_token": person, "label": "helpdesk"});
    let answer = it.exchange(&agent, &body).await.ok();

    assert!(text(&answer, "/data/access_token").starts_with("mcp_live_"));
    assert_eq!(answer.at("/data/principal/via"), it.agent.as_str());
    assert_eq!(answer.at("/data/scope"), "mcps:invoke mcps:read policies:read", "what both may");
    assert_eq!(answer.at("/data/expires_in"), 3600);
    assert_eq!(answer.at("/data").get("refresh_token"), None);
    let token = text(&answer, "/data/access_token");
    let invoked = list_items(&it.gateway, &token).await;
    let path = format!("/v1/audit/events/{}", invoked.event_id());
    let event = get(&it.gateway, &token, &path).await;
    assert_eq!(event.at("/data/actor/via"), it.agent.as_str());
    assert_eq!(event.at("/data/actor/id"), answer.at("/data/principal/id"));
    let again = it.exchange(&token, &json!({"scope": "mcps:read"})).await;
    assert_eq!(again.at("/data/principal/via"), it.agent.as_str(), "it stays who acts");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_act_for_whom_is_the_rules_to_say() {
    let it = Trusting::start("");
    let ci = operators(&it.gateway, &it.ci);
    let (access, _) = it.login("ana", &[]).await;

    let jwt = it.exchange(&ci, &json!({"subject_token": it.person("ana", &[])})).await;
    let token = it.exchange(&ci, &json!({"subject_token": access})).await;
    let agent = operators(&it.gateway, &it.agent);
    let permitted = it.exchange(&agent, &json!({"subject_token": access})).await;
    let oneself = it.exchange(&access, &json!({"subject_token": it.person("ana", &[])})).await;

    for refused in [jwt, token] {
        has!(refused, 403 "insufficient_scope", "/error/details/policy": "token-scopes");
        assert!(refused.header("www-authenticate").contains("insufficient_scope"));
    }
    assert_eq!(permitted.at("/data/principal/via"), it.agent.as_str(), "{}", permitted.text);
    assert_eq!(oneself.at("/data/principal/via"), &Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delegated_token_ends_with_the_agents_token_role_or_self() {
    let it = Trusting::start("");
    let delegated = async |agent: &str| {
        let body = json!({"subject_token": it.person("ana", &["mcp-admins"])});
        text(&it.exchange(agent, &body).await, "/data/access_token")
    };
    let agent = operators(&it.gateway, &it.agent);
    let one = delegated(&agent).await;
    let two = delegated(&operators(&it.gateway, &it.agent)).await;
    assert_eq!((it.status(&one).await, it.status(&two).await), (200, 200));

    let revoked = revoke(&it.gateway, &agent, None).await;
    assert_eq!(revoked.at("/data/descendants_revoked"), 1);
    assert_eq!((it.status(&one).await, it.status(&two).await), (401, 200));

    let policies = || get(&it.gateway, &two, "/v1/policies");
    assert_eq!(policies().await.status, 200);
    it.gateway.admin(&["principal", "set-role", &it.agent, "--scopes", "mcps:read"]);
    let cut = until(policies, |answer| answer.status == 403).await;
    assert_eq!(cut.code(), "insufficient_scope");
    it.gateway.admin(&["principal", "disable", &it.agent]);
    let gone = until(policies, |answer| answer.status == 401).await;
    assert_eq!(gone.code(), "token_revoked");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_orgs_do_not_meet_in_one_token() {
    let gateway = gateway().start();
    let ours = gateway.user(&gateway.org("acme", &ENOUGH), "admin", ALL_SCOPES);
    let theirs = gateway.user(&gateway.org("other", &ENOUGH), "admin", ALL_SCOPES);

    let body = json!({"subject_token": theirs.token});
    let answer = exchange(&gateway, &ours.token, &body).await;

    assert_eq!(answer.refusal(), (400, "invalid_request"), "{}", answer.text);
    let issued = gateway.get(&theirs, "/v1/audit/events?type=token.issued").await;
    assert_eq!(items(&issued).len(), 1, "nothing but what the shell made");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_credential_twice_is_no_delegation() {
    let gateway = gateway().start();
    let who = gateway.user(&gateway.org("acme", &ENOUGH), "admin", ALL_SCOPES);

    let body = json!({"subject_token": who.token});
    let answer = exchange(&gateway, &who.token, &body).await;
    let alone = exchange(&gateway, "", &body).await;

    assert_eq!(answer.at("/data/principal/via"), &Value::Null, "{}", answer.text);
    assert_eq!(alone.status, 200, "the body alone is enough: {}", alone.text);
}
