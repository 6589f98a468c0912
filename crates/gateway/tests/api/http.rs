//! Properties of every answer, whatever the route: envelope, headers, paths, methods, bodies, and
//! the order of refusals.

use crate::prelude::*;

const TYPE: &str = "unsupported_media_type";
const INVOKE: &str = "/v1/mcps/sample:create_note/invoke";

fn post(
    gateway: &Gateway,
    who: &Principal,
    path: &str,
    body: impl Into<Vec<u8>>,
) -> RequestBuilder {
    gateway.request(Method::POST, path).bearer_auth(&who.token).body(body.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_has_its_headers_its_envelope_and_a_request_id_of_ours() {
    // Every answer has its headers and its envelope.
    let (gateway, who) = serve(gateway().sample());
    let reader = gateway.service(&who.org, "providers:read");
    let with = |method, path: &str| gateway.request_of(&who, method, path);
    let none = |method, path: &str| gateway.request(method, path);
    let cases = [
        (200, "data", with(Method::GET, "/v1/mcps/sample:create_note")),
        (200, "data", with(Method::GET, "/v1/mcps")),
        (401, "missing_token", none(Method::GET, "/v1/mcps")),
        (401, "missing_token", none(Method::GET, "/v1/nothing")),
        (401, "missing_token", none(Method::PATCH, "/v1/mcps")),
        (401, "missing_token", none(Method::GET, "/v1")),
        (403, "insufficient_scope", gateway.request_of(&reader, Method::GET, "/v1/mcps")),
        (404, "not_found", with(Method::GET, "/v1/nothing")),
        (404, "not_found", with(Method::GET, "/v1/mcps/")),
        (404, "not_found", with(Method::GET, "/v1/mcps/sample:create_note/")),
        (404, "not_found", with(Method::GET, "/nothing")),
        (404, "not_found", none(Method::GET, "/index.html")),
        (405, "method_not_allowed", with(Method::PUT, "/v1/mcps")),
        (405, "method_not_allowed", with(Method::OPTIONS, "/v1/mcps")),
        (405, "method_not_allowed", none(Method::POST, "/healthz")),
        (400, "invalid_request", with(Method::GET, "/v1/mcps?limit=0")),
        (400, "invalid_request", post(&gateway, &who, INVOKE, "{")),
        (413, "payload_too_large", post(&gateway, &who, INVOKE, vec![b' '; (1 << 20) + 1])),
        (415, TYPE, with(Method::POST, INVOKE).header("content-type", "text/plain")),
        (415, TYPE, gateway.json(&who, INVOKE, "{}").header("content-encoding", "gzip")),
    ];
    for (place, (status, code, request)) in cases.into_iter().enumerate() {
        let what = format!("case {place}, {status} {code}");
        let answer = gateway.send(request).await;

        assert_eq!(answer.status, status, "{what}: {}", answer.text);
        assert_framed(&answer, &what);
        assert_enveloped(&answer, &what);
        assert_eq!(if status == 200 { "data" } else { answer.code() }, code, "{what}");
        if status == 405 {
            let allow: Vec<&str> = answer.header("allow").split(", ").collect();
            assert_eq!(answer.at("/error/details/allow"), &json!(allow), "{what}");
            assert_eq!(allow, ["GET", "HEAD"], "{what}");
        }
    }

    // A head request is a get without its body.
    for path in ["/v1/mcps", "/v1/mcps/sample:create_note", "/v1/audit/events", "/healthz"] {
        let answer = gateway.send(gateway.request_of(&who, Method::HEAD, path)).await;

        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, ""), "{path}");
        assert_framed(&answer, path);
    }

    // A trace is recorded when it is well formed and the request id is always ours.
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let given = format!("00-{trace}-00f067aa0ba902b7-01");

    for (sent, recorded) in [(given.as_str(), json!(trace)), ("00-nonsense", Value::Null)] {
        let body = r#"{"input":{"title":"a","text":"b"}}"#;
        let request = post(&gateway, &who, INVOKE, body);
        let request = request.header("traceparent", sent).header("x-request-id", "req_mine");
        let answer = gateway.send(request).await;
        let event = gateway.get(&who, &format!("/v1/audit/events/{}", answer.event_id())).await;

        assert_ne!(answer.header("x-request-id"), "req_mine");
        assert_eq!(event.at("/data/request/trace_id"), &recorded, "{}", event.text);
        assert_eq!(event.at("/data/request/id"), answer.at("/meta/request_id"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_has_one_name_and_a_caller_one_credential() {
    // A tool id in a path is decoded once and nothing else names a tool.
    let (gateway, who) = serve(gateway().sample());

    for id in [
        "sample:create_note", "sample%3Acreate_note", "sample%3acreate_note",
        "%73ample:create_note",
    ] {
        let answer = gateway.get(&who, &format!("/v1/mcps/{id}")).await;

        assert_eq!(answer.at("/data/id"), "sample:create_note", "{id}: {}", answer.text);
    }
    let others = "sample%253Acreate_note sample%2Fcreate_note sample:create_note%2F \
        sample:create_note%00 sample:nothing nobody:create_note sample:a:b sample%EF%BC%9Acreate_note sample:%ff %ff SAMPLE:create_note \
        sample:create_note%20 :create_note sample: sample";
    for id in others.split(' ') {
        let answer = gateway.get(&who, &format!("/v1/mcps/{id}")).await;
        let call = gateway.invoke(&who, id, json!({"title": "a", "text": "b"})).await;

        has!("{id}"; answer, 404 "not_found", "/error/details/resource": "mcp");
        let event = check(&gateway, &who, &call, NOT_FOUND).await;
        has!("{id}"; event, "/target/provider_id": null);
        assert_framed(&call, id);
    }

    // Only one bearer in one header is a credential.
    let get = || gateway.request(Method::GET, "/v1/mcps");
    let twice =
        get().bearer_auth(&who.token).header("authorization", format!("Bearer {}", who.token));
    let in_query = format!("/v1/mcps?access_token={}", who.token);
    let cases = [
        ("two headers", "invalid_token", twice),
        ("basic", "invalid_token", get().basic_auth(&who.token, Some(&who.token))),
        ("no scheme", "invalid_token", get().header("authorization", &who.token)),
        ("two tokens", "invalid_token", get().bearer_auth(format!("{0} {0}", who.token))),
        ("a comma", "invalid_token", get().bearer_auth(format!("{0},{0}", who.token))),
        ("in the query", "missing_token", gateway.request(Method::GET, &in_query)),
        ("in a cookie", "missing_token", get().header("cookie", format!("token={}", who.token))),
        ("another header", "missing_token", get().header("x-api-key", &who.token)),
    ];
    for (what, code, request) in cases {
        let answer = gateway.send(request).await;

        assert_eq!(answer.refusal(), (401, code), "{what}: {}", answer.text);
        let challenge = answer.header("www-authenticate");
        assert!(challenge.starts_with("Bearer realm=\"portcullis\""), "{what}");
        let invalid = challenge.contains("error=\"invalid_token\"");
        assert_eq!(invalid, code == "invalid_token", "{what}");
    }

    let lower = get().header("authorization", format!("bearer {}", who.token));
    assert_eq!(gateway.send(lower).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_is_judged_first_then_the_path_the_limit_the_scope_the_request_and_the_resource() {
    let gateway = gateway().sample().start();
    let org = org_with_time_left(&gateway, &plan("1", "1")).await;
    let poor = gateway.service(&org, "providers:read");
    let weak = gateway.service(&gateway.org("other", &ENOUGH), "providers:read");
    let strong = gateway.service(&gateway.org("acme", &ENOUGH), ALL_SCOPES);
    let bad = |who: &Principal, method, path: &str| {
        gateway.request_of(who, method, path).header("content-type", "text/plain")
    };
    let unknown = "/v1/mcps/sample:nothing?limit=x";

    assert_eq!(gateway.get(&poor, "/v1/providers").await.status, 200);
    let mut unauthenticated = gateway.request(Method::PUT, "/v1/nothing?x=y");
    unauthenticated = unauthenticated.bearer_auth("mcp_live_no");
    let cases = [
        (401, unauthenticated),
        (404, bad(&poor, Method::GET, "/v1/nothing")),
        (405, bad(&poor, Method::PUT, unknown)),
        (429, bad(&poor, Method::GET, unknown)),
        (403, bad(&weak, Method::GET, unknown)),
        (403, bad(&weak, Method::POST, "/v1/mcps/sample:nothing/invoke?x=y")),
        (400, bad(&strong, Method::GET, unknown)),
        (400, bad(&strong, Method::POST, "/v1/mcps/sample:nothing/invoke?x=y")),
        (415, bad(&strong, Method::POST, "/v1/mcps/sample:nothing/invoke").body("{")),
        (404, bad(&strong, Method::GET, "/v1/mcps/sample:nothing")),
    ];
    for (place, (status, request)) in cases.into_iter().enumerate() {
        let answer = gateway.send(request).await;

        assert_eq!(answer.status, status, "case {place}: {}", answer.text);
        assert_framed(&answer, &format!("case {place}"));
    }
}

async fn refused(gateway: &Gateway, who: &Principal, body: impl Into<Vec<u8>>) -> Answer {
    let request = post(gateway, who, INVOKE, body).header("content-type", "application/json");
    gateway.send(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_one_json_object_without_doubts() {
    // A body is one json object without doubts.
    let (gateway, who) = serve(gateway().sample());
    let deep = |depth: usize| {
        let open = "[".repeat(depth);
        let close = "]".repeat(depth);
        format!("{{\"input\":{{\"title\":\"a\",\"text\":\"b\",\"x\":{open}{close}}}}}")
    };
    let deepest = deep(63);
    let cases: [(&str, &[u8]); 15] = [
        ("empty", b""),
        ("an array", b"[]"),
        ("no input", b"{}"),
        ("an unknown member", b"{\"input\":{},\"inputs\":{}}"),
        ("a duplicate", b"{\"input\":{},\"input\":{}}"),
        ("a duplicate inside", b"{\"input\":{\"title\":\"a\",\"text\":\"b\",\"title\":\"c\"}}"),
        (
            "an escaped duplicate",
            b"{\"input\":{\"title\":\"a\",\"text\":\"b\",\"t\\u0069tle\":\"c\"}}",
        ),
        ("something behind", b"{\"input\":{}} {}"),
        ("a comma too many", b"{\"input\":{},}"),
        ("not a number", b"{\"input\":{\"a\":NaN}}"),
        ("a byte order mark", b"\xef\xbb\xbf{\"input\":{}}"),
        ("no UTF-8", b"{\"input\":{\"a\":\"\xff\"}}"),
        ("UTF-16", b"{\0\"\0}\0"),
        ("half a surrogate", b"{\"input\":{\"a\":\"\\ud800\"}}"),
        ("65 levels", deepest.as_bytes()),
    ];
    for (what, body) in cases {
        let answer = refused(&gateway, &who, body).await;

        has!("{what}"; answer, 400, "/error/code": "invalid_request",
            "/error/details/executed": "no", "/meta/outcome": "invalid");
        assert_framed(&answer, what);
    }
    // 64 levels are JSON to us; the schema is what does not want them.
    assert_eq!(refused(&gateway, &who, deep(62)).await.code(), "invalid_input");
    let events = gateway.get(&who, "/v1/audit/events?type=mcp.invocation&limit=200").await;
    assert_eq!(items(&events).len(), 16, "every attempt is recorded");

    // A token in a url is refused also when it is not needed.
    for name in ["access_token", "token", "bearer_token"] {
        let answer = gateway.get(&who, &format!("/v1/mcps?{name}={}", who.token)).await;

        has!("{name}"; answer, 400 "invalid_request", "/error/details/parameter": name);
        assert!(!answer.text.contains(&who.token), "{name}: {}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_request_are_refused_without_harm() {
    let (gateway, _) = serve(gateway().sample());
    let long = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "a".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\nhost: x\r\n{}\r\n", "a: b\r\n".repeat(1_000));
    let cases: [&[u8]; 7] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        long.as_bytes(),
        many.as_bytes(),
    ];
    for case in cases {
        let answer = exchange(&gateway, case).await;

        let shown = String::from_utf8_lossy(case).chars().take(60).collect::<String>();
        assert!(!answer.contains(" 200 ") && !answer.contains(" 500 "), "{shown:?}: {answer}");
    }

    gateway.send(gateway.request(Method::GET, "/healthz")).await.ok();

    // A request whose length is told twice is not two requests.
    let smuggled = "POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\
                    transfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\
                    host: x\r\nconnection: close\r\n\r\n";
    let answer = exchange(&gateway, smuggled.as_bytes()).await;

    // Chunked wins and the connection ends there, or the whole is refused (RFC 9112 §6.3).
    assert!(!answer.contains("/smuggled"), "{answer}");
}
