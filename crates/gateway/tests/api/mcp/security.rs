//! Requests that must not be believed: of strangers, of pages of other sites, with headers that say
//! another thing than the body.

use super::{call, error, modern, raw};
use crate::prelude::*;

/// A call that is complete but for its headers.
fn message() -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "up__echo", "arguments": {},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    })
}

/// The headers that belong to it.
const GOOD: [(&str, &str); 3] = [
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "tools/call"),
    ("mcp-name", "up__echo"),
];

fn with(request: RequestBuilder, headers: &[(&str, &str)]) -> RequestBuilder {
    headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
}

async fn send(scene: &Scene, body: &str, headers: &[(&str, &str)]) -> Answer {
    scene.gateway.send(with(raw(&scene.gateway, &scene.who, "/mcp", body), headers)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_learns_nothing_and_nothing_of_the_caller_goes_upstream() {
    // A stranger learns nothing.
    let scene = scene(vec![tool("echo", Script::Echo)]).await;
    for path in ["/mcp", "/mcp/up", "/mcp/nowhere"] {
        for token in [None, Some("mcp_live_x")] {
            let mut request = scene.gateway.request(Method::POST, path).body(message().to_string());
            if let Some(token) = token {
                request = request.bearer_auth(token);
            }

            let answer = scene.gateway.send(request).await;

            assert_framed(&answer, path);
            assert_eq!(answer.status, 401, "{}", answer.text);
            assert!(answer.header("www-authenticate").starts_with("Bearer"));
            has!(answer, "/jsonrpc": "2.0", "/error/code": 401);
        }
    }
    let request = scene.gateway.request(Method::POST, &format!("/mcp?token={}", scene.who.token));
    has!(scene.gateway.send(request.body(message().to_string())).await, 401);
    let path = format!("/mcp?access_token={}", scene.who.token);
    let answer = call(&scene.gateway, &scene.who, &path, "up__echo", json!({})).await;
    assert_eq!(error(&answer), (400, -32602));
    assert!(answer.at("/error/message").as_str().unwrap().contains("never belongs into a URL"));
    assert!(scene.upstream.calls().is_empty());

    // Nothing of the caller goes upstream and sessions mean nothing.
    let scene = scene.anew();
    let params = json!({"name": "echo", "arguments": {}, "_meta": {"secret-of-the-caller": 1, "baggage": "k=mine"}});
    let request = modern(&scene.gateway, &scene.who, "/mcp/up", "tools/call", &params)
        .header("cookie", "session=mine")
        .header("mcp-session-id", "invented")
        .header("last-event-id", "7")
        .header("baggage", "k=mine")
        .header("x-mine", "mine");

    let answer = scene.gateway.send(request).await.ok();

    assert!(!answer.headers.contains_key("mcp-session-id"));
    let call = scene.upstream.calls().remove(0);
    assert!(!call.headers.contains_key("cookie") && !call.headers.contains_key("x-mine"));
    assert!(!call.body.contains("secret-of-the-caller"));
    let told = format!("{:?}{}", call.headers, call.body);
    assert!(!told.contains(&scene.who.token) && !told.contains("invented"));
    assert!(!told.contains("baggage"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_site_is_refused_before_its_token_is_looked_at() {
    let config = "[mcp]\norigins = [\"https://app.acme.example\"]";
    let (gateway, who) = serve_as("mcps:read mcps:invoke", gateway().config(config).sample());
    let params = json!({});
    let ask = async |headers: &[(&str, &str)]| {
        let request = modern(&gateway, &who, "/mcp", "server/discover", &params);
        gateway.send(with(request, headers)).await
    };
    let authority = gateway.url().split_once("://").unwrap().1.to_owned();

    assert_eq!(ask(&[]).await.status, 200);
    assert_eq!(ask(&[("origin", &format!("http://{authority}"))]).await.status, 200);
    assert_eq!(ask(&[("origin", "https://app.acme.example")]).await.status, 200);
    for origin in ["https://evil.example", &format!("https://{authority}")] {
        let answer = ask(&[("origin", origin)]).await;
        assert_eq!((error(&answer), answer.at("/id")), ((403, -32600), &Value::Null), "{origin}");
        assert_framed(&answer, origin);
    }
    let request = gateway.request(Method::POST, "/mcp").header("origin", "https://evil.example");
    assert_eq!(gateway.send(request.body("{}")).await.status, 403, "without a token");
    // The name of the page's site was made to resolve here.
    let rebound = b"POST /mcp HTTP/1.1\r\nhost: evil.example\r\norigin: http://evil.example\r\n\
                    content-length: 0\r\nconnection: close\r\n\r\n";
    assert!(exchange(&gateway, rebound).await.starts_with("HTTP/1.1 403"));
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_and_body_say_the_same_or_the_request_is_refused() {
    let region = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "n": {"type": "integer", "x-mcp-header": "N"},
    }});
    let tools = vec![tool("echo", Script::Echo), tool("query", Script::Echo).taking(region)];
    let scene = scene(tools).await;
    let body = message().to_string();
    let changed = |place: usize, value: &'static str| {
        let mut all = GOOD;
        all[place].1 = value;
        all
    };
    assert_eq!(send(&scene, &body, &GOOD).await.status, 200);
    for headers in [changed(0, "2025-11-25"), changed(1, "tools/list"), changed(2, "up__query")] {
        let answer = send(&scene, &body, &headers).await;
        assert_eq!((error(&answer), answer.at("/id")), ((400, -32020), &json!(1)), "{headers:?}");
    }
    let twice = [GOOD[0], GOOD[1], GOOD[2], ("mcp-name", "up__query")];
    for headers in [&twice[..], &GOOD[..2]] {
        assert_eq!(error(&send(&scene, &body, headers).await), (400, -32020), "{headers:?}");
    }

    let query = async |input: Value, headers: &[(&str, &str)]| {
        let params = json!({"name": "query", "arguments": input});
        let request = modern(&scene.gateway, &scene.who, "/mcp/up", "tools/call", &params);
        scene.gateway.send(with(request, headers)).await
    };
    let both = json!({"region": "a", "n": 1});
    let told = [("mcp-param-region", "a"), ("mcp-param-n", "1.0"), ("mcp-param-other", "x")];
    assert_eq!(query(both.clone(), &told).await.status, 200);
    for headers in [&[("mcp-param-region", "b"), ("mcp-param-n", "1")][..], &[]] {
        let answer = query(both.clone(), headers).await;
        assert_eq!(error(&answer), (400, -32020), "{headers:?}: {}", answer.text);
    }
    let extra = query(json!({}), &[("mcp-param-region", "a")]).await;
    assert_eq!(error(&extra), (400, -32020), "a header without its argument");
    assert_eq!(scene.upstream.count("query"), 1);
    assert_eq!(scene.upstream.count("echo"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_single_message_within_bounds_is_refused() {
    let scene = scene(vec![tool("echo", Script::Echo)]).await;
    let meta = |meta: Value| {
        let mut message = message();
        message["params"]["_meta"] = meta;
        message.to_string()
    };
    let large = format!("{{\"x\":\"{}\"}}", "y".repeat(1 << 20));
    let batch = format!("[{},{}]", message(), message());
    let twice = message().to_string().replacen('{', "{\"id\":2,", 1);
    for (body, expected) in [
        ("", (400, -32700)),
        (&*batch, (400, -32600)),
        (&*twice, (400, -32700)),
        (&*large, (413, -32600)),
        (&*meta(json!({})), (400, -32602)),
    ] {
        let answer = send(&scene, body, &GOOD).await;

        let shown: String = body.chars().take(80).collect();
        assert_eq!(error(&answer), expected, "{shown}: {}", answer.text);
        assert_framed(&answer, &shown);
    }
    let old = [("mcp-protocol-version", "2025-03-26")];
    let unspoken = send(&scene, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, &old).await;
    assert_eq!(error(&unspoken), (400, -32022));
    assert_eq!(unspoken.at("/error/data/supported/0"), "2026-07-28");
    let typed = scene.gateway.request_of(&scene.who, Method::POST, "/mcp");
    let typed = typed.header("content-type", "text/plain").body(message().to_string());
    assert_eq!(error(&scene.gateway.send(typed).await), (415, -32600));
    assert!(scene.upstream.calls().is_empty());
}
