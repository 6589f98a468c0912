//! `Prefer: wait=N`: the request is held until people decided.

use super::{asking_scene, decide};
use crate::prelude::*;

async fn patient(scene: &Scene, seconds: u32) -> Answer {
    let body = r#"{"input":{"amount":7}}"#;
    let request = scene.gateway.json(&scene.who, "/v1/mcps/up:pay/invoke", body);
    scene.gateway.send(request.header("prefer", format!("wait={seconds}"))).await
}

/// Waits until there is an approval to decide about, and decides.
async fn decided(scene: &Scene, admin: &portcullis_testkit::Principal, vote: &str) {
    let listed = || scene.gateway.get(admin, "/v1/approvals?status=pending");
    let listed = until(listed, |it| !items(it).is_empty()).await;
    let id = items(&listed)[0]["id"].as_str().expect("an id");
    decide(&scene.gateway, admin, id, vote).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_waits_is_given_the_result_once_it_is_approved() {
    let (scene, admin) = asking_scene().await;

    let (answer, ()) = tokio::join!(patient(&scene, 60), decided(&scene, &admin, "approve"));

    has!(answer, 200, "/result": {"amount": 7});
    assert_eq!(scene.upstream.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_waits_is_told_of_a_denial() {
    let (scene, admin) = asking_scene().await;

    let (answer, ()) = tokio::join!(patient(&scene, 60), decided(&scene, &admin, "deny"));

    has!(answer, 403, "/error/details/approval/status": "denied");
    assert!(scene.upstream.calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_when_its_time_is_over() {
    let (scene, admin) = asking_scene().await;
    let begun = Instant::now();

    let answer = patient(&scene, 1).await;

    scene.check(&answer, PENDING).await;
    assert!(begun.elapsed() >= Duration::from_secs(1));
    let asking = scene.gateway.get(&admin, "/v1/policies/payouts").await;
    assert_eq!(asking.at("/data/stats/decided"), 1, "{}", asking.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_revoked_while_its_caller_waits_opens_nothing() {
    let (scene, admin) = asking_scene().await;
    let revoked = async {
        until(|| scene.gateway.get(&admin, "/v1/approvals"), |it| !items(it).is_empty()).await;
        scene.gateway.delete(&scene.who, "/v1/auth/token").await.ok();
        decided(&scene, &admin, "approve").await;
    };

    let (answer, ()) = tokio::join!(patient(&scene, 60), revoked);

    assert_eq!(answer.status, 401, "{}", answer.text);
    assert!(scene.upstream.calls().is_empty());
}
