//! Refusals that a stranger or a runaway client could multiply: told once, with a count.

use crate::prelude::*;

/// The events of a type, as soon as there are any.
async fn events(gateway: &Gateway, who: &Principal, kind: &str) -> Vec<Value> {
    let path = format!("/v1/audit/events?type={kind}");
    let is_there = |it: &Answer| it.status == 200 && !items(it).is_empty();
    let answer = until(|| gateway.get(who, &path), is_there).await;
    items(&answer).clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_told_once_however_often_and_an_unknown_token_never() {
    let gateway = gateway().start();
    let org = gateway.org("acme", &ENOUGH);
    let auditor = gateway.service(&org, ALL_SCOPES);
    let leaked = gateway.service(&org, "mcps:read");
    gateway.delete(&leaked, "/v1/auth/token").await;

    for _ in 0..5 {
        assert_eq!(gateway.get(&leaked, "/v1/mcps").await.code(), "token_revoked");
    }

    let told = events(&gateway, &auditor, "auth.rejected").await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["count"], json!(1));
    assert_eq!(told[0]["actor"]["token_id"], json!(leaked.token_id));
    assert_eq!(told[0]["outcome"]["error_code"], json!("token_revoked"));
    assert_eq!(told[0]["detached"]["source_ip"], json!("127.0.0.1"));

    // An org beyond its limit is told once however often it asks.
    let org = org_with_time_left(&gateway, &plan("3", "3")).await;
    let who = gateway.service(&org, ALL_SCOPES);

    let mut refused = 0;
    for _ in 0..10 {
        refused += u32::from(gateway.get(&who, "/v1/mcps").await.status == 429);
    }
    assert_eq!(refused, 7);
    let mut raise = vec!["org", "set-plan", org.as_str()];
    raise.extend(ENOUGH);
    gateway.admin(&raise);

    let told = events(&gateway, &who, "request.throttled").await;
    assert_eq!((told.len(), &told[0]["count"]), (1, &json!(1)), "{told:?}");
    assert_eq!(told[0]["outcome"]["status"], json!("rate_limited"));
    assert_eq!(told[0]["actor"]["id"], json!(who.id));

    // A token nobody knows is in no log.
    let auditor = tenant(&gateway);
    let unknown = "svc_live_TNnwkiflsxEy9KeHg5z85x63fBld5c3k45IJpx";

    let request = gateway.request(Method::GET, "/v1/mcps").bearer_auth(unknown);
    assert_eq!(gateway.send(request).await.code(), "invalid_token");

    has!(gateway.get(&auditor, "/v1/audit/events?type=auth.rejected").await, "/data/items": []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_asks_for_what_it_may_not_do_is_told_once_however_often_it_asks() {
    let gateway = gateway().config("[login]\nlinks = true").start();
    let org = gateway.org("acme", &ENOUGH);
    let auditor = gateway.service(&org, "audit:read");
    let weak = gateway.user(&org, "member", "mcps:read providers:read");
    let other = gateway.service(&org, "mcps:read");
    let narrow = json!({ "scope": "mcps:read" }).to_string();
    let narrowed = gateway.post(&weak, "/v1/auth/token", &narrow).await.ok();
    let text = |pointer: &str| narrowed.at(pointer).as_str().unwrap().to_owned();
    let [token, token_id] = ["/data/access_token", "/data/token_id"].map(text);
    let handed_on = Principal { token, token_id, ..weak.clone() };
    let asked = [
        (&weak, Method::GET, "/v1/org"),
        (&weak, Method::GET, "/scim/v2/Users"),
        (&weak, Method::POST, "/oauth/introspect"),
        (&weak, Method::GET, "/v1/sessions?principal=usr_01M754BKTKX1YB8Q05NMW9TP4G"),
        (&handed_on, Method::GET, "/v1/sessions"),
        (&other, Method::PUT, "/v1/policies/x/override"),
    ];

    for (who, method, path) in asked.iter().chain(&asked) {
        let request = gateway.request_of(who, method.clone(), path);
        assert_eq!(gateway.send(request).await.status, 403, "{path}");
    }

    let path = "/v1/audit/events?type=access.refused&order=asc";
    let told = until(|| gateway.get(&auditor, path), |it| it.status == 200 && items(it).len() >= 3);
    let told = items(&told.await).clone();
    assert_eq!(told.len(), 3, "{told:?}");
    for (event, who) in told.iter().zip([&weak, &handed_on, &other]) {
        has!("the one that asked"; event, "/actor/id": who.id, "/count": 1,
            "/actor/token_id": who.token_id, "/outcome/error_code": "insufficient_scope",
            "/outcome/status": "denied", "/detached/source_ip": "127.0.0.1");
    }
}
