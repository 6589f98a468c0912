//! Deactivation and deletion end every access within five seconds, and for good.

use super::{Site, error, id};
use crate::{login::browser::Browser, mcp::modern, prelude::*};

/// Time in which a node follows.
const FOLLOWS: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn deactivation_and_deletion_end_all_access_and_membership() {
    // Deactivation ends tokens refreshes sessions streams and approvals.
    let site = Site::start().await;
    let ana = site.person("00uana").await;
    site.group("finance", &[&ana]).await;
    let granted = site.logged_in("00uana", &[]).await.ok();
    let text = |pointer: &str| granted.at(pointer).as_str().unwrap().to_owned();
    let access = text("/data/access_token");
    let refresh = text("/data/refresh_token");
    let who = Principal { token: access, ..site.login("00uana").await };
    let link = site.gateway.admin(&["login-link", "--principal", &ana]);
    let (_, code) = link["url"].as_str().unwrap().split_once("code=").unwrap();
    let browser = Browser::new(&site.gateway);
    browser.submit("/login/link", &[("code", code)]).await.ok();
    let unused = site.gateway.admin(&["login-link", "--principal", &ana]);
    let (_, unused) = unused["url"].as_str().unwrap().split_once("code=").unwrap();
    let params = json!({ "notifications": {} });
    let listen = modern(&site.gateway, &who, "/mcp/up", "subscriptions/listen", &params);
    let mut stream = listen.send().await.unwrap();
    stream.chunk().await.unwrap().expect("an acknowledgement");
    let asked = site.gateway.invoke(&who, "up:close", json!({})).await;
    assert!(asked.at("/error/details/approval/id").is_string(), "{}", asked.text);

    let began = Instant::now();
    let off = json!([{"op": "replace", "value": {"active": false}}]);
    site.patch(&format!("Users/{ana}"), off).await.ok();

    assert_eq!(site.gateway.get(&who, "/v1/mcps").await.refusal(), (401, "token_revoked"));
    let spend = async || {
        let request = site.gateway.request(Method::POST, "/v1/auth/refresh");
        site.gateway.send(request.bearer_auth(&refresh)).await
    };
    assert_eq!(spend().await.status, 401);
    assert!(!browser.open("/login").await.ok().text.contains("Signed in"));
    assert_eq!(site.logged_in("00uana", &[]).await.refusal(), (401, "invalid_credential"));
    while let Ok(Some(_)) = stream.chunk().await {}
    assert!(began.elapsed() < FOLLOWS * 2, "{:?}", began.elapsed());
    let pending = "/v1/approvals?status=pending";
    until(|| site.gateway.get(&site.admin, pending), |answer| items(answer).is_empty()).await;

    // What ended stays so when the person is back.
    let on = json!([{"op": "replace", "value": {"active": true}}]);
    site.patch(&format!("Users/{ana}"), on).await.ok();
    assert_eq!(site.gateway.get(&who, "/v1/mcps").await.refusal(), (401, "token_revoked"));
    assert_eq!(spend().await.status, 401);
    assert!(!browser.open("/login").await.ok().text.contains("Signed in"));
    let late = Browser::new(&site.gateway);
    assert_ne!(late.submit("/login/link", &[("code", unused)]).await.status, 200);
    assert_eq!(site.login("00uana").await.id, ana);

    // Deletion ends access and membership.
    let ana = site.person("00ucleo").await;
    let group = site.group("sales", &[&ana]).await;
    let who = site.login("00ucleo").await;

    has!(site.scim(Method::DELETE, &format!("Users/{ana}"), Value::Null).await, 204);

    assert_eq!(site.gateway.get(&who, "/v1/mcps").await.refusal(), (401, "token_revoked"));
    assert_eq!(site.logged_in("00ucleo", &[]).await.refusal(), (401, "invalid_credential"));
    has!(site.get(&format!("Groups/{group}")).await.ok(), "/members": []);
    let known = site.gateway.get(&site.admin, &format!("/v1/principals/{ana}")).await.ok();
    has!(known, "/data/disabled": true, "/data/provisioned_groups": []);
    // A person who was never seen does not come in after a deletion either.
    let ben = site.person("00uben").await;
    site.scim(Method::DELETE, &format!("Users/{ben}"), Value::Null).await;
    assert_eq!(site.logged_in("00uben", &[]).await.refusal(), (401, "invalid_credential"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_repeats_itself_lets_nobody_in_whom_an_admin_shut_out() {
    // A provider that repeats itself lets nobody in whom an admin shut out.
    let site = Site::start().await;
    let ana = site.person("00uana").await;
    let path = format!("Users/{ana}");
    let principal = format!("/v1/principals/{ana}");
    let disable = async |disabled: bool| {
        let request = site.gateway.request_of(&site.admin, Method::PATCH, &principal);
        let body = json!({ "disabled": disabled }).to_string();
        site.gateway.send(request.header("content-type", "application/json").body(body)).await.ok();
    };
    let on = json!([{"op": "Replace", "path": "active", "value": "True"}]);
    let off = json!([{"op": "Replace", "path": "active", "value": "False"}]);

    disable(true).await;
    assert_eq!(site.patch(&path, on.clone()).await.ok().at("/active"), false);
    site.patch(&path, off.clone()).await.ok();
    assert_eq!(site.patch(&path, on.clone()).await.ok().at("/active"), false);
    disable(false).await;
    assert_eq!(site.get(&path).await.ok().at("/active"), true);
    // And one who is let in again against the provider's word is shut out by its next word.
    site.patch(&path, off.clone()).await.ok();
    disable(false).await;
    assert_eq!(site.patch(&path, off).await.ok().at("/active"), false);
    assert_eq!(site.patch(&path, on).await.ok().at("/active"), true);

    // The last admin stays.
    let body = json!({"userName": "root", "externalId": "00uroot"});
    let root = id(&site.scim(Method::POST, "Users", body).await);
    site.logged_in("00uroot", &["mcp-admins"]).await.ok();
    let path = format!("Users/{root}");
    site.gateway.admin(&["principal", "disable", &site.admin.id]);

    let off = json!([{"op": "replace", "value": {"active": false}}]);
    assert_eq!(error(&site.patch(&path, off.clone()).await), (409, ""));
    assert_eq!(error(&site.scim(Method::DELETE, &path, Value::Null).await), (409, ""));
    assert_eq!(site.get(&path).await.ok().at("/active"), true);

    site.gateway.admin(&["principal", "enable", &site.admin.id]);
    assert_eq!(site.patch(&path, off).await.ok().at("/active"), false);
}
