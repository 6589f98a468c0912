//! Apps: pages of a server beside the answers of its tools, at `/mcp/{slug}` alone.

use super::{ask, ask_legacy, error};
use crate::prelude::*;

const EXPOSED: &str = r#"
expose = ["tools", "apps"]
apps_csp = { connect = ["https://*.acme.example"], resource = ["https://cdn.example"] }
apps_permissions = ["clipboardWrite"]
"#;

const POLICIES: &str = r#"
@id("all") permit (principal, action in Mcp::Action::"*:*", resource);
@id("no-refunds") @reason("People refund")
forbid (principal, action == Mcp::Action::"up:refund", resource);
"#;

/// Rights that the pages ask for, and those that are left of them.
fn rights() -> (Value, Value) {
    let asked = json!({
        "csp": {"connectDomains": ["https://api.acme.example", "https://evil.example", "*"],
            "resourceDomains": ["https://cdn.example"], "frameDomains": ["https://cdn.example"]},
        "permissions": {"camera": {}, "clipboardWrite": {}}, "domain": "acme", "prefersBorder": true,
    });
    let left = json!({
        "csp": {"connectDomains": ["https://api.acme.example"],
            "resourceDomains": ["https://cdn.example"], "frameDomains": []},
        "permissions": {"clipboardWrite": {}}, "prefersBorder": true,
    });
    (asked, left)
}

fn offered() -> Vec<HostileTool> {
    let page = |uri: &str, text: &str| {
        let meta =
            json!({"ui": rights().0, "dev.portcullis/x": 1, "openai/widgetCSP": {}, "UI": {}});
        let kind = "text/html;profile=mcp-app";
        let content = json!({"uri": uri, "mimeType": kind, "text": text, "_meta": meta, "csp": {}});
        let script = Script::Result(json!({"contents": [content]}).to_string());
        let entry = json!({"name": "page", "mimeType": kind, "_meta": {"ui": rights().0}});
        tool(uri, script).reading(entry)
    };
    let ui = |uri: &str| json!({"ui": {"resourceUri": uri}, "more": 1});
    let alone = json!({"ui": {"resourceUri": "ui://shop/cart", "visibility": ["app"]}});
    vec![
        tool("plain", Script::Echo),
        tool("cart", Script::Echo).meaning(ui("ui://shop/cart")),
        tool("older", Script::Echo).meaning(json!({"ui/resourceUri": "ui://shop/older"})),
        tool("poll", Script::Echo).meaning(alone.clone()),
        tool("refund", Script::Echo).meaning(alone),
        tool("odd", Script::Echo).meaning(ui("https://evil.example/page")),
        tool("embeds", Script::Result(embedded().to_string())),
        page("ui://shop/cart", "<p>AKIAIOSFODNN7EXAMPLX</p>\u{12}"),
        // Not in the list that the server gives; the tool names it.
        tool("ui://shop/old{er}", Script::Echo).reading(json!({"name": "page"})),
        tool("notes://a", Script::Echo).reading(json!({"name": "no page"})),
    ]
}

/// A result that brings a page and rights for it.
fn embedded() -> Value {
    let page = json!({"uri": "ui://shop/cart", "text": "<p>", "_meta": {"ui": rights().0}});
    let block = json!({"type": "resource", "resource": page, "_meta": {"ui": {}, "a": 1}});
    json!({"content": [block], "_meta": {"ui": rights().0, "a": 1}})
}

async fn exposed() -> Scene {
    scene_with(offered(), EXPOSED, |builder| builder.policies(POLICIES)).await
}

/// Asks as a client that shows pages, or as one that does not.
async fn ask_as(
    scene: &Scene,
    is_host: bool,
    path: &str,
    method: &str,
    mut params: Value,
) -> Answer {
    let extension =
        json!({"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}});
    let declared = if is_host { json!({"extensions": extension}) } else { json!({}) };
    params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": declared});
    ask(&scene.gateway, &scene.who, path, method, params).await
}

fn names(answer: &Answer, list: &str, member: &str) -> Vec<String> {
    let all = answer
        .at(&format!("/result/{list}"))
        .as_array()
        .unwrap_or_else(|| panic!("{}", answer.text));
    all.iter().map(|it| it[member].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_their_tools_are_shown_to_hosts_of_apps_at_the_address_of_the_provider() {
    let scene = exposed().await;
    let own = ["cart", "embeds", "odd", "older", "plain", "poll"];
    // Address, whether the client shows pages: names of tools, pages of `cart`.
    for (path, is_host, wanted, page) in [
        ("/mcp/up", true, own.to_vec(), json!("ui://shop/cart")),
        ("/mcp/up", false, vec!["cart", "embeds", "odd", "older", "plain"], Value::Null),
        (
            "/mcp",
            true,
            vec!["up__cart", "up__embeds", "up__odd", "up__older", "up__plain"],
            Value::Null,
        ),
    ] {
        let listed = ask_as(&scene, is_host, path, "tools/list", json!({})).await;
        assert_eq!(names(&listed, "tools", "name"), wanted, "{path} {is_host}");
        let all = listed.at("/result/tools").as_array().expect("tools");
        let ui = |at: usize| &all[at]["_meta"]["ui"];
        assert_eq!(ui(0)["resourceUri"], page, "{path} {is_host} {}", listed.text);
        assert_eq!(ui(1), &Value::Null, "{path} {is_host}");
        let told = ask_as(&scene, is_host, path, "server/discover", json!({})).await;
        let extension = told.at("/result/capabilities/extensions/io.modelcontextprotocol~1ui");
        assert_eq!(extension.is_object(), path == "/mcp/up", "{}", told.text);
    }
    let legacy = ask_legacy(&scene.gateway, &scene.who, "/mcp/up", "tools/list", json!({})).await;
    assert_eq!(names(&legacy, "tools", "name"), own);
    let listed = ask_as(&scene, true, "/mcp/up", "resources/list", json!({})).await;
    assert_eq!(names(&listed, "resources", "uri"), ["ui://shop/cart", "ui://shop/older"]);
    assert_eq!(listed.at("/result/resources/0/_meta/ui"), &rights().1, "{}", listed.text);
    for (method, params) in
        [("resources/list", json!({})), ("resources/read", json!({"uri": "ui://up/shop/cart"}))]
    {
        let answer = ask_as(&scene, true, "/mcp", method, params).await;
        assert_eq!(error(&answer).1, -32601, "{method} {}", answer.text);
    }
    // What is not exposed is as if it was not there.
    let bare =
        scene_with(offered(), "expose = [\"tools\", \"resources\"]", |it| it.policies(POLICIES))
            .await;
    let listed = ask_as(&bare, true, "/mcp/up", "tools/list", json!({})).await;
    assert!(
        !listed.text.contains("resourceUri") && listed.text.contains("poll"),
        "{}",
        listed.text
    );
    let read =
        ask_as(&bare, true, "/mcp/up", "resources/read", json!({"uri": "ui://shop/cart"})).await;
    assert_eq!(read.at("/result/contents/0/_meta"), &Value::Null, "{}", read.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_read_with_the_rights_that_the_operator_gives_and_under_the_law() {
    let scene = exposed().await;

    let read =
        ask_as(&scene, true, "/mcp/up", "resources/read", json!({"uri": "ui://shop/cart"})).await;

    has!(read, 200, "/result/contents/0/text": "<p>[REDACTED:aws_access_key]</p>\u{12}",
        "/result/contents/0/_meta": json!({"ui": rights().1}));
    assert_eq!(read.at("/result/contents/0/csp"), &Value::Null, "{}", read.text);
    let params = json!({"name": "embeds", "arguments": {}});
    let embedded = ask_as(&scene, true, "/mcp/up", "tools/call", params).await;
    has!(embedded, 200, "/result/content/0/resource": json!({"uri": "ui://shop/cart", "text": "<p>"}),
        "/result/content/0/_meta": json!({"a": 1}), "/result/_meta/a": 1);
    assert_eq!(embedded.at("/result/_meta/ui"), &Value::Null, "{}", embedded.text);
    let event = events(&scene.gateway, &scene.who, read.header("x-request-id")).await.remove(0);
    has!(event, "/target/id": "resource:up:ui://shop/cart");
    let path = format!("/v1/audit/events/{}", event["id"].as_str().expect("an id"));
    let kept = scene.gateway.get(&scene.who, &path).await.ok();
    has!(kept, "/data/detached/remarks": json!(["page_narrowed"]));
    for (uri, code) in [("ui://shop/older", 0), ("ui://shop/other", -32602), ("notes://a", -32602)]
    {
        let read = ask_as(&scene, true, "/mcp/up", "resources/read", json!({"uri": uri})).await;
        assert_eq!(read.at("/error/code").as_i64().unwrap_or(0), code, "{uri} {}", read.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_a_page_makes_is_a_call() {
    let scene = exposed().await;
    // Address, tool, arguments: what comes of it, and requests upstream.
    for (path, name, arguments, wanted, sent) in [
        ("/mcp/up", "poll", json!({}), "result", 1),
        ("/mcp/up", "refund", json!({}), "denied", 0),
        ("/mcp", "up__poll", json!({}), "unknown", 0),
        ("/mcp", "up:poll", json!({}), "unknown", 0),
        ("/mcp?tools=search", "call_tool", json!({"id": "up:poll", "input": {}}), "unknown", 0),
        ("/mcp?tools=search", "call_tool", json!({"id": "up__poll", "input": {}}), "unknown", 0),
        ("/mcp?tools=search", "call_tool", json!({"id": "up:cart", "input": {}}), "result", 1),
    ] {
        scene.upstream.forget();
        let params = json!({"name": name, "arguments": arguments});
        let answer = ask_as(&scene, true, path, "tools/call", params).await;
        let told = match (error(&answer).1, answer.at("/result/isError").as_bool()) {
            (-32602, _) => "unknown",
            (0, Some(true)) => "denied",
            (0, _) => "result",
            _ => "",
        };
        assert_eq!(told, wanted, "{path} {name} {}", answer.text);
        assert_eq!(scene.upstream.calls().len(), sent, "{path} {name}");
    }
    let found = json!({"name": "find_tools", "arguments": {"query": "poll"}});
    let found = ask_as(&scene, true, "/mcp?tools=search", "tools/call", found).await;
    assert!(!found.text.contains("up:poll"), "{}", found.text);
    // The server is told that the client shows pages, if it does and where it may.
    scene.upstream.forget();
    for (path, name, is_host) in
        [("/mcp/up", "cart", true), ("/mcp/up", "cart", false), ("/mcp", "up__cart", true)]
    {
        let params = json!({"name": name, "arguments": {}});
        ask_as(&scene, is_host, path, "tools/call", params).await;
    }
    let calls = scene.upstream.calls();
    let told: Vec<bool> = calls.iter().map(|it| it.body.contains("mcp-app")).collect();
    assert_eq!(told, [true, false, false]);
}
