//! Clients that are web pages, in a real browser: the MCP Inspector, and a page that does all of it by `fetch`.

use std::net::TcpListener;

use axum::{
    Router,
    response::{Html, Redirect},
    routing::get,
};
use portcullis_testkit::Chromium;
use tokio::process::Command;

use super::{Program, QUESTION, assert_named, log_in, sign_in, site_with_issuer};
use crate::{
    mcp::clients::node,
    oauth::{LINKS, Site, client::encoded},
    prelude::*,
};

fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    free.unwrap().port()
}

/// The setting by which a gateway answers pages of this origin.
fn answering(origin: &str) -> String {
    format!("[mcp]\norigins = [\"{origin}\"]")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inspector_gets_in_by_a_browser_and_calls_a_tool() {
    let port = free_port();
    let origins = answering(&format!("http://127.0.0.1:{port}"));
    let (mut site, _oidc) = site_with_issuer(gateway().config(&origins).sample());
    let launcher = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
    let mut inspector = Command::new(node());
    inspector
        .arg(servers().join(launcher))
        .args(["--web", "--transport", "http", "--server-url"])
        .arg(format!("{}/mcp", site.gateway.url()))
        .env("HOME", site.gateway.folder())
        .env("CLIENT_PORT", port.to_string())
        .env("MCP_SANDBOX_PORT", free_port().to_string())
        .env("MCP_INSPECTOR_SECRET_STORE", "memory")
        .env("MCP_AUTO_OPEN_ENABLED", "false");
    let mut inspector = Program::start(&inspector);
    let browser = Chromium::start();

    let address = |line: &str| {
        let at = line.find("http://")?;
        line.contains("MCP_INSPECTOR_API_TOKEN").then(|| line[at..].trim().to_owned())
    };
    browser.go(&inspector.says(address).await, "Disconnected");
    browser.toggle("Connect", "Sign-in");
    log_in(&mut site, &browser, QUESTION);
    browser.click("Allow", "Connection Info");
    browser.choose("Tools", "sample__list_items");
    browser.choose("sample__list_items", "Execute Tool");
    let called = browser.click("Execute Tool", "Structured Output");

    assert!(called.text.contains("Results"), "{}", called.text);
    assert_named(&site, 1, "MCP Inspector").await;
}

/// Serves pages, and gives their origin.
async fn serve(pages: Router) -> (JoinSet<()>, String) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, pages).await.unwrap() });
    (serving, origin)
}

fn page() -> Router {
    Router::new().route("/", get(async || Html("<p>A client.</p>")))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_may_lead_the_browser_on_to_another_site() {
    let (_serving, other) = serve(page()).await;
    let callback = get(async move || Redirect::to(&other));
    let (_also_serving, own) = serve(Router::new().route("/callback", callback)).await;
    let site = Site::sampled();
    let client = site.client(&format!("{own}/callback")).await;
    let browser = Chromium::start();
    sign_in(&site, &browser, "Sign out");
    for decision in ["Deny", "Allow"] {
        let query = encoded(&client.request());
        browser.go(&format!("{}/oauth/authorize?{query}", site.gateway.url()), QUESTION);

        let arrived = browser.click(decision, "A client.");

        assert!(arrived.text.contains("A client."), "{arrived:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listed_page_reads_all_that_it_needs_to_get_in_and_another_reads_nothing() {
    let (_serving, listed) = serve(page()).await;
    let (_also_serving, other) = serve(page()).await;
    let site = Site::built(gateway().config(LINKS).config(&answering(&listed)).sample());
    let url = site.gateway.url();
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let post = |kind: &str, body: &str| {
        let headers = json!({"content-type": kind, "mcp-protocol-version": "2025-11-25"});
        json!({"method": "POST", "headers": headers, "body": body})
    };
    let json_type = "application/json";
    let metadata = json!({"redirect_uris": [format!("{listed}/callback")]}).to_string();
    let form = json!({
        "method": "POST",
        "body": "grant_type=authorization_code&client_id=dcr_AAAA&code=x&code_verifier=x",
        "headers": {"content-type": "application/x-www-form-urlencoded"},
    });
    let asked: [(&str, Value, u64); 5] = [
        ("/mcp", post(json_type, &message), 401),
        ("/.well-known/oauth-protected-resource/mcp", json!({}), 200),
        ("/.well-known/oauth-authorization-server", json!({}), 200),
        ("/oauth/register", post(json_type, &metadata), 201),
        ("/oauth/token", form, 401),
    ];
    let browser = Chromium::start();

    for (origin, is_listed) in [(&listed, true), (&other, false)] {
        browser.go(origin, "A client.");
        for (path, init, status) in &asked {
            let answer = browser.ask(&format!("{url}{path}"), init);
            if is_listed {
                assert_eq!(answer["status"], *status, "{path}: {answer}");
            } else {
                assert!(answer["failed"].is_string(), "{path}: {answer}");
            }
            if is_listed && *path == "/mcp" {
                let challenge = answer["headers"]["www-authenticate"].as_str().unwrap();
                assert!(challenge.contains("resource_metadata="), "{challenge}");
            }
        }
    }
}
