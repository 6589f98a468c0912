//! `GET /v1/tokens`, `POST /v1/tokens`, `POST /v1/tokens/inspect`, `DELETE /v1/tokens/{id}`.

use portcullis_core::token::Token;

use super::latest_change;
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_told_once_and_no_list_shows_it_or_its_hash() {
    // A token is told once and works until it is revoked.
    let (gateway, admin) = serve_admin(gateway().sample());
    let agent = gateway.service(&admin.org, "mcps:read mcps:invoke");
    let body = json!({"principal_id": agent.id, "scopes": "mcps:read", "expires_in": 3600,
        "label": "nightly", "allowed_from": ["127.0.0.0/8"]});

    let made = gateway.post(&admin, "/v1/tokens", &body.to_string()).await;

    assert_eq!(made.status, 201, "{}", made.text);
    let secret = made.at("/data/token").as_str().unwrap();
    let id = made.at("/data/id").as_str().unwrap();
    assert!(Token::parse(secret).is_ok() && is_id(id, "tok_"), "{}", made.text);
    has!(made, "/data/scopes": "mcps:read", "/data/label": "nightly");
    let bearer = Principal { token: secret.to_owned(), token_id: id.to_owned(), ..agent.clone() };
    gateway.get(&bearer, "/v1/mcps").await.ok();
    let (event, change) = latest_change(&gateway, &admin, "token.issued").await;
    assert_eq!((&event["target"]["id"], &event["actor"]["id"]), (&json!(id), &json!(admin.id)));
    assert_eq!(change, json!({"principal": agent.id, "scopes": "mcps:read"}));
    assert!(!gateway.log().contains(secret), "a secret is not logged");

    let revoked = gateway.delete(&admin, &format!("/v1/tokens/{id}")).await.ok();

    let data = json!({"revoked": true, "token_id": id, "descendants_revoked": 0});
    assert_eq!(revoked.at("/data"), &data);
    assert_eq!(gateway.get(&bearer, "/v1/mcps").await.refusal(), (401, "token_revoked"));
    gateway.get(&agent, "/v1/mcps").await.ok();

    // No list shows a secret or its hash.
    let admin = tenant(&gateway);
    let tokens = [&admin, &gateway.service(&admin.org, "mcps:read")].map(|it| it.token.clone());

    let listed = gateway.get(&admin, "/v1/tokens").await.ok();

    assert_eq!(items(&listed).len(), 2);
    for token in tokens {
        let hash = Token::parse(&token).unwrap().hash();
        let hex =
            hash.as_bytes().iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        assert!(!listed.text.contains(&token) && !listed.text.contains(&hex), "{}", listed.text);
    }
    for name in ["token", "hash", "secret"] {
        assert!(items(&listed).iter().all(|item| item.get(name).is_none()), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_inspected_by_the_admins_of_its_org_and_never_answered() {
    let (gateway, admin) = serve_admin(gateway());
    let agent = gateway.service(&admin.org, "mcps:read mcps:invoke");
    let stranger = gateway.user(&gateway.org("other", &ENOUGH), "admin", ALL_SCOPES);
    let inspect = async |who: &Principal, token: &str| {
        gateway.post(who, "/v1/tokens/inspect", &json!({ "token": token }).to_string()).await
    };
    gateway.admin(&["principal", "set-role", &agent.id, "--scopes", "mcps:read"]);

    let by_id = inspect(&admin, &agent.token_id).await.ok();

    has!(by_id, "/data/id": agent.token_id, "/data/state": "live", "/data/role": "service",
        "/data/scopes": "mcps:invoke mcps:read", "/data/effective_scopes": "mcps:read");
    assert_eq!(inspect(&admin, &agent.token).await.ok().at("/data"), by_id.at("/data"));
    for token in [&agent.token, &agent.token_id] {
        let refused = inspect(&stranger, token).await;
        assert_eq!(refused.refusal(), (404, "not_found"));
        assert!(!refused.text.contains(&agent.token[9..]), "{}", refused.text);
    }
    assert_eq!(inspect(&admin, &agent.token[1..]).await.refusal(), (400, "invalid_request"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_filtered_by_principal_kind_and_state() {
    let (gateway, admin) = serve_admin(gateway());
    let agent = gateway.service(&admin.org, "mcps:read");
    let other = gateway.service(&admin.org, "mcps:invoke");
    gateway.delete(&admin, &format!("/v1/tokens/{}", other.token_id)).await.ok();
    let found = async |query: &str| {
        let page = gateway.get(&admin, &format!("/v1/tokens?{query}")).await;
        members(&page, "id").into_iter().map(str::to_owned).collect::<Vec<_>>()
    };

    assert_eq!(found("limit=200").await.len(), 3);
    assert_eq!(found("q=adm").await, [admin.token_id.as_str()]);
    assert!(found("q=adm&state=revoked").await.is_empty());
    assert_eq!(found(&format!("principal={}", agent.id)).await, [agent.token_id.as_str()]);
    assert_eq!(found("kind=user").await, [admin.token_id.as_str()]);
    assert_eq!(found("state=revoked").await, [other.token_id.as_str()]);
    assert_eq!(found("state=live&kind=service").await, [agent.token_id.as_str()]);
    assert!(found("state=expired").await.is_empty());
    assert!(found("principal=usr_01M754BKTKX1YB8Q05NMW9TP4G").await.is_empty());
    let first = gateway.get(&admin, "/v1/tokens?limit=2").await;
    let cursor = first.at("/meta/pagination/next_cursor").as_str().unwrap().to_owned();
    let rest = found(&format!("limit=2&cursor={cursor}")).await;
    assert_eq!((items(&first).len(), rest.len()), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_token_is_made_that_does_more_than_its_account_or_its_maker() {
    let (gateway, admin) = serve_admin(gateway());
    let agent = gateway.service(&admin.org, "mcps:read mcps:invoke");
    let root = gateway.service(&admin.org, "admin mcps:read");
    let elsewhere = gateway.service(&gateway.org("other", &ENOUGH), "mcps:read");
    let make = async |who: &Principal, body: Value| {
        let answer = gateway.post(who, "/v1/tokens", &body.to_string()).await;
        (answer.status.as_u16(), answer.at("/error/code").as_str().unwrap_or_default().to_owned())
    };
    let refused = |status: u16, code: &str| (status, code.to_owned());

    let of = |id: &str, scopes: &str| json!({"principal_id": id, "scopes": scopes});
    for (who, body, wanted) in [
        (&admin, of(&agent.id, "mcps:read audit:read"), refused(400, "invalid_scope")),
        (&admin, of(&agent.id, "admin"), refused(400, "invalid_scope")),
        (&root, of(&agent.id, "mcps:invoke"), refused(400, "invalid_scope")),
        (&root, json!({"principal_id": agent.id}), refused(400, "invalid_scope")),
        (&admin, of(&admin.id, "mcps:read"), refused(400, "invalid_request")),
        (&admin, of(&elsewhere.id, "mcps:read"), refused(404, "not_found")),
        (&admin, of("sa_01M754BKTKX1YB8Q05NMW9TP4G", "mcps:read"), refused(404, "not_found")),
        (&admin, of("ci", "mcps:read"), refused(404, "not_found")),
        (
            &admin,
            json!({"principal_id": agent.id, "expires_in": 31_536_001}),
            refused(400, "invalid_request"),
        ),
        (&agent, of(&agent.id, "mcps:read"), refused(403, "insufficient_scope")),
    ] {
        assert_eq!(make(who, body.clone()).await, wanted, "{body}");
    }

    let before = items(&gateway.get(&admin, "/v1/tokens").await).len();
    assert_eq!(before, 3, "nothing was made by what was refused");
    assert_eq!(make(&root, of(&agent.id, "mcps:read")).await.0, 201);
    let year = json!({"principal_id": agent.id, "expires_in": 31_536_000});
    assert_eq!(make(&admin, year).await.0, 201);
}
