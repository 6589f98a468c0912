//! Tools, prompts, resources and pages of three real servers through one gateway, as clients of other people see them.

use std::{net::TcpListener, process::Command};

use rmcp::model::{CallToolRequestParams, GetPromptRequestParams, ReadResourceRequestParams};

use crate::{
    mcp::clients::{node, rust_sdk, script, stateless},
    prelude::*,
    real_servers::{npm, python, start, told},
};

const EXPOSED: &str = "expose = [\"apps\", \"prompts\", \"resources\", \"skills\", \"tools\"]";

/// Slug, command, and what is asked of a server.
type Real = (&'static str, Vec<String>, Value);

fn real() -> [Real; 3] {
    let everything = json!({
        "prompts": {
            "args-prompt": {"city": "Oslo"},
            "completable-prompt": {"department": "Engineering", "name": "Alice"},
            "resource-prompt": {"resourceType": "Text", "resourceId": "1"},
        },
        "uris": ["demo://resource/dynamic/text/3"],
        "completions": [
            {"ref": {"type": "ref/prompt", "name": "completable-prompt"},
                "argument": {"name": "department", "value": "E"}},
            {"ref": {"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"},
                "argument": {"name": "resourceId", "value": "1"}},
        ],
        "calls": [
            ["get-structured-content", {"location": "Chicago"}],
            ["get-resource-links", {"count": 3}],
            ["get-annotated-message", {"messageType": "error", "includeImage": true}],
        ],
    });
    let library = json!({"prompts": {"review": {"title": "Emma"}},
        "uris": ["library://books/Emma/one"], "calls": [["lend", {"title": "Emma"}]]});
    let node = || "node".to_owned();
    [
        ("everything", vec![node(), npm("server-everything"), "stdio".to_owned()], everything),
        ("library", vec![python("python"), script("library.py")], library),
        (
            "app",
            vec![node(), npm("server-basic-vanillajs"), "--stdio".to_owned()],
            json!({"calls": [["get-time", {}]]}),
        ),
    ]
}

/// The offer of a server as the official Python SDK is told of it.
fn offer(mode: &str, wanted: &Value, prefix: &str, server: &[&str], token: &str) -> Value {
    let mut client = Command::new(python("python"));
    client.args([&script("offer.py"), mode, &wanted.to_string(), prefix]);
    told(client, server, token)
}

/// Leaves out pages, of which `/mcp` has none.
fn without_pages(mut offer: Value) -> Value {
    let is_page = |uri: &str| uri.starts_with("ui://");
    let listed = offer["resources"].as_array_mut().expect("a list");
    listed.retain(|it| !it["uri"].as_str().is_some_and(is_page));
    offer["read"].as_object_mut().expect("what was read").retain(|uri, _| !is_page(uri));
    offer
}

fn serving(port: u16) -> (Gateway, Principal) {
    let origins = format!("[mcp]\norigins = [\"http://127.0.0.1:{port}\"]");
    let builder = gateway().policies(r#"@id("all") permit (principal, action, resource);"#);
    start(real().iter().fold(builder.config(&origins), |builder, (slug, command, _)| {
        let command: Vec<_> = command.iter().map(String::as_str).collect();
        builder.stdio(slug, &command, EXPOSED)
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn three_real_servers_are_the_same_through_one_gateway_at_both_addresses() {
    let (gateway, who) = serving(1);
    for (slug, command, wanted) in real() {
        let command: Vec<_> = command.iter().map(String::as_str).collect();
        let direct = offer("auto", &wanted, "", &command, "");
        assert_ne!(direct["called"], json!([]), "{direct}");
        let own = format!("{}/mcp/{slug}", gateway.url());
        assert_eq!(offer("2026-07-28", &wanted, "", &[&own], &who.token), direct, "{slug}");
        let all = format!("{}/mcp?tools=list", gateway.url());
        let renamed = offer("legacy", &wanted, slug, &[&all], &who.token);
        assert_eq!(without_pages(renamed), without_pages(direct.clone()), "{slug}");

        let client = rust_sdk((), &own, &who.token, stateless()).await;
        let count = |member: &str| direct[member].as_array().map_or(0, Vec::len);
        let tools = client.list_all_tools().await.expect("tools");
        assert_eq!(tools.len(), count("tools"), "{slug}");
        let prompts = client.list_all_prompts().await.expect("prompts");
        assert_eq!(prompts.len(), count("prompts"), "{slug}");
        let resources = client.list_all_resources().await.expect("resources");
        assert_eq!(resources.len(), count("resources"), "{slug}");
        for resource in resources {
            let read = client.read_resource(ReadResourceRequestParams::new(resource.uri)).await;
            assert!(!read.expect("a resource").contents.is_empty(), "{slug}");
        }
        let (name, given) = (wanted["calls"][0][0].as_str(), wanted["calls"][0][1].as_object());
        let call = CallToolRequestParams::new(name.expect("a name").to_owned());
        let called = client.call_tool(call.with_arguments(given.expect("arguments").clone())).await;
        assert_ne!(called.expect("a result").is_error, Some(true), "{slug}");
    }
    let url = format!("{}/mcp/library", gateway.url());
    let client = rust_sdk((), &url, &who.token, stateless()).await;
    let skills = client.list_all_skills().await.expect("skills");
    assert_eq!(skills.len(), 1);
    let page = ReadResourceRequestParams::new("library://books/Emma/one");
    let read = client.read_resource(page).await.expect("a chapter");
    let read = serde_json::to_value(&read).expect("JSON");
    assert_eq!(read["contents"][0]["text"], "Emma, one", "{read}");
    let title = json!({"title": "Emma"}).as_object().cloned().expect("an object");
    let prompt = GetPromptRequestParams::new("review").with_arguments(title);
    let got = client.get_prompt(prompt).await.expect("a prompt");
    let got = serde_json::to_value(&got).expect("JSON");
    assert_eq!(got["messages"][0]["content"]["text"], "Write a friendly review of Emma.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_shows_the_page_of_a_real_server_and_answers_its_call() {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let port = port.expect("a free port").port();
    let (gateway, who) = serving(port);
    for era in ["legacy", "modern"] {
        let mut host = Command::new(node());
        host.args([&script("apphost.mjs"), era]).env("PORT", port.to_string());
        let url = format!("{}/mcp/app", gateway.url());
        let shown = told(host, &[&url, "get-time", "Get Server Time"], &who.token);
        has!(shown, "/uri": "ui://get-time/mcp-app.html", "/csp": null);
        assert_ne!(shown["before"], shown["after"], "{shown}");
    }
}
