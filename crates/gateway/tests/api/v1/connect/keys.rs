//! Connections with a key, and with nothing.

use std::os::unix::fs::PermissionsExt as _;

use portcullis_testkit::tool;
use reqwest::StatusCode;

use super::{USER, connect, delete, text};
use crate::prelude::*;

const KEYED: &str = "protocol = \"legacy\"\nauth = \"api_key\"\napi_key_header = \"X-Key\"\n\
                     api_key_format = \"key={}\"";
const KEY: &str = "the-key-of-ana-0123456789";
const OTHER: &str = "the-key-of-the-org-0123456789";

/// Connects with this key.
async fn give(gateway: &Gateway, who: &Principal, key: &str) -> Answer {
    connect(gateway, who, "keyed", &json!({ "api_key": key })).await
}

fn start(server: &McpServer) -> (Gateway, String) {
    let gateway = gateway().http("keyed", &server.url(), KEYED).start();
    let org = gateway.org("acme", &ENOUGH);
    (gateway, org)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_tried_kept_and_used_for_its_owner_only() {
    let server = McpServer::start(vec![tool("a")]).await;
    let (gateway, org) = start(&server);
    let admin = gateway.service(&org, ALL_SCOPES);
    let ana = gateway.user(&org, "member", USER);
    let ben = gateway.principal(&org, "ben", &["--role", "member"], &["--scopes", USER]);
    assert_eq!(gateway.invoke(&ana, "keyed:a", json!({})).await.code(), "not_found");

    let mine = give(&gateway, &ana, KEY).await;
    let orgs = give(&gateway, &admin, OTHER).await;

    assert_eq!((mine.status.as_u16(), orgs.status.as_u16()), (200, 200), "{}", mine.text);
    assert_eq!(mine.at("/data/owner"), &json!({"type": "user", "id": ana.id}));
    assert_eq!(orgs.at("/data/owner"), &json!({"type": "org", "id": org}));
    for answer in [&mine, &orgs] {
        has!(answer, "/data/status": "connected", "/data/auth/type": "api_key", "/data/tools": 1);
        assert!(!answer.text.contains(KEY) && !answer.text.contains(OTHER));
    }
    for (who, key) in [(&ana, KEY), (&ben, OTHER), (&admin, OTHER)] {
        gateway.invoke(who, "keyed:a", json!({})).await.ok();
        let seen = server.requests();
        let (headers, _) = seen.iter().rfind(|(_, it)| it["method"] == "tools/call").unwrap();
        assert_eq!(headers["x-key"], format!("key={key}"));
        assert!(!headers.contains_key("authorization"));
    }
    let event = gateway.get(&admin, "/v1/audit/events?type=mcp.invocation&order=desc").await;
    let credentials: Vec<_> = items(&event).iter().map(|it| &it["target"]["credential"]).collect();
    assert_eq!(credentials[..3], [&json!("org"), &json!("org"), &json!("own")]);
    let id = text(&mine, "/data/id");
    let again = give(&gateway, &ana, "another-key").await;
    assert_eq!(text(&again, "/data/id"), id, "to connect again keeps the id");
    has!(delete(&gateway, &ana, &id).await.ok(), "/data/upstream_revocation": "unsupported");
    assert_eq!(delete(&gateway, &ana, &id).await.status, 404);
    has!("now the org's is the one"; gateway.invoke(&ana, "keyed:a", json!({})).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accepted_tool_is_taken_over_by_all_connections_at_once() {
    let taking = |member: &str| {
        let mut tool = tool("a");
        tool["inputSchema"] = json!({
            "type": "object", "required": [member], "additionalProperties": false,
            "properties": { member: {"type": "integer"} },
        });
        vec![tool]
    };
    let server = McpServer::start(taking("x")).await;
    let (mut gateway, org) = start(&server);
    let ana = gateway.user(&org, "member", USER);
    let ben = gateway.principal(&org, "ben", &["--role", "member"], &["--scopes", USER]);
    for who in [&ana, &ben] {
        give(&gateway, who, KEY).await.ok();
    }
    let call = async |gateway: &Gateway, who: &Principal, member: &str| {
        gateway.invoke(who, "keyed:a", json!({ member: 1 })).await
    };
    assert_eq!(call(&gateway, &ana, "x").await.status, 200);

    // Ben's connection finds out; from then on no member of the org calls it, also after a restart.
    server.change_tools(taking("y"));
    give(&gateway, &ben, KEY).await.ok();
    for _ in 0..2 {
        for who in [&ana, &ben] {
            has!(call(&gateway, who, "x").await, "/error/details/policy": "tool-pinning");
        }
        gateway.stop();
        gateway.start();
    }
    gateway.admin(&["tool", "accept", "keyed:a"]);

    for who in [&ana, &ben] {
        let judged = |it: &Answer| {
            let held = it.at("/error/details/policy") == "tool-pinning";
            assert!(held || it.status == 200, "judged by what was there before: {}", it.text);
            it.status == 200
        };
        until(|| call(&gateway, who, "y"), judged).await;
        assert_eq!(call(&gateway, who, "x").await.code(), "invalid_input");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_the_provider_refuses_is_not_kept_and_the_one_before_stays() {
    let server = McpServer::start(vec![tool("a")]).await;
    let (gateway, org) = start(&server);
    let who = gateway.user(&org, "member", USER);
    server.fail(Some(StatusCode::UNAUTHORIZED));

    let refused = give(&gateway, &who, KEY).await;

    has!(refused, 400 "invalid_request", "/error/details/reason": "rejected_by_provider");
    assert!(!refused.text.contains(KEY));
    let all = gateway.get(&who, "/v1/providers?status=pending,connected,needs_auth,error").await;
    assert!(items(&all).is_empty(), "{}", all.text);
    server.fail(None);
    give(&gateway, &who, KEY).await.ok();
    server.fail(Some(StatusCode::UNAUTHORIZED));
    has!(give(&gateway, &who, "worse").await, 400);
    server.fail(None);
    assert_eq!(gateway.invoke(&who, "keyed:a", json!({})).await.status, 200);
    let seen = server.requests();
    let (headers, _) = seen.iter().rfind(|(_, it)| it["method"] == "tools/call").unwrap();
    assert_eq!(headers["x-key"], format!("key={KEY}"));
    server.fail(Some(StatusCode::UNAUTHORIZED));
    has!(gateway.invoke(&who, "keyed:a", json!({})).await, 409 "provider_auth_required",
        "/error/details/connect": "/v1/providers/keyed/connect", "/error/details/executed": "no");
    let listed = || gateway.get(&who, "/v1/providers");
    until(listed, |answer| members(answer, "status") == ["needs_auth"]).await;
    let tools = gateway.get(&who, "/v1/mcps").await;
    assert_eq!(members(&tools, "status"), ["unavailable"]);
    server.fail(Some(StatusCode::INTERNAL_SERVER_ERROR));
    has!(give(&gateway, &who, KEY).await, 502 "upstream_error");
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_a_provider_that_is_taken_out_are_kept_a_while_and_then_forgotten() {
    let server = McpServer::start(vec![tool("a")]).await;
    let (mut gateway, org) = start(&server);
    let admin = gateway.service(&org, ALL_SCOPES);
    let ana = gateway.user(&org, "member", USER);
    give(&gateway, &ana, KEY).await.ok();
    let with = fs::read_to_string(gateway.config_file()).unwrap();
    let without = with.replace("slug = \"keyed\"", "slug = \"other\"");
    let secrets = |gateway: &Gateway| gateway.admin(&["key", "list"])[0]["secrets"].clone();

    gateway.stop();
    fs::write(gateway.config_file(), &without).unwrap();
    gateway.start();
    assert_eq!(gateway.invoke(&ana, "keyed:a", json!({})).await.status, 404);
    let store = store(&gateway).await;
    let far = Timestamp::from_micros(i64::MAX);
    eventually("a provider that is missed", async || {
        (!store.missing_providers(far, 1).await.unwrap().is_empty()).then_some(())
    })
    .await;
    assert_eq!(secrets(&gateway), 1, "kept a while");
    gateway.stop();
    fs::write(gateway.config_file(), &with).unwrap();
    gateway.start();
    assert_eq!(gateway.invoke(&ana, "keyed:a", json!({})).await.status, 200, "as if nothing was");
    gateway.stop();
    let at_once = format!("{without}\n[connect]\nkeep_missing_days = 0\n");
    fs::write(gateway.config_file(), at_once).unwrap();
    gateway.start();

    let events = wait_for_events(&gateway, &admin, "provider.disconnected").await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["actor"]["type"], "system");
    assert_eq!(events[0]["detached"]["connection"]["reason"], "provider_not_configured");
    assert_eq!(secrets(&gateway), 0);
    let all = gateway.get(&ana, "/v1/providers?status=pending,connected,needs_auth,error").await;
    assert!(members(&all, "slug").iter().all(|slug| *slug != "keyed"), "{}", all.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_means_nothing_for_a_provider_is_refused() {
    let server = McpServer::start(vec![tool("a")]).await;
    let gateway = gateway()
        .http("keyed", &server.url(), KEYED)
        .http("open", &server.url(), "protocol = \"legacy\"\nowners = [\"org\"]")
        .start();
    let org = gateway.org("acme", &ENOUGH);
    let user = gateway.user(&org, "member", USER);
    let service = gateway.service(&org, "providers:write");

    for (slug, body) in [
        ("keyed", json!({})),
        ("keyed", json!({"api_key": ""})),
        ("keyed", json!({"api_key": "a\nb"})),
        ("keyed", json!({"api_key": 7})),
        ("keyed", json!({"api_key": KEY, "scopes": ["a"]})),
        ("keyed", json!({"api_key": KEY, "owner": "everybody"})),
        ("keyed", json!({"api_key": KEY, "more": 1})),
        ("keyed", json!({"confirm": "K7QX-2M9P-4TBR-HW3N"})),
        ("open", json!({"api_key": KEY, "owner": "org"})),
        ("open", json!({"owner": "me"})),
    ] {
        let answer = connect(&gateway, &user, slug, &body).await;
        let wanted = if body.get("owner") == Some(&json!("org")) { 403 } else { 400 };
        assert_eq!(answer.status, wanted, "{slug} {body}: {}", answer.text);
        assert!(!answer.text.contains(KEY), "{}", answer.text);
    }
    let own = connect(&gateway, &service, "keyed", &json!({"api_key": KEY, "owner": "me"})).await;
    assert_eq!(own.refusal(), (400, "invalid_request"));
    has!(give(&gateway, &service, KEY).await, 403 "insufficient_scope");
    let unknown = connect(&gateway, &user, "githb", &json!({})).await;
    let available = ["keyed", "open"];
    let details = json!({"resource": "provider_slug", "id": "githb", "available": available});
    assert_eq!((unknown.status.as_u16(), unknown.at("/error/details")), (404, &details));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_without_credentials_is_there_until_it_is_disconnected() {
    let server = McpServer::start(vec![tool("a")]).await;
    let mut gateway = gateway().http("open", &server.url(), "protocol = \"legacy\"").start();
    let org = gateway.org("acme", &ENOUGH);
    let admin = gateway.service(&org, ALL_SCOPES);
    let user = gateway.user(&org, "member", USER);
    let all = gateway.get(&user, "/v1/providers").await;
    let id = members(&all, "id")[0].to_owned();
    let refresh = gateway.post(&admin, &format!("/v1/providers/{id}/refresh"), "").await;
    has!(refresh, 409 "not_refreshable", "/error/details/auth_type": "none");

    has!(delete(&gateway, &user, &id).await, 403 "insufficient_scope");
    delete(&gateway, &admin, &id).await.ok();

    assert_eq!(gateway.invoke(&user, "open:a", json!({})).await.status, 404);
    gateway.stop();
    gateway.start();
    assert_eq!(gateway.invoke(&user, "open:a", json!({})).await.status, 404, "it stays so");
    has!(connect(&gateway, &user, "open", &json!({})).await.ok(), "/data/owner/id": user.id);
    assert_eq!(gateway.invoke(&user, "open:a", json!({})).await.status, 200);
    assert_eq!(gateway.invoke(&admin, "open:a", json!({})).await.status, 404);
    let back = connect(&gateway, &admin, "open", &json!({})).await.ok();
    assert_ne!(back.at("/data/id"), &Value::String(id));
    assert_eq!(gateway.invoke(&admin, "open:a", json!({})).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_rotate_while_the_gateway_runs_and_without_them_it_does_not_start() {
    let server = McpServer::start(vec![tool("a")]).await;
    let (mut gateway, org) = start(&server);
    let who = gateway.user(&org, "member", USER);
    give(&gateway, &who, KEY).await.ok();
    let before = gateway.admin(&["key", "list"]);

    let rotated = gateway.admin(&["key", "rotate"]);

    let after = gateway.admin(&["key", "list"]);
    assert_eq!((before[0]["secrets"].as_u64(), rotated["rewrapped"].as_u64()), (Some(1), Some(1)));
    assert_eq!((&after[0]["id"], &after[0]["secrets"]), (&rotated["id"], &json!(1)));
    assert_eq!((&after[1]["id"], &after[1]["secrets"]), (&before[0]["id"], &json!(0)));
    let ben = gateway.principal(&who.org, "ben", &["--role", "member"], &["--scopes", USER]);
    give(&gateway, &ben, OTHER).await.ok();
    gateway.stop();
    gateway.start();
    assert_eq!(gateway.invoke(&who, "keyed:a", json!({})).await.status, 200);
    gateway.admin(&["key", "rotate", "--rewrap-only"]);
    gateway.stop();
    let ring = gateway.folder().join("vault.keys");
    let mode = fs::metadata(&ring).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    fs::remove_file(ring).unwrap();
    let (_, told) = failure(&gateway, &["serve", "--port", "0"]).await;
    assert!(told.contains(rotated["id"].as_str().unwrap()), "{told}");
}
