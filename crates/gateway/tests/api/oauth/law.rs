//! Policies see the client, and `POST /oauth/introspect` tells resource servers what a token is worth.

use super::{Site, client::Client};
use crate::prelude::*;

const APP: &str = "https://app.example/cb";

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_can_tell_clients_apart() {
    let policies = r#"@id("people") permit (principal, action, resource);
@id("no-clients") forbid (principal, action == Mcp::Action::"sample:list_items", resource)
when { principal has client && principal.client.kind == "registered" && principal.client.name == "App" };"#;
    let site = Site::built(gateway().config(super::LINKS).sample().policies(policies));
    let browser = site.browser().await;
    let app = site.client(APP).await;
    let other = Client::registered(&site.gateway, "Other", APP).await;
    let app = app.tokens(&browser, &app.request()).await;
    let other = other.tokens(&browser, &other.request()).await;

    let denied =
        site.gateway.invoke(&site.ana_with(&app.access), "sample:list_items", json!({})).await;
    let allowed =
        site.gateway.invoke(&site.ana_with(&other.access), "sample:list_items", json!({})).await;

    assert_eq!(denied.status, 403, "{}", denied.text);
    assert_eq!(allowed.status, 200, "{}", allowed.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn introspection_tells_of_the_own_org_only_and_needs_its_scope() {
    let site = Site::sampled();
    let client = site.client(APP).await;
    let browser = site.browser().await;
    let tokens = client.tokens(&browser, &client.request()).await;
    let server = site.gateway.service(&site.org, "tokens:introspect");
    let unscoped = site.gateway.service(&site.org, "mcps:read");
    let elsewhere = site.gateway.org("other", &ENOUGH);
    let foreign = site.gateway.service(&elsewhere, "tokens:introspect");
    let ask = |bearer: &str, token: &str| {
        let request = site.gateway.request(Method::POST, "/oauth/introspect").bearer_auth(bearer);
        let form = "application/x-www-form-urlencoded";
        site.gateway.send(request.header("content-type", form).body(format!("token={token}")))
    };

    let told = ask(&server.token, &tokens.access).await.ok();

    has!(told, "/active": true, "/scope": "mcps:invoke mcps:read", "/sub": site.ana);
    assert_eq!(told.at("/client_id"), &json!(client.id), "as the client knows itself");
    let of_none = ask(&server.token, &server.token).await.ok();
    assert_eq!(of_none.at("/active"), true);
    assert!(
        !of_none.text.contains("client_id") && !of_none.text.contains("null"),
        "{}",
        of_none.text
    );
    assert_eq!(told.at("/aud"), &json!(format!("{}/mcp", site.gateway.url())));
    for (bearer, token) in
        [(&foreign.token, &tokens.access), (&server.token, &"nonsense".to_owned())]
    {
        assert_eq!(ask(bearer, token).await.ok().json, json!({"active": false}));
    }
    let refused = ask(&unscoped.token, &tokens.access).await;
    assert_eq!(super::error(&refused), (403, "insufficient_scope"));
    let refused = ask("nonsense", &tokens.access).await;
    assert_eq!(super::error(&refused), (401, "invalid_token"));
    let revoke = super::client::Fields::from([
        ("client_id", client.id.clone()),
        ("token", tokens.access.clone()),
    ]);
    client.posts("/oauth/revoke", &revoke).await.ok();
    let code = client.code(&browser, &client.request()).await;
    let session = browser.cookie("portcullis-session").unwrap();
    let flipped = format!("{}-", &foreign.token[..foreign.token.len() - 1]);
    for token in
        [&tokens.access, &tokens.refresh, &foreign.token, &flipped, &code, &session, &client.id]
    {
        assert_eq!(ask(&server.token, token).await.ok().text, "{\"active\":false}", "{token}");
    }
}
