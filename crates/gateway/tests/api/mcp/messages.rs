//! Everything but tools: handshake, discovery, notifications, methods that are not offered.

use super::{ask, ask_legacy, error, raw};
use crate::prelude::*;

fn start() -> (Gateway, Principal) {
    let config = "[mcp]\ninstructions = \"Be gentle.\"";
    serve_as("mcps:read mcps:invoke", gateway().config(config).sample())
}

#[tokio::test(flavor = "multi_thread")]
async fn both_eras_are_introduced_without_a_session_at_either_address() {
    // Both eras are introduced to the gateway without a session.
    let (gateway, who) = start();
    let hello = |version: &str| {
        json!({
            "protocolVersion": version, "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        })
    };

    let discovered = ask(&gateway, &who, "/mcp", "server/discover", json!({})).await;
    let newest = ask_legacy(&gateway, &who, "/mcp", "initialize", hello("2025-11-25")).await;
    let older = ask_legacy(&gateway, &who, "/mcp/sample", "initialize", hello("2025-06-18")).await;
    let ancient = ask_legacy(&gateway, &who, "/mcp", "initialize", hello("2024-11-05")).await;
    let ping = ask_legacy(&gateway, &who, "/mcp", "ping", json!({})).await;

    assert_framed(&discovered, "discover");
    let result = discovered.at("/result");
    has!(result, "/supportedVersions": ["2026-07-28", "2025-11-25", "2025-06-18"],
        "/resultType": "complete", "/instructions": "Be gentle.", "/cacheScope": "private");
    assert!(result["ttlMs"].as_u64().is_some_and(|ttl| ttl > 0));
    assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
    assert_eq!(discovered.at("/id"), 7);
    for (answer, version) in
        [(&newest, "2025-11-25"), (&older, "2025-06-18"), (&ancient, "2025-11-25")]
    {
        assert_framed(answer, version);
        has!(answer, 200, "/result/protocolVersion": version,
            "/result/serverInfo/name": "portcullis", "/result/instructions": "Be gentle.");
        assert!(!answer.headers.contains_key("mcp-session-id"));
    }
    assert_eq!(ping.json, json!({"jsonrpc": "2.0", "id": "a", "result": {}}));

    // Notifications are taken and answered with nothing.
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

    let answer = gateway.send(raw(&gateway, &who, "/mcp", note)).await;

    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (202, ""));
    assert_eq!(answer.header("x-ratelimit-resource"), "requests");

    // The address may end in a slash and a header of another era means nothing.
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();

    let slashed = gateway.send(raw(&gateway, &who, "/mcp/", &ping)).await;
    let stale = raw(&gateway, &who, "/mcp", &ping).header("mcp-method", "initialize");
    let stale = gateway.send(stale.header("mcp-protocol-version", "2025-11-25")).await;
    let empty = gateway.send(gateway.request(Method::GET, "/mcp/").bearer_auth(&who.token)).await;

    assert_eq!((slashed.status.as_u16(), stale.status.as_u16()), (200, 200), "{}", stale.text);
    assert_eq!(empty.status, 405, "as at `/mcp`");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_offered_or_refused_before_it_is_read_says_so_in_a_message() {
    // What is not offered says so in the words of each era.
    let (gateway, who) = start();

    for method in ["prompts/list", "resources/read", "completion/complete", "logging/setLevel", "x"]
    {
        let modern = ask(&gateway, &who, "/mcp", method, json!({})).await;
        let legacy = ask_legacy(&gateway, &who, "/mcp", method, json!({})).await;

        assert_eq!(error(&modern), (404, -32601), "{method}");
        assert_eq!(error(&legacy), (200, -32601), "{method}");
        assert_framed(&modern, method);
    }
    // What the era with a handshake had besides.
    for method in ["initialize", "ping"] {
        let modern = ask(&gateway, &who, "/mcp", method, json!({})).await;
        assert_eq!(error(&modern), (404, -32601), "{method}");
    }
    for method in [Method::GET, Method::DELETE] {
        let answer = gateway.send(gateway.request_of(&who, method, "/mcp/sample")).await;
        assert_eq!((error(&answer).0, answer.header("allow")), (405, "POST"));
    }
    let elsewhere = ask(&gateway, &who, "/mcp/nowhere", "tools/list", json!({})).await;
    assert_eq!(elsewhere.status, 404, "{}", elsewhere.text);
    assert!(elsewhere.text.contains("`GET /v1/providers` lists"), "{}", elsewhere.text);
    let prompts = ask(&gateway, &who, "/mcp", "prompts/list", json!({})).await;
    assert!(
        prompts.text.contains("`server/discover` and `initialize` tell what is"),
        "{}",
        prompts.text
    );

    // Who is refused before anything is read is told so in a message.
    let request = gateway.request(Method::POST, "/mcp").body("{}");

    let answer = gateway.send(request.header("content-type", "application/json")).await;

    assert_eq!(answer.status, 401);
    assert_eq!(answer.json.get("id"), Some(&Value::Null), "{}", answer.text);
    assert!(answer.at("/error/message").is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_write_for_nothing_is_nothing_and_a_bearer_is_told_what_it_is() {
    // What clients write for nothing is taken for nothing.
    let (gateway, who) = start();
    let meta = json!({"progressToken": null});
    let call = json!({"name": "sample__list_items", "arguments": null, "_meta": meta});
    for (method, params) in [
        ("ping", json!(null)),
        ("tools/list", json!({"cursor": null})),
        ("tools/list", json!({"cursor": ""})),
        ("tools/list", json!({"_meta": null})),
        ("tools/call", call),
    ] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = gateway.send(raw(&gateway, &who, "/mcp", &message.to_string())).await;

        assert_eq!(answer.status, 200, "{message}: {}", answer.text);
        assert!(answer.at("/result").is_object(), "{message}: {}", answer.text);
    }

    // A bearer that is no token is told what it is.
    for (bearer, told) in [
        ("eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln", "POST /v1/auth/token"),
        ("${PORTCULLIS_TOKEN}", "placeholder"),
        ("{{TOKEN}}", "placeholder"),
        ("%TOKEN%", "placeholder"),
        ("hello", "not valid here."),
    ] {
        let request = gateway.request(Method::GET, "/v1/mcps").bearer_auth(bearer);
        let answer = gateway.send(request).await;

        assert_eq!(answer.refusal(), (401, "invalid_token"), "{bearer}");
        let message = answer.at("/error/message").as_str().unwrap();
        assert!(message.contains(told), "{bearer}: {message}");
        assert!(!answer.text.contains(bearer), "{bearer}");
    }
    let basic = gateway.request(Method::GET, "/v1/mcps").header("authorization", "Basic eDp5");
    let basic = gateway.send(basic).await;
    assert_eq!(basic.refusal(), (401, "invalid_token"));
    assert!(basic.text.contains("Authorization: Bearer"), "{}", basic.text);
}
