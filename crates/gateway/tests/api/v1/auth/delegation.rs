//! `POST /v1/auth/token` with two credentials: an agent that acts for a user.

use super::trusting::{Trusting, exchange, get, list_items, operators, revoke, text};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_acts_for_whom_the_rules_say_as_long_as_it_may() {
    // An agent acts for whom the rules say.
    // An agent acts for a person as far as both may and is named in every event.
    let it = Trusting::start("");
    let agent = operators(&it.gateway, &it.agent);
    let person = it.person("ana", &["mcp-admins"]);

    let body = json!({"subject_token": person, "label": "helpdesk"});
    let answer = it.exchange(&agent, &body).await.ok();

    assert!(text(&answer, "/data/access_token").starts_with("mcp_live_"));
    has!("what both may"; answer, "/data/principal/via": it.agent.as_str(),
        "/data/scope": "mcps:invoke mcps:read policies:read", "/data/expires_in": 3600);
    assert_eq!(answer.at("/data").get("refresh_token"), None);
    let token = text(&answer, "/data/access_token");
    let invoked = list_items(&it.gateway, &token).await;
    let path = format!("/v1/audit/events/{}", invoked.event_id());
    let event = get(&it.gateway, &token, &path).await;
    assert_eq!(event.at("/data/actor/via"), it.agent.as_str());
    assert_eq!(event.at("/data/actor/id"), answer.at("/data/principal/id"));
    let again = it.exchange(&token, &json!({"scope": "mcps:read"})).await;
    assert_eq!(again.at("/data/principal/via"), it.agent.as_str(), "it stays who acts");

    // Who may act for whom is the rules to say.
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

    // A delegated token ends with the agents token role or self.
    let agent = operators(&it.gateway, &it.agent);
    let delegated = async |agent: &str| {
        let body = json!({"subject_token": it.person("ana", &["mcp-admins"])});
        text(&it.exchange(agent, &body).await, "/data/access_token")
    };
    let one = delegated(&agent).await;
    let two = delegated(&operators(&it.gateway, &it.agent)).await;
    assert_eq!((it.status(&one).await, it.status(&two).await), (200, 200));

    has!(revoke(&it.gateway, &agent, None).await, "/data/descendants_revoked": 1);
    assert_eq!((it.status(&one).await, it.status(&two).await), (401, 200));

    let policies = || get(&it.gateway, &two, "/v1/policies");
    assert_eq!(policies().await.status, 200);
    it.gateway.admin(&["principal", "set-role", &it.agent, "--scopes", "mcps:read"]);
    has!(until(policies, |answer| answer.status == 403).await, "/error/code": "insufficient_scope");
    it.gateway.admin(&["principal", "disable", &it.agent]);
    has!(until(policies, |answer| answer.status == 401).await, "/error/code": "token_revoked");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_credential_or_two_of_different_orgs_are_no_delegation() {
    // Two orgs do not meet in one token.
    let gateway = gateway().start();
    let ours = gateway.user(&gateway.org("acme", &ENOUGH), "admin", ALL_SCOPES);
    let theirs = gateway.user(&gateway.org("other", &ENOUGH), "admin", ALL_SCOPES);

    let body = json!({"subject_token": theirs.token});
    has!(exchange(&gateway, &ours.token, &body).await, 400 "invalid_request");

    let issued = gateway.get(&theirs, "/v1/audit/events?type=token.issued").await;
    assert_eq!(items(&issued).len(), 1, "nothing but what the shell made");

    // The same credential twice is no delegation.
    let who = gateway.user(&fresh_org(&gateway), "admin", ALL_SCOPES);

    let body = json!({"subject_token": who.token});
    has!(exchange(&gateway, &who.token, &body).await, "/data/principal/via": null);
    has!("the body alone is enough"; exchange(&gateway, "", &body).await, 200);
}
