//! The whole way: `GET /oauth/authorize`, `POST /oauth/authorize`, `POST /oauth/token`, `POST /oauth/revoke`, and
//! what a token is good for.

use super::{
    Site,
    client::{Client, Fields, Tokens, encoded, led_to, returned},
    error,
};
use crate::{login::browser::Browser, prelude::*};

const APP: &str = "https://app.example/cb";

/// The answer to a message at an MCP endpoint.
async fn message(site: &Site, token: &str, path: &str, method: &str, params: Value) -> Answer {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = site.gateway.request(Method::POST, path).bearer_auth(token).json(&body);
    site.gateway.send(request).await
}

async fn lists(site: &Site, token: &str, path: &str) -> Answer {
    message(site, token, path, "tools/list", json!({})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_lets_a_client_call_a_tool() {
    // A person lets a client call a tool.
    let site = Site::sampled();
    let client = site.client(APP).await;
    let stranger = Browser::new(&site.gateway);

    let sent = client.asks(&stranger, &client.request()).await;
    let browser = site.browser().await;
    let page = client.asks(&browser, &client.request()).await;
    let back = Client::decides(&browser, &page, "allow", false).await;

    assert_eq!(sent.status, 302, "{}", sent.text);
    assert!(sent.header("location").starts_with("/login?return_to=%2Foauth%2Fauthorize"));
    for shown in ["App", "app.example", "acme", "Ana", "call tools", "registered itself"] {
        assert!(page.text.contains(shown), "{shown}: {}", page.text);
    }
    assert_eq!(back.header("referrer-policy"), "no-referrer");
    let to = led_to(&back);
    let back = returned(&back);
    assert_eq!(to.host_str(), Some("app.example"));
    has!(json!(back), "/state": "a state & more", "/iss": site.gateway.url());
    let granted = client.token(&client.exchange(&back["code"])).await;
    let tokens = Tokens::of(&granted);
    has!(granted, "/token_type": "Bearer", "/scope": "mcps:invoke mcps:read");
    assert_eq!(granted.header("cache-control"), "no-store");
    assert!(granted.headers.contains_key("x-request-id"));
    assert!(tokens.access.starts_with("mcp_live_") && tokens.refresh.starts_with("mcp_refresh_"));
    message(
        &site,
        &tokens.access,
        "/mcp",
        "tools/call",
        json!({"name": "sample__list_items", "arguments": {}}),
    )
    .await
    .ok();
    let event = site.events("mcp.invocation", 1).await.remove(0);
    has!(event, "/actor/client/kind": "registered", "/detached/label": "App");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_account_is_taken_where_the_person_or_the_client_wants_it() {
    let site = Site::sampled();
    let client = site.client(APP).await;
    let ben = site.gateway.admin(&["principal", "create", "Ben", "--org", &site.org]);
    let next = |page: &Answer| {
        let (_, rest) = page.text.split_once("url=").expect("a way on");
        rest.split_once('"').unwrap().0.replace("&amp;", "&")
    };
    for prompt in [None, Some("login"), Some("select_account consent")] {
        let browser = site.browser().await;
        let before = browser.stolen();
        let mut request = client.request();
        request.extend(prompt.map(|prompt| ("prompt", prompt.to_owned())));

        let sent = client.asks(&browser, &request).await;
        let to = if prompt.is_some() {
            assert_eq!(sent.status, 302, "{}", sent.text);
            sent.header("location").to_owned()
        } else {
            let form = [("decision", "other")];
            assert_eq!(browser.submit("/oauth/authorize", &form).await.status, 400);
            next(&Client::decides(&browser, &sent, "other", false).await.ok())
        };
        let offered = browser.open(&to).await.ok();
        let signed_in = site.log_in(&browser, ben["id"].as_str().unwrap()).await;
        let page = browser.open(&next(&signed_in)).await.ok();
        let back = returned(&Client::decides(&browser, &page, "allow", false).await);

        assert!(to.ends_with("&step_up=again"), "{to}");
        assert!(offered.text.contains("login-link"), "{}", offered.text);
        assert!(page.text.contains("Signed in as</dt><dd>Ben<"), "{}", page.text);
        assert!(back.contains_key("code") && back["state"] == "a state & more", "{back:?}");
        assert!(!before.open("/login").await.text.contains("Ana"), "Ana is signed out");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_buys_tokens_once_and_its_second_use_ends_them() {
    // A code buys tokens once and its second use ends them.
    let site = Site::sampled();
    let client = site.client(APP).await;
    let browser = site.browser().await;
    let code = client.code(&browser, &client.request()).await;
    let tokens = Tokens::of(&client.token(&client.exchange(&code)).await);

    let again = client.token(&client.exchange(&code)).await;

    assert_eq!(error(&again), (400, "invalid_grant"));
    assert_eq!(lists(&site, &tokens.access, "/mcp").await.status, 401);
    let refreshed = client.token(&client.refresh(&tokens.refresh)).await;
    assert_eq!(error(&refreshed), (400, "invalid_grant"));
    let event = site.events("code.reuse_detected", 1).await.remove(0);
    assert_eq!(event["actor"]["client"]["kind"], "registered");

    // A code that is used on all sides at once is used once.
    let code = client.code(&browser, &client.request()).await;
    let exchange = client.exchange(&code);

    let race = (0..8).map(|_| client.token(&exchange));
    let answers = join_all(race).await;

    let granted = answers.iter().filter(|answer| answer.status == 200).count();
    assert!(granted <= 1, "{granted}");
    for answer in answers.iter().filter(|answer| answer.status == 200) {
        let tokens = Tokens::of(answer);
        assert_eq!(lists(&site, &tokens.access, "/mcp").await.status, 401, "all of it ended");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_is_given_again_ends_a_copied_grant_and_spends_nothing_when_refused() {
    // A refresh token buys the same pair again and a copied one ends the grant.
    let site = Site::sampled();
    let client = site.client(APP).await;
    let browser = site.browser().await;
    let first = client.tokens(&browser, &client.request()).await;

    let next = Tokens::of(&client.token(&client.refresh(&first.refresh)).await);
    let same = Tokens::of(&client.token(&client.refresh(&first.refresh)).await);
    let third = Tokens::of(&client.token(&client.refresh(&next.refresh)).await);
    let stolen = client.token(&client.refresh(&first.refresh)).await;

    assert_eq!(next, same);
    assert_eq!(error(&stolen), (400, "invalid_grant"));
    for ended in [&first.access, &third.access] {
        assert_eq!(lists(&site, ended, "/mcp").await.status, 401);
    }
    site.events("token.reuse_detected", 1).await;

    // A refused refresh spends nothing.
    let other = site.client(APP).await;
    let tokens = client.tokens(&browser, &client.request()).await;
    let with = |name: &'static str, value: &str| {
        let mut fields = client.refresh(&tokens.refresh);
        fields.insert(name, value.to_owned());
        fields
    };

    for (fields, wanted) in [
        (other.refresh(&tokens.refresh), "invalid_grant"),
        (with("resource", "https://evil.example/mcp"), "invalid_target"),
        (with("resource", &format!("{}/mcp/sample", site.gateway.url())), "invalid_target"),
        (with("scope", "mcps:read admin"), "invalid_scope"),
        (with("client_id", "unknown"), "invalid_client"),
    ] {
        let refused = client.token(&fields).await;
        assert_eq!(error(&refused).1, wanted, "{}", refused.text);
    }
    let over_rest = json!({"refresh_token": tokens.refresh}).to_string();
    let request = site.gateway.request(Method::POST, "/v1/auth/refresh").body(over_rest);
    has!(site.gateway.send(request.header("content-type", "application/json")).await, 401);
    Tokens::of(&client.token(&client.refresh(&tokens.refresh)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_reads_scopes_and_revocation_ends_the_grant() {
    // A refresh reads scopes as the request for the code does.
    let site = Site::sampled();
    let client = site.client(APP).await;
    let browser = site.browser().await;
    let mut request = client.request();
    request.insert("scope", "mcps:read offline_access".to_owned());
    let mut refresh = client.tokens(&browser, &request).await.refresh;

    for (scope, wanted) in [
        ("mcps:read offline_access", (200, "")),
        ("offline_access openid", (200, "")),
        ("mcps:read mcps:invoke offline_access", (400, "invalid_scope")),
    ] {
        let mut fields = client.refresh(&refresh);
        fields.insert("scope", scope.to_owned());
        let answer = client.token(&fields).await;

        assert_eq!(error(&answer), wanted, "{scope}: {}", answer.text);
        if answer.status == 200 {
            assert_eq!(answer.at("/scope"), "mcps:read", "{scope}");
            refresh = Tokens::of(&answer).refresh;
        }
    }
    request.insert("scope", "openid offline_access".to_owned());
    let code = client.code(&browser, &request).await;
    assert_eq!(client.token(&client.exchange(&code)).await.at("/scope"), "mcps:invoke mcps:read");

    // Revocation ends the grant and says nothing of other tokens.
    let other = site.client(APP).await;
    let tokens = client.tokens(&browser, &client.request()).await;
    let fields = |client: &Client<'_>, token: &str| {
        Fields::from([("client_id", client.id.clone()), ("token", token.to_owned())])
    };

    let foreign = other.posts("/oauth/revoke", &fields(&other, &tokens.refresh)).await;
    let unknown = client.posts("/oauth/revoke", &fields(&client, "nothing")).await;
    assert_eq!(lists(&site, &tokens.access, "/mcp").await.status, 200);
    let revoked = client.posts("/oauth/revoke", &fields(&client, &tokens.refresh)).await;

    assert_eq!(error(&foreign), (400, "unauthorized_client"));
    assert_eq!((unknown.status.as_u16(), revoked.status.as_u16()), (200, 200));
    assert_eq!(lists(&site, &tokens.access, "/mcp").await.status, 401);
    let event = site.events("token.revoked", 1).await.remove(0);
    assert_eq!(event["actor"]["client"]["kind"], "registered");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_public_client_names_itself_and_every_step_names_it() {
    // A public client may name itself in a header and others mean nothing.
    let site = Site::sampled();
    let client = site.client(APP).await;
    let tokens = client.tokens(&site.browser().await, &client.request()).await;
    let id = client.id.as_str();
    let named = client.refresh(&tokens.refresh);
    let mut nameless = named.clone();
    nameless.remove("client_id");
    let sent = async |fields: &Fields, user: &str, secret: Option<&str>| {
        let request = site.gateway.request(Method::POST, "/oauth/token").body(encoded(fields));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        site.gateway
            .send(match secret {
                Some(secret) => request.basic_auth(user, Some(secret)),
                None => request.bearer_auth(user),
            })
            .await
    };
    for (fields, user, secret, wanted) in [
        (&nameless, id, Some(""), (200, "")),
        (&named, id, Some(""), (200, "")),
        (&named, "proxy", Some("password"), (200, "")),
        (&named, "x", None, (200, "")),
        (&named, id, Some("secret"), (401, "invalid_client")),
        (&nameless, id, Some("secret"), (401, "invalid_client")),
        (&named, "other", Some(""), (401, "invalid_client")),
        (&nameless, "x", None, (400, "invalid_request")),
    ] {
        let answer = sent(fields, user, secret).await;

        assert_eq!(error(&answer), wanted, "{user} {secret:?}: {}", answer.text);
    }
    let json = json!(client.refresh(&tokens.refresh));
    for path in ["/oauth/token", "/oauth/revoke"] {
        let refused = site.gateway.send(site.gateway.request(Method::POST, path).json(&json)).await;
        assert_eq!(error(&refused), (415, "invalid_request"), "{path}: {}", refused.text);
        let told = "Send the body as application/x-www-form-urlencoded.";
        assert_eq!(refused.at("/error_description"), told, "{path}");
    }

    // Every step is in the log and names the client.
    let browser = site.browser().await;

    let page = client.asks(&browser, &client.request()).await;
    let denied = Client::decides(&browser, &page, "deny", false).await;
    client.tokens(&browser, &client.request()).await;

    assert_eq!(returned(&denied)["error"], "access_denied");
    for kind in ["consent.denied", "consent.given", "token.issued"] {
        let event = site.events(kind, 1).await.remove(0);
        assert_eq!(event["actor"]["id"], *site.ana, "{event}");
        assert!(event["actor"]["client"]["id"].as_str().unwrap().starts_with("reg_"), "{event}");
        assert_eq!(event["detached"]["label"], "App", "{event}");
    }
}
