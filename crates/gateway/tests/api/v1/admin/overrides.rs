//! `PUT /v1/policies/{id}/override`, `DELETE /v1/policies/{id}/override`.

use super::latest_change;
use crate::prelude::*;

const POLICIES: &str = r#"@id("base") permit (principal, action, resource);
@id("short") @reason("Lists are short")
forbid (principal, action == Mcp::Action::"sample:list_items", resource)
when { context.input has limit && context.input.limit > 10 };
@id("no-notes") @locked @reason("No notes")
forbid (principal, action == Mcp::Action::"sample:create_note", resource);
"#;

const SHORT: &str = "/v1/policies/short";

/// A gateway, an admin who is a person, and one of another org.
fn start() -> (Gateway, Principal, Principal) {
    let gateway = gateway().sample().policies(POLICIES).start();
    let [ours, theirs] = ["acme", "other"]
        .map(|name| gateway.user(&gateway.org(name, &ENOUGH), "admin", ALL_SCOPES));
    (gateway, ours, theirs)
}

async fn put_override(gateway: &Gateway, who: &Principal, id: &str, body: &Value) -> Answer {
    let path = format!("/v1/policies/{id}/override");
    let request = gateway.request_of(who, Method::PUT, &path).body(body.to_string());
    gateway.send(request.header("content-type", "application/json")).await
}

async fn list(gateway: &Gateway, who: &Principal) -> Answer {
    gateway.invoke(who, "sample:list_items", json!({"limit": 50})).await
}

fn hour() -> Value {
    json!({"ttl": 3600, "reason": "incident 4711"})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_off_for_the_org_of_the_admin_until_it_changes() {
    // A policy is off for the org of the admin and for no other.
    let (gateway, ours, theirs) = start();
    assert_eq!(list(&gateway, &ours).await.status, 403);

    let set = put_override(&gateway, &ours, "short", &hour()).await.ok();

    assert_enveloped(&set, "set");
    has!(set, "/data/policy_id": "short", "/data/status": "disabled", "/data/set_by": ours.id);
    let (event, change) = latest_change(&gateway, &ours, "policy.override_set").await;
    assert_eq!((&event["target"]["id"], &event["actor"]["id"]), (&json!("short"), &json!(ours.id)));
    has!(change, "/reason": "incident 4711", "/until": set.at("/data/until"));
    assert_eq!(list(&gateway, &ours).await.status, 200, "at once on this node");
    assert_eq!(list(&gateway, &theirs).await.status, 403);
    let shown = gateway.get(&ours, SHORT).await.ok();
    has!(shown, "/data/status": "disabled", "/data/origin/override/reason": "incident 4711");
    let listed = gateway.get(&ours, "/v1/policies?status=disabled").await;
    assert_eq!(items(&listed).len(), 1, "{}", listed.text);
    let elsewhere = gateway.get(&theirs, SHORT).await.ok();
    assert_eq!(elsewhere.at("/data/status"), "active");
    assert_eq!(elsewhere.at("/data/origin").get("override"), None);
    has!(gateway.delete(&theirs, &format!("{SHORT}/override")).await, 404 "not_found");

    let removed = gateway.delete(&ours, &format!("{SHORT}/override")).await.ok();

    assert_eq!(removed.at("/data"), &json!({"policy_id": "short", "removed": true}));
    assert_eq!(list(&gateway, &ours).await.status, 403);
    let (event, _) = latest_change(&gateway, &ours, "policy.override_removed").await;
    assert_eq!(event["target"]["id"], "short");
    has!(gateway.delete(&ours, &format!("{SHORT}/override")).await, 404 "not_found");

    // A prohibition counts again when it changes and a simulation says what holds.
    let call = json!({"tool": "sample:list_items", "input": {"limit": 50}}).to_string();
    let said = async |who: &Principal| {
        let answer = gateway.post(who, "/v1/policies/simulate", &call).await.ok();
        answer.at("/data/results/0/decision").clone()
    };
    put_override(&gateway, &ours, "short", &hour()).await.ok();
    assert_eq!((said(&ours).await, said(&theirs).await), (json!("allow"), json!("deny")));

    let file = gateway.folder().join("policies/test.cedar");
    fs::write(&file, POLICIES.replace("> 10", "> 20")).unwrap();

    until(|| gateway.get(&ours, SHORT), |it| it.at("/data/status") == "active").await;
    assert_eq!(list(&gateway, &ours).await.status, 403, "it is another prohibition");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_locked_or_built_in_stays_and_a_program_lifts_no_prohibition() {
    let (gateway, ours, _) = start();
    let program = gateway.service(&ours.org, ALL_SCOPES);

    for (who, id, refusal) in [
        (&ours, "no-notes", (409, "conflict")),
        (&ours, "default-deny", (409, "conflict")),
        (&ours, "unknown", (404, "not_found")),
        (&program, "short", (409, "conflict")),
    ] {
        let refused = put_override(&gateway, who, id, &hour()).await;
        assert_eq!(refused.refusal(), refusal, "{id}: {}", refused.text);
    }
    for (ttl, reason) in [(0, "x"), (604_801, "x"), (60, " "), (60, "a\nb")] {
        let body = json!({"ttl": ttl, "reason": reason});
        has!("{body}"; put_override(&gateway, &ours, "short", &body).await, 400 "invalid_request");
    }
    assert_eq!(list(&gateway, &ours).await.status, 403);
    let note = json!({"title": "a", "text": "b"});
    assert_eq!(gateway.invoke(&ours, "sample:create_note", note).await.status, 403);

    put_override(&gateway, &program, "base", &hour()).await.ok();

    let denied = gateway.invoke(&ours, "sample:list_items", json!({"limit": 1})).await;
    assert_eq!(denied.at("/error/details/policy"), "default-deny", "a permit is a kill switch");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_is_of_what_was_read_survives_a_restart_and_is_not_ended_by_a_program() {
    // Only the policy that was read is switched off.
    let (mut gateway, ours, _) = start();
    let read = gateway.get(&ours, SHORT).await.ok();
    let tag = read.header("etag").to_owned();
    let with = async |tag: &str| {
        let path = format!("{SHORT}/override");
        let request = gateway.request_of(&ours, Method::PUT, &path).header("if-match", tag);
        gateway
            .send(request.header("content-type", "application/json").body(hour().to_string()))
            .await
    };

    with(&tag).await.ok();

    assert_eq!(with(&tag).await.refusal(), (412, "precondition_failed"));
    let now = gateway.get(&ours, SHORT).await.ok();
    assert_ne!(now.header("etag"), tag);
    with(now.header("etag")).await.ok();

    // An override survives a restart and ends by itself.
    put_override(&gateway, &ours, "short", &hour()).await.ok();

    gateway.stop();
    gateway.start();

    assert_eq!(list(&gateway, &ours).await.status, 200);
    put_override(&gateway, &ours, "short", &json!({"ttl": 1, "reason": "short"})).await.ok();
    until(|| gateway.get(&ours, SHORT), |it| it.at("/data/status") == "active").await;
    assert_eq!(list(&gateway, &ours).await.status, 403);

    // A program does not end that a permit is off.
    let service = gateway.service(&ours.org, ALL_SCOPES);
    let narrow = json!({"scope": "admin mcps:read mcps:invoke"}).to_string();
    let narrowed = gateway.post(&ours, "/v1/auth/token", &narrow).await.ok();
    let text = |pointer: &str| narrowed.at(pointer).as_str().unwrap().to_owned();
    let narrowed = Principal { token: text("/data/access_token"), ..ours.clone() };
    put_override(&gateway, &ours, "base", &hour()).await.ok();
    let few = async |who: &Principal| {
        gateway.invoke(who, "sample:list_items", json!({"limit": 1})).await.status.as_u16()
    };

    for program in [&service, &narrowed] {
        let ended = gateway.delete(program, "/v1/policies/base/override").await;
        let shorter = json!({"ttl": 1, "reason": "x"});
        let shortened = put_override(&gateway, program, "base", &shorter).await;

        for refused in [&ended, &shortened] {
            has!(refused, 409 "conflict", "/error/details/reason": "people_only");
        }
        assert_eq!(few(program).await, 403);
    }

    let longer = json!({"ttl": 7200, "reason": "still on"});
    put_override(&gateway, &service, "base", &longer).await.ok();
    assert_eq!(few(&ours).await, 403);
    gateway.delete(&ours, "/v1/policies/base/override").await.ok();
    assert_eq!(few(&ours).await, 200);
    put_override(&gateway, &ours, "short", &hour()).await.ok();
    gateway.delete(&service, "/v1/policies/short/override").await.ok();
    assert_eq!(list(&gateway, &ours).await.status, 403, "a prohibition counts again");
}
