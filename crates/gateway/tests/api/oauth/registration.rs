//! `POST /oauth/register`, `GET /oauth/register/{client_id}`: clients that register themselves.

use super::{
    Site,
    client::{Client, Fields, Tokens, encoded, led_to, returned},
    error,
};
use crate::{login::browser::Browser, prelude::*};

async fn register(gateway: &Gateway, metadata: &Value) -> Answer {
    gateway.send(gateway.request(Method::POST, "/oauth/register").json(metadata)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_is_answered_not_stored_and_is_no_id_of_lists() {
    // A registration is answered and nothing of it is stored.
    let site = Site::sampled();
    let metadata = json!({
        "client_name": "Xylophone", "redirect_uris": ["http://localhost:3334/oauth/callback"],
        "token_endpoint_auth_method": "client_secret_basic", "software_id": "x",
        "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
    });

    let made = register(&site.gateway, &metadata).await;

    has!(made, 201, "/token_endpoint_auth_method": "none");
    assert!(made.at("/client_secret").is_null());
    let uri = made.at("/registration_client_uri").as_str().unwrap().to_owned();
    let path = uri.strip_prefix(site.gateway.url()).unwrap();
    let token = made.at("/registration_access_token").as_str().unwrap();
    let shown = site.gateway.request(Method::GET, path);
    let shown = site.gateway.send(shown.bearer_auth(token)).await.ok();
    assert_eq!(shown.at("/client_name"), "Xylophone");
    assert!(shown.at("/registration_access_token").is_null());
    for method in [Method::PUT, Method::DELETE] {
        has!(site.gateway.send(site.gateway.request(method, path).bearer_auth(token)).await, 405);
    }
    for wrong in [Some("rat_x"), None] {
        let request = site.gateway.request(Method::GET, path);
        let request = wrong.map_or(request.try_clone().unwrap(), |it| request.bearer_auth(it));
        assert_eq!(error(&site.gateway.send(request).await), (401, "invalid_token"));
    }
    let stored = site.gateway.stored();
    assert!(!stored.windows(9).any(|window| window == b"Xylophone"));

    // A client does not name itself by the id of lists and events.
    let client = site.client("https://app.example/cb").await;
    let browser = site.browser().await;
    let tokens = client.tokens(&browser, &client.request()).await;
    let code = client.code(&browser, &client.request()).await;
    let admin = site.gateway.user(&site.org, "admin", "admin");
    let consents = site.gateway.get(&admin, "/v1/consents").await.ok();
    let internal = consents.at("/data/items/0/client/id").as_str().unwrap();
    assert!(internal.starts_with("reg_"), "{internal}");
    let named = Client { id: internal.to_owned(), ..client.clone() };
    let revoke =
        Fields::from([("client_id", internal.to_owned()), ("token", tokens.access.clone())]);

    for (path, fields) in [
        ("/oauth/token", named.exchange(&code)),
        ("/oauth/token", named.refresh(&tokens.refresh)),
        ("/oauth/revoke", revoke),
    ] {
        let refused = named.posts(path, &fields).await;
        assert_eq!(error(&refused), (401, "invalid_client"), "{path}: {}", refused.text);
    }

    assert_eq!(named.asks(&browser, &named.request()).await.status, 400);
    client.token(&client.refresh(&tokens.refresh)).await.ok();
    client.token(&client.exchange(&code)).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_that_names_no_good_address_is_refused_in_the_words_of_oauth() {
    // Metadata that names no address is refused in the words of oauth.
    let site = Site::sampled();
    for (metadata, code) in [
        (json!({}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["http://evil.example/cb"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["javascript:alert(1)"]}), "invalid_redirect_uri"),
        (
            json!({"redirect_uris": ["https://a.example/"], "client_name": 7}),
            "invalid_client_metadata",
        ),
    ] {
        let refused = register(&site.gateway, &metadata).await;

        assert_eq!(error(&refused), (400, code), "{metadata}: {}", refused.text);
        assert_eq!(refused.header("cache-control"), "no-store");
    }

    // The address that is refused is named among the good ones.
    for (address, shown) in [
        ("warp://a\u{202e}b", "`warp://a[U+202E]b`"),
        (format!("data:{}", "x".repeat(3_000)).as_str(), "xxx...`"),
    ] {
        let metadata = json!({"redirect_uris": ["https://a.example/cb", address, "warp://mcp/cb"]});

        let refused = register(&site.gateway, &metadata).await;

        assert_eq!(error(&refused), (400, "invalid_redirect_uri"), "{address}");
        let told = refused.at("/error_description").as_str().unwrap();
        assert!(told.contains(shown) && told.len() < 300, "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_of_programs_are_shown_and_no_error_leads_to_one_that_was_not_let_in() {
    // A program with a scheme of its own gets in by a page that shows it.
    let site = Site::sampled();
    let client = site.client("warp://mcp/oauth2callback").await;
    let browser = site.browser().await;

    let page = client.asks(&browser, &client.request()).await;
    let back = Client::decides(&browser, &page, "allow", true).await;

    let shown = "the program on this computer that opens warp: links (warp://mcp/oauth2callback)";
    assert!(page.text.contains(shown), "{}", page.text);
    assert!(!page.text.contains("remember"), "{}", page.text);
    assert!(led_to(&back).as_str().starts_with("warp://mcp/oauth2callback?code="));
    Tokens::of(&client.token(&client.exchange(&returned(&back)["code"])).await);
    assert_eq!(client.asks(&browser, &client.request()).await.status, 200, "it is asked anew");
    let mut request = client.request();
    request.insert("redirect_uri", "warp://mcp/other".to_owned());
    assert_eq!(client.asks(&browser, &request).await.status, 400);
    let mut request = client.request();
    request.remove("code_challenge");
    assert_eq!(returned(&client.asks(&browser, &request).await)["error"], "invalid_request");

    // No error leads to an address that the person has not let in.
    for uri in ["warp://mcp/cb", "https://evil.example/cb"] {
        assert_errors_are_pages_until_it_is_let_in(&site, &browser, uri).await;
    }
}

async fn assert_errors_are_pages_until_it_is_let_in(site: &Site, browser: &Browser<'_>, uri: &str) {
    let client = site.client(uri).await;
    let stranger = Browser::new(&site.gateway);
    let with = |name, value: &str| {
        let mut request = client.request();
        request.insert(name, value.to_owned());
        request
    };
    let requests = [
        (with("prompt", "none"), "consent_required"),
        (with("response_type", "token"), "unsupported_response_type"),
        (with("resource", "https://other.example/mcp"), "invalid_target"),
    ];
    let is_page = |answer: &Answer| {
        assert_eq!(answer.status, 400, "{}", answer.text);
        assert!(!answer.headers.contains_key("location"), "{:?}", answer.headers);
        assert!(!answer.text.contains(uri), "{}", answer.text);
    };

    for (request, _) in &requests {
        is_page(&client.asks(&stranger, request).await);
        is_page(&client.asks(browser, request).await);
    }
    let page = client.asks(browser, &client.request()).await;
    let denied = Client::decides(browser, &page, "deny", false).await;
    if uri.starts_with("https:") {
        assert_eq!(returned(&denied)["error"], "access_denied", "the person chose to go there");
    } else {
        is_page(&denied);
    }

    client.code(browser, &client.request()).await;
    for (request, code) in &requests {
        assert_eq!(returned(&client.asks(browser, request).await)["error"], *code);
        is_page(&client.asks(&stranger, request).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_says_which_schemes_clients_may_return_to() {
    let mut site = Site::sampled();
    let early = site.client("warp://mcp/cb").await.id;
    site.gateway.kill();
    site.gateway.configure(
        "[oauth]\nredirect_schemes = [\"Cursor\"]\n[[oauth.client]]\nid = \"desk\"\n\
         redirect_uris = [\"warp://mcp/cb\"]",
    );
    site.gateway.start();
    let client = |id: &str| Client {
        gateway: &site.gateway,
        id: id.to_owned(),
        redirect_uri: "warp://mcp/cb".to_owned(),
    };
    let browser = site.browser().await;

    let refused = register(&site.gateway, &json!({"redirect_uris": ["warp://mcp/cb"]})).await;
    let early = client(&early).asks(&browser, &client(&early).request()).await;

    assert_eq!(error(&refused), (400, "invalid_redirect_uri"));
    let told = refused.at("/error_description").as_str().unwrap();
    assert!(told.contains("`warp://mcp/cb`, but this gateway permits other schemes"), "{told}");
    assert_eq!(early.status, 400, "{}", early.text);
    assert!(early.text.contains("warp://mcp/cb"), "{}", early.text);
    for uri in ["cursor://a/cb", "https://a.example/cb", "http://127.0.0.1/cb"] {
        site.client(uri).await;
    }
    client("desk").asks(&browser, &client("desk").request()).await.ok();
    let mut silent = client("desk").request();
    silent.insert("prompt", "none".to_owned());
    let told = client("desk").asks(&Browser::new(&site.gateway), &silent).await;
    assert_eq!(returned(&told)["error"], "login_required", "the operator vouches for it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_registrations_is_limited_and_leaves_nothing_behind() {
    let site = Site::sampled();
    let metadata = json!({"redirect_uris": ["https://a.example/cb"], "client_name": "Marimba"});

    let mut statuses = BTreeMap::new();
    for _ in 0..1_300 {
        let answer = register(&site.gateway, &metadata).await;
        *statuses.entry(answer.status.as_u16()).or_insert(0) += 1;
        assert!(answer.headers.contains_key("x-ratelimit-remaining"));
    }

    assert!(statuses[&201] <= 1_200, "{statuses:?}");
    assert_eq!(statuses.keys().copied().collect::<Vec<_>>(), [201, 429]);
    assert!(!site.gateway.stored().windows(7).any(|window| window == b"Marimba"));
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_people_behind_one_address_begin_within_a_minute() {
    let site = Site::sampled();
    while now(&site.gateway).await.as_seconds() % 60 > 30 {
        tokio::task::yield_now().await;
    }
    let get = async |path: &str| site.gateway.send(site.gateway.request(Method::GET, path)).await;
    for person in 0..60 {
        let unauthenticated = site.gateway.send(site.gateway.request(Method::POST, "/mcp")).await;
        let resource = get("/.well-known/oauth-protected-resource/mcp").await;
        let server = get("/.well-known/oauth-authorization-server").await;
        let client = site.client("https://a.example/cb").await;
        let login = get(&format!("/oauth/authorize?{}", encoded(&client.request()))).await;

        let statuses = [&unauthenticated, &resource, &server, &login].map(|it| it.status.as_u16());
        assert_eq!(statuses, [401, 200, 200, 302], "{person}: {}", login.text);
    }

    let browser = site.browser().await;
    let client = site.client("https://a.example/cb").await;
    client.tokens(&browser, &client.request()).await;
}
