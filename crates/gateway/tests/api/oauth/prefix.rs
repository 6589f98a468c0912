//! A gateway below a path of its host, behind a proxy that keeps the path in what it sends on, and behind one that
//! takes it away.

use axum::{Router, body::Body, extract::Request, response::Response};
use http::header::{CONNECTION, TRANSFER_ENCODING};
use portcullis_testkit::Chromium;
use tokio::net::TcpListener;

use super::{
    LINKS, Site,
    clients::{Program, QUESTION, sign_in_at, typescript},
};
use crate::prelude::*;

/// A gateway that clients find below `/portcullis` of a proxy that keeps the path.
struct Below {
    site: Site,
    public: String,
    _proxy: JoinSet<()>,
}

impl Below {
    async fn start() -> Self {
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let public = format!("http://{}/portcullis", proxy.local_addr().unwrap());
        let address = format!("[server]\npublic_url = \"{public}/\"");
        let site = Site::built(gateway().config(LINKS).config(&address).sample());
        let to = site.gateway.url().to_owned();
        let no_redirects = reqwest::redirect::Policy::none();
        let client = reqwest::Client::builder().no_proxy().redirect(no_redirects).build().unwrap();
        let forward = move |request: Request| forward(client.clone(), to.clone(), request);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            axum::serve(proxy, Router::new().fallback(forward)).await.unwrap();
        });
        Self { site, public, _proxy: serving }
    }

    /// The answer at a path of the host, which the proxy sends on as it is.
    async fn get(&self, path: &str) -> Answer {
        get(&self.site.gateway, path).await
    }
}

async fn get(gateway: &Gateway, path: &str) -> Answer {
    gateway.send(gateway.request(Method::GET, path)).await
}

async fn forward(client: reqwest::Client, to: String, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let sent = client.request(parts.method, to + &parts.uri.to_string()).headers(parts.headers);
    let answer = sent.body(body).send().await.unwrap();
    let status = answer.status();
    let headers = answer.headers().clone();
    let mut response = Response::new(Body::from_stream(answer.bytes_stream()));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    for own in [CONNECTION, TRANSFER_ENCODING] {
        response.headers_mut().remove(own);
    }
    response
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_challenges_and_pages_have_the_path() {
    let below = Below::start().await;
    let public = below.public.as_str();
    let host = public.strip_suffix("/portcullis").unwrap();
    let known = "/.well-known/oauth";
    for (path, member, wanted) in [
        (format!("{known}-authorization-server/portcullis"), "/issuer", public.to_owned()),
        (format!("/portcullis{known}-authorization-server"), "/issuer", public.to_owned()),
        (
            format!("{known}-authorization-server/portcullis"),
            "/token_endpoint",
            format!("{public}/oauth/token"),
        ),
        (
            format!("{known}-protected-resource/portcullis/mcp"),
            "/resource",
            format!("{public}/mcp"),
        ),
        (
            format!("{known}-protected-resource/portcullis/mcp/sample"),
            "/resource",
            format!("{public}/mcp/sample"),
        ),
        (format!("/portcullis{known}-protected-resource/v1"), "/resource", format!("{public}/v1")),
    ] {
        let document = below.get(&path).await.ok();
        assert_eq!(document.at(member), &json!(wanted), "{path}");
    }
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let request = below.site.gateway.request(Method::POST, "/portcullis/mcp").json(&ping);
    let refused = below.site.gateway.send(request).await;
    let challenge = refused.header("www-authenticate");
    let document = format!("resource_metadata=\"{host}{known}-protected-resource/portcullis/mcp\"");
    assert!(refused.status == 401 && challenge.contains(&document), "{challenge}");
    // The second is what a proxy sends that takes the path away.
    for path in ["/portcullis", "/"] {
        let page = below.get(path).await.ok();
        assert!(page.text.contains("href=\"/portcullis/login?return_to="), "{}", page.text);
        assert!(page.text.contains(&format!("{public}/mcp")), "{}", page.text);
    }
    for path in ["/portcullis/console", "/console"] {
        let sent = below.get(path).await;
        assert_eq!(sent.header("location"), "/portcullis/login?return_to=%2Fconsole", "{path}");
    }
    for path in ["/portcullisx/healthz", "/portcullis/portcullis/healthz", "/Portcullis/healthz"] {
        assert_eq!(below.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_a_browser_and_the_command_line_get_in_below_a_path() {
    let below = Below::start().await;
    let site = &below.site;
    let public = below.public.as_str();
    let mut command = typescript("modern");
    command.arg(format!("{public}/mcp")).args(["sample__list_items", "{}"]);
    let mut program = Program::start(&command);
    let browser = Chromium::start();

    browser.go(&program.opens().await, "login-link");
    sign_in_at(public, site, &browser, QUESTION);
    browser.click("Allow", "/callback?code=");
    let said = program.says(|line| serde_json::from_str(line).ok().filter(Value::is_object)).await;
    browser.go(&format!("{public}/console"), "Events");
    let tools = browser.click("Capabilities", "sample:list_items");
    let out = browser.click("Sign out", "login-link");

    assert!(said["result"]["structuredContent"].is_object(), "{said}");
    assert!(tools.url.starts_with(&format!("{public}/console/tools")), "{}", tools.url);
    assert!(out.url.starts_with(&format!("{public}/login")), "{}", out.url);
    let admin = site.gateway.service(&site.org, "admin").token;
    let mut command = site.gateway.command();
    command.args(["org", "show", "--json", "--url", public]).env("PORTCULLIS_TOKEN", admin);
    let shown = tokio::process::Command::from(command).output().await.unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("an org");
    assert_eq!(shown["id"], *site.org);
}
