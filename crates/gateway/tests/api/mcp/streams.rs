//! `subscriptions/listen`: a stream that tells when the tools that a caller may use change.

use portcullis_testkit::{Gateway, McpServer, Principal, tool};
use reqwest::Response;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{ask, ask_legacy, error, modern, names};
use crate::{
    gateway,
    given::{ENOUGH, PATIENCE},
};

async fn start(tools: &[&str]) -> (Gateway, McpServer, Principal) {
    let upstream = McpServer::start(tools.iter().map(|name| tool(name)).collect()).await;
    let gateway = gateway().http("up", &upstream.url(), "").start();
    let who = gateway.service(&gateway.org("acme", &ENOUGH), "mcps:read mcps:invoke");
    (gateway, upstream, who)
}

async fn listen(gateway: &Gateway, who: &Principal, wanted: &Value) -> Response {
    let params = json!({ "notifications": wanted });
    let request = modern(gateway, who, "/mcp/up", ("subscriptions/listen", &params));
    request.send().await.expect("a stream")
}

/// The next message of a stream; `None` at its end.
async fn next(stream: &mut Response) -> Option<Value> {
    let mut text = String::new();
    loop {
        let piece = timeout(PATIENCE, stream.chunk()).await.expect("news in time").ok()??;
        text.push_str(std::str::from_utf8(&piece).expect("UTF-8"));
        if let Some((_, rest)) = text.split_once("data: ")
            && let Some((message, _)) = rest.split_once("\n\n")
        {
            return Some(serde_json::from_str(message).expect("JSON"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_listens_hears_that_the_list_changed() {
    let (gateway, upstream, who) = start(&["one"]).await;
    let mut stream = listen(&gateway, &who, &json!({"toolsListChanged": true})).await;

    let first = next(&mut stream).await.expect("an acknowledgement");
    upstream.change_tools(vec![tool("one"), tool("two")]);
    let second = next(&mut stream).await.expect("news");

    assert_eq!(stream.status(), 200);
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    assert_eq!(stream.headers()["x-accel-buffering"], "no");
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"], json!({"toolsListChanged": true}));
    assert_eq!(second["method"], "notifications/tools/list_changed");
    for message in [&first, &second] {
        assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    }
    let list = ask(&gateway, &who, "/mcp/up", "tools/list", json!({})).await;
    assert_eq!(names(&list), ["one", "two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_its_token_and_says_goodbye_with_its_node() {
    let (mut gateway, _upstream, who) = start(&["one"]).await;
    let other = gateway.service(&who.org, "mcps:read");
    let mut revoked = listen(&gateway, &other, &json!({})).await;
    let mut kept = listen(&gateway, &who, &json!({})).await;
    let acknowledged = next(&mut kept).await.expect("an acknowledgement");
    assert_eq!(acknowledged["params"]["notifications"], json!({}));
    next(&mut revoked).await.expect("an acknowledgement");

    let end = gateway.request(reqwest::Method::DELETE, "/v1/auth/token").bearer_auth(&other.token);
    assert_eq!(gateway.send(end).await.status, 200);
    assert_eq!(next(&mut revoked).await, None);
    gateway.terminate();
    let goodbye = next(&mut kept).await.expect("a goodbye");

    assert_eq!(goodbye["id"], 7);
    assert_eq!(goodbye["result"]["resultType"], "complete");
    assert_eq!(goodbye["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    assert_eq!(gateway.ended(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_few_for_each_caller_and_of_the_stateless_era() {
    let (gateway, _upstream, who) = start(&["one"]).await;
    let mut streams = Vec::new();
    for _ in 0..16 {
        streams.push(listen(&gateway, &who, &json!({})).await);
    }

    let beyond = listen(&gateway, &who, &json!({})).await;
    let other = gateway.service(&who.org, "mcps:read");
    let others = listen(&gateway, &other, &json!({})).await;
    let blind = gateway.service(&who.org, "mcps:invoke");
    let blind = listen(&gateway, &blind, &json!({})).await;
    let legacy = ask_legacy(&gateway, &who, "/mcp/up", ("subscriptions/listen", json!({}))).await;

    assert!(streams.iter().all(|stream| stream.status() == 200));
    assert_eq!(
        (beyond.status(), others.status(), blind.status()),
        (503.try_into().unwrap(), 200.try_into().unwrap(), 403.try_into().unwrap())
    );
    assert_eq!(error(&legacy), (200, -32601));
}
