//! Tokens that are used where they are good for nothing: `/mcp/{slug}`, `/v1/mcps`; and pages in the frames of others.

use super::Site;
use crate::{login::browser::Browser, prelude::*};

const APP: &str = "https://app.example/cb";

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_one_provider_reaches_no_other_by_any_way() {
    let command = [env!("CARGO_BIN_EXE_portcullis"), "sample-mcp"];
    let site = Site::built(gateway().config(super::LINKS).sample().stdio("other", &command, ""));
    let client = site.client(APP).await;
    let browser = site.browser().await;
    let mut request = client.request();
    request.insert(
        "resource",
        format!("{}/mcp/sample", site.gateway.url().to_uppercase().replace("HTTP", "http")),
    );
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
    for (who, path) in [
        (&one, "/mcp/other"),
        (&one, "/mcp"),
        (&one, "/mcp/sample/../other"),
        (&one, "/mcp/%6fther"),
        (&all, "/mcp/sample"),
    ] {
        let refused = site.gateway.post(who, path, &body).await;
        assert!([401, 404].contains(&refused.status.as_u16()), "{path}: {}", refused.text);
    }
    // What is made from it leads no further.
    let wider = json!({"scope": "mcps:read mcps:invoke"}).to_string();
    let made = site.gateway.post(&one, "/v1/auth/token", &wider).await.ok();
    let made = site.ana_with(made.at("/data/access_token").as_str().unwrap());
    assert_eq!(site.gateway.invoke(&made, "other:list_items", json!({})).await.status, 404);
    for (path, status) in [("/mcp/sample", 200), ("/mcp", 401), ("/mcp/other", 401)] {
        assert_eq!(site.gateway.post(&made, path, &body).await.status, status, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_shows_in_the_frame_of_another() {
    let site = Site::sampled();
    let client = site.client(APP).await;
    let browser = site.browser().await;
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
