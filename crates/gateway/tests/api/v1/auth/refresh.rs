//! `POST /v1/auth/refresh`: rotation, retries, and what a replay ends.

use super::trusting::{Trusting, get, post, revoke, text};
use crate::prelude::*;

async fn refreshed(it: &Trusting, bearer: &str, body: &Value) -> Answer {
    post(&it.gateway, "/v1/auth/refresh", bearer, body).await
}

fn pair(answer: &Answer) -> (String, String) {
    assert_eq!(answer.status, 200, "{}", answer.text);
    (text(answer, "/data/access_token"), text(answer, "/data/refresh_token"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_token_buys_the_next_pair_narrower_or_again() {
    // A refresh token buys the next pair and the access token lives on.
    let mut it = Trusting::start("");
    let (first, refresh) = it.login("ana", &[]).await;

    let answer = it.refresh(&refresh).await;

    let (second, next) = pair(&answer);
    assert_framed(&answer, "refresh");
    has!(answer, "/data/expires_in": 3600, "/data/principal/type": "user",
        "/data/scope": "mcps:invoke mcps:read providers:read providers:write");
    assert!(next != refresh && second != first);
    assert_eq!((it.status(&first).await, it.status(&second).await), (200, 200));
    pair(&it.refresh(&next).await);
    let events = get(&it.gateway, &second, "/v1/audit/events?type=token.refreshed").await;
    assert_eq!(items(&events).len(), 2, "{}", events.text);

    // A refresh may narrow and not widen and the next has all again.
    let person = it.person("ana", &["mcp-admins"]);
    let body = json!({"scope": "mcps:read audit:read", "expires_in": 600});
    let login = it.exchange(&person, &body).await;
    let refresh = text(&login, "/data/refresh_token");

    let wide = refreshed(&it, &refresh, &json!({"scope": "admin"})).await;
    let narrow = refreshed(&it, &refresh, &json!({"scope": "mcps:read"})).await;
    let whole = it.refresh(&text(&narrow, "/data/refresh_token")).await;

    has!(wide, 400 "invalid_scope", "/error/details": {"scope": "admin"});
    assert_eq!(narrow.at("/data/scope"), "mcps:read");
    assert_eq!(narrow.at("/data/expires_in"), 600, "as long as the login asked for");
    assert_eq!(whole.at("/data/scope"), "audit:read mcps:read");

    // A bearer beside the refresh token is of the same grant.
    let (access, refresh) = it.login("ana", &[]).await;
    let (foreign, _) = it.login("ana", &[]).await;
    let body = json!({"refresh_token": refresh});

    has!(refreshed(&it, &foreign, &body).await, 401 "invalid_token");
    has!(refreshed(&it, "mcp_live_x", &body).await, 401 "invalid_token");
    has!(refreshed(&it, "", &json!({})).await, 401 "missing_token");
    let own = refreshed(&it, &access, &body).await;
    let body = json!({"refresh_token": own.at("/data/refresh_token")});
    let alone = refreshed(&it, "", &body).await;

    assert_eq!((own.status.as_u16(), alone.status.as_u16()), (200, 200), "{}", own.text);

    // A lost answer is given again also after a restart.
    let (_, refresh) = it.login("ana", &[]).await;

    let first = pair(&it.refresh(&refresh).await);
    let again = pair(&it.refresh(&refresh).await);
    it.gateway.kill();
    it.gateway.start();
    let restarted = pair(&it.refresh(&refresh).await);

    assert_eq!((&first, &first), (&again, &restarted));
    pair(&it.refresh(&first.1).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_token_that_comes_back_ends_everything_that_came_of_the_login() {
    // After half a minute a retry is a replay.
    let it = Trusting::start("");
    let (_, refresh) = it.login("eve", &[]).await;
    let (second, _) = pair(&it.refresh(&refresh).await);

    // Time is the machine's: what is moved is the moment the token was spent.
    let later = now(&it.gateway).await.plus_seconds(46);
    let forgotten = store(&it.gateway).await.forget_sealed_pairs(later).await.unwrap();
    has!(it.refresh(&refresh).await, 401 "token_reused");

    assert_eq!(forgotten, 1);
    assert_eq!(it.status(&second).await, 401);

    // A spent token that comes back ends everything that came of the login.
    let (access, refresh) = it.login("ana", &[]).await;
    let child = it.exchange(&access, &json!({"scope": "mcps:read"})).await;
    let child = text(&child, "/data/access_token");
    let (second, next) = pair(&it.refresh(&refresh).await);
    let (third, last) = pair(&it.refresh(&next).await);
    let (other, _) = it.login("ana", &[]).await;

    let reused = it.refresh(&refresh).await;

    assert_eq!(reused.refusal(), (401, "token_reused"), "{}", reused.text);
    assert_framed(&reused, "reuse");
    for token in [&access, &child, &second, &third] {
        assert_eq!(it.status(token).await, 401);
    }
    assert_eq!(it.refresh(&last).await.refusal(), (401, "token_revoked"));
    assert_eq!(it.refresh(&refresh).await.refusal(), (401, "token_revoked"));
    assert_eq!(it.status(&other).await, 200, "another login is another grant");
    let events = get(&it.gateway, &other, "/v1/audit/events?type=token.reuse_detected").await;
    assert_eq!(items(&events).len(), 1, "{}", events.text);

    // Whoever holds a refresh token can end its login and nobody elses.
    let (access, refresh) = it.login("ana", &["mcp-admins"]).await;
    let (other, _) = it.login("bob", &[]).await;
    let bobs = it.gateway.admin(&["token", "list", "--org", &it.org]);
    let bobs = bobs.as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned();

    let foreign = revoke(&it.gateway, &refresh, Some(&bobs)).await;
    has!(revoke(&it.gateway, &refresh, None).await, "/data/descendants_revoked": 1);

    assert_eq!(foreign.refusal(), (404, "not_found"), "a refresh token carries no scope");
    assert_eq!((it.status(&access).await, it.status(&other).await), (401, 200));
    assert_eq!(it.refresh(&refresh).await.refusal(), (401, "token_revoked"));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_refresh_tokens_of_people_who_may_log_in_are_refreshed() {
    // Only refresh tokens are refreshed and they open nothing else.
    let it = Trusting::start("");
    let (access, refresh) = it.login("ana", &[]).await;
    let service = it.gateway.service(&it.org, "mcps:read");
    let unknown = "mcp_refresh_SABnjxCJHfilY2ajLrAVc7vcVbJCBRxw0DlfUK";

    for (token, hint) in [
        (access.as_str(), "refresh token"),
        (service.token.as_str(), "exchanged"),
        (unknown, ""),
        ("x.y.z", ""),
    ] {
        let answer = it.refresh(token).await;
        assert_eq!(answer.refusal(), (401, "invalid_token"), "{token}");
        assert!(text(&answer, "/error/message").contains(hint), "{}", answer.text);
    }
    let exchanged = it.exchange(&refresh, &Value::Null).await;
    assert_eq!(exchanged.refusal(), (401, "invalid_token"));
    assert!(text(&exchanged, "/error/message").contains("/v1/auth/refresh"));
    assert_eq!(it.status(&refresh).await, 401);
    let token = json!({"token": refresh});
    for body in [token, json!({"refresh_token": 7}), json!({"expires_in": 60})] {
        has!("{body}"; refreshed(&it, &refresh, &body).await, 400 "invalid_request");
    }

    // Of many refreshes at once all get the same pair.
    let (_, refresh) = it.login("ana", &[]).await;

    // A client of its own for each, so that each has a connection of its own.
    let calls = (0..16).map(|_| {
        let url = format!("{}/v1/auth/refresh", it.gateway.url());
        let refresh = refresh.clone();
        async move {
            let client = reqwest::Client::builder().no_proxy().build().unwrap();
            let answer = client.post(url).bearer_auth(refresh).send().await.unwrap();
            let body: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
            (body["data"]["access_token"].clone(), body["data"]["refresh_token"].clone())
        }
    });
    let pairs = join_all(calls).await;

    assert!(pairs[0].0.is_string(), "{pairs:?}");
    assert!(pairs.iter().all(|pair| *pair == pairs[0]), "{pairs:?}");
    pair(&it.refresh(pairs[0].1.as_str().unwrap()).await);

    // A disabled person can not refresh and nothing is lost by it.
    let login = it.logged_in("ana", &[]).await;
    let id = text(&login, "/data/principal/id");
    let refresh = text(&login, "/data/refresh_token");

    it.gateway.admin(&["principal", "disable", &id]);
    has!(it.refresh(&refresh).await, 401 "token_revoked");
    it.gateway.admin(&["principal", "enable", &id]);
    let again = it.refresh(&refresh).await;

    pair(&again);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_token_that_was_idle_for_too_long_or_whose_login_is_over_has_expired() {
    let it = Trusting::start("[tokens]\nrefresh_idle = \"2s\"\nrefresh_absolute = \"4s\"");
    let (_, refresh) = it.login("ana", &[]).await;
    let (access, next) = pair(&it.refresh(&refresh).await);
    timeout(Duration::from_secs(20), async { while it.status(&access).await == 200 {} })
        .await
        .expect("no token outlives its login");

    let expired = it.refresh(&next).await;

    assert_eq!(expired.refusal(), (401, "token_expired"), "{}", expired.text);
    assert!(expired.at("/error/details/expired_at").is_string());
}
