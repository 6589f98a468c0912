//! `subscriptions/listen`: a stream that tells when the tools that a caller may use change.

use portcullis_core::json;
use portcullis_testkit::tool;
use reqwest::Response;

use super::{ask, ask_legacy, call, error, modern, names, own_kib};
use crate::{prelude::*, scene::tool as scripted};

async fn start(tools: &[&str]) -> (Gateway, McpServer, Principal) {
    let upstream = McpServer::start(tools.iter().map(|name| tool(name)).collect()).await;
    // Less than the time between two looks at the tools.
    let gateway =
        gateway().config("[server]\ndrain_seconds = 1").http("up", &upstream.url(), "pin = \"on\"");
    let (gateway, who) = serve_as("mcps:read mcps:invoke", gateway);
    (gateway, upstream, who)
}

pub(in crate::mcp) async fn listen(gateway: &Gateway, who: &Principal, wanted: &Value) -> Response {
    let params = json!({ "notifications": wanted });
    let request = modern(gateway, who, "/mcp/up", "subscriptions/listen", &params);
    request.send().await.expect("a stream")
}

/// The next message of a stream; `None` at its end.
pub(in crate::mcp) async fn next(stream: &mut Response) -> Option<Value> {
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

/// A list that fails at first.
#[derive(Clone, Copy)]
struct ListChange {
    list: &'static str,
    member: &'static str,
    /// The kind that its server says has changed, and the other of the two kinds.
    kind: &'static str,
    other: &'static str,
}

const CHANGES: [ListChange; 4] = [
    ListChange { list: "prompts/list", member: "prompts", kind: "prompts", other: "resources" },
    ListChange { list: "resources/list", member: "resources", kind: "resources", other: "prompts" },
    ListChange {
        list: "resources/templates/list",
        member: "resourceTemplates",
        kind: "resources",
        other: "prompts",
    },
    ListChange { list: "skills/list", member: "skills", kind: "resources", other: "prompts" },
];

/// A server with one of each kind. A call of `changes` brings the news that a list of this kind has changed.
async fn announcing(kind: &str) -> Hostile {
    let news = json!({"jsonrpc": "2.0", "method": format!("notifications/{kind}/list_changed")});
    let answer = r#"{"jsonrpc":"2.0","id":{id},"result":{"content":[]}}"#;
    let events = format!("data: {news}\n\ndata: {answer}\n\n");
    let file = json!({"uri": "skill://a/SKILL.md", "size": 1, "digest": json::sha256(&[b"a"])});
    let entry = json!({"frontmatter": {"name": "a", "description": "A."}, "resources": [file]});
    let offered = vec![
        scripted("echo", Script::Echo),
        scripted("changes", Script::Typed("text/event-stream", events)),
        scripted("greet", Script::Echo).prompting(json!([])),
        scripted("notes://a", Script::Echo).reading(json!({"name": "a"})),
        scripted("notes://t/{name}", Script::Echo).reading(json!({"name": "a"})),
        scripted("skill://a/SKILL.md", Script::Echo).instructing(entry),
    ];
    Hostile::start(offered).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_says_of_its_lists_is_looked_at_and_told_to_those_who_listen_to_that_kind() {
    let exposed = "expose = [\"prompts\", \"resources\", \"skills\", \"tools\"]\npin = \"on\"";
    let mut servers = Vec::new();
    let mut builder = gateway();
    for (number, change) in CHANGES.into_iter().enumerate() {
        let server = announcing(change.kind).await;
        server.break_method(change.list, -32603);
        builder = builder.http(&format!("p{number}"), &server.url(), exposed);
        servers.push(server);
    }
    let (gateway, who) = serve_as("mcps:read mcps:invoke", builder);
    let cases = CHANGES.into_iter().zip(&servers).enumerate();
    join_all(cases.map(|(number, (change, server))| hears(&gateway, &who, number, change, server)))
        .await;
}

async fn hears(
    gateway: &Gateway,
    who: &Principal,
    number: usize,
    change: ListChange,
    server: &Hostile,
) {
    let ListChange { list, member, kind, other } = change;
    let path = format!("/mcp/p{number}");
    let opened = async |wanted: Value| {
        let params = json!({ "notifications": wanted });
        let request = modern(gateway, who, &path, "subscriptions/listen", &params);
        let mut stream = request.send().await.expect("a stream");
        let first = next(&mut stream).await.expect("an acknowledgement");
        assert_eq!(first["params"]["notifications"], wanted, "{list}");
        stream
    };
    let listed = async || {
        let listed = ask(gateway, who, &path, list, json!({})).await.ok();
        listed.at(&format!("/result/{member}")).as_array().expect("a list").len()
    };
    until(|| ask(gateway, who, &path, "tools/list", json!({})), |it| names(it).len() == 2).await;
    let mut own = opened(json!({ (format!("{kind}ListChanged")): true })).await;
    let others = json!({ (format!("{other}ListChanged")): true, "toolsListChanged": true });
    let mut others = opened(others).await;

    // The server can list it from now on. Nothing is looked at before there is news.
    server.break_method("", 0);
    call(gateway, who, &path, "echo", json!({})).await.ok();
    assert_eq!(listed().await, 0, "{list}");
    call(gateway, who, &path, "changes", json!({})).await.ok();
    let news = next(&mut own).await.expect("news");

    assert_eq!(news["method"], format!("notifications/{kind}/list_changed"), "{list}");
    eventually("one in the list", async || (listed().await == 1).then_some(())).await;
    // For longer than the time between two looks.
    let told = timeout(Duration::from_secs(3), next(&mut others)).await;
    assert!(told.is_err(), "{list}: {told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_few_for_each_caller_and_end_with_its_token_or_node() {
    // Streams are few for each caller and of the stateless era.
    let (mut gateway, _upstream, who) = start(&["one"]).await;
    let mut streams = Vec::new();
    for _ in 0..16 {
        streams.push(listen(&gateway, &who, &json!({})).await);
    }

    let beyond = listen(&gateway, &who, &json!({})).await;
    let other = gateway.service(&who.org, "mcps:read");
    let others = listen(&gateway, &other, &json!({})).await;
    let blind = gateway.service(&who.org, "mcps:invoke");
    let blind = listen(&gateway, &blind, &json!({})).await;
    let legacy = ask_legacy(&gateway, &who, "/mcp/up", "subscriptions/listen", json!({})).await;

    assert!(streams.iter().all(|stream| stream.status() == 200));
    let statuses = [beyond, others, blind].map(|stream| stream.status().as_u16());
    assert_eq!(statuses, [503, 200, 403]);
    assert_eq!(error(&legacy), (200, -32601));

    // A stream ends with an error of its token or a goodbye of its node.
    let who = gateway.service(&fresh_org(&gateway), "mcps:read mcps:invoke");
    let mut revoked = listen(&gateway, &other, &json!({})).await;
    let mut kept = listen(&gateway, &who, &json!({})).await;
    let acknowledged = next(&mut kept).await.expect("an acknowledgement");
    assert_eq!(acknowledged["params"]["notifications"], json!({}));
    next(&mut revoked).await.expect("an acknowledgement");

    gateway.delete(&other, "/v1/auth/token").await.ok();
    let refused = next(&mut revoked).await.expect("an error");
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(7), &json!(401)), "{refused}");
    assert_eq!(next(&mut revoked).await, None);
    gateway.terminate();
    let goodbye = next(&mut kept).await.expect("a goodbye");

    has!(goodbye, "/id": 7, "/result/resultType": "complete",
        "/result/_meta/io.modelcontextprotocol~1subscriptionId": 7);
    assert_eq!(next(&mut kept).await, None);
    assert_eq!(gateway.ended(), Some(0));
}

/// The most that an idle stream may take, with its part of a connection. A buffer of its own in the
/// gateway would be more.
const KIB_PER_STREAM: usize = 8;
/// Callers whose streams pay once for what all use: pages of the allocator, statements, sessions.
const WARM_CALLERS: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_idle_streams_leave_room_for_other_callers() {
    let (gateway, _upstream, who) = start(&["one"]).await;
    let mut callers = Vec::new();
    for number in 0..63 {
        let kind = ["--type", "service", "--scopes", "mcps:read"];
        let name = format!("listener {number}");
        callers.push(gateway.principal(&who.org, &name, &kind, &kind[2..]));
    }
    let mut before = 0;
    let mut streams = Vec::new();
    for (number, caller) in callers.iter().enumerate() {
        if number == WARM_CALLERS {
            before = own_kib(&gateway);
        }
        // The streams of one caller share a connection.
        let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build();
        let client = client.expect("a client");
        for _ in 0..16 {
            let params = json!({"notifications": {"toolsListChanged": true}});
            let request = modern(&gateway, caller, "/mcp/up", "subscriptions/listen", &params);
            let stream = client.execute(request.build().expect("a request")).await;
            let mut stream = stream.expect("a stream");
            assert_eq!(stream.status(), 200);
            next(&mut stream).await.expect("an acknowledgement");
            streams.push((client.clone(), stream));
        }
    }
    let grown = own_kib(&gateway).saturating_sub(before);
    let answer = call(&gateway, &who, "/mcp/up", "one", json!({"a": 1})).await;
    let own = listen(&gateway, &who, &json!({})).await;
    let stranger = gateway.service(&gateway.org("other", &ENOUGH), "mcps:read");
    let others = listen(&gateway, &stranger, &json!({})).await;

    assert!(streams.len() >= 1_000);
    assert_eq!(answer.at("/result/structuredContent"), &json!({"a": 1}), "{}", answer.text);
    assert_eq!((own.status().as_u16(), others.status().as_u16()), (200, 200));
    let counted = streams.len() - 16 * WARM_CALLERS;
    assert!(grown < KIB_PER_STREAM * counted, "{grown} KiB for {counted} streams");
    drop(streams);
    // Their places are free again.
    for caller in callers.iter().take(4) {
        let again = async { while listen(&gateway, caller, &json!({})).await.status() != 200 {} };
        timeout(PATIENCE, again).await.expect("a place");
    }
}
