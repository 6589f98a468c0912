//! `notifications/resources/updated`: a stream tells that resources changed, as servers of both eras say.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command},
};

use reqwest::Response;

use super::{
    ask, call,
    clients::script,
    modern, own,
    streams::{self, next},
};
use crate::prelude::*;

/// A server that listens on a port; it ends when it is dropped.
struct Listening(Child);

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Notes {
    gateway: Gateway,
    who: Principal,
    _server: Option<Listening>,
}

const POLICIES: &str = r#"
    @id("all") permit (principal, action, resource);
    @id("no-b") forbid (principal is Mcp::User, action == Mcp::Action::"resource:up", resource)
    when { context.resource.uri like "*//b" };
"#;

/// The server `notes.py` behind a gateway.
fn notes(transport: &str, protocol: &str) -> Notes {
    let python = servers().join("venv/bin/python").to_string_lossy().into_owned();
    let program = script("notes.py");
    let more = format!("expose = [\"resources\", \"tools\"]\nprotocol = \"{protocol}\"");
    let builder = gateway()
        .config("[server]\nprovider_patience_seconds = 60\n[mcp]\nttl_seconds = 1")
        .policies(POLICIES);
    let (builder, server) = if transport == "stdio" {
        (builder.stdio("up", &[&python, &program, "stdio"], &more), None)
    } else {
        let mut server = Command::new(python);
        server.args([&program, "http"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut server = server.spawn().expect("python");
        let mut told = BufReader::new(server.stdout.take().expect("its output"));
        let server = Listening(server);
        let mut port = String::new();
        told.read_line(&mut port).expect("a port");
        let url = format!("http://127.0.0.1:{}/mcp", port.trim());
        (builder.http("up", &url, &more), Some(server))
    };
    let (gateway, who) = serve_as("mcps:read mcps:invoke", builder);
    Notes { gateway, who, _server: server }
}

impl Notes {
    async fn listen(&self, who: &Principal, path: &str, uris: &[&str]) -> (Response, Value) {
        let params = json!({"notifications": {"resourceSubscriptions": uris}});
        let request = modern(&self.gateway, who, path, "subscriptions/listen", &params);
        let mut stream = request.send().await.expect("a stream");
        let mut told = next(&mut stream).await.expect("an acknowledgement");
        (stream, told["params"]["notifications"].take())
    }

    async fn touch(&self, uri: &str) {
        let touched = call(&self.gateway, &self.who, "/mcp/up", "touch", json!({"uri": uri})).await;
        assert_eq!(own(&touched, "governance")["decision"], "allow", "{}", touched.text);
    }

    async fn watched(&self) -> Answer {
        call(&self.gateway, &self.who, "/mcp/up", "watched", json!({})).await
    }
}

/// Resources that the server was asked about, in its answer.
const WATCHED: &str = "/result/structuredContent/result";

async fn updated(stream: &mut Response) -> Value {
    let mut told = next(stream).await.expect("news");
    assert_eq!(told["method"], "notifications/resources/updated", "{told}");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    told["params"]["uri"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_listens_hears_that_a_resource_changed() {
    for (transport, protocol) in
        [("stdio", "modern"), ("stdio", "legacy"), ("http", "modern"), ("http", "legacy")]
    {
        let scene = notes(transport, protocol);
        let wanted = ["notes://a", "notes://b", "notes://none", "notes://all/c", "up+notes://a"];
        let (mut stream, told) = scene.listen(&scene.who, "/mcp/up", &wanted).await;
        let honoured = json!({"resourceSubscriptions": ["notes://a", "notes://b"]});
        assert_eq!(told, honoured, "{transport} {protocol}");
        scene.touch("notes://a").await;
        assert_eq!(updated(&mut stream).await, "notes://a", "{transport} {protocol}");
        // The stream before goes on to be told of what it asked for.
        let (mut all, told) = scene.listen(&scene.who, "/mcp", &wanted).await;
        assert_eq!(told, json!({"resourceSubscriptions": ["up+notes://a"]}));
        let blind = scene.gateway.user(&scene.who.org, "member", "mcps:read mcps:invoke");
        let (blind_stream, told) = scene.listen(&blind, "/mcp/up", &wanted).await;
        assert_eq!(told, json!({"resourceSubscriptions": ["notes://a"]}));

        scene.touch("notes://b").await;
        assert_eq!(updated(&mut stream).await, "notes://b");
        scene.touch("notes://a").await;
        assert_eq!(updated(&mut stream).await, "notes://a");
        assert_eq!(updated(&mut all).await, "up+notes://a");
        if protocol == "legacy" {
            assert_eq!(scene.watched().await.at(WATCHED), &json!(["notes://a", "notes://b"]));
            drop((stream, blind_stream, all));
            // What is watched no more is asked about no more.
            let is_left = |told: &Answer| told.at(WATCHED) == &json!([]);
            until(|| scene.watched(), is_left).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_of_now_decide_about_each_notice() {
    let scene = notes("stdio", "modern");
    let (mut stream, told) = scene.listen(&scene.who, "/mcp/up", &["notes://a", "notes://b"]).await;
    assert_eq!(told, json!({"resourceSubscriptions": ["notes://a", "notes://b"]}));
    scene.touch("notes://a").await;
    assert_eq!(updated(&mut stream).await, "notes://a");
    let read = async || {
        let params = json!({"uri": "notes://a"});
        ask(&scene.gateway, &scene.who, "/mcp/up", "resources/read", params).await
    };
    let write = |more: &str| {
        let file = scene.gateway.folder().join("policies/test.cedar");
        fs::write(file, format!("{POLICIES}{more}")).expect("a policy");
        scene.gateway.hang_up();
    };

    write(
        r#"@id("no-a") forbid (principal, action == Mcp::Action::"resource:up", resource)
        when { context.resource.uri == "notes://a" };"#,
    );
    until(read, |it| it.at("/error/code") == -32602).await;
    scene.touch("notes://a").await;
    scene.touch("notes://b").await;

    assert_eq!(updated(&mut stream).await, "notes://b", "of `a` nothing is heard");
    // Of what changed meanwhile it is told once it may be read again.
    write("");
    assert_eq!(updated(&mut stream).await, "notes://a");
    scene.touch("notes://a").await;
    assert_eq!(updated(&mut stream).await, "notes://a");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_news_come_of_servers_that_tell_none() {
    let scene = scene(vec![tool("one", Script::Echo)]).await;
    let wanted = json!({"resourceSubscriptions": ["notes://a"], "toolsListChanged": true});
    let mut stream = streams::listen(&scene.gateway, &scene.who, &wanted).await;
    let told = next(&mut stream).await.expect("an acknowledgement");
    assert_eq!(told["params"]["notifications"], json!({"toolsListChanged": true}));
}
