//! Upstreams that do their worst: each kind of misery has its answer, costs bounded memory, and
//! slows no other upstream down. The table stands in docs/upstreams.md.

use crate::prelude::*;

const IMPATIENT: &str = "timeout_seconds = 1";
const SSE: &str = "text/event-stream";

fn typed(name: &str, kind: &'static str, body: &str) -> HostileTool {
    tool(name, Script::Typed(kind, body.to_owned()))
}

/// Failures of the upstream, each with the reason that is told; the empty reason is a timeout.
fn miseries() -> Vec<(HostileTool, &'static str)> {
    let good = r#"{"jsonrpc":"2.0","id":{id},"result":{"content":[]}}"#;
    let other = r#"{"jsonrpc":"2.0","id":987654321,"result":{"content":[]}}"#;
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    let deep_result = format!(
        r#"{{"jsonrpc":"2.0","id":{{id}},"result":{{"content":[],"structuredContent":{{"a":{}1{}}}}}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let json = "application/json";
    vec![
        (tool("hangs", Script::Silence), ""),
        (tool("drips", Script::Drip), ""),
        (typed("says_html", "text/html", good), "protocol_error"),
        (typed("says_nothing", "application/octet-stream", good), "protocol_error"),
        (typed("garbage", json, "\u{0}\u{1b}]0;x\u{7} no JSON"), "protocol_error"),
        (typed("half", json, &good[..30]), "protocol_error"),
        (tool("declares", Script::Declared(100 << 20)), "response_too_large"),
        (tool("endless", Script::Endless), "response_too_large"),
        (tool("large", Script::Large((4 << 20) + 1)), "response_too_large"),
        (tool("chatters", Script::EndlessEvents), "protocol_error"),
        (tool("one_event", Script::EndlessEvent), "response_too_large"),
        (typed("deep", json, &deep), "protocol_error"),
        (typed("deep_result", json, &deep_result), "protocol_error"),
        (typed("wrong_id", json, other), "protocol_error"),
        (typed("wrong_id_event", SSE, &format!("data: {other}\n\n")), "protocol_error"),
        (typed("two_bodies", json, &format!("{good}\n{good}")), "protocol_error"),
        (typed("batch", json, &format!("[{good}]")), "protocol_error"),
        (
            tool("doubles", Script::Result(r#"{"content":[],"content":[]}"#.to_owned())),
            "protocol_error",
        ),
        (tool("mistypes", Script::Result(r#"{"content":"text"}"#.to_owned())), "protocol_error"),
        (
            giving("asks_back", &json!({"resultType": "input_required", "inputRequests": {}})),
            "interaction_required",
        ),
        (tool("fails", Script::Status(500)), "http_5xx"),
        (tool("is_busy", Script::Status(503)), "http_5xx"),
        (tool("errs", Script::Rpc(-32603)), "jsonrpc_error"),
        (tool("dies", Script::CloseAtOnce), "connection_reset"),
        (tool("dies_in_the_middle", Script::CloseInBody), "connection_reset"),
    ]
}

fn name_of(tool: &HostileTool) -> String {
    let text = format!("{tool:?}");
    text.split('"').nth(1).expect("its name").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_misery_has_its_answer() {
    let miseries = miseries();
    let tools = miseries.iter().map(|(tool, _)| tool.clone()).collect();
    let scene = scene_with(tools, IMPATIENT, |builder| builder).await;

    for (tool, reason) in &miseries {
        let name = name_of(tool);
        let answer = scene.invoke(&name, json!({})).await;

        let ending = match *reason {
            "" => TIMED_OUT,
            "response_too_large" => Ending { executed: "yes", ..FAILED },
            _ => FAILED,
        };
        let told = answer.at("/error/details/reason").as_str().unwrap_or_default();
        assert_eq!(told, *reason, "{name}: {}", answer.text);
        has!("{name}"; scene.check(&answer, ending).await, "/detached/output": null);
        has!("{name}"; answer, "/error/details/provider": "up",
            "/error/details/timeout_ms": if reason.is_empty() { json!(1000) } else { Value::Null });
        assert!(!answer.text.contains("hunter2"), "{name}: {}", answer.text);
        assert_eq!(scene.upstream.count(&name), 1, "{name} is never called again");
    }
    assert!(!scene.gateway.log().contains("hunter2"), "{}", scene.gateway.log());
    assert_eq!(scene.gateway.get(&scene.who, "/v1/mcps").await.status, 200);
}

/// The most memory that the process ever held, in MiB.
fn peak(gateway: &Gateway) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", gateway.pid())).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("its peak");
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    digits.parse::<u64>().expect("kilobytes") / 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_cost_bounded_memory() {
    let floods = ["endless", "one_event", "chatters", "declares"];
    let tools = miseries().into_iter().map(|(tool, _)| tool);
    let tools = tools.filter(|tool| floods.contains(&name_of(tool).as_str())).collect();
    let scene = scene(tools).await;
    scene.invoke("endless", json!({})).await;
    let before = peak(&scene.gateway);

    for _ in 0..3 {
        join_all((0..16).map(|number| scene.invoke(floods[number % 4], json!({})))).await;
    }

    // Twelve answers of up to 4 MiB each, and what the allocator keeps of them.
    let grown = peak(&scene.gateway) - before;
    assert!(grown <= 160, "{before} MiB grew by {grown} MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_ten_thousand_tools_is_read_up_to_its_bound() {
    let tools = (0..10_000).map(|n| tool(&format!("t{n:05}"), Script::Echo)).collect();
    let server = Hostile::start(tools).await;
    let mut gateway = gateway().sample().http("up", &server.url(), "").prepare();
    let who = gateway.service(&gateway.org("acme", &ENOUGH), ALL_SCOPES);
    gateway.start();

    let connected = |it: &Answer| it.status == 200 && members(it, "status") == ["connected"];
    let provider = until(|| gateway.get(&who, "/v1/providers?slug=up"), connected).await;

    assert_eq!(items(&provider)[0]["tools"], 1000);
    until(|| gateway.get(&who, "/v1/mcps/up:t00999"), |it| it.status == 200).await;
    gateway.invoke(&who, "up:t00999", json!({"a": 1})).await.ok();
    assert_eq!(gateway.invoke(&who, "up:t01000", json!({})).await.status, 404);
    wait_for_events(&gateway, &who, "tool.skipped").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn schema_bombs_and_unreadable_definitions_stay_out_with_an_event_and_the_other_tools_in() {
    let of_x = |x: Value| json!({"type": "object", "properties": {"x": x}});
    let large = (0..60).map(|n| json!({"pattern": format!("{n}[ab]{{100000}}")}));
    let large = json!({"anyOf": large.collect::<Vec<_>>()});
    let bombs = [("large", large), ("long", json!({"pattern": "a[ab]{20000}c"}))];
    let tools = bombs.map(|(name, x)| tool(name, Script::Echo).taking(of_x(x)));
    let loops = json!({"type": "object", "allOf": [{"$ref": "#"}]});
    let loops = tool("loops", Script::Echo).taking(loops);
    // A pattern that would look back for longer than the sun.
    let regex = tool("regex", Script::Echo).taking(of_x(json!({"pattern": "^(a+)+$"})));
    let beyond = serde_json::from_str(r#"{"type":"object","maxProperties":1e400}"#).expect("JSON");
    let beyond = tool("beyond", Script::Echo).taking(beyond);
    let slow = tool("slow", Script::Echo).taking(of_x(json!({"pattern": "a[ab]{900}c"})));
    let mut scene: Scene =
        scene(tools.into_iter().chain([loops, regex, beyond, slow]).collect()).await;
    // Orgs that are there when a list is looked at are told of it.
    scene.gateway.stop();
    scene.gateway.start();

    let ids = scene.gateway.get(&scene.who, "/v1/mcps").await;
    assert_eq!(members(&ids, "id"), ["up:regex", "up:slow"]);
    let admin = scene.gateway.service(&scene.who.org, ALL_SCOPES);
    let events = wait_for_events(&scene.gateway, &admin, "tool.skipped").await;
    assert_eq!(events.len(), 1, "{events:?}");
    let event = events[0].to_string();
    for name in ["large", "long", "loops", "beyond"] {
        assert!(event.contains(&format!("\"name\":\"{name}\"")), "{name} {event}");
    }
    has!(scene.invoke("slow", json!({"x": "ab".repeat(15_000)})).await, 400 "invalid_input");
    let trap = format!("{}!", "a".repeat(50_000));
    has!(scene.invoke("regex", json!({"x": trap})).await, 400 "invalid_input");
    let fits = format!("a{}c", "ab".repeat(450));
    assert_eq!(scene.invoke("slow", json!({"x": fits})).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_slow_to_check_are_answered_in_time() {
    let list = |items: Value| json!({"type": "object", "properties": {"x": items}});
    let integer = json!({"type": "integer", "multipleOf": 0.1, "minimum": 0.5});
    let schemas = [
        ("integers", list(json!({ "items": integer }))),
        ("enums", list(json!({"items": {"enum": (0..1_000).collect::<Vec<_>>()}}))),
        ("unique", list(json!({"uniqueItems": true}))),
    ];
    let tools = schemas.map(|(name, schema)| tool(name, Script::Echo).taking(schema));
    let scene: Scene = scene(tools.to_vec()).await;
    let long = "1".repeat(200);
    let bodies = [
        ("integers", vec!["1e-300".to_owned(); 19_000], 400),
        ("enums", vec!["1e-300".to_owned(); 3_500], 400),
        ("unique", (0..3_000).map(|n| format!("{n}.{long}")).collect(), 200),
        ("unique", (0..3_000).map(|n| format!("\"{long}{n}\"")).collect(), 200),
    ];

    for (name, items, status) in bodies {
        let body = format!("{{\"input\":{{\"x\":[{}]}}}}", items.join(","));
        let answer = scene.post(name, &body).await;

        assert_eq!(answer.status, status, "{name} {}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_failing_is_left_in_peace_and_tried_now_and_then() {
    let tools = vec![tool("breaks", Script::Status(500)), tool("echo", Script::Echo)];
    let metrics = "[server]\nmetrics_listen = \"127.0.0.1:0\"";
    let mut scene = scene_with(tools, "", |builder| builder.config(metrics)).await;
    for _ in 0..5 {
        has!(scene.invoke("breaks", json!({})).await, "/error/details/reason": "http_5xx");
    }

    let shed = scene.invoke("breaks", json!({})).await;

    has!(shed, "/error/details/reason": "circuit_open", "/error/details/retry_after": 1);
    assert_eq!(shed.header("retry-after"), "1");
    scene.check(&shed, Ending { executed: "no", ..FAILED }).await;
    assert_eq!(scene.upstream.count("breaks"), 5, "it was left in peace");
    assert_eq!(scene.invoke("echo", json!({})).await.status, 200, "its other tools go on");

    let open = "portcullis_provider_circuits_open{provider=\"up\"} 1";
    let counted = async || scene.gateway.metrics().await.contains(open).then_some(());
    eventually("a circuit that is counted as open", counted).await;
    // One call tries it, once it has rested.
    let tried = |it: &Answer| it.at("/error/details/reason") == "http_5xx";
    until(|| scene.invoke("breaks", json!({})), tried).await;
    has!(scene.invoke("breaks", json!({})).await, "/error/details/reason": "circuit_open");

    scene.upstream.stop();
    let gone = || scene.gateway.invoke(&scene.who, "up:echo", json!({}));
    until(gone, |it| it.at("/error/details/reason") == "circuit_open").await;
    let listed = || scene.gateway.get(&scene.who, "/v1/mcps/up:echo");
    until(listed, |it| it.at("/data/status") == "unavailable").await;
}
