//! `POST /v1/auth/token`: JWTs of a real OpenID provider, and our own tokens, for narrower ones.

use super::{
    second,
    trusting::{AUDIENCE, Trusting, exchange, get, job_claims, list_items, revoke, text},
};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_job_exchanges_its_jwt_for_a_short_token() {
    // A job without a secret gets a short token that works and is recorded.
    let it = Trusting::start("");
    let scope = "mcps:read mcps:invoke";
    let body = json!({"scope": scope, "expires_in": 600, "label": "nightly-deploy"});

    let answer = it.exchange(&it.job(), &body).await.ok();

    assert_framed(&answer, "exchange");
    assert_eq!(answer.header("x-ratelimit-resource"), "requests");
    let data = answer.at("/data");
    assert!(text(&answer, "/data/access_token").starts_with("svc_live_"));
    has!(data, "/token_type": "Bearer", "/expires_in": 600, "/scope": "mcps:invoke mcps:read",
        "/org_id": it.org.as_str(), "/principal": {"type": "service", "id": it.ci, "via": null},
        "/label": "nightly-deploy");
    assert_eq!(data.get("refresh_token"), None, "services exchange again");
    let token = text(&answer, "/data/access_token");
    list_items(&it.gateway, &token).await.ok();
    let events = get(&it.gateway, &token, "/v1/audit/events?type=token.issued").await;
    let event = &items(&events)[0];
    has!(event, "/target/id": data["token_id"], "/actor/auth": {"method": "oidc", "trust": "ci"},
        "/actor/id": it.ci.as_str());

    // What is not asked for has defaults and what is asked too much is cut or refused.
    let plain = it.exchange(&it.job(), &Value::Null).await;
    let greedy = it.exchange(&it.job(), &json!({"expires_in": 86_400})).await;
    has!(it.exchange(&it.job(), &json!({"expires_in": 1e300})).await, 400 "invalid_request");
    let beyond = it.exchange(&it.job(), &json!({"scope": "mcps:read policies:read"})).await;
    let unknown = it.exchange(&it.job(), &json!({"scope": "mcps:write"})).await;

    has!(plain, "/data/expires_in": 900, "/data/scope": "mcps:invoke mcps:read");
    assert_eq!(greedy.at("/data/expires_in"), 1800, "the rule's max_ttl");
    assert_eq!(beyond.refusal(), (400, "invalid_scope"), "the service account may not");
    assert_eq!(beyond.at("/error/details"), &json!({"scope": "policies:read"}));
    assert_eq!(unknown.at("/error/details"), &json!({"scope": "mcps:write"}));

    // What is bought with a bound token is bound to the same networks.
    let mint = ["token", "create", "--principal", &it.ci, "--allowed-from", "203.0.113.0/24"];
    let bound = it.gateway.admin(&mint)["token"].as_str().unwrap().to_owned();
    let from = |path: &str, token: &str, address: &str, method: Method| {
        let request = it.gateway.request(method, path).bearer_auth(token);
        it.gateway.send(request.header("x-forwarded-for", address))
    };

    has!(from("/v1/auth/token", &bound, "198.51.100.1", Method::POST).await, 401 "invalid_token");
    let child = from("/v1/auth/token", &bound, "203.0.113.9", Method::POST).await;
    let child = text(&child, "/data/access_token");

    assert_eq!(from("/v1/mcps", &child, "203.0.113.9", Method::GET).await.status, 200);
    assert_eq!(from("/v1/mcps", &child, "198.51.100.1", Method::GET).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_body_is_refused_and_named() {
    let it = Trusting::start("");
    let token = text(&it.exchange(&it.job(), &Value::Null).await, "/data/access_token");

    let saml = "urn:ietf:params:oauth:token-type:saml2";
    for (body, path) in [
        (json!({"scopes": "mcps:read"}), "/scopes"),
        (json!({"scope": ["mcps:read"]}), "/scope"),
        (json!({"expires_in": 59}), "/expires_in"),
        (json!({"expires_in": "600"}), "/expires_in"),
        (json!({"expires_in": 600.5}), "/expires_in"),
        (json!({"expires_in": -600}), "/expires_in"),
        (json!({"label": "x".repeat(65)}), "/label"),
        (json!({"label": "a\nb"}), "/label"),
        (json!({"org_id": "acme"}), "/org_id"),
        (json!({"grant_type": "client_credentials"}), "/grant_type"),
        (json!({"subject_token_type": saml}), "/subject_token_type"),
        (json!({"subject_token": "x".repeat(16 * 1024 + 1)}), "/subject_token"),
    ] {
        let answer = it.exchange(&token, &body).await;

        has!("{body}"; answer, 400 "invalid_request", "/error/details/violations/0/path": path);
        assert_eq!(answer.header("x-ratelimit-resource"), "unauthenticated");
    }
    let wrong_type = json!({"subject_token_type": "urn:ietf:params:oauth:token-type:jwt"});
    assert_eq!(it.exchange(&token, &wrong_type).await.refusal(), (400, "invalid_request"));
    let other_org = json!({"org_id": "org_01M754BKTKX1YB8Q05NMW9TP4G"});
    assert_eq!(it.exchange(&token, &other_org).await.refusal(), (400, "invalid_request"));
    let two = it.gateway.request(Method::POST, "/v1/auth/token").bearer_auth(&token);
    has!(it.gateway.send(two.header("authorization", "Bearer x")).await, 400 "invalid_request");
    let typed = it.gateway.request(Method::POST, "/v1/auth/token").bearer_auth(&token);
    let typed = it.gateway.send(typed.header("content-type", "text/plain").body("{}")).await;
    assert_eq!(typed.refusal(), (415, "unsupported_media_type"));
    let grant = json!({"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token_type": "urn:ietf:params:oauth:token-type:access_token"});
    it.exchange(&token, &grant).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jwt_that_is_not_right_is_refused_by_the_class_of_its_fault() {
    let it = Trusting::start("");
    let stranger = Oidc::start();
    it.oidc.set_clock(-7200);
    let expired = it.oidc.service_token(&job_claims());
    it.oidc.set_clock(7200);
    let early = it.oidc.service_token(&job_claims());
    it.oidc.set_clock(0);
    let mut forged = it.job();
    forged.replace_range(forged.len() - 20..forged.len() - 16, "AAAA");
    let once = it.job();
    it.exchange(&once, &Value::Null).await.ok();

    for (jwt, check) in [
        (expired, "time"),
        (early, "time"),
        (forged, "signature"),
        (stranger.service_token(&job_claims()), "issuer"),
        (it.oidc.service_token(&Wanted::new("https://other.example")), "audience"),
        (it.oidc.service_token(&Wanted::new(AUDIENCE).claim("repository_id", "1")), "trust"),
        (it.oidc.logout_token("ana", AUDIENCE), "signature"),
        (once, "replay"),
        ("e30.e30.".to_owned(), "signature"),
    ] {
        let answer = it.exchange(&jwt, &Value::Null).await;

        let what = format!("{check}: {}", answer.text);
        has!("{what}"; answer, "/error/code": "invalid_credential", "/error/details/check": check);
        let challenge = "Bearer realm=\"portcullis\", error=\"invalid_token\"";
        assert_eq!(answer.header("www-authenticate"), challenge);
        assert_framed(&answer, &what);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_issuer_signed_and_was_refused_is_in_the_log_once_a_minute() {
    let it = Trusting::start("");
    let admin = it.gateway.user(&it.org, "admin", ALL_SCOPES);
    let once = it.job();
    it.exchange(&once, &Value::Null).await.ok();

    for _ in 0..3 {
        let elsewhere = it.oidc.service_token(&Wanted::new("https://other.example"));
        assert_eq!(it.exchange(&elsewhere, &Value::Null).await.status, 401);
    }
    let rejected = || it.gateway.get(&admin, "/v1/audit/events?type=auth.rejected");
    let events = until(rejected, |answer| !items(answer).is_empty()).await;

    let event = &items(&events)[0];
    assert_eq!(items(&events).len(), 1, "{}", events.text);
    assert_eq!((&event["actor"]["type"], &event["count"]), (&json!("anonymous"), &json!(1)));
    assert_eq!(event["outcome"]["error_code"], "invalid_credential");
    let other = it.gateway.request(Method::POST, "/v1/auth/token").bearer_auth(&once);
    let replayed = it.gateway.send(other.header("x-forwarded-for", "203.0.113.5")).await;
    assert_eq!(replayed.at("/error/details/check"), "replay");
    let events = until(rejected, |answer| items(answer).len() == 2).await;
    assert_eq!(items(&events)[0]["actor"]["id"], it.ci.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_issuers_keys_the_answer_is_come_back_later() {
    let it = Trusting::start("");
    let job = it.job();
    it.oidc.stop();

    let answer = it.exchange(&job, &Value::Null).await;

    has!(answer, 503 "unavailable", "/error/details/reason": "issuer_keys");
    assert!(answer.header("retry-after").parse::<u64>().unwrap() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_log_in_at_an_issuer_with_todays_role() {
    // A person is made at the first login and has todays role.
    let it = Trusting::start("");

    it.logged_in("root", &["mcp-admins"]).await.ok();
    let first = it.logged_in("ana", &["mcp-admins"]).await;
    let asked = json!({"scope": "admin audit:read"});
    let admin = it.exchange(&it.person("ana", &["mcp-admins"]), &asked).await;
    let token = text(&admin, "/data/access_token");
    let policies =
        async || get(&it.gateway, &text(&first, "/data/access_token"), "/v1/policies").await;
    policies().await.ok();
    let demoted = it.logged_in("ana", &[]).await;
    let other = it.logged_in("bob", &[]).await;

    assert!(text(&first, "/data/access_token").starts_with("mcp_live_"));
    has!(first, "/data/expires_in": 3600, "/data/principal/type": "user");
    let scope = text(&first, "/data/scope");
    assert!(!scope.contains("admin") && !scope.contains("audit:export"), "{scope}");
    assert_eq!(admin.at("/data/scope"), "admin audit:read");
    assert_eq!(first.at("/data/principal/id"), demoted.at("/data/principal/id"));
    assert_ne!(first.at("/data/principal/id"), other.at("/data/principal/id"));
    assert_eq!(policies().await.refusal(), (403, "insufficient_scope"), "at once");
    assert_eq!(it.status(&token).await, 200);
    let changes = it.gateway.admin(&["principal", "list", "--org", &it.org]);
    let people = changes.as_array().unwrap().iter().filter(|p| p["role"] == "member").count();
    assert_eq!(people, 2);

    // Many first logins at once make one person.
    let jwts: Vec<String> = (0..8).map(|_| it.person("eve", &[])).collect();

    let logins = jwts.iter().map(|jwt| it.exchange(jwt, &Value::Null));
    let answers = join_all(logins).await;

    for answer in &answers {
        has!(answer, 200, "/data/principal/id": answers[0].at("/data/principal/id"));
    }

    // A disabled person or org can not log in.
    let first = it.logged_in("ana", &[]).await;
    let id = text(&first, "/data/principal/id");

    it.gateway.admin(&["principal", "disable", &id]);
    has!(it.logged_in("ana", &[]).await, 401 "invalid_credential");
    let other = it.logged_in("bob", &[]).await;
    it.gateway.admin(&["principal", "enable", &id]);
    let again = it.logged_in("ana", &[]).await;
    it.gateway.admin(&["org", "disable", &it.org]);
    has!(it.logged_in("ana", &[]).await, 401 "invalid_credential");

    assert_eq!((other.status.as_u16(), again.status.as_u16()), (200, 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_buys_narrower_ones_that_end_with_it() {
    // A token buys a narrower one and never a wider or longer one.
    let gateway = gateway().sample().start();
    let org = gateway.org("acme", &ENOUGH);
    let parent = gateway.service(&org, "mcps:read mcps:invoke audit:read audit:export");
    let ask = async |body: Value| exchange(&gateway, &parent.token, &body).await;

    let narrow = ask(json!({"scope": "mcps:read", "expires_in": 60})).await;
    let plain = ask(Value::Null).await;
    let long = ask(json!({"expires_in": 400 * 86_400})).await;
    let wide = ask(json!({"scope": "mcps:read admin"})).await;

    has!(narrow, "/data/scope": "mcps:read", "/data/expires_in": 60);
    assert_eq!(plain.at("/data/scope"), "audit:read mcps:invoke mcps:read", "export by name only");
    let principal = json!({"type": "service", "id": parent.id, "via": null});
    assert_eq!(plain.at("/data/principal"), &principal);
    assert_eq!(plain.at("/data/expires_at"), long.at("/data/expires_at"), "the parent's rest");
    has!(wide, 400 "invalid_scope", "/error/details": {"scope": "admin"});
    let child = text(&narrow, "/data/access_token");
    let again = exchange(&gateway, &child, &json!({"scope": "mcps:invoke"})).await;
    assert_eq!(again.refusal(), (400, "invalid_scope"), "what is gone does not come back");
    has!(list_items(&gateway, &child).await, 403 "insufficient_scope");
    let known = gateway.admin(&["token", "inspect", &text(&narrow, "/data/token_id")]);
    has!(known, "/parent_id": parent.token_id.as_str(), "/state": "live", "/method": "token");

    // A secret in a label is masked wherever the label goes.
    let parent = gateway.service(&fresh_org(&gateway), "mcps:read audit:read");
    let secret = concat!("AKIA", "Q3EGRZT5VJ7KXW2N");

    let label = format!("deploy {secret}");
    let made = exchange(&gateway, &parent.token, &json!({"label": label})).await.ok();
    let events = gateway.get(&parent, "/v1/audit/events?type=token.issued").await;

    assert!(text(&made, "/data/label").starts_with("deploy "), "{}", made.text);
    let known = gateway.admin(&["token", "inspect", &text(&made, "/data/token_id")]);
    let event = gateway.event(&parent, members(&events, "id")[0]).await;
    for place in [&made.text, &known.to_string(), &event.text] {
        assert!(!place.contains(secret), "{place}");
    }

    // Revoking a token ends what was bought with it and nothing is bought after.
    let parent = gateway.service(&fresh_org(&gateway), ALL_SCOPES);
    let first = exchange(&gateway, &parent.token, &Value::Null).await;
    let child = text(&first, "/data/access_token");
    let second = exchange(&gateway, &child, &Value::Null).await;
    let grandchild = text(&second, "/data/access_token");

    has!(revoke(&gateway, &child, None).await, "/data/descendants_revoked": 1);

    for token in [&child, &grandchild] {
        has!(exchange(&gateway, token, &Value::Null).await, 401 "token_revoked");
    }
    assert_eq!(exchange(&gateway, &parent.token, &Value::Null).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn exchanges_have_bounds_and_cost_the_org_or_the_source() {
    // A successful exchange costs the org and a failed one the source.
    let gateway = gateway().start();
    let org = org_with_time_left(&gateway, &["--plan", "free"]).await;
    let who = gateway.service(&org, "mcps:read");
    let left = |answer: &Answer| -> i64 { answer.header("x-ratelimit-remaining").parse().unwrap() };

    let one = exchange(&gateway, &who.token, &Value::Null).await;
    let failed = exchange(&gateway, "svc_live_x", &Value::Null).await;
    let two = exchange(&gateway, &who.token, &Value::Null).await;

    assert_eq!((left(&one), left(&two)), (59, 58));
    assert_eq!(failed.header("x-ratelimit-resource"), "unauthenticated");
    assert_eq!(left(&failed), 59);

    // Tokens are made one from another up to a bound that the answer names.
    let mut last = gateway.service(&gateway.org("acme", &ENOUGH), ALL_SCOPES).token;
    for _ in 0..64 {
        let made = exchange(&gateway, &last, &Value::Null).await;
        last = text(&made, "/data/access_token");
    }

    let refused = exchange(&gateway, &last, &Value::Null).await;

    assert_eq!(refused.refusal(), (400, "invalid_request"));
    assert!(
        refused.text.contains("64 others") && refused.text.contains("earlier"),
        "{}",
        refused.text
    );

    // An exchange only token opens nothing but the exchange and gives short tokens.
    let who = gateway.service(&fresh_org(&gateway), "mcps:read audit:read");
    let only = second(&gateway, &who, &["--exchange-only"]);

    let used = gateway.get(&only, "/v1/mcps").await;
    let exchanged = exchange(&gateway, &only.token, &Value::Null).await;
    let long = exchange(&gateway, &only.token, &json!({"expires_in": 864_000})).await;

    assert_eq!(used.refusal(), (401, "invalid_token"));
    assert!(used.at("/error/message").as_str().unwrap().contains("/v1/auth/token"));
    assert_eq!(exchanged.at("/data/expires_in"), 900);
    assert_eq!(long.at("/data/expires_in"), 43_200);
    let token = text(&exchanged, "/data/access_token");
    get(&gateway, &token, "/v1/mcps").await.ok();
    let events = || gateway.get(&who, "/v1/audit/events?type=auth.rejected");
    let events = until(events, |answer| !items(answer).is_empty()).await;
    assert_eq!(items(&events)[0]["actor"]["token_id"], only.token_id.as_str());
    assert_eq!(items(&events)[0]["outcome"]["error_code"], "invalid_token");
    has!("whoever holds a token may end it"; revoke(&gateway, &only.token, None).await, 200);
}
