//! `completion/complete`: values of arguments of prompts and templates, on the law of their uses.

use super::{ask, ask_legacy, error, own};
use crate::prelude::*;

const EXPOSED: &str = "expose = [\"prompts\", \"resources\", \"tools\"]\npin = \"off\"";

const POLICIES: &str = r#"
@id("all") permit (principal, action in Mcp::Action::"*:*", resource);
@id("never") forbid (principal, action == Mcp::Action::"prompt:up:never", resource);
@id("no-board") @reason("Boards are told by people")
forbid (principal, action == Mcp::Action::"prompt:up:greet", resource is Mcp::Prompt)
when { context.input has who && context.input.who == "the board" };
@id("asked") @require_approval("approvers=leads")
forbid (principal, action == Mcp::Action::"prompt:up:asked", resource);
@id("shut") forbid (principal, action == Mcp::Action::"resource:up", resource is Mcp::Resource)
when { context.resource.path like "*/board/*" };
@id("no-pdf") forbid (principal, action == Mcp::Action::"resource:up", resource is Mcp::Resource)
when { context.resource has mime && context.resource.mime == "application/pdf" };
"#;

fn offered() -> Vec<HostileTool> {
    let arguments =
        ["tone", "values", "mail", "key", "none", "bad", "asks", "slow", "ada@acme.example"];
    let mut arguments: Vec<Value> = arguments.iter().map(|name| json!({ "name": name })).collect();
    arguments.push(json!({"name": "who", "required": true}));
    let prompt = |name: &str| tool(name, Script::Echo).prompting(json!(arguments));
    let template = |uri: &str| tool(uri, Script::Echo).reading(json!({"name": "a name"}));
    let suggests = |argument: &str, values: Value| {
        tool(argument, Script::Result(json!({"completion": {"values": values}}).to_string()))
    };
    vec![
        prompt("greet"),
        prompt("never"),
        prompt("asked"),
        template("notes://files/{name}"),
        template("notes://h/{+place}"),
        template("notes://{host}/p/{name}"),
        tool("notes://files/pdf", Script::Echo)
            .reading(json!({"name": "a name", "mimeType": "application/pdf"})),
        tool("?who", Script::Echo),
        tool("?tone", Script::Echo),
        tool("?values", Script::Echo),
        suggests("?mail", json!(["ada@acme.example"])),
        suggests("?key", json!(["AKIAIOSFODNN7EXAMPLX", "b"])),
        suggests("?bad", json!([7])),
        suggests("?place", json!(["board/a", "open/b", "x/board/c", "o%70en", "../a"])),
        suggests("?host", json!(["a", "A", "a."])),
        suggests("?name", json!(["pdf", "b", "c/d"])),
        tool("?slow", Script::Silence),
        tool(
            "?asks",
            Script::Asks(json!({"resultType": "input_required", "inputRequests": {}}).to_string()),
        ),
    ]
}

async fn exposed() -> Scene {
    scene_with(offered(), EXPOSED, |builder| builder.policies(POLICIES)).await
}

/// Parameters of a completion; at `/mcp` what has the argument carries its provider.
fn params(path: &str, of: &str, argument: &str, value: &str, context: &Value) -> Value {
    let reference = match (of.contains(':'), path) {
        (true, "/mcp") => json!({"type": "ref/resource", "uri": format!("up+{of}")}),
        (true, _) => json!({"type": "ref/resource", "uri": of}),
        (false, "/mcp") => json!({"type": "ref/prompt", "name": format!("up__{of}")}),
        (false, _) => json!({"type": "ref/prompt", "name": of}),
    };
    let argument = json!({"name": argument, "value": value});
    json!({"ref": reference, "argument": argument, "context": {"arguments": context}})
}

const FILE: &str = "notes://files/{name}";
const PLACE: &str = "notes://h/{+place}";
const HOST: &str = "notes://{host}/p/{name}";

#[tokio::test(flavor = "multi_thread")]
async fn values_are_suggested_under_the_law_of_uses_and_each_leaves_one_event() {
    let scene = exposed().await;
    // What has the argument, its name and value: code of the error or 0, outcome, target, requests upstream.
    for (of, argument, value, code, outcome, sent) in [
        ("greet", "who", "A", 0, "success", 1),
        ("greet", "tone", "", 0, "success", 1),
        ("greet", "mail", "a", 0, "success", 1),
        ("greet", "none", "a", 0, "success", 1),
        ("greet", "ada@acme.example", "a", 0, "success", 1),
        ("greet", "bad", "a", 502, "upstream_error", 1),
        ("greet", "asks", "a", 502, "upstream_error", 1),
        ("greet", "slow", "a", 504, "upstream_timeout", 1),
        ("greet", "who", "the board", 403, "denied", 0),
        ("greet", "who", "AKIAIOSFODNN7EXAMPLX", 403, "denied", 0),
        ("asked", "who", "A", 403, "denied", 0),
        ("never", "who", "A", -32602, "not_found", 0),
        ("nothing", "who", "A", -32602, "not_found", 0),
        (FILE, "name", "a", 0, "success", 1),
        (FILE, "name", "", 0, "success", 1),
        (FILE, "name", "a/b", -32602, "not_found", 0),
        (PLACE, "place", "o%70en", -32602, "not_found", 0),
        (HOST, "host", "A", -32602, "not_found", 0),
        (FILE, "name", "AKIAIOSFODNN7EXAMPLX", 403, "denied", 0),
        (PLACE, "place", "a/board/b", -32602, "not_found", 0),
        (PLACE, "place", "../a", -32602, "not_found", 0),
        ("notes://other/{name}", "name", "a", -32602, "not_found", 0),
    ] {
        for path in ["/mcp", "/mcp/up"] {
            scene.upstream.forget();
            let asked = params(path, of, argument, value, &json!({}));
            let answer = ask(&scene.gateway, &scene.who, path, "completion/complete", asked).await;

            let at = format!("{path} {of} {argument} {value} {}", answer.text);
            assert_eq!(answer.at("/error/code").as_i64().unwrap_or(0), code, "{at}");
            assert_eq!(scene.upstream.calls().len(), sent, "{at}");
            let events = events(&scene.gateway, &scene.who, answer.header("x-request-id")).await;
            assert_eq!(events.len(), 1, "{at}");
            has!("{at}"; events[0], "/type": "mcp.invocation", "/outcome/status": outcome);
            if outcome == "success" {
                assert_eq!(own(&answer, "governance")["decision"], "allow", "{at}");
                assert!(answer.at("/result/completion/values").is_array(), "{at}");
                let path = format!("/v1/audit/events/{}", events[0]["id"].as_str().expect("an id"));
                let kept = scene.gateway.get(&scene.who, &path).await.ok();
                has!(kept, "/data/detached/method": "completion/complete");
            }
        }
    }
    let waiting = scene.gateway.get(&scene.who, "/v1/approvals").await;
    assert!(!waiting.text.contains("apr_"), "{}", waiting.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_asked_in_its_words_and_what_it_says_is_scanned() {
    let scene = exposed().await;
    let prompt = json!({"type": "ref/prompt", "name": "greet"});
    let template = json!({"type": "ref/resource", "uri": HOST});
    let argument = |name: &str, value: &str| json!({"name": name, "value": value});
    for (of, name, value, others, wanted) in [
        ("greet", "who", "A", json!({}), json!({"ref": prompt, "argument": argument("who", "A")})),
        (
            "greet",
            "values",
            "A",
            json!({"tone": "warm"}),
            json!({"ref": prompt, "argument": argument("values", "A"),
                "context": {"arguments": {"tone": "warm"}}}),
        ),
        (
            HOST,
            "name",
            "a",
            json!({"host": "b", "name": "c", "other": "d"}),
            json!({"ref": template, "argument": argument("name", "a"),
                "context": {"arguments": {"host": "b"}}}),
        ),
    ] {
        for path in ["/mcp", "/mcp/up"] {
            let asked = params(path, of, name, value, &others);
            let answer =
                ask_legacy(&scene.gateway, &scene.who, path, "completion/complete", asked).await;
            assert!(answer.at("/result/completion/values").is_array(), "{}", answer.text);
            let mut told =
                scene.upstream.calls().pop().expect("a request").message["params"].take();
            told.as_object_mut().expect("parameters").remove("_meta");
            assert_eq!(told, wanted, "{}", answer.text);
        }
    }
    // Values by which a resource would be read that policies deny are left out.
    for (of, argument, wanted) in [
        ("greet", "mail", json!(["ada@acme.example"])),
        ("greet", "key", json!(["[REDACTED:aws_access_key]", "b"])),
        ("greet", "none", json!([])),
        (PLACE, "place", json!(["open/b"])),
        (HOST, "host", json!(["a"])),
        (FILE, "name", json!(["b"])),
    ] {
        let asked = params("/mcp", of, argument, "", &json!({}));
        let answer = ask(&scene.gateway, &scene.who, "/mcp", "completion/complete", asked).await;
        has!("{argument}"; answer, 200, "/result/completion/values": wanted,
            "/result/resultType": "complete");
        assert_eq!(answer.at("/result/ttlMs"), &Value::Null, "{}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn completion_is_offered_where_there_are_prompts_or_templates_and_takes_texts_only() {
    let scene = exposed().await;
    let bare = scene_with(offered(), "", |builder| builder).await;
    let argument = json!({"name": "who", "value": "A"});
    let greet = json!({"type": "ref/prompt", "name": "greet"});
    for params in [
        json!({}),
        json!({"ref": greet}),
        json!({"ref": greet, "argument": {"name": "who"}}),
        json!({"ref": greet, "argument": {"name": "who", "value": 7}}),
        json!({"ref": greet, "argument": argument, "context": {"arguments": {"tone": 7}}}),
        json!({"ref": {"type": "ref/tool", "name": "greet"}, "argument": argument}),
        json!({"ref": {"type": "ref/prompt", "uri": "greet"}, "argument": argument}),
        json!({"ref": "greet", "argument": argument}),
        json!({"ref": greet, "argument": {"name": "ada@acme.example!", "value": "A"}}),
        json!({"ref": greet, "argument": argument, "context": []}),
        json!({"ref": greet, "argument": argument, "context": {"arguments": 7}}),
        json!({"ref": {"type": "ref/resource", "uri": FILE}, "argument": argument}),
        json!({"ref": {"type": "ref/resource", "uri": "notes://files/a"}, "argument": argument}),
    ] {
        let answer =
            ask(&scene.gateway, &scene.who, "/mcp/up", "completion/complete", params.clone()).await;
        // What is written well, and names no argument that there is.
        let is_unknown = params.pointer("/ref/type") == Some(&json!("ref/resource"))
            || params.pointer("/argument/name") == Some(&json!("ada@acme.example!"));
        let status = if is_unknown { 200 } else { 400 };
        assert_eq!(error(&answer), (status, -32602), "{params} {}", answer.text);
        let answer = ask(&bare.gateway, &bare.who, "/mcp/up", "completion/complete", params).await;
        assert_eq!(error(&answer).1, -32601, "{}", answer.text);
    }
    let told = ask(&scene.gateway, &scene.who, "/mcp", "server/discover", json!({})).await;
    has!(told, 200, "/result/capabilities/completions": json!({}));
    let told = ask(&bare.gateway, &bare.who, "/mcp", "server/discover", json!({})).await;
    assert_eq!(told.at("/result/capabilities/completions"), &Value::Null);
    assert!(scene.upstream.calls().is_empty() && bare.upstream.calls().is_empty());
}
