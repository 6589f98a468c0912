//! `Prefer: wait=N`: the request is held until people decided.

use super::{asking_anew, asking_scene, decide};
use crate::prelude::*;

async fn patient(scene: &Scene, seconds: u32) -> Answer {
    let body = r#"{"input":{"amount":7}}"#;
    let request = scene.gateway.json(&scene.who, "/v1/mcps/up:pay/invoke", body);
    scene.gateway.send(request.header("prefer", format!("wait={seconds}"))).await
}

/// Waits until there is an approval to decide about, and decides.
async fn decided(scene: &Scene, admin: &Principal, vote: &str) {
    let listed = || scene.gateway.get(admin, "/v1/approvals?status=pending");
    let listed = until(listed, |it| !items(it).is_empty()).await;
    let id = items(&listed)[0]["id"].as_str().expect("an id");
    decide(&scene.gateway, admin, id, vote).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_waits_is_given_the_result_or_told_why_there_is_none() {
    // A caller who waits is given the result once it is approved.
    let (scene, admin) = asking_scene().await;

    let (answer, ()) = tokio::join!(patient(&scene, 60), decided(&scene, &admin, "approve"));

    has!(answer, 200, "/result": {"amount": 7});
    assert_eq!(scene.upstream.calls().len(), 1);

    // A caller who waits is told of a denial.
    let (scene, admin) = asking_anew(scene);

    let (answer, ()) = tokio::join!(patient(&scene, 60), decided(&scene, &admin, "deny"));

    has!(answer, 403, "/error/details/approval/status": "denied");
    assert!(scene.upstream.calls().is_empty());

    // A wait ends when its time is over.
    let (scene, admin) = asking_anew(scene);
    let begun = Instant::now();

    let answer = patient(&scene, 1).await;

    scene.check(&answer, PENDING).await;
    assert!(begun.elapsed() >= Duration::from_secs(1));
    has!(scene.gateway.get(&admin, "/v1/policies/payouts").await, "/data/stats/decided": 1);

    // A token that is revoked while its caller waits opens nothing.
    let (scene, admin) = asking_anew(scene);
    let revoked = async {
        until(|| scene.gateway.get(&admin, "/v1/approvals"), |it| !items(it).is_empty()).await;
        scene.gateway.delete(&scene.who, "/v1/auth/token").await.ok();
        decided(&scene, &admin, "approve").await;
    };

    let (answer, ()) = tokio::join!(patient(&scene, 60), revoked);

    assert_eq!(answer.status, 401, "{}", answer.text);
    assert!(scene.upstream.calls().is_empty());
}
