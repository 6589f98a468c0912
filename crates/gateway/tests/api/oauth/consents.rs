//! `GET /v1/consents`, `DELETE /v1/consents/{id}`: what people let clients do, and how it ends.

use super::{
    Site,
    client::{Client, hidden, returned},
    error,
};
use crate::{login::browser::Browser, prelude::*};

const APP: &str = "https://app.example/cb";

#[tokio::test(flavor = "multi_thread")]
async fn a_consent_is_listed_and_its_end_ends_the_tokens_and_codes() {
    // A consent is listed and its end ends the tokens.
    let site = Site::sampled();
    let client = site.client(APP).await;
    let browser = site.browser().await;
    let tokens = client.tokens(&browser, &client.request()).await;
    let admin = site.gateway.user(&site.org, "admin", "admin");
    let stranger = site.gateway.user(&site.org, "member", "mcps:read");

    let listed = site.gateway.get(&admin, "/v1/consents").await.ok();
    let consent = listed.at("/data/items/0").clone();
    let path = format!("/v1/consents/{}", consent["id"].as_str().unwrap());
    let others = site.gateway.get(&stranger, "/v1/consents").await.ok();
    for (asked, wanted) in [("app", 1), ("app.ex", 1), ("AN", 1), ("pp", 0)] {
        let found = site.gateway.get(&admin, &format!("/v1/consents?q={asked}")).await.ok();
        assert_eq!(found.at("/data/items").as_array().unwrap().len(), wanted, "{asked}");
    }
    let refused = site.gateway.delete(&stranger, &path).await;
    let own = site.gateway.delete(&site.ana_with(&tokens.access), &path).await;
    let withdrawn = site.gateway.delete(&admin, &path).await.ok();

    has!(consent, "/client/name": "App", "/endpoint": "/mcp", "/principal_id": *site.ana,
        "/principal_name": "Ana");
    assert_eq!(others.at("/data/items/0"), &Value::Null);
    assert_eq!((refused.status.as_u16(), own.status.as_u16()), (404, 404));
    assert_eq!(withdrawn.at("/data/tokens_revoked"), 2);
    has!(site.gateway.get(&site.ana_with(&tokens.access), "/v1/mcps").await, 401);
    let refreshed = client.token(&client.refresh(&tokens.refresh)).await;
    assert_eq!(error(&refreshed), (400, "invalid_grant"));
    site.events("consent.withdrawn", 1).await;

    // A code is worth nothing once its consent is withdrawn.
    let code = client.code(&browser, &client.request()).await;
    let listed = site.gateway.admin(&["consent", "list", "--org", &site.org]);
    let config = site.gateway.config_file();
    let config = config.to_string_lossy();
    let table = site.gateway.run(&["consent", "list", "--org", &site.org, "--config", &config]);

    site.gateway.admin(&[
        "consent",
        "withdraw",
        listed[0]["id"].as_str().unwrap(),
        "--org",
        &site.org,
    ]);

    let refused = client.token(&client.exchange(&code)).await;
    assert_eq!(error(&refused), (400, "invalid_grant"));
    assert!(table.contains("CLIENT_NAME") && !table.contains('{'), "{table}");
    let id = listed[0]["client"]["id"].as_str().unwrap();
    assert!(table.contains(id) && listed[0]["client_id"] == id, "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_not_asked_again_for_what_it_remembers_and_for_nothing_else() {
    // A person is not asked again for what it remembers and for nothing else.
    let site = Site::sampled();
    let client = site.client(APP).await;
    let browser = site.browser().await;
    let request = client.request();
    let page = client.asks(&browser, &request).await;
    Client::decides(&browser, &page, "allow", true).await;

    let again = client.asks(&browser, &request).await;

    assert!(returned(&again).contains_key("code"));
    for (name, value) in [
        ("scope", "mcps:read mcps:invoke providers:read".to_owned()),
        ("resource", format!("{}/mcp/sample", site.gateway.url())),
        ("prompt", "consent".to_owned()),
        ("client_id", site.client(APP).await.id),
    ] {
        let mut more = request.clone();
        more.insert(name, value);
        assert_eq!(client.asks(&browser, &more).await.status, 200, "{name}");
    }
    let mut silent = request.clone();
    silent.insert("prompt", "none".to_owned());
    assert!(returned(&client.asks(&browser, &silent).await).contains_key("code"));
    silent.insert("resource", format!("{}/mcp/sample", site.gateway.url()));
    assert_eq!(returned(&client.asks(&browser, &silent).await)["error"], "consent_required");

    // A program of the machine is never remembered.
    let client = site.client("http://127.0.0.1:5555/cb").await;
    let page = client.asks(&browser, &client.request()).await;
    assert!(!page.text.contains("remember"), "{}", page.text);

    Client::decides(&browser, &page, "allow", true).await;

    assert_eq!(client.asks(&browser, &client.request()).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_and_pages_end_with_the_session_of_their_person() {
    // A page of a session that was replaced decides nothing and is shown again.
    let site = Site::sampled();
    let client = site.client(APP).await;
    let request = client.request();
    let ben = site.gateway.admin(&["principal", "create", "Ben", "--org", &site.org]);
    let anas = site.browser().await;
    Client::decides(&anas, &client.asks(&anas, &request).await, "allow", true).await;
    let browser = Browser::new(&site.gateway);
    site.log_in(&browser, ben["id"].as_str().unwrap()).await;
    let bens = client.asks(&browser, &request).await;
    site.log_in(&browser, &site.ana).await;

    for decision in ["deny", "other", "allow"] {
        let page = Client::decides(&browser, &bens, decision, false).await.ok();
        assert!(page.text.contains("Signed in as</dt><dd>Ana<"), "{decision}: {}", page.text);
        assert!(!page.text.contains("http-equiv"), "{decision}: {}", page.text);
    }

    let page = client.asks(&browser, &request).await;
    assert!(returned(&page).contains_key("code"), "Ana is signed in, and remembers");

    // A code ends with the sessions and with the access of its person.
    let client = site.client(APP).await;
    let admin = site.gateway.user(&site.org, "admin", "admin");
    let path = format!("/v1/principals/{}", site.ana);
    let set = async |disabled: bool| {
        let body = json!({ "disabled": disabled });
        let request = site.gateway.request_of(&admin, Method::PATCH, &path).json(&body);
        site.gateway.send(request).await.ok();
    };
    for end in ["sign out everywhere", "disable here", "disable over the API"] {
        let browser = site.browser().await;
        let code = client.code(&browser, &client.request()).await;

        match end {
            "sign out everywhere" => {
                let token = hidden(&browser.open("/login").await, "form_token");
                let form = [("form_token", token.as_str()), ("everywhere", "1")];
                browser.submit("/logout", &form).await.ok();
            }
            "disable here" => {
                site.gateway.admin(&["principal", "disable", &site.ana]);
                site.gateway.admin(&["principal", "enable", &site.ana]);
            }
            _ => {
                set(true).await;
                set(false).await;
            }
        }

        let refused = client.token(&client.exchange(&code)).await;
        assert_eq!(error(&refused), (400, "invalid_grant"), "{end}");
    }
    let code = client.code(&site.browser().await, &client.request()).await;
    client.token(&client.exchange(&code)).await.ok();
}
