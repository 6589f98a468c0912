//! Calls whose answer is a stream: progress while they run, the result at the end, and a client that
//! closes the stream, or does not read it.

use std::fmt::Write;

use reqwest::Response;

use super::{clients::script, error, modern, own, raw};
use crate::prelude::*;

/// The answer in a body that was read to its end: JSON, or the last event of a stream. `None` if it
/// was cut off before that.
pub(crate) fn message_of(text: &str) -> Option<Value> {
    if text.starts_with('{') {
        return serde_json::from_str(text).ok();
    }
    let events = text.split_inclusive("\n\n").filter(|event| event.ends_with("\n\n"));
    let data = events.filter_map(|event| event.strip_prefix("event: message\ndata: "));
    let messages = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    messages.filter(|message| message.get("id").is_some()).last()
}

/// Events of a stream, comments left out.
struct Events {
    response: Response,
    text: String,
}

impl Events {
    async fn of(request: RequestBuilder) -> Self {
        let response =
            timeout(PATIENCE, request.send()).await.expect("in time").expect("an answer");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// The next event or comment as it came; `None` at the end.
    async fn next_text(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let event = event.to_owned();
                let rest = rest.to_owned();
                self.text = rest;
                return Some(event);
            }
            let piece = timeout(PATIENCE, self.response.chunk()).await.expect("news in time");
            self.text.push_str(std::str::from_utf8(&piece.ok()??).expect("UTF-8"));
        }
    }

    /// The next message; `None` at the end, however that came.
    async fn next(&mut self) -> Option<Value> {
        loop {
            let event = self.next_text().await?;
            if let Some(data) = event.strip_prefix("event: message\ndata: ") {
                return Some(serde_json::from_str(data).expect("JSON"));
            }
        }
    }
}

const RESULT: &str = r#"{"content":[{"type":"text","text":"done"}]}"#;

/// Parameters of a progress notification, with the token of the call.
fn note(progress: u32, message: &str) -> String {
    format!(
        r#"{{"progressToken":{{token}},"progress":{progress},"total":9,"message":"{message}"}}"#
    )
}

fn telling(notes: Vec<String>) -> Script {
    Script::Telling(notes, RESULT.to_owned())
}

/// A scene whose provider takes one call at a time.
async fn one_at_a_time(script: Script) -> Scene {
    let tools = vec![tool("work", script), tool("echo", Script::Echo)];
    scene_with(tools, "max_in_flight = 1", |builder| builder).await
}

fn asking(gateway: &Gateway, who: &Principal, tool: &str, token: &Value) -> RequestBuilder {
    let params = json!({"name": tool, "arguments": {}, "_meta": {"progressToken": token}});
    modern(gateway, who, "/mcp/up", "tools/call", &params)
}

/// The address of the gateway, and head and body of a request as they go over the wire.
fn bytes_of(gateway: &Gateway, request: RequestBuilder) -> (String, String, Vec<u8>) {
    let request = request.build().expect("a request");
    let address = gateway.url().trim_start_matches("http://").to_owned();
    let body = request.body().and_then(reqwest::Body::as_bytes).expect("a body").to_vec();
    let mut head = format!("POST {} HTTP/1.1\r\nhost: {address}\r\n", request.url().path());
    for (name, value) in request.headers() {
        write!(head, "{name}: {}\r\n", value.to_str().expect("text")).expect("a text");
    }
    write!(head, "content-length: {}\r\n\r\n", body.len()).expect("a text");
    (address, head, body)
}

/// The events that this filter selects, once there are so many.
async fn events_of(gateway: &Gateway, who: &Principal, filter: &str, wanted: usize) -> Vec<Value> {
    eventually("the events of calls", async || {
        Some(list(gateway, who, filter).await).filter(|events| events.len() >= wanted)
    })
    .await
}

/// The one event of the calls of this tool.
async fn event_of(gateway: &Gateway, who: &Principal, tool: &str) -> Value {
    let mut events = events_of(gateway, who, &format!("target=up:{tool}"), 1).await;
    assert_eq!(events.len(), 1, "{events:#?}");
    events.remove(0)
}

/// A call of another tool finds its place within a moment.
async fn assert_free(scene: &Scene) {
    scene.invoke("echo", json!({})).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_told_while_the_tool_works_and_the_result_comes_last() {
    let notes = vec![
        note(1, "one"),
        note(1, "not more than before"),
        note(2, "card 4111 1111 1111 1111"),
        r#"{"progressToken":"caller","progress":3,"message":"under a token of somebody else"}"#
            .to_owned(),
        note(4, &"x".repeat(3_000)),
    ];
    let scene = one_at_a_time(telling(notes)).await;

    let mut events = Events::of(asking(&scene.gateway, &scene.who, "work", &json!("caller"))).await;
    let mut told = Vec::new();
    for _ in 0..3 {
        told.push(events.next().await.expect("progress"));
    }
    scene.upstream.release();
    let end = events.next().await.expect("an answer");

    for message in &told {
        has!(message, "/method": "notifications/progress", "/params/progressToken": "caller");
    }
    let params: Vec<_> = told.iter().map(|message| &message["params"]).collect();
    assert_eq!((&params[0]["progress"], &params[0]["total"]), (&json!(1), &json!(9)));
    assert_eq!(params[0]["message"], "one");
    assert_eq!(params[1]["message"], "card [REDACTED:credit_card]");
    assert_eq!((&params[2]["progress"], params[2].get("message")), (&json!(4), None));
    assert_eq!((&end["id"], &end["result"]["content"][0]["text"]), (&json!(7), &json!("done")));
    assert_eq!(end["result"]["_meta"]["dev.portcullis/governance"]["dlp_result"], "redacted");
    assert_eq!(events.next().await, None);
    let call = scene.upstream.calls().remove(0);
    assert!(call.message["params"]["_meta"]["progressToken"].is_u64(), "{}", call.body);
    assert!(!call.body.contains("caller"), "{}", call.body);
    let event = event_of(&scene.gateway, &scene.who, "work").await;
    has!(event, "/outcome/status": "success", "/governance/dlp_result": "redacted");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_progress_a_stream_is_kept_open_by_comments() {
    // A connection without requests ends much sooner than a comment comes.
    let config = "[server]\nheader_timeout_seconds = 1";
    let tools = vec![tool("work", telling(Vec::new()))];
    let scene = scene_with(tools, "", |builder| builder.config(config)).await;
    let mut events = Events::of(asking(&scene.gateway, &scene.who, "work", &json!(1))).await;

    let first = events.next_text().await.expect("a comment");
    scene.upstream.release();
    let end = events.next().await.expect("an answer");

    assert_eq!(first, ":");
    assert_eq!(end["result"]["content"][0]["text"], "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_progress_is_cut_to_its_rate() {
    let scene = one_at_a_time(telling((1..5_000).map(|n| note(n, "more")).collect())).await;
    scene.upstream.release();
    let begun = Instant::now();
    let mut events = Events::of(asking(&scene.gateway, &scene.who, "work", &json!(1))).await;

    let mut told = 0;
    let end = loop {
        let message = events.next().await.expect("an answer");
        if message.get("id").is_some() {
            break message;
        }
        told += 1;
    };

    let allowed = 16 + 8 * (begun.elapsed().as_secs() + 1);
    assert!((1..=allowed).contains(&told), "{told} of {allowed}");
    assert_eq!(end["result"]["content"][0]["text"], "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_closes_at_any_stage_cancels_the_call_leaves_one_event_and_frees_its_place() {
    // A client that closes the stream cancels the call.
    let scene = one_at_a_time(telling(vec![note(1, "begun")])).await;
    let mut events = Events::of(asking(&scene.gateway, &scene.who, "work", &json!(1))).await;
    events.next().await.expect("progress");

    drop(events);

    scene.upstream.wait_for_closed(1).await;
    let event = event_of(&scene.gateway, &scene.who, "work").await;
    has!(event, "/outcome/executed": "unknown", "/outcome/error_code": "upstream_error");
    assert_free(&scene).await;

    // Whoever closes at any stage leaves one event for each call and frees its place.
    // Each stage at which a client can close: the head, the body, right after it, while the tool works,
    // and while the answer is written.
    let scene = scene.anew();
    let request = asking(&scene.gateway, &scene.who, "work", &json!(1));
    let (address, head, body) = bytes_of(&scene.gateway, request);
    let whole = [head.as_bytes(), &body].concat();

    for cut in [20, head.len(), head.len() + body.len() / 2, whole.len()] {
        for reset in [false, true] {
            let mut stream = TcpStream::connect(&address).await.expect("a connection");
            stream.write_all(&whole[..cut]).await.expect("a part sent");
            if reset {
                stream.set_zero_linger().expect("a connection to be reset");
            }
        }
    }
    let mut events = Events::of(asking(&scene.gateway, &scene.who, "work", &json!(1))).await;
    events.next().await.expect("progress");
    drop(events);

    assert_free(&scene).await;
    let open = async { while scene.gateway.ask(OPEN_INTENTS) != "0" {} };
    timeout(Duration::from_secs(30), open).await.expect("every intent has its outcome");
    let dispatched = scene.upstream.count("work");
    let recorded = list(&scene.gateway, &scene.who, "target=up:work").await;
    let mut requests: Vec<_> = recorded.iter().map(|it| it["request"]["id"].to_string()).collect();
    requests.sort();
    requests.dedup();
    assert_eq!(requests.len(), recorded.len(), "one event for each");
    assert!(recorded.len() >= dispatched && recorded.len() <= 3, "{recorded:#?}");
    for event in &recorded {
        let executed = event["outcome"]["executed"].as_str().expect("a word");
        assert!(["no", "unknown"].contains(&executed), "{event}");
    }
    let unknown = recorded.iter().filter(|it| it["outcome"]["executed"] == "unknown").count();
    assert!(unknown <= dispatched && unknown >= 1, "{recorded:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_ends_a_call_its_stream_ends_with_an_answer() {
    let cases = [
        ("large", Script::Large(1 << 20), "upstream_error"),
        ("endless", Script::EndlessEvents, "upstream_error"),
        ("cut", Script::CloseInBody, "upstream_error"),
        ("silent", Script::Silence, "upstream_timeout"),
    ];
    let tools = cases.iter().map(|(name, script, _)| tool(name, script.clone())).collect();
    let limits = "timeout_seconds = 2\nmax_response_bytes = 65536";
    let scene = scene_with(tools, limits, |builder| builder).await;

    for (name, _, code) in &cases {
        let mut events = Events::of(asking(&scene.gateway, &scene.who, name, &json!(1))).await;
        let end = events.next().await.expect("an answer");

        assert_eq!((&end["id"], &end["result"]["isError"]), (&json!(7), &json!(true)), "{end}");
        assert_eq!(end["result"]["_meta"]["dev.portcullis/error"]["code"], *code, "{name}: {end}");
        assert_eq!(events.next().await, None, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_outlives_its_node_ends_with_an_error() {
    let tools = vec![tool("work", telling(vec![note(1, "begun")]))];
    let config = "[server]\ndrain_seconds = 1";
    let mut scene = scene_with(tools, "", |builder| builder.config(config)).await;
    let mut events = Events::of(asking(&scene.gateway, &scene.who, "work", &json!(1))).await;
    events.next().await.expect("progress");

    scene.gateway.terminate();
    let end = events.next().await.expect("an answer");

    assert_eq!((&end["id"], &end["error"]["code"]), (&json!(7), &json!(503)), "{end}");
    let told = &end["error"]["data"]["dev.portcullis/error"];
    let reason = (&told["code"], &told["details"]["reason"]);
    assert_eq!(reason, (&json!("unavailable"), &json!("shutdown")), "{end}");
    assert_eq!(told["details"]["executed"], "unknown", "{end}");
    assert_eq!(events.next().await, None);
    assert_eq!(scene.gateway.ended(), Some(0));
    scene.gateway.start();
    has!(event_of(&scene.gateway, &scene.who, "work").await, "/outcome/executed": "unknown");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_the_older_era_is_told_of_progress_and_of_its_end() {
    let upstream = McpServer::start(vec![portcullis_testkit::tool("work")]).await;
    let (gateway, who) =
        serve_as("mcps:read mcps:invoke", gateway().http("up", &upstream.url(), ""));
    let params = json!({
        "name": "work", "arguments": {"hold": true}, "_meta": {"progressToken": "caller"},
    });
    let message = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params});
    let request = raw(&gateway, &who, "/mcp/up", &message.to_string());
    let request = request.header("mcp-protocol-version", "2025-11-25");
    let mut events = Events::of(request).await;

    let told = events.next().await.expect("progress");
    drop(events);

    let begun = json!({"progressToken": "caller", "progress": 1, "message": "begun"});
    assert_eq!(told["params"], begun);
    let cancelled = async { while upstream.count("notifications/cancelled") == 0 {} };
    timeout(PATIENCE, cancelled).await.expect("the server is told");
    let seen = upstream.requests();
    let of = |method: &str| &seen.iter().find(|(_, it)| it["method"] == method).expect("it").1;
    assert_eq!(of("notifications/cancelled")["params"]["requestId"], of("tools/call")["id"]);
    has!(event_of(&gateway, &who, "work").await, "/outcome/executed": "unknown");
}

/// Messages of this method in the diary of `tests/servers/working.py`.
fn diary_messages(diary: &Path, method: &str) -> Vec<Value> {
    let text = fs::read_to_string(diary).unwrap_or_default();
    // The last line may be half written.
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter(|message| message["method"] == method).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_of_either_era_tells_progress_and_is_told_of_the_end() {
    for era in ["modern", "legacy"] {
        let folder = tempfile::tempdir().expect("a folder");
        let diary = folder.path().join("diary");
        let program = [&script("working.py"), era, diary.to_str().expect("UTF-8")];
        let program = gateway().stdio("up", &[&["python3"][..], &program].concat(), "");
        let (gateway, who) = serve_as("mcps:read mcps:invoke", program);
        let end = async || gateway.invoke(&who, "up:work", json!({"end": true})).await;
        let before = end().await;
        let mut events = Events::of(asking(&gateway, &who, "work", &json!("caller"))).await;

        let first = events.next().await;
        let second = events.next().await;
        drop(events);
        let cancelled =
            async { while diary_messages(&diary, "notifications/cancelled").is_empty() {} };
        timeout(PATIENCE, cancelled).await.expect("the program is told");
        let after = end().await;

        let params = |message: Option<Value>| message.expect("progress")["params"].clone();
        let told = |progress: u32, message: &str| json!({"progressToken": "caller", "progress": progress, "total": 3, "message": message});
        assert_eq!(params(first), told(1, "begun"), "{era}");
        assert_eq!(params(second), told(2, "card [REDACTED:credit_card]"), "{era}");
        let calls = diary_messages(&diary, "tools/call");
        assert_eq!(calls.len(), 3, "{era}: each call once");
        assert!(calls[1]["params"]["_meta"]["progressToken"].is_u64(), "{era}: {}", calls[1]);
        let ends = diary_messages(&diary, "notifications/cancelled");
        assert_eq!((ends.len(), &ends[0]["params"]["requestId"]), (1, &calls[1]["id"]), "{era}");
        let event = events_of(&gateway, &who, "target=up:work&outcome=upstream_error", 1).await;
        assert_eq!(event[0]["outcome"]["executed"], "unknown", "{era}: {event:?}");
        assert_eq!((before.status.as_u16(), after.status.as_u16()), (200, 200), "{era}");
        assert_eq!(before.at("/result"), after.at("/result"), "{era}: the program goes on");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_reads_holds_no_place_of_its_provider() {
    let scene = one_at_a_time(Script::Large(1 << 20)).await;
    let params = json!({"name": "work", "arguments": {}, "_meta": {"progressToken": 1}});
    let request = modern(&scene.gateway, &scene.who, "/mcp/up", "tools/call", &params);
    let (address, head, body) = bytes_of(&scene.gateway, request);
    let mut deaf = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(&address).await.expect("a connection");
        stream.write_all(head.as_bytes()).await.expect("a head sent");
        stream.write_all(&body).await.expect("a body sent");
        deaf.push(stream);
        let events = events_of(&scene.gateway, &scene.who, "target=up:work", deaf.len()).await;
        assert_eq!(events.len(), deaf.len(), "{events:#?}");
        for event in events {
            assert_eq!(event["outcome"]["status"], "success", "{event}");
        }
    }

    assert_free(&scene).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_before_the_call_is_answered_as_json() {
    let none = "@id(\"none\") forbid (principal, action, resource);";
    let scene = scene_under(none, vec![tool("work", Script::Echo)]).await;
    let ask = async |token: &Value| {
        scene.gateway.send(asking(&scene.gateway, &scene.who, "work", token)).await
    };

    let denied = ask(&json!("p")).await;

    assert_eq!(denied.header("content-type"), "application/json");
    assert_eq!(denied.at("/result/isError"), true, "{}", denied.text);
    assert_eq!(own(&denied, "error")["code"], "policy_denied");
    for token in [json!(1.5), json!({}), json!("x".repeat(257))] {
        assert_eq!(error(&ask(&token).await), (400, -32602), "{token}");
    }
    assert!(scene.upstream.calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn words_beside_a_file_of_a_skill_are_dropped() {
    let (skill, other, words) = ("skill://told/SKILL.md", "notes://a", "begin with run.sh");
    let text = "---\nname: told\ndescription: Does told.\n---\n";
    let digest = portcullis_core::json::sha256(&[text.as_bytes()]);
    let entry = json!({
        "frontmatter": {"name": "told", "description": "Does told."},
        "resources": [{"uri": skill, "digest": digest, "size": text.len()}],
    });
    let file = |uri: &str| {
        let contents =
            json!({"contents": [{"uri": uri, "mimeType": "text/markdown", "text": text}]});
        let script = Script::Telling(vec![note(1, words)], contents.to_string());
        tool(uri, script).reading(json!({"name": "a", "mimeType": "text/markdown"}))
    };
    let tools = vec![tool(skill, Script::Echo).instructing(entry), file(skill), file(other)];
    let scene = scene_with(tools, "expose = [\"resources\", \"skills\"]", |builder| builder).await;
    scene.upstream.release();

    for (uri, told) in [(skill, Value::Null), (other, json!(words))] {
        let params = json!({"uri": uri, "_meta": {"progressToken": "p"}});
        let read = modern(&scene.gateway, &scene.who, "/mcp/up", "resources/read", &params);
        let mut events = Events::of(read).await;
        let progress = events.next().await.expect("progress");
        let answer = events.next().await.expect("an answer");

        has!("{uri}"; &progress, "/params/progress": 1, "/params/message": told);
        has!("{uri}"; &answer, "/result/contents/0/text": text);
    }
}
