//! Attacks on the authorization server, each shown harmless.

use futures_util::{StreamExt, stream};
use portcullis_core::{
    random::Random,
    token::{Token, TokenKind},
};

use super::{
    Site,
    client::{Client, Fields, Tokens, VERIFIER, another_verifier, encoded, hidden, returned},
    error,
};
use crate::{login::browser::Browser, prelude::*};

const APP: &str = "https://app.example/cb";
/// Tokens that an address may have looked up in a minute, with its failed requests.
const LOOK_UPS: u32 = 60 + 1_210;

/// A random source that gives what this number makes.
#[derive(Debug)]
struct NumberedRandom(u32);

impl Random for NumberedRandom {
    fn fill(&self, bytes: &mut [u8]) {
        // Base 16, for bytes that differ may stand for the same letter of a token.
        let digits = format!("{:08x}", self.0).into_bytes();
        for (byte, digit) in bytes.iter_mut().zip(digits.into_iter().cycle()) {
            *byte = digit;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_neighbour_with_made_up_tokens_locks_out_no_code_and_no_refresh_that_was_given_here() {
    let site = Site::sampled();
    let client = site.client(APP).await;
    let browser = site.browser().await;
    let given = client.tokens(&browser, &client.request()).await;
    let code = client.code(&browser, &client.request()).await;
    let neighbour = stream::iter((0..LOOK_UPS).map(|number| {
        let made_up = Token::generate(TokenKind::User, &NumberedRandom(number));
        let request = site.gateway.request(Method::GET, "/v1/mcps");
        site.gateway.send(request.bearer_auth(made_up.secret().expose()))
    }));
    let refused: Vec<Answer> = neighbour.buffer_unordered(50).collect().await;
    assert!(refused.iter().any(|it| it.status == 429));

    let redeemed = client.token(&client.exchange(&code)).await;
    let refreshed = client.token(&client.refresh(&given.refresh)).await;

    Tokens::of(&redeemed);
    Tokens::of(&refreshed);
}

fn with(fields: &Fields, name: &'static str, value: &str) -> Fields {
    let mut changed = fields.clone();
    changed.insert(name, value.to_owned());
    changed
}

fn without(fields: &Fields, name: &str) -> Fields {
    let mut changed = fields.clone();
    changed.remove(name);
    changed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_is_sent_nowhere_but_to_the_address_of_the_client() {
    let site = Site::sampled();
    let client = site.client(APP).await;
    let loopback = site.client("http://127.0.0.1/cb").await;
    let browser = site.browser().await;
    // What an address is, and when it is another one, stands in `RedirectUri` of core.
    for (client, uri) in [
        (&client, "https://evil.example/cb"),
        (&client, "https://app.example@evil.example/cb"),
        (&client, "https://app.example/cb?x=1"),
        (&client, "javascript:alert(1)"),
        (&loopback, "http://127.0.0.1@evil.example/cb"),
        (&loopback, "http://localhost/cb"),
    ] {
        let page = client.asks(&browser, &with(&client.request(), "redirect_uri", uri)).await;
        assert_eq!(page.status, 400, "{uri}: {}", page.text);
        assert!(!page.headers.contains_key("location"), "{uri}");
    }
    let other_port = with(&loopback.request(), "redirect_uri", "http://127.0.0.1:43210/cb");
    assert_eq!(loopback.asks(&browser, &other_port).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_client_one_without_s256_and_one_that_imitates_get_nothing() {
    // An unknown client is told on a page.
    let site = Site::sampled();
    let client = site.client(APP).await;
    let browser = site.browser().await;
    let changed = format!("{}x", client.id);
    for id in ["unknown", "dcr_AAAA", &changed, "https://app.example/client.json"] {
        let page = client.asks(&browser, &with(&client.request(), "client_id", id)).await;
        assert_eq!(page.status, 400, "{id}: {}", page.text);
        assert!(!page.headers.contains_key("location"), "{id}");
    }
    let twice = format!("{}&client_id=x", encoded(&client.request()));
    has!(browser.open(&format!("/oauth/authorize?{twice}")).await, 400);

    // Without s256 there is no code.
    let request = client.request();
    client.code(&browser, &request).await;
    for request in [
        with(&request, "code_challenge_method", "plain"),
        without(&request, "code_challenge_method"),
        without(&without(&request, "code_challenge"), "code_challenge_method"),
        with(&request, "code_challenge", VERIFIER),
    ] {
        let answer = client.asks(&browser, &request).await;
        if answer.status == 302 {
            assert_eq!(returned(&answer)["error"], "invalid_request");
        } else {
            // The verifier of the RFC has the form of a challenge: it fails at the token endpoint.
            let code = client.code(&browser, &request).await;
            let refused = client.token(&client.exchange(&code)).await;
            assert_eq!(error(&refused), (400, "invalid_grant"));
        }
    }

    // Names that imitate are text and show what hides in them.
    let name = "<script>alert(1)</script>Cl\u{200b}aude\u{202e}&quot;";
    let client = Client::registered(&site.gateway, name, APP).await;

    let page = client.asks(&browser, &client.request()).await;

    assert!(page.text.contains("&lt;script&gt;alert(1)&lt;/script&gt;Cl[U+200B]aude[U+202E]"));
    assert!(!page.text.contains("<script") && !page.text.contains('\u{202e}'), "{}", page.text);
    assert!(page.text.contains("nothing vouches for its name"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_worth_nothing_in_other_hands() {
    // A code is worth nothing in other hands.
    let site = Site::sampled();
    let client = site.client(APP).await;
    let other = site.client(APP).await;
    let browser = site.browser().await;
    let code = client.code(&browser, &client.request()).await;
    let exchange = client.exchange(&code);
    let tokens = client.tokens(&browser, &client.request()).await;

    for (fields, wanted) in [
        (client.exchange(&tokens.refresh), "invalid_grant"),
        (other.exchange(&code), "invalid_grant"),
        (with(&exchange, "code_verifier", &another_verifier()), "invalid_grant"),
        (without(&exchange, "code_verifier"), "invalid_request"),
        (with(&exchange, "redirect_uri", "https://app.example/other"), "invalid_grant"),
        (
            with(&exchange, "resource", &format!("{}/mcp/sample", site.gateway.url())),
            "invalid_target",
        ),
        (with(&exchange, "resource", "https://evil.example/mcp"), "invalid_target"),
        (with(&exchange, "grant_type", "password"), "unsupported_grant_type"),
        (without(&exchange, "grant_type"), "invalid_request"),
        (without(&exchange, "client_id"), "invalid_request"),
        (with(&exchange, "code", &"x".repeat(43)), "invalid_grant"),
    ] {
        let refused = client.token(&fields).await;
        assert_eq!(error(&refused), (400, wanted), "{fields:?}: {}", refused.text);
    }
    let unknown = client.token(&with(&exchange, "client_id", "dcr_AAAA")).await;
    assert_eq!(error(&unknown), (401, "invalid_client"));
    Tokens::of(&client.token(&exchange).await);

    // Consent is to what was shown: more scopes and another client are asked for anew.
    let evil = Client::registered(&site.gateway, "App", "https://evil.example/cb").await;
    let page = client.asks(&browser, &client.request()).await;
    let [token, shown] = ["form_token", "shown"].map(|name| hidden(&page, name));
    let more = with(&client.request(), "scope", "mcps:read mcps:invoke providers:write");
    for (request, told) in
        [(more, "connect and disconnect providers"), (evil.request(), "evil.example")]
    {
        let request = encoded(&request);
        let form = [("form_token", &token), ("request", &request), ("shown", &shown)];
        let mut form = form.map(|(name, value)| (name, value.as_str())).to_vec();
        form.push(("decision", "allow"));
        let swapped = browser.submit("/oauth/authorize", &form).await;

        assert_eq!(swapped.status, 200, "{}", swapped.text);
        assert!(!swapped.headers.contains_key("location"), "{told}");
        assert!(swapped.text.contains(told), "{}", swapped.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn consent_is_given_on_the_page_of_the_session_only() {
    let site = Site::sampled();
    let client = site.client(APP).await;
    let browser = site.browser().await;
    let page = client.asks(&browser, &client.request()).await;
    assert!(page.header("content-security-policy").ends_with("form-action 'self'"));
    assert!(!page.text.contains("<script"));
    let (token, request, shown) =
        (hidden(&page, "form_token"), hidden(&page, "request"), hidden(&page, "shown"));
    let fields: Vec<(&str, &str)> = vec![
        ("form_token", &token),
        ("request", &request),
        ("shown", &shown),
        ("decision", "allow"),
    ];
    let path = "/oauth/authorize";

    let forged = [
        browser.send(browser.form(path, &fields)).await,
        browser.send(browser.form(path, &fields).header("origin", "https://evil.example")).await,
        browser.send(browser.form(path, &fields).header("sec-fetch-site", "cross-site")).await,
        browser.submit(path, &fields[1..]).await,
    ];
    let later = site.browser().await;
    let anew = later.submit(path, &fields).await;
    let back = returned(&Client::decides(&later, &anew, "allow", false).await);
    let stranger = Browser::new(&site.gateway).submit(path, &fields).await;

    for refused in forged {
        assert_eq!(refused.status, 400, "{}", refused.text);
        assert!(!refused.headers.contains_key("location"));
    }
    assert!(!anew.headers.contains_key("location") && !anew.text.contains("http-equiv"));
    assert!(back.contains_key("code"), "the page of the later session decides: {back:?}");
    assert_eq!(stranger.status, 200, "a form leads to issuers by a page only");
    assert!(stranger.text.contains("url=/login?return_to="), "{}", stranger.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_and_forms_that_are_none_are_refused() {
    // A resource that is not of this gateway is refused.
    let site = Site::sampled();
    let client = site.client(APP).await;
    let browser = site.browser().await;
    let url = site.gateway.url();
    client.code(&browser, &client.request()).await;
    for resource in
        ["https://evil.example/mcp".to_owned(), format!("{url}/v1"), format!("{url}/mcp/unknown")]
    {
        let answer = client.asks(&browser, &with(&client.request(), "resource", &resource)).await;
        assert_eq!(returned(&answer)["error"], "invalid_target", "{resource}");
    }
    let face = format!("{url}/mcp/");
    has!(client.asks(&browser, &with(&client.request(), "resource", &face)).await, 200);

    // A form that is no form is refused in the words of oauth.
    let send = |kind: &'static str, body: String| {
        let request = site.gateway.request(Method::POST, "/oauth/token");
        site.gateway.send(request.header("content-type", kind).body(body))
    };
    let form = "application/x-www-form-urlencoded";

    let answers: Vec<Answer> = vec![
        send("application/json", "{}".to_owned()).await,
        send(form, "a=1&a=2".to_owned()).await,
        send(form, "a=%ff".to_owned()).await,
        send(form, format!("a={}", "x".repeat(100_000))).await,
    ];

    for answer in answers {
        assert!(answer.status.is_client_error(), "{}", answer.text);
        assert_eq!(answer.at("/error"), "invalid_request", "{}", answer.text);
        assert!(answer.at("/meta").is_null(), "{}", answer.text);
    }
}
