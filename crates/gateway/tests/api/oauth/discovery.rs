//! The way of a client to the server: the challenge at `/mcp`, `GET /.well-known/oauth-protected-resource`,
//! `GET /.well-known/oauth-protected-resource/mcp`, `GET /.well-known/oauth-protected-resource/mcp/`,
//! `GET /.well-known/oauth-protected-resource/mcp/{slug}`, `GET /.well-known/oauth-protected-resource/v1`,
//! `GET /.well-known/oauth-authorization-server`, `GET /.well-known/oauth-authorization-server/mcp`,
//! `GET /.well-known/oauth-authorization-server/mcp/{slug}`.

use super::{
    Site,
    client::{Tokens, returned},
};
use crate::prelude::*;

const ALGORITHMS: [&str; 4] = ["RS256", "PS256", "ES256", "EdDSA"];

async fn get(gateway: &Gateway, path: &str) -> Answer {
    gateway.send(gateway.request(Method::GET, path)).await
}

async fn ping(gateway: &Gateway, path: &str, token: Option<&str>) -> Answer {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let request = gateway.request(Method::POST, path).json(&body);
    gateway
        .send(match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_a_token_is_led_to_the_server_which_tells_what_works() {
    // A client without a token is led to the authorization server.
    let site = Site::sampled();
    let url = site.gateway.url();
    for (path, resource) in [
        ("/mcp", format!("{url}/mcp")),
        ("/mcp/", format!("{url}/mcp/")),
        ("/mcp/sample", format!("{url}/mcp/sample")),
    ] {
        let refused = ping(&site.gateway, path, None).await;
        let challenge = refused.header("www-authenticate").to_owned();
        let wanted = format!(
            "Bearer resource_metadata=\"{url}/.well-known/oauth-protected-resource{path}\", \
             scope=\"mcps:read mcps:invoke\""
        );
        assert_eq!((refused.status.as_u16(), challenge), (401, wanted));
        let with_token = ping(&site.gateway, path, Some("mcp_live_x")).await;
        assert!(with_token.header("www-authenticate").ends_with("error=\"invalid_token\""));

        let metadata =
            get(&site.gateway, &format!("/.well-known/oauth-protected-resource{path}")).await;

        has!(metadata, "/resource": resource, "/authorization_servers": [url],
            "/scopes_supported": ["mcps:read", "mcps:invoke"],
            "/bearer_methods_supported": ["header"], "/dpop_bound_access_tokens_required": false,
            "/dpop_signing_alg_values_supported": ALGORITHMS);
        assert_framed(&metadata, path);
    }
    let root = get(&site.gateway, "/.well-known/oauth-protected-resource").await;
    assert_eq!(root.at("/resource"), &json!(format!("{url}/mcp")));
    let rest = get(&site.gateway, "/.well-known/oauth-protected-resource/v1").await.ok();
    assert_eq!(rest.at("/resource"), &json!(format!("{url}/v1")));
    assert!(rest.at("/scopes_supported").as_array().unwrap().contains(&json!("admin")));

    // The authorization server tells what works.
    for form in ["", "/mcp", "/mcp/sample"] {
        let path = format!("/.well-known/oauth-authorization-server{form}");

        let metadata = get(&site.gateway, &path).await.ok();

        has!(metadata, "/issuer": url, "/authorization_endpoint": format!("{url}/oauth/authorize"),
            "/token_endpoint": format!("{url}/oauth/token"),
            "/registration_endpoint": format!("{url}/oauth/register"),
            "/response_types_supported": ["code"], "/code_challenge_methods_supported": ["S256"],
            "/authorization_response_iss_parameter_supported": true,
            "/dpop_signing_alg_values_supported": ALGORITHMS);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_name_of_the_gateway_leads_to_a_token_that_is_good_at_all_of_them() {
    let names = "[mcp]\nhosts = [\"gateway.internal:8443\", \"other.internal\"]";
    let site = Site::built(gateway().config(super::LINKS).config(names).sample());
    let url = site.gateway.url();
    let port = url.rsplit_once(':').unwrap().1;
    let browser = site.browser().await;
    let client = site.client("https://app.example/cb").await;
    let at_port = |host: &str| format!("{host}:{port}");
    let [v4, name, other] = ["127.0.0.1", "localhost", "other.internal"].map(at_port);
    let hosts = [v4, name, other, "gateway.internal:8443".to_owned()];
    let document = "/.well-known/oauth-protected-resource/mcp/sample";
    let at = |method, path, host: &str| site.gateway.request(method, path).header("host", host);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});

    for host in &hosts {
        let resource = format!("http://{host}/mcp/sample");
        let refused = site.gateway.send(at(Method::POST, "/mcp/sample", host).json(&list)).await;
        let challenge = refused.header("www-authenticate");
        assert!(challenge.contains(&format!("\"http://{host}{document}\"")), "{challenge}");
        let metadata = site.gateway.send(at(Method::GET, document, host)).await.ok();
        has!("the issuer is one"; metadata, "/resource": resource, "/authorization_servers": [url]);

        let mut request = client.request();
        request.insert("resource", resource.clone());
        let mut exchange = client.exchange(&client.code(&browser, &request).await);
        exchange.insert("resource", resource);
        let token = Tokens::of(&client.token(&exchange).await).access;

        for other in &hosts {
            let request = at(Method::POST, "/mcp/sample", other).json(&list).bearer_auth(&token);
            site.gateway.send(request).await.ok();
        }
        let request = at(Method::POST, "/mcp", host).json(&list).bearer_auth(&token);
        assert_eq!(site.gateway.send(request).await.status, 401, "another face");
    }
    // Other programs of the machine may listen on these addresses of it.
    let [v6, neighbour] = ["[::1]", "127.0.0.2"].map(at_port);
    for host in [
        "evil.example", "localhost:1", "192.0.2.1", "gateway.internal:9443", "other.internal:1",
        &v6, &neighbour,
    ] {
        let metadata = site.gateway.send(at(Method::GET, document, host)).await.ok();
        assert_eq!(metadata.at("/resource"), &json!(format!("{url}/mcp/sample")), "{host}");
        let mut request = client.request();
        request.insert("resource", format!("http://{host}/mcp/sample"));
        let back = returned(&client.asks(&browser, &request).await);
        assert_eq!(back["error"], "invalid_target", "{host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_login_nothing_is_offered_and_the_refusal_says_how_to_get_a_token() {
    let gateway = gateway().sample().start();

    let refused = ping(&gateway, "/mcp", None).await;

    assert_eq!(refused.header("www-authenticate"), "Bearer realm=\"portcullis\"");
    assert!(refused.text.contains("portcullis token create"), "{}", refused.text);
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
    ] {
        has!("{path}"; get(&gateway, path).await, 404);
    }
    let register = gateway.request(Method::POST, "/oauth/register").json(&json!({}));
    assert_eq!(gateway.send(register).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_can_switch_it_off() {
    let site = Site::built(gateway().config(super::LINKS).config("[oauth]\nenabled = false"));

    has!(get(&site.gateway, "/.well-known/oauth-authorization-server").await, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_the_operator_lists_may_ask_and_others_may_not() {
    let page = "http://localhost:6274";
    let origins = format!("[mcp]\norigins = [\"{page}\"]");
    let site = Site::built(gateway().config(super::LINKS).config(&origins).sample());
    for (method, path) in [
        ("GET", "/.well-known/oauth-protected-resource/mcp"),
        ("GET", "/.well-known/oauth-authorization-server"),
        ("POST", "/oauth/token"),
        ("POST", "/oauth/register"),
    ] {
        for (origin, status) in [(page, 204), ("https://evil.example", 405)] {
            let request = site.gateway.request(Method::OPTIONS, path).header("origin", origin);
            let request = request.header("access-control-request-method", method);
            let asked = "authorization, content-type, mcp-protocol-version";
            let answer =
                site.gateway.send(request.header("access-control-request-headers", asked)).await;
            let allowed = answer.headers.contains_key("access-control-allow-origin");
            assert_eq!(allowed, origin == page, "{path}: {}", answer.text);
            assert_eq!(answer.status.as_u16(), status, "{path}: {}", answer.text);
            if allowed {
                assert_eq!(answer.header("access-control-allow-headers"), asked);
            }
        }
    }
    let request = site.gateway.request(Method::POST, "/oauth/token").header("origin", page);
    let answered = site.gateway.send(request.body("")).await;
    assert_eq!(answered.header("access-control-allow-origin"), page);
    assert!(answered.header("vary").contains("Origin"));
    assert!(answered.header("access-control-expose-headers").contains("www-authenticate"));
}
