//! Consent in two halves, towards a plain OAuth 2.0 service with habits of its own.

use super::{Scene, USER, code_on, come_back, delete, scene, scene_with, text, types};
use crate::prelude::*;

/// A scene whose connects are configured like this.
async fn configured(connect: &str) -> Scene {
    let config = format!("[connect]\n{connect}");
    scene_with(Habits::default(), |builder| builder.config(&config)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_connects_calls_and_disconnects() {
    let scene = scene(Habits { expires_in: Some(3600), ..Habits::default() }).await;
    let gateway = &scene.gateway;
    let who = &scene.who;
    assert_eq!(scene.whoami(who).await.code(), "not_found");

    let (begun, code) = scene.consented(who, &json!({}), "octocat").await;
    let id = text(&begun, "/data/provider/id");
    let url = text(&begun, "/data/authorization_url");
    let pending = gateway.get(who, &format!("/v1/providers/{id}")).await;
    let listed = gateway.get(who, "/v1/providers").await;
    let done = scene.connect(who, &json!({ "confirm": code })).await.ok();

    assert_eq!(begun.at("/data/provider/status"), "pending");
    for part in ["response_type=code", "scope=read", "prompt=consent", "audience=api", "S256"] {
        assert!(url.contains(part), "{part} in {url}");
    }
    assert!(!url.contains("resource="), "{url}");
    assert_eq!(pending.at("/data/status"), "pending");
    assert!(items(&listed).is_empty(), "{}", listed.text);
    let record = done.at("/data");
    assert_eq!((&record["id"], &record["status"]), (&json!(id), &json!("connected")));
    has!(record, "/auth/scopes": ["read"], "/auth/refreshable": true);
    assert!(record["auth"]["expires_at"].is_string() && record["connected_at"].is_string());
    has!(record, "/account": {"id": "583231", "name": "octocat"}, "/tools": 1);
    has!(scene.whoami(who).await, "/result/account": "octocat");
    has!("a code is good for once"; scene.connect(who, &json!({ "confirm": code })).await, 400);
    has!(delete(gateway, who, &id).await, "/data/upstream_revocation": "done");
    assert_eq!(scene.saas.revoked().len(), 2, "refresh and access token");
    assert_eq!(scene.whoami(who).await.code(), "not_found");
    let events = scene.events(who).await;
    let kinds = types(&events).join(" ");
    assert_eq!(kinds, "provider.connect_started provider.connected provider.disconnected");
    for event in &events {
        assert_eq!((&event["actor"]["id"], &event["target"]["id"]), (&json!(who.id), &json!(id)));
        has!(event, "/target/credential": "own", "/detached/connection/slug": "saas");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_browser_returns_where_it_was_asked_to_and_what_it_is_shown_is_framed() {
    let scene = configured("return_to = [\"https://app.acme.example\"]").await;
    let gateway = &scene.gateway;
    let who = &scene.who;
    let there = "https://app.acme.example/done?x=1";

    let begun = scene.connect(who, &json!({ "return_to": there })).await;
    let back = scene.consent(&begun, "octocat").await;
    let shown = come_back(&back).await;

    assert_eq!(shown.status(), 302);
    let location = shown.headers()["location"].to_str().unwrap().to_owned();
    let id = text(&begun, "/data/provider/id");
    assert!(location.starts_with(&format!("{there}&provider_id={id}&confirm=")), "{location}");
    for (name, value) in [
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("x-ratelimit-resource", "unauthenticated"),
    ] {
        assert_eq!(shown.headers()[name], value, "{name}");
    }
    let policy = shown.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    let code = location.split("confirm=").nth(1).unwrap();
    assert_eq!(scene.connect(who, &json!({ "confirm": code })).await.status, 200);

    let begun = scene.connect(who, &json!({ "return_to": there })).await;
    let back = scene.consent(&begun, "nobody").await;
    let shown = come_back(&back).await;
    let location = shown.headers()["location"].to_str().unwrap();
    assert!(location.ends_with(&format!("provider_id={id}&error=access_denied")), "{location}");
    let page = scene.page("nobody").await;
    assert!(page.contains("access_denied") && !page.contains("script"), "{page}");
    let status = gateway.get(who, &format!("/v1/providers/{id}")).await;
    assert_eq!(status.at("/data/status"), "connected", "what was there stays");
    for bad in ["https://evil.example/", "http://app.acme.example/", "javascript:x", ""] {
        let answer = scene.connect(who, &json!({ "return_to": bad })).await;
        assert_eq!(answer.refusal(), (400, "invalid_request"), "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_wrong_codes_end_an_attempt_and_revoke_what_was_granted() {
    // Five wrong codes end an attempt and revoke what was granted.
    let scene = scene(Habits::default()).await;
    let gateway = &scene.gateway;
    let who = &scene.who;
    let (begun, code) = scene.consented(who, &json!({}), "octocat").await;

    for wrong in ["K7QX-2M9P-4TBR-HW3N", "x", "", "0000-0000-0000-0000", "🦀"] {
        let answer = scene.connect(who, &json!({ "confirm": wrong })).await;
        assert_eq!(answer.refusal(), (400, "invalid_request"), "{wrong}");
    }

    has!(scene.connect(who, &json!({ "confirm": code })).await, 400);
    assert_eq!(scene.saas.revoked().len(), 2);
    let id = text(&begun, "/data/provider/id");
    assert_eq!(gateway.get(who, &format!("/v1/providers/{id}")).await.status, 404);
    let events = scene.events(who).await;
    assert_eq!(types(&events), ["provider.connect_started", "provider.connect_failed"]);

    // Sessions of many at once are never shared.
    let elsewhere = scene.gateway.org("elsewhere", &ENOUGH);
    let mut people = Vec::new();
    let orgs = [&scene.who.org, &elsewhere, &scene.who.org, &elsewhere];
    for (number, org) in orgs.iter().enumerate() {
        let name = format!("person {number}");
        let who = scene.gateway.principal(org, &name, &["--role", "member"], &["--scopes", USER]);
        let account = format!("account-{number}");
        scene.connected(&who, &json!({}), &account).await;
        people.push((who, account));
    }

    for _ in 0..10 {
        let calls = people.iter().cycle().take(24).map(|(who, _)| scene.whoami(who));
        let answers = join_all(calls).await;

        for (answer, (_, account)) in answers.iter().zip(people.iter().cycle()) {
            assert_eq!(answer.at("/result/account"), account.as_str(), "{}", answer.text);
        }
    }
    assert_eq!(scene.saas.foreign(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_confirms_is_revoked_and_forgotten() {
    let scene = configured("attempt_seconds = 5").await;
    let gateway = &scene.gateway;
    let who = &scene.who;
    let (begun, code) = scene.consented(who, &json!({}), "octocat").await;
    let path = format!("/v1/providers/{}", text(&begun, "/data/provider/id"));

    until(|| gateway.get(who, &path), |answer| answer.status == 404).await;

    assert_eq!(scene.saas.revoked().len(), 2);
    has!(scene.connect(who, &json!({ "confirm": code })).await, 400);
    let events = scene.events(who).await;
    assert_eq!(types(&events), ["provider.connect_started", "provider.connect_failed"]);
    assert_eq!(events[1]["detached"]["connection"]["reason"], "expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_confirmation_the_callback_completes_the_connection() {
    let scene = configured("confirmation = \"off\"").await;
    let begun = scene.connect(&scene.who, &json!({})).await;
    let back = scene.consent(&begun, "octocat").await;

    let shown = come_back(&back).await;

    assert_eq!(shown.status(), 200);
    assert!(shown.text().await.unwrap().contains("is connected"));
    assert_eq!(scene.whoami(&scene.who).await.at("/result/account"), "octocat");
}

#[tokio::test(flavor = "multi_thread")]
async fn ones_own_connection_wins_and_an_admin_sees_everybodys() {
    let scene = scene(Habits::default()).await;
    let gateway = &scene.gateway;
    let ana = &scene.who;
    let admin = gateway.user(&ana.org, "admin", ALL_SCOPES);
    let ben = gateway.principal(&ana.org, "ben", &["--role", "member"], &["--scopes", USER]);
    let robot = gateway.service(&ana.org, ALL_SCOPES);
    let orgs = scene.connected(&robot, &json!({}), "the-org").await;
    let mine = scene.connected(ana, &json!({}), "ana").await;

    let accounts = [ana, &ben, &admin, &robot].map(|who| scene.whoami(who));
    let accounts = join_all(accounts).await;

    let accounts: Vec<_> = accounts.iter().map(|it| it.at("/result/account").clone()).collect();
    assert_eq!(accounts, ["ana", "the-org", "the-org", "the-org"]);
    let (id, org_id) = (text(&mine, "/data/id"), text(&orgs, "/data/id"));
    for (who, query, wanted) in [
        (ana, "", vec![&org_id, &id]),
        (ana, "?owner=me", vec![&id]),
        (ana, "?owner=org", vec![&org_id]),
        (&ben, "", vec![&org_id]),
        (&ben, "?owner=me", vec![]),
        (&admin, "", vec![&org_id, &id]),
        (&admin, &format!("?owner={}", ana.id), vec![&id]),
        (&admin, "?status=needs_auth", vec![]),
        (&admin, "?slug=other", vec![]),
    ] {
        let answer = gateway.get(who, &format!("/v1/providers{query}")).await;
        let mut found = members(&answer, "id");
        found.sort_unstable();
        let mut wanted: Vec<&str> = wanted.into_iter().map(String::as_str).collect();
        wanted.sort_unstable();
        assert_eq!(found, wanted, "{query}");
    }
    let path = format!("/v1/providers?owner={}", ana.id);
    assert_eq!(gateway.get(&ben, &path).await.code(), "insufficient_scope");
    let foreign = gateway.user(&gateway.org("other", &ENOUGH), "admin", ALL_SCOPES);
    for who in [&ben, &foreign] {
        assert_eq!(gateway.get(who, &format!("/v1/providers/{id}")).await.status, 404);
        assert_eq!(delete(gateway, who, &id).await.status, 404);
        has!(gateway.post(who, &format!("/v1/providers/{id}/refresh"), "").await, 404);
    }
    assert_eq!(delete(gateway, &ben, &org_id).await.code(), "insufficient_scope");
    let page = gateway.get(&admin, "/v1/providers?limit=1").await;
    let cursor = text(&page, "/meta/pagination/next_cursor");
    let rest = gateway.get(&admin, &format!("/v1/providers?limit=1&cursor={cursor}")).await;
    assert_ne!(members(&page, "id"), members(&rest, "id"));
    assert_eq!(rest.at("/meta/pagination/next_cursor"), &Value::Null);
    assert_eq!(delete(gateway, &admin, &id).await.status, 200, "an admin may end anybody's");
    assert_eq!(scene.whoami(ana).await.at("/result/account"), "the-org");
}

#[tokio::test(flavor = "multi_thread")]
async fn to_connect_again_keeps_the_id_and_a_provider_that_revokes_nothing_keeps_nobody() {
    // To connect again keeps the id and the old credentials until the new ones work.
    let scene = scene(Habits::default()).await;
    let who = &scene.who;
    let first = scene.connected(who, &json!({}), "octocat").await;

    let (begun, code) = scene.consented(who, &json!({"scopes": ["write"]}), "hubot").await;
    has!(scene.whoami(who).await, "/result/account": "octocat");
    let done = scene.connect(who, &json!({ "confirm": code })).await;

    assert_eq!(text(&begun, "/data/provider/id"), text(&first, "/data/id"));
    assert_eq!(begun.at("/data/provider/status"), "connected");
    assert_eq!(text(&done, "/data/id"), text(&first, "/data/id"));
    has!(done, "/data/account/name": "hubot", "/data/auth/scopes": ["write"]);
    assert_eq!(scene.whoami(who).await.at("/result/account"), "hubot");
    assert_eq!(scene.saas.foreign(), Vec::<String>::new(), "sessions are not shared");
    for scopes in [json!(["admin"]), json!(["read", "x y"]), json!("read"), json!([7])] {
        has!(scene.connect(who, &json!({ "scopes": scopes })).await, 400 "invalid_request");
    }
    let superseded = scene.connect(who, &json!({})).await;
    let old = scene.consent(&superseded, "octocat").await;
    scene.connect(who, &json!({})).await;
    assert_eq!(come_back(&old).await.status(), 400, "an earlier attempt has ended");
    assert_eq!(code_on("<code>x</code>"), "x");

    // A provider that revokes nothing keeps nobody connected.
    let id = text(&scene.connected(who, &json!({}), "octocat").await, "/data/id");
    scene.saas.change(|habits| {
        habits.documents.insert("/revoke".to_owned(), (500, "{}".to_owned()));
    });

    let gone = delete(&scene.gateway, who, &id).await;

    has!(gone, 200, "/data/disconnected": true, "/data/upstream_revocation": "failed");
    assert_eq!(scene.whoami(who).await.code(), "not_found");
    assert_eq!(delete(&scene.gateway, who, &id).await.status, 404);
}
