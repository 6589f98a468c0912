//! One law: the same calls through REST and through MCP end in the same way.

use portcullis_testkit::HostileCall;

use super::{ask_legacy, call, modern, own};
use crate::prelude::*;

const POLICIES: &str = r#"
@id("all") permit (principal, action, resource);
@id("never") @reason("Nobody calls it") forbid (principal, action == Mcp::Action::"up:never", resource);
@id("small") forbid (principal, action == Mcp::Action::"up:numbers", resource)
when { context.input has n && context.input.n > 10 };
@id("mask-mail") @redact("input: email")
forbid (principal, action == Mcp::Action::"up:mail", resource)
when { context has dlp && context.dlp.findings.contains("email") };
@id("withheld") @phase("response")
forbid (principal, action in [Mcp::Action::"up:withheld", Mcp::Action::"up:asks-mute"], resource);
@id("no-mail-in-answers")
forbid (principal, action == Mcp::Action::"up:asks", resource)
when { context has dlp && context.dlp.findings.contains("email") };
"#;

fn tools() -> Vec<HostileTool> {
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let number = json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "additionalProperties": false,
    });
    vec![
        tool("echo", Script::Echo),
        tool("never", Script::Echo),
        tool("numbers", Script::Echo).taking(number),
        tool("mail", Script::Echo),
        giving("withheld", &text("the result")),
        giving("card", &text("pays with 4111 1111 1111 1111")),
        giving("fails", &json!({"content": [{"type": "text", "text": "no"}], "isError": true})),
        giving("array", &json!({"content": [], "structuredContent": [1, 2]})),
        tool("refuses", Script::Rpc(-32602)),
        tool("breaks", Script::Rpc(-32000)),
        tool("down", Script::Status(503)),
        tool("garbage", Script::Body("no JSON".to_owned())),
        tool("cut", Script::CloseInBody),
        tool("asks", Script::Asks(asking("Your name?"))),
        giving_text("asks-mail", &asking("Are you ada@acme.example?")),
        giving_text("asks-key", &asking("Is AKIAIOSFODNN7EXAMPLX yours?")),
        giving_text("asks-mute", &asking("Your name?")),
        giving_text("asks-much", &asking_for("tools/call", "?")),
    ]
}

/// Calls of all endings.
fn calls() -> Vec<(&'static str, Value)> {
    let mut calls = vec![
        ("never", json!({})),
        ("numbers", json!({"n": "x"})),
        ("numbers", json!({"m": 1})),
        ("nothing", json!({})),
        ("no/tool", json!({})),
        ("withheld", json!({})),
        ("card", json!({})),
        ("fails", json!({})),
        ("array", json!({})),
        ("refuses", json!({})),
        ("breaks", json!({})),
        ("down", json!({})),
        ("garbage", json!({})),
        ("cut", json!({})),
        ("mail", json!({"to": "ada@acme.example", "more": ["bob@acme.example"]})),
        ("mail", json!({"to": "nobody"})),
        ("echo", json!({"token": "AKIAIOSFODNN7EXAMPLX"})),
        ("echo", json!({"card": "4111 1111 1111 1111"})),
        ("echo", json!({"n": 12_345_678_901_234_567_890_u64, "é": [null, true, -0.5e-7]})),
    ];
    calls.extend((0..60).map(|n| ("numbers", json!({ "n": n % 20 }))));
    calls.extend((0..20).map(|n| ("echo", json!({"n": n, "text": "x".repeat(n)}))));
    calls
}

/// End of a call, whichever way it was made.
#[derive(Debug, PartialEq)]
struct Ending {
    result: Value,
    error: Value,
    governance: Value,
    event: Value,
}

impl Ending {
    /// The end that an answer over REST tells.
    async fn of(scene: &Scene, answer: &Answer) -> Self {
        Self {
            result: answer.at("/result").clone(),
            error: without_ids(answer.at("/error").clone()),
            governance: without_ids(answer.at("/governance").clone()),
            event: without_ids(event(scene, answer).await),
        }
    }
}

/// Members that differ from call to call.
fn without_ids(mut value: Value) -> Value {
    const OWN: &str = "sequence occurred_at recorded_at audit_event_id request integrity \
        commitments durations retry_after";
    match &mut value {
        Value::Object(members) => {
            let is_event = |value: &Value| value.as_str().is_some_and(|id| id.starts_with("evt_"));
            let is_own = |name: &str| OWN.split(' ').any(|own| own == name);
            members.retain(|name, it| !(is_own(name) || name == "id" && is_event(it)));
            members.values_mut().for_each(|member| *member = without_ids(member.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_ids(item.take())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    value
}

async fn event(scene: &Scene, answer: &Answer) -> Value {
    let mut events = events(&scene.gateway, &scene.who, answer.header("x-request-id")).await;
    assert_eq!(events.len(), 1, "{}", answer.text);
    events.remove(0)
}

fn without_meta(mut result: Value) -> Value {
    if let Some(members) = result.as_object_mut() {
        members.remove("_meta");
        members.remove("resultType");
    }
    result
}

async fn over_rest(scene: &Scene, tool: &str, input: &Value) -> Ending {
    let id = tool.replace('/', "%2F");
    let path = format!("/v1/mcps/up:{id}/invoke?view=mcp");
    let answer =
        scene.gateway.post(&scene.who, &path, &json!({ "input": input }).to_string()).await;
    Ending::of(scene, &answer).await
}

async fn over_mcp(scene: &Scene, answer: Answer) -> Ending {
    let refused = own(&answer, "error");
    let told = answer.at("/error/data/dev.portcullis~1error");
    let governance = own(&answer, "governance");
    let governance = if governance.is_null() {
        answer.at("/error/data/dev.portcullis~1governance")
    } else {
        governance
    };
    let result =
        if refused.is_null() { without_meta(answer.at("/result").clone()) } else { Value::Null };
    Ending {
        result,
        error: without_ids(if refused.is_null() { told.clone() } else { refused.clone() }),
        governance: without_ids(governance.clone()),
        event: without_ids(event(scene, &answer).await),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_questions_and_answers_end_in_the_same_way_through_rest_and_mcp() {
    // The same calls end in the same way through rest and mcp.
    let scene = scene_under(POLICIES, tools()).await;
    for (tool, input) in calls() {
        let rest = over_rest(&scene, tool, &input).await;
        let modern = call(&scene.gateway, &scene.who, "/mcp/up", tool, input.clone()).await;
        let params = json!({"name": format!("up__{tool}"), "arguments": input});
        let legacy = ask_legacy(&scene.gateway, &scene.who, "/mcp", "tools/call", params).await;
        let by_id = json!({"id": format!("up:{tool}"), "input": input});
        let by_id = call(&scene.gateway, &scene.who, "/mcp", "call_tool", by_id).await;

        let object = rest.result["structuredContent"].is_object();
        assert_eq!(rest, over_mcp(&scene, modern).await, "{tool} {input}");
        assert_eq!(rest, over_mcp(&scene, by_id).await, "{tool} {input}");
        let mut legacy = over_mcp(&scene, legacy).await;
        if let (false, Some(content)) = (object, rest.result.get("structuredContent")) {
            legacy.result["structuredContent"] = content.clone();
        }
        assert_eq!(rest, legacy, "{tool} {input}");
    }
    // What was sent upstream is the same each time.
    let sent = scene.upstream.calls();
    for tool in ["echo", "numbers", "mail", "card"] {
        let sent = sent.iter().filter(|it| it.tool == tool).map(HostileCall::arguments);
        let sent: Vec<String> = sent.collect();
        assert!(!sent.is_empty() && sent.len().is_multiple_of(4), "{tool}");
        assert!(sent.chunks(4).all(|four| four.iter().all(|it| *it == four[0])), "{tool}");
    }

    // Questions and answers end in the same way through rest and mcp.
    let scene = scene.anew();
    let yes = |text: &str| json!({"q": {"action": "accept", "content": {"text": text}}});
    let mut state = String::new();
    for tool in ["asks", "asks-mail", "asks-key", "asks-mute", "asks-much"] {
        let (rest, sealed) = rest_end(&scene, rest_leg(&scene, tool, None).await).await;
        for by_id in [false, true] {
            let (mcp, told) = mcp_end(&scene, mcp_leg(&scene, tool, by_id, None).await).await;
            assert_eq!((&rest, sealed.is_some()), (&mcp, told.is_some()), "{tool}");
        }
        if tool == "asks" {
            state = sealed.expect("a state");
        }
    }
    for (tool, state, answers) in [
        ("asks", &*state, yes("Ada")),
        ("asks", &*state, yes("AKIAIOSFODNN7EXAMPLX")),
        ("asks", &*state, yes("ada@acme.example")),
        ("asks", &*state, json!({})),
        ("asks", "invented", yes("Ada")),
        ("echo", &*state, yes("Ada")),
    ] {
        let earlier = Some((state, &answers));
        let (rest, _) = rest_end(&scene, rest_leg(&scene, tool, earlier).await).await;
        for by_id in [false, true] {
            let answer = mcp_leg(&scene, tool, by_id, earlier).await;
            assert_eq!(rest, mcp_end(&scene, answer).await.0, "{tool} {answers}");
        }
    }
}

fn giving_text(name: &str, result: &str) -> HostileTool {
    tool(name, Script::Result(result.to_owned()))
}

fn asking(message: &str) -> String {
    asking_for("elicitation/create", message)
}

fn asking_for(method: &str, message: &str) -> String {
    let question = json!({"method": method, "params": {"message": message}});
    json!({"resultType": "input_required", "inputRequests": {"q": question}, "requestState": "theirs"})
        .to_string()
}

/// A leg of a call over REST.
async fn rest_leg(scene: &Scene, tool: &str, earlier: Option<(&str, &Value)>) -> Answer {
    let mut body = json!({"input": {}, "interaction": {"capabilities": {"elicitation": {}}}});
    if let Some((state, responses)) = earlier {
        body["interaction"]["state"] = json!(state);
        body["interaction"]["responses"] = responses.clone();
    }
    let path = format!("/v1/mcps/up:{tool}/invoke?view=mcp");
    scene.gateway.post(&scene.who, &path, &body.to_string()).await
}

/// The same over MCP, by name or by id.
async fn mcp_leg(
    scene: &Scene,
    tool: &str,
    by_id: bool,
    earlier: Option<(&str, &Value)>,
) -> Answer {
    let (path, mut params) = if by_id {
        let arguments = json!({"id": format!("up:{tool}"), "input": {}});
        ("/mcp", json!({"name": "call_tool", "arguments": arguments}))
    } else {
        ("/mcp/up", json!({"name": tool, "arguments": {}}))
    };
    params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
    if let Some((state, responses)) = earlier {
        params["requestState"] = json!(state);
        params["inputResponses"] = responses.clone();
    }
    let request = modern(&scene.gateway, &scene.who, path, "tools/call", &params);
    scene.gateway.send(request).await
}

/// End of a leg over REST, and its state.
async fn rest_end(scene: &Scene, answer: Answer) -> (Ending, Option<String>) {
    let mut ending = Ending::of(scene, &answer).await;
    let state = ending.result["interaction"]["state"].as_str().map(str::to_owned);
    if state.is_some() {
        ending.result["interaction"]["state"] = json!("sealed");
    }
    (ending, state)
}

/// End of a leg over MCP in the words of REST, and its state.
async fn mcp_end(scene: &Scene, answer: Answer) -> (Ending, Option<String>) {
    let mut ending = over_mcp(scene, answer).await;
    let state = ending.result["requestState"].as_str().map(str::to_owned);
    if state.is_some() {
        let requests = ending.result["inputRequests"].take();
        ending.result = json!({"interaction": {"requests": requests, "state": "sealed"}});
    }
    (ending, state)
}
