//! `POST /v1/auth/token` with two credentials: an agent that acts for a user.

use portcullis_testkit::Gateway;
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    status,
    trusting::{Trusting, list_items, post, text},
};
use crate::{
    gateway,
    given::{ALL_SCOPES, ENOUGH, items, until},
};

fn token_of(gateway: &Gateway, principal: &str) -> String {
    let made = gateway.admin(&["token", "create", "--principal", principal]);
    made["token"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_acts_for_a_person_as_far_as_both_may_and_is_named_in_every_event() {
    let it = Trusting::start("");
    let agent = token_of(&it.gateway, &it.agent);
    let person = it.person("ana", &["mcp-admins"]);

    let answer =
        it.exchange(&agent, &json!({"subject_token": person, "label": "helpdesk"})).await.ok();

    assert!(text(&answer, "/data/access_token").starts_with("mcp_live_"));
    assert_eq!(answer.at("/data/principal/via"), it.agent.as_str());
    assert_eq!(answer.at("/data/scope"), "mcps:invoke mcps:read policies:read", "what both may");
    assert_eq!(answer.at("/data/expires_in"), 3600);
    assert_eq!(answer.at("/data").get("refresh_token"), None);
    let token = text(&answer, "/data/access_token");
    let invoke = list_items(&it.gateway, &token);
    let event = text(&invoke.await, "/governance/audit_event_id");
    let events = it.gateway.request(Method::GET, &format!("/v1/audit/events/{event}"));
    let event = it.gateway.send(events.bearer_auth(&token)).await;
    assert_eq!(event.at("/data/actor/via"), it.agent.as_str());
    assert_eq!(event.at("/data/actor/id"), answer.at("/data/principal/id"));
    let again = it.exchange(&token, &json!({"scope": "mcps:read"})).await;
    assert_eq!(again.at("/data/principal/via"), it.agent.as_str(), "it stays who acts");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_act_for_whom_is_the_rules_to_say() {
    let it = Trusting::start("");
    let ci = token_of(&it.gateway, &it.ci);
    let (access, _) = it.login("ana", &[]).await;

    let jwt = it.exchange(&ci, &json!({"subject_token": it.person("ana", &[])})).await;
    let token = it.exchange(&ci, &json!({"subject_token": access})).await;
    let agent = token_of(&it.gateway, &it.agent);
    let permitted = it.exchange(&agent, &json!({"subject_token": access})).await;
    let oneself = it.exchange(&access, &json!({"subject_token": it.person("ana", &[])})).await;

    for refused in [jwt, token] {
        assert_eq!(status(&refused), (403, "insufficient_scope"), "{}", refused.text);
        assert_eq!(refused.at("/error/details/policy"), "token-scopes");
        assert!(refused.header("www-authenticate").contains("insufficient_scope"));
    }
    assert_eq!(permitted.at("/data/principal/via"), it.agent.as_str(), "{}", permitted.text);
    assert_eq!(oneself.at("/data/principal/via"), &Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delegated_token_ends_with_the_agents_token_role_or_self() {
    let it = Trusting::start("");
    let delegated = |agent: String| {
        let it = &it;
        async move {
            let body = json!({"subject_token": it.person("ana", &["mcp-admins"])});
            text(&it.exchange(&agent, &body).await, "/data/access_token")
        }
    };
    let agent = token_of(&it.gateway, &it.agent);
    let (one, two) =
        (delegated(agent.clone()).await, delegated(token_of(&it.gateway, &it.agent)).await);
    assert_eq!((it.status(&one).await, it.status(&two).await), (200, 200));

    let request = it.gateway.request(Method::DELETE, "/v1/auth/token").bearer_auth(&agent);
    assert_eq!(it.gateway.send(request).await.at("/data/descendants_revoked"), 1);
    assert_eq!((it.status(&one).await, it.status(&two).await), (401, 200));

    let policies =
        || it.gateway.send(it.gateway.request(Method::GET, "/v1/policies").bearer_auth(&two));
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
    let answer = post(&gateway, "/v1/auth/token", &ours.token, &body).await;

    assert_eq!(status(&answer), (400, "invalid_request"), "{}", answer.text);
    let issued = gateway.get(&theirs, "/v1/audit/events?type=token.issued").await;
    assert_eq!(items(&issued).len(), 1, "nothing but what the shell made");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_credential_twice_is_no_delegation() {
    let gateway = gateway().start();
    let who = gateway.user(&gateway.org("acme", &ENOUGH), "admin", ALL_SCOPES);

    let body = json!({"subject_token": who.token});
    let answer = post(&gateway, "/v1/auth/token", &who.token, &body).await;
    let alone = post(&gateway, "/v1/auth/token", "", &body).await;

    assert_eq!(answer.at("/data/principal/via"), &Value::Null, "{}", answer.text);
    assert_eq!(alone.status, 200, "the body alone is enough: {}", alone.text);
}
