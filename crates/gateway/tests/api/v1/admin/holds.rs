//! `GET /v1/audit/holds`, `POST /v1/audit/holds`, `DELETE /v1/audit/holds/{id}`.

use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn holds_are_laid_listed_and_lifted_by_admins_of_the_org() {
    let (gateway, admin) = serve_admin(gateway());
    let auditor = gateway.user(&admin.org, "auditor", "audit:read audit:export");
    let elsewhere = gateway.user(&gateway.org("other", &ENOUGH), "admin", ALL_SCOPES);
    let body = json!({"reason": "case 4711", "actor": auditor.id, "from": "2026-01-01T00:00:00Z"});
    let lay =
        async |who, body: &Value| gateway.post(who, "/v1/audit/holds", &body.to_string()).await;

    let laid = lay(&admin, &body).await;

    assert_eq!(laid.status, 201, "{}", laid.text);
    let id = laid.at("/data/id").as_str().unwrap();
    let path = format!("/v1/audit/holds/{id}");
    assert_eq!(laid.at("/data/actor"), auditor.id.as_str());
    assert_eq!(lay(&auditor, &body).await.refusal(), (403, "insufficient_scope"));
    assert_eq!(gateway.delete(&auditor, &path).await.refusal(), (403, "insufficient_scope"));
    assert_eq!(gateway.delete(&elsewhere, &path).await.refusal(), (404, "not_found"));
    assert_eq!(
        lay(&elsewhere, &body).await.refusal(),
        (404, "not_found"),
        "an actor of another org"
    );
    assert!(items(&gateway.get(&elsewhere, "/v1/audit/holds").await).is_empty());
    for wrong in [
        json!({"reason": " "}),
        json!({"reason": "a\nb"}),
        json!({"reason": "x", "from": "2026-02-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}),
        json!({"reason": "x", "released_at": null}),
    ] {
        assert_eq!(lay(&admin, &wrong).await.refusal(), (400, "invalid_request"), "{wrong}");
    }

    has!(gateway.delete(&admin, &path).await.ok(), "/data": {"id": id, "lifted": true});

    assert_eq!(gateway.delete(&admin, &path).await.refusal(), (404, "not_found"), "once");
    let listed = gateway.get(&admin, "/v1/audit/holds").await;
    assert_eq!(members(&listed, "id"), [id]);
    assert!(items(&listed)[0]["released_at"].is_string());
    let events = gateway.get(&admin, "/v1/audit/events?type=audit.hold_changed").await;
    assert_eq!(items(&events).len(), 2);
    assert!(items(&events).iter().all(|event| event["actor"]["id"] == admin.id.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_org_has_a_hundred_holds_in_force_and_they_are_listed_in_pages() {
    let (gateway, admin) = serve_admin(gateway());
    let lay = async || gateway.post(&admin, "/v1/audit/holds", r#"{"reason": "case"}"#).await;
    gateway.tamper(&format!(
        "INSERT INTO audit_holds (id, org_id, reason, created_at) \
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 99) \
         SELECT 'hld_01M754BKTKX1YB8Q05NMW9' || (1000 + i), '{}', 'case', 1 FROM n",
        admin.org
    ));
    let last = lay().await;
    assert_eq!(last.status, 201, "{}", last.text);

    has!(lay().await, 409 "conflict", "/error/details/reason": "too_many_holds");

    let local = ["audit", "hold", "add", "--org", "acme", "--reason", "case"];
    let (_, told) = failure(&gateway, &local).await;
    assert!(told.contains("100; lift one"), "{told}");
    let first = gateway.get(&admin, "/v1/audit/holds?limit=60").await;
    let cursor = first.at("/meta/pagination/next_cursor").as_str().unwrap().to_owned();
    let second = gateway.get(&admin, &format!("/v1/audit/holds?limit=60&cursor={cursor}")).await;
    let ids = [members(&first, "id"), members(&second, "id")];
    assert_eq!(ids.each_ref().map(Vec::len), [60, 40]);
    assert!(ids.concat().is_sorted());
    assert!(second.at("/meta/pagination/next_cursor").is_null());
    let path = format!("/v1/audit/holds/{}", last.at("/data/id").as_str().unwrap());
    gateway.delete(&admin, &path).await.ok();
    assert_eq!(lay().await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_that_were_lifted_keep_nobody_from_laying_others() {
    let (gateway, admin) = serve_admin(gateway());
    gateway.tamper(&format!(
        "INSERT INTO audit_holds (id, org_id, reason, created_at, released_at) \
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) \
         SELECT 'hld_01M754BKTKX1YB8Q05NMW9' || (1000 + i), '{}', 'case', 1, 1 + i FROM n",
        admin.org
    ));

    has!(gateway.post(&admin, "/v1/audit/holds", r#"{"reason": "case"}"#).await, 201);

    assert_eq!(gateway.ask("SELECT COUNT(*) FROM audit_holds"), "901");
    assert_eq!(gateway.ask("SELECT MIN(released_at) FROM audit_holds"), "102");
}
