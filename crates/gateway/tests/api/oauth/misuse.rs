//! Tokens, codes and secrets that are used where they are good for nothing: `/mcp/{slug}`, `/v1/mcps`,
//! `POST /oauth/introspect`, and pages in the frames of others.

use super::{
    Site,
    client::{Client, Fields, Tokens, hidden},
    error,
};
use crate::{login::browser::Browser, prelude::*};

const APP: &str = "https://app.example/cb";

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_one_provider_reaches_no_other_by_any_way() {
    let command = [env!("CARGO_BIN_EXE_portcullis"), "sample-mcp"];
    let site = Site::built(gateway().config(super::LINKS).sample().stdio("other", &command, ""));
    let client = site.client(APP).await;
    let browser = site.browser().await;
    let mut request = client.request();
    request.insert("resource", format!("{}/mcp/sample", site.gateway.url()));
    let one = client.tokens(&browser, &request).await;
    let all = client.tokens(&browser, &client.request()).await;
    let one = site.ana_with(&one.access);
    let all = site.ana_with(&all.access);
    let both =
        |tools: &[&str]| ["sample:", "other:"].map(|it| tools.iter().any(|id| id.starts_with(it)));
    let ready = |answer: &Answer| both(&members(answer, "id")) == [true, true];
    until(|| site.gateway.get(&all, "/v1/mcps?limit=200"), ready).await;

    let own = site.gateway.get(&one, "/v1/mcps?limit=200").await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).to_string();

    assert_eq!(both(&members(&own, "id")), [true, false], "{}", own.text);
    site.gateway.invoke(&one, "sample:list_items", json!({})).await.ok();
    has!(site.gateway.get(&one, "/v1/mcps/other:list_items").await, 404);
    has!(site.gateway.invoke(&one, "other:list_items", json!({})).await, 404);
    assert_eq!(site.gateway.post(&one, "/mcp/sample", &body).await.status, 200);
    for path in ["/mcp/other", "/mcp", "/mcp/sample/../other", "/mcp/%6fther"] {
        let refused = site.gateway.post(&one, path, &body).await;
        assert!([401, 404].contains(&refused.status.as_u16()), "{path}: {}", refused.text);
    }
    // What is made from it leads no further.
    let wider = json!({"scope": "mcps:read mcps:invoke"}).to_string();
    let made = site.gateway.post(&one, "/v1/auth/token", &wider).await.ok();
    let made = site.ana_with(made.at("/data/access_token").as_str().unwrap());
    assert_eq!(site.gateway.invoke(&made, "other:list_items", json!({})).await.status, 404);
    assert_eq!(site.gateway.post(&made, "/mcp/other", &body).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_secrets_and_pages_are_good_for_nothing_elsewhere() {
    // Introspection answers alike of all that it must not tell of.
    let site = Site::sampled();
    let client = site.client(APP).await;
    let browser = site.browser().await;
    let code = client.code(&browser, &client.request()).await;
    let revoked = client.tokens(&browser, &client.request()).await;
    let fields =
        Fields::from([("client_id", client.id.clone()), ("token", revoked.access.clone())]);
    client.posts("/oauth/revoke", &fields).await.ok();
    let elsewhere = site.gateway.org("other", &ENOUGH);
    let foreign = site.gateway.service(&elsewhere, "mcps:read");
    let server = site.gateway.service(&site.org, "tokens:introspect");
    let session = browser.cookie("portcullis-session").unwrap();
    let mut flipped = foreign.token.clone();
    let last = flipped.pop().unwrap();
    flipped.push(if last == 'A' { 'B' } else { 'A' });

    let mut told = Vec::new();
    for token in
        [&foreign.token, &flipped, &revoked.access, &revoked.refresh, &code, &session, &client.id]
    {
        let fields = Fields::from([("token", token.clone())]);
        let form = "application/x-www-form-urlencoded";
        let request = site.gateway.request(Method::POST, "/oauth/introspect");
        let request = request.bearer_auth(&server.token).header("content-type", form);
        let answer = site.gateway.send(request.body(super::client::encoded(&fields))).await.ok();
        told.push((answer.text.clone(), answer.header("content-length").to_owned()));
    }

    assert_eq!(told[0].0, "{\"active\":false}");
    assert!(told.iter().all(|it| *it == told[0]), "{told:?}");

    // The page of one client gives nothing to another.
    let evil = Client::registered(&site.gateway, "App", "https://evil.example/cb").await;
    let page = client.asks(&browser, &client.request()).await;
    let token = hidden(&page, "form_token");
    let shown = hidden(&page, "shown");

    let swapped = super::client::encoded(&evil.request());
    let asked = [
        ("form_token", token.as_str()),
        ("request", &swapped),
        ("shown", &shown),
        ("decision", "allow"),
    ];
    let answer = browser.submit("/oauth/authorize", &asked).await;

    assert_eq!(answer.status, 200, "it is asked anew: {}", answer.text);
    assert!(!answer.headers.contains_key("location"));
    assert!(answer.text.contains("evil.example"), "{}", answer.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_refresh_token_is_good_for_nothing_and_pages_show_in_no_frame() {
    // A stolen refresh token is good for nothing without its client and only once with it.
    let site = Site::sampled();
    let client = site.client(APP).await;
    let thief = site.client("https://evil.example/cb").await;
    let browser = site.browser().await;
    let tokens = client.tokens(&browser, &client.request()).await;

    let stolen = thief.token(&thief.refresh(&tokens.refresh)).await;
    has!(site.gateway.get(&site.ana_with(&tokens.refresh), "/v1/mcps").await, 401);
    let as_code = client.token(&client.exchange(&tokens.refresh)).await;
    assert_eq!(error(&stolen), (400, "invalid_grant"));
    assert_eq!(error(&as_code), (400, "invalid_grant"));

    // The thief has the client's id as well, and is first: the client notices at its next but one refresh.
    let thiefs = Tokens::of(&client.token(&client.refresh(&tokens.refresh)).await);
    let clients = Tokens::of(&client.token(&client.refresh(&tokens.refresh)).await);
    assert_eq!(thiefs, clients, "within the seconds in which an answer may be lost");
    Tokens::of(&client.token(&client.refresh(&thiefs.refresh)).await);
    let ended = client.token(&client.refresh(&tokens.refresh)).await;
    assert_eq!(error(&ended), (400, "invalid_grant"));
    for token in [&tokens.access, &thiefs.access] {
        assert_eq!(site.gateway.get(&site.ana_with(token), "/v1/mcps").await.status, 401);
    }
    site.events("token.reuse_detected", 1).await;

    // No page of the gateway shows in the frame of another.
    let question = client.asks(&browser, &client.request()).await;
    let stranger = Browser::new(&site.gateway);

    for page in [
        stranger.open("/login").await,
        stranger.open("/login/link?code=x").await,
        stranger.open("/oauth/authorize?client_id=unknown").await,
        browser.open("/login").await,
        question,
    ] {
        let policy = page.header("content-security-policy");
        assert!(policy.contains("default-src 'none'"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(page.header("x-frame-options"), "DENY", "{}", page.text);
        assert_eq!(page.header("cache-control"), "no-store", "{}", page.text);
    }
}
