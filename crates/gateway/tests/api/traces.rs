//! Traces from the caller through the stages of the gateway to the tool, at a receiver that is
//! there, slow or gone.

use portcullis_testkit::{Manner, Receiver};

use crate::prelude::*;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";
/// Text that a caller may send and that must not be seen elsewhere.
const CANARY: &str = "canary-7f3a";

fn traces(receiver: &Receiver, more: &str) -> String {
    format!(
        "[server]\nmetrics_listen = \"127.0.0.1:0\"\n[traces]\nurl = \"{}\"\nallow_private = true\n\
         timeout_seconds = 1\ntoken = {{ env = \"TRACES_TOKEN\" }}\n{more}",
        receiver.traces_url()
    )
}

async fn scene(receiver: &Receiver, script: Script, more: &str) -> Scene {
    let config = traces(receiver, more);
    let tools = vec![tool("echo", script)];
    scene_with(tools, "", |it| it.config(&config).env("TRACES_TOKEN", "s3cr3t")).await
}

fn call(scene: &Scene, input: &Value) -> RequestBuilder {
    let body = json!({ "input": input }).to_string();
    scene.gateway.json(&scene.who, "/v1/mcps/up:echo/invoke", &body)
}

/// The same in the trace of its caller.
fn traced(scene: &Scene, input: &Value) -> RequestBuilder {
    call(scene, input).header("traceparent", parent("01"))
}

fn parent(flags: &str) -> String {
    format!("00-{TRACE}-{CALLER}-{flags}")
}

/// Waits for the spans of a call in this trace, by name; it comes with all of its parts.
async fn spans(receiver: &Receiver, trace: &str) -> BTreeMap<String, Value> {
    eventually("a call of this trace", async || {
        let of_it = receiver.records().into_iter().filter(|span| span["traceId"] == trace);
        let all: BTreeMap<_, _> =
            of_it.map(|span| (span["name"].as_str().unwrap().to_owned(), span)).collect();
        all.contains_key(ROUTE).then_some(all)
    })
    .await
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a str {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|it| it["key"] == key).unwrap_or(&Value::Null);
    let value = found["value"]["stringValue"].as_str().or(found["value"]["intValue"].as_str());
    value.unwrap_or_default()
}

fn time(span: &Value, which: &str) -> u128 {
    span[which].as_str().unwrap().parse().unwrap()
}

const ROUTE: &str = "POST /v1/mcps/{id}/invoke";
const CALL: &str = "tools/call echo";

/// The spans of a call that went well, in the order of its way; `limits` and `validate` come twice
/// and the last of each counts.
const STAGES: [&str; 12] = [
    "authenticate", "body", "limits", "validate", "dlp_input", "policy_input", "connection",
    "intent", CALL, "dlp_output", "policy_output", "outcome",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_one_trace_from_its_caller_through_every_stage_to_its_tool() {
    let receiver = Receiver::start().await;
    let scene = scene(&receiver, Script::Echo, "").await;
    let call = traced(&scene, &json!({"text": CANARY}));
    let call = call.header("tracestate", "acme=1").header("user-agent", CANARY);

    let answer = scene.gateway.send(call).await;

    has!(scene.check(&answer, SUCCESS).await, "/request/trace_id": TRACE);
    let spans = spans(&receiver, TRACE).await;
    let request = &spans[ROUTE];
    assert_eq!((&request["parentSpanId"], &request["kind"]), (&json!(CALLER), &json!(2)));
    let mut began = time(request, "startTimeUnixNano");
    for stage in STAGES {
        let span = spans.get(stage).unwrap_or_else(|| panic!("no {stage} in {spans:#?}"));
        assert_eq!(span["parentSpanId"], request["spanId"], "{stage}");
        assert!(time(span, "startTimeUnixNano") >= began, "{stage} is out of order: {spans:#?}");
        began = time(span, "startTimeUnixNano");
        assert!(began <= time(span, "endTimeUnixNano"), "{stage}");
        assert!(time(span, "endTimeUnixNano") <= time(request, "endTimeUnixNano"), "{stage}");
    }
    let called = &spans[CALL];
    assert_eq!(called["kind"], 3);
    let sent = &scene.upstream.calls()[0];
    let wanted = format!("00-{TRACE}-{}-01", called["spanId"].as_str().unwrap());
    assert_eq!(sent.message["params"]["_meta"]["traceparent"], wanted.as_str());
    assert_eq!(sent.message["params"]["_meta"]["tracestate"], "acme=1");
    assert_eq!(sent.headers["traceparent"], wanted);
    assert_eq!(sent.headers["tracestate"], "acme=1");
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_tell_what_was_decided_and_nothing_of_what_was_said() {
    let receiver = Receiver::start().await;
    let scene = scene(&receiver, Script::Echo, "").await;
    let card = "4111 1111 1111 1111";
    let path = format!("/v1/mcps/{CANARY}:{CANARY}?view={CANARY}");
    let lost = scene.gateway.request_of(&scene.who, Method::GET, &path);
    scene.gateway.send(lost.header("traceparent", parent("01"))).await;

    let call = traced(&scene, &json!({"text": CANARY, "card": card}));
    let answer = scene.gateway.send(call).await;

    let all = spans(&receiver, TRACE).await;
    let request = &all[ROUTE];
    for (key, value) in [
        ("http.request.method", "POST"),
        ("http.route", "/v1/mcps/{id}/invoke"),
        ("http.response.status_code", "200"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "up:echo"),
        ("portcullis.decision", "allow"),
        ("portcullis.policy.id", "permit-all"),
        ("portcullis.dlp.result", "redacted"),
        ("portcullis.org.id", &scene.who.org),
        ("portcullis.principal.id", &scene.who.id),
        ("portcullis.audit.event.id", answer.event_id()),
        ("portcullis.request.id", answer.at("/meta/request_id").as_str().unwrap()),
    ] {
        assert_eq!(attribute(request, key), value, "{key}: {request:#}");
    }
    for (key, value) in [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "echo"),
        ("network.transport", "tcp"),
        ("portcullis.provider", "up"),
    ] {
        assert_eq!(attribute(&all[CALL], key), value, "{key}");
    }
    assert!(receiver.authorizations().iter().all(|it| it == "Bearer s3cr3t"));
    assert!(all.contains_key("GET /v1/mcps/{id}"), "{all:#?}");
    let told = json!(receiver.records()).to_string();
    for said in [CANARY, card, "4111", &scene.who.token, "s3cr3t", "127.0.0.1"] {
        assert!(!told.contains(said), "{said}: {told}");
    }
    assert!(!scene.gateway.log().contains("s3cr3t"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_fails_makes_its_span_an_error() {
    for (script, why, status) in [
        (Script::Result(r#"{"content":[],"isError":true}"#.to_owned()), "tool_error", 200),
        (Script::Status(500), "http_5xx", 502),
    ] {
        let receiver = Receiver::start().await;
        let scene = scene(&receiver, script, "").await;

        let answer = scene.gateway.send(traced(&scene, &json!({}))).await;

        assert_eq!(answer.status, status);
        let spans = spans(&receiver, TRACE).await;
        assert_eq!(attribute(&spans[CALL], "error.type"), why);
        assert_eq!(spans[CALL]["status"]["code"], 2);
        let request = &spans[ROUTE];
        let failed = status == 502;
        assert_eq!(request["status"]["code"] == 2, failed, "{request:#}");
        assert_eq!(attribute(request, "error.type"), if failed { answer.code() } else { "" });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_began_the_trace_decides_and_otherwise_the_ratio() {
    let receiver = Receiver::start().await;
    let scene = scene(&receiver, Script::Echo, "ratio = 1.0").await;

    let own = scene.gateway.send(call(&scene, &json!({}))).await;
    let unsampled = parent("00");
    let passed = call(&scene, &json!({})).header("traceparent", &unsampled);
    let passed = scene.gateway.send(passed).await;

    let own = scene.check(&own, SUCCESS).await;
    has!(scene.check(&passed, SUCCESS).await, "/request/trace_id": TRACE);
    let begun = own["request"]["trace_id"].as_str().unwrap();
    let spans = spans(&receiver, begun).await;
    assert!(spans[ROUTE].get("parentSpanId").is_none());
    let calls = scene.upstream.calls();
    let sent = calls[0].message["params"]["_meta"]["traceparent"].as_str().unwrap();
    assert_eq!(sent, format!("00-{begun}-{}-03", spans[CALL]["spanId"].as_str().unwrap()));
    assert_eq!(calls[1].message["params"]["_meta"]["traceparent"], unsampled.as_str());
    assert_eq!(calls[1].headers["traceparent"], unsampled);
    assert!(receiver.records().iter().all(|span| span["traceId"] != TRACE));
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_decide_nothing_where_they_are_not_to_be_trusted_and_strangers_never() {
    let receiver = Receiver::start().await;
    let scene = scene(&receiver, Script::Echo, "ratio = 0.0\nfollow_callers = false").await;

    let answer = scene.gateway.send(traced(&scene, &json!({}))).await;

    scene.check(&answer, SUCCESS).await;
    let sent = scene.upstream.calls()[0].message["params"]["_meta"]["traceparent"].clone();
    assert_eq!(sent, parent("01").as_str());

    let other = Receiver::start().await;
    let gateway = gateway().config(&traces(&other, "ratio = 1.0")).env("TRACES_TOKEN", "x").start();
    let stranger = gateway.request(Method::GET, "/v1/mcps").header("traceparent", parent("01"));
    assert_eq!(gateway.send(stranger).await.status, 401);
    let who = gateway.service(&gateway.org("acme", &ENOUGH), ALL_SCOPES);
    assert_eq!(gateway.get(&who, "/v1/mcps").await.status, 200);

    other.wait_for_batches(1).await;
    assert!(other.records().iter().all(|span| span["traceId"] != TRACE));
    assert_eq!(receiver.batches(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_waits_for_a_receiver_that_is_gone_and_what_is_lost_is_counted() {
    let receiver = Receiver::start().await;
    receiver.be(Manner::Refuses(400));
    let scene = scene(&receiver, Script::Echo, "ratio = 1.0").await;

    let begun = Instant::now();
    for _ in 0..20 {
        scene.gateway.send(call(&scene, &json!({}))).await.ok();
    }
    let took = begun.elapsed();

    assert!(took < PATIENCE, "{took:?}");
    let _ = scene.gateway.wait_for_log("sending traces failed");
    eventually("a count of what is lost", async || {
        let text = scene.gateway.metrics().await;
        let dropped = "portcullis_trace_spans_total{outcome=\"dropped\"} ";
        let lost = text.lines().find_map(|line| line.strip_prefix(dropped))?;
        (lost.parse::<u64>().unwrap() >= 20 * 12).then_some(())
    })
    .await;
    receiver.be(Manner::Answers(204, ""));
    let answer = scene.gateway.send(call(&scene, &json!({}))).await;
    let event = scene.check(&answer, SUCCESS).await;
    spans(&receiver, event["request"]["trace_id"].as_str().unwrap()).await;
    let _ = scene.gateway.wait_for_log("the receiver accepts traces again");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_sent_yet_is_sent_at_the_end_and_a_receiver_that_hangs_stops_no_shutdown() {
    for manner in [Manner::Takes, Manner::Hangs] {
        let receiver = Receiver::start().await;
        receiver.be(manner);
        let mut scene = scene(&receiver, Script::Echo, "").await;
        scene.gateway.send(traced(&scene, &json!({}))).await.ok();

        let begun = Instant::now();
        assert_eq!(scene.gateway.stop(), Some(0));

        assert!(begun.elapsed() < PATIENCE, "{manner:?}: {:?}", begun.elapsed());
        let came = receiver.records().iter().any(|span| span["name"] == ROUTE);
        assert_eq!(came, manner == Manner::Takes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_that_are_declared_wrong_are_refused_and_the_wrong_is_named() {
    let traces =
        "[traces]\nurl = \"https://otel.example/v1/traces\"\ntoken = { env = \"NOT_SET\" }";
    let gateway = gateway().config(traces).prepare();

    assert_fails(&gateway, &["serve"], 1, "NOT_SET").await;
}
