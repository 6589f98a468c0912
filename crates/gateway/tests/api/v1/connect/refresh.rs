//! New credentials: ahead of time, at a wish, and when the provider refuses the old ones.

use super::{Scene, scene, scene_with, text, types};
use crate::prelude::*;

async fn refresh(scene: &Scene, id: &str) -> Answer {
    scene.gateway.post(&scene.who, &format!("/v1/providers/{id}/refresh"), "{}").await
}

fn renewals(scene: &Scene) -> usize {
    let requests = scene.saas.token_requests();
    requests.iter().filter(|form| form["grant_type"] == "refresh_token").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_renewed_before_they_end_and_calls_never_notice() {
    let scene = scene(Habits { expires_in: Some(8), ..Habits::default() }).await;
    let who = &scene.who;
    let done = scene.connected(who, &json!({}), "octocat").await;
    let id = text(&done, "/data/id");

    eventually("a second renewal", async || {
        has!(scene.whoami(who).await, "/result/account": "octocat");
        (renewals(&scene) >= 2).then_some(())
    })
    .await;

    let record = scene.gateway.get(who, &format!("/v1/providers/{id}")).await;
    assert_eq!(record.at("/data/status"), "connected");
    assert!(record.at("/data/auth/last_refreshed_at").is_string());
    let events = scene.events(who).await;
    let kinds = types(&events)[..3].join(" ");
    assert_eq!(kinds, "provider.connect_started provider.connected provider.refreshed");
    assert_eq!(events[2]["actor"]["type"], "system");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_wishes_are_one_request_upstream() {
    let thinks = Duration::from_millis(500);
    let scene = scene(Habits { expires_in: Some(3600), thinks, ..Habits::default() }).await;
    let done = scene.connected(&scene.who, &json!({}), "octocat").await;
    let id = text(&done, "/data/id");

    let answers = (0..12).map(|_| refresh(&scene, &id));
    let answers = join_all(answers).await;

    for answer in &answers {
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    assert_eq!(renewals(&scene), 1, "they share one");
    assert_eq!(scene.whoami(&scene.who).await.at("/result/account"), "octocat");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_is_renewed_once_and_the_call_is_made() {
    let scene = scene(Habits { expires_in: Some(3600), ..Habits::default() }).await;
    let who = &scene.who;
    let done = scene.connected(who, &json!({}), "octocat").await;
    let id = text(&done, "/data/id");
    assert_eq!(scene.whoami(who).await.status, 200);

    scene.saas.end_access("octocat");
    let calls = join_all((0..8).map(|_| scene.whoami(who))).await;

    for call in &calls {
        assert_eq!(call.at("/result/account"), "octocat", "{}", call.text);
    }
    assert_eq!((renewals(&scene), scene.saas.calls().len()), (1, 9), "one renewal, no call twice");
    scene.saas.end_all("octocat");
    has!(scene.whoami(who).await, 409 "provider_auth_required", "/error/details/provider_id": id,
        "/error/details/executed": "no");
    let asked = renewals(&scene);
    let still = scene.whoami(who).await;
    assert_eq!((still.code(), renewals(&scene)), ("provider_auth_required", asked));
    let wish = refresh(&scene, &id).await;
    assert_eq!(wish.refusal(), (409, "provider_auth_required"));
    assert_eq!(wish.at("/error/details/connect"), "/v1/providers/saas/connect");
    let record = scene.gateway.get(who, &format!("/v1/providers/{id}")).await;
    assert_eq!(record.at("/data/status"), "needs_auth", "{}", record.text);
    let events = scene.events(who).await;
    let kinds = types(&events);
    assert_eq!(kinds.iter().filter(|kind| **kind == "provider.needs_auth").count(), 1, "{kinds:?}");
    scene.connected(who, &json!({}), "octocat").await;
    assert_eq!(scene.whoami(who).await.status, 200, "a person mends it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_down_is_asked_again_and_heals() {
    let scene = scene(Habits { expires_in: Some(4), ..Habits::default() }).await;
    let who = &scene.who;
    let done = scene.connected(who, &json!({}), "octocat").await;
    let path = format!("/v1/providers/{}", text(&done, "/data/id"));

    scene.saas.change(|habits| habits.token_status = Some(503));
    let record = || scene.gateway.get(who, &path);
    let broken = until(record, |it| it.at("/data/status") == "error").await;
    has!(scene.whoami(who).await, 502 "upstream_error");
    scene.saas.change(|habits| habits.token_status = None);
    let healed = until(record, |it| it.at("/data/status") == "connected").await;

    assert!(broken.at("/data/last_error").is_string(), "{}", broken.text);
    assert_eq!(healed.at("/data/last_error"), &Value::Null);
    assert_eq!(scene.whoami(who).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_refresh_token_there_is_nothing_to_refresh_with() {
    let scene = scene(Habits { keeps_refresh: true, ..Habits::default() }).await;
    let done = scene.connected(&scene.who, &json!({}), "octocat").await;

    let answer = refresh(&scene, &text(&done, "/data/id")).await;

    has!(answer, 409 "not_refreshable", "/error/details/auth_type": "oauth2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_asks_for_more_scopes_says_which() {
    let scene = scene(Habits { needs_scope: Some("write".to_owned()), ..Habits::default() }).await;
    let who = &scene.who;
    let done = scene.connected(who, &json!({}), "octocat").await;

    let refused = scene.whoami(who).await;
    let path = format!("/v1/providers/{}", text(&done, "/data/id"));
    let record = scene.gateway.get(who, &path).await;
    let all = refused.at("/error/details/scopes");
    scene.connected(who, &json!({"scopes": all}), "octocat").await;

    assert_eq!(refused.refusal(), (409, "provider_auth_required"));
    assert_eq!(all, &json!(["read", "write"]), "{}", refused.text);
    assert_eq!(record.at("/data/status"), "connected");
    assert!(text(&record, "/data/last_error").contains("write"), "{}", record.text);
    assert_eq!(scene.whoami(who).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_endpoint_that_hangs_takes_no_place_from_another_org() {
    // One call is judged at a time, and no call may wait.
    let narrow = |builder: Builder| builder.sample().env("PORTCULLIS_SERVER__MAX_CALLS", "1");
    let scene = scene_with(Habits { expires_in: Some(4), ..Habits::default() }, narrow).await;
    scene.connected(&scene.who, &json!({}), "octocat").await;
    let other = scene.gateway.service(&scene.gateway.org("other", &ENOUGH), "mcps:invoke");
    scene.saas.change(|habits| habits.thinks = Duration::from_mins(1));

    // A call that waits for new credentials stays when its caller goes; the next one is turned away.
    eventually("a call that waits", async || {
        let call = timeout(Duration::from_secs(1), scene.whoami(&scene.who));
        let reason = call.await.ok()?.at("/error/details/reason").clone();
        (reason == "overloaded" && renewals(&scene) > 0).then_some(())
    })
    .await;
    let mut answers = Vec::new();
    for _ in 0..10 {
        answers.push(scene.gateway.invoke(&other, "sample:list_items", json!({})).await);
    }

    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
}
