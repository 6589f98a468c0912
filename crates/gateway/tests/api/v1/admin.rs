//! `GET /v1/org`, and an org that its own admins administer over the API.

mod holds;
mod overrides;
mod principals;
mod tokens;
mod tools;

use super::auth::routes::routes;
use crate::prelude::*;

/// Sends a merge patch, for the version that is named if one is.
async fn patch(
    gateway: &Gateway,
    who: &Principal,
    path: &str,
    version: Option<&str>,
    body: &Value,
) -> Answer {
    let mut request = gateway.request_of(who, Method::PATCH, path).body(body.to_string());
    request = request.header("content-type", "application/merge-patch+json");
    if let Some(version) = version {
        request = request.header("if-match", version);
    }
    gateway.send(request).await
}

/// The members of the latest event of a type that tell what changed.
async fn latest_change(gateway: &Gateway, who: &Principal, kind: &str) -> (Value, Value) {
    let listed = gateway.get(who, &format!("/v1/audit/events?type={kind}&limit=1")).await;
    let event = items(&listed)[0].clone();
    let full = gateway.event(who, event["id"].as_str().unwrap()).await.ok();
    (event, full.at("/data/detached/change").clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_org_shows_its_plan_and_no_other_role_administers_it() {
    // The org shows its plan and what was used.
    let gateway = gateway().sample().start();
    let org = gateway.org("acme", &plan("5000", "70"));
    let admin = gateway.user(&org, "admin", ALL_SCOPES);

    let answer = gateway.get(&admin, "/v1/org").await.ok();

    assert_framed(&answer, "org");
    assert_enveloped(&answer, "org");
    has!(answer, "/data/id": org.as_str(), "/data/name": "acme", "/data/plan": "enterprise");
    let limits = json!({"requests_per_minute": 5000, "invocations_per_minute": 70});
    assert_eq!(answer.at("/data/limits"), &limits);
    assert!(answer.at("/data/used/minute/requests").as_u64().unwrap() >= 1);
    assert_eq!(gateway.get(&admin, "/v1/org?org_id=x").await.refusal(), (400, "invalid_request"));

    // No other role administers and one that is taken away ends.
    let org = fresh_org(&gateway);
    let demoted = gateway.user(&org, "admin", "admin mcps:read");
    let others = [("member", "mcps:read"), ("auditor", "audit:read")]
        .map(|(role, scopes)| gateway.user(&org, role, scopes));
    gateway.get(&demoted, "/v1/org").await.ok();
    gateway.admin(&["principal", "set-role", &demoted.id, "--role", "auditor"]);
    until(|| gateway.get(&demoted, "/v1/org"), |answer| answer.status == 403).await;

    let mut walked = 0;
    for (method, path, _) in routes().into_iter().filter(|it| it.2 == Some("admin")) {
        for who in others.iter().chain([&demoted]) {
            let answer = gateway.send(gateway.request_of(who, method.clone(), &path)).await;

            assert_eq!(answer.refusal(), (403, "insufficient_scope"), "{method} {path}");
        }
        walked += 1;
    }

    assert!(walked >= 18, "{walked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_installation_answers_reads_and_refuses_every_change() {
    let (gateway, admin) = serve_admin(gateway().config("[admin]\nread_only = true"));
    let own = |path: &str| path.replace("sample:create_note", &admin.id);
    let mut changes = 0;

    for (method, path, scope) in routes().into_iter().filter(|it| it.2 == Some("admin")) {
        let body = match path.as_str() {
            "/v1/principals" => json!({"name": "ben"}),
            path if path.ends_with("/override") => json!({"ttl": 60, "reason": "case 4711"}),
            "/v1/audit/holds" => json!({"reason": "case 4711"}),
            path if path.ends_with("/accept") => json!({"version": "sha256:00"}),
            "/v1/tokens" => json!({"principal_id": "sa_01M754BKTKX1YB8Q05NMW9TP4G"}),
            _ => json!({}),
        };
        let request = gateway.request_of(&admin, method.clone(), &own(&path));
        let answer = gateway.send(request.body(body.to_string())).await;

        assert_eq!(scope, Some("admin"));
        if method == Method::GET || path == "/v1/tokens/inspect" {
            assert_ne!(answer.code(), "read_only", "{path}");
        } else {
            changes += 1;
            assert_eq!(answer.refusal(), (403, "read_only"), "{method} {path}: {}", answer.text);
            assert!(answer.at("/error/message").as_str().unwrap().contains("read_only"));
        }
    }

    assert!(changes >= 4, "{changes}");
    assert_eq!(items(&gateway.get(&admin, "/v1/principals").await).len(), 1);
    gateway.admin(&["principal", "create", "ben"]);
    assert_eq!(items(&gateway.get(&admin, "/v1/principals").await).len(), 2);
}
