//! The gateway sends exactly the values that it evaluated: they reach the upstream and come back
//! unchanged, and nothing else goes with them.

use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn values_survive_to_the_upstream_and_back_the_trace_goes_up_and_secrets_stay() {
    // Values survive to the upstream and back.
    let scene = scene(vec![tool("echo", Script::Echo)]).await;
    let input = concat!(
        r#"{"z":12345678901234567890123,"price":1.10,"tiny":1E-400,"neg":-0.0,"#,
        r#""a":{"__proto__":1,"$serde_json::private::Number":"7"},"list":[0,1.0,1e5],"#,
        r#""text":"é\u0000\u2028😀","empty":{},"null":null}"#
    );

    let answer = scene.post("echo", &format!(r#"{{ "input" : {input} }}"#)).await;

    scene.check(&answer, SUCCESS).await;
    let sent = &scene.upstream.calls()[0].body;
    for kept in ["12345678901234567890123", "1.10", "-0.0", "[0,1.0,1e", "__proto__"] {
        assert!(sent.contains(kept), "{kept}: {sent}");
        assert!(answer.text.contains(kept), "{kept}: {}", answer.text);
    }
    assert!(sent.contains(r"\u0000"), "{sent}");
    // Control characters are taken out of results by default.
    let mut expected: Value = serde_json::from_str(input).expect("JSON");
    expected["text"] = json!("é\u{2028}😀");
    assert_eq!(answer.at("/result"), &expected);

    // The callers token stays and its trace goes up.
    let scene = scene.anew();
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let request = scene
        .request("echo")
        .header("traceparent", trace)
        .header("tracestate", "acme=1")
        .header("cookie", "session=canary-cookie")
        .header("x-api-key", "canary-key")
        .body(json!({"input": {}}).to_string());

    let answer = scene.gateway.send(request).await;

    let event = scene.check(&answer, SUCCESS).await;
    let call = &scene.upstream.calls()[0];
    assert_eq!(call.message["params"]["_meta"]["traceparent"], trace);
    assert_eq!(call.message["params"]["_meta"]["tracestate"], "acme=1");
    assert_eq!(event["request"]["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    let all = format!("{:?} {}", call.headers, call.body);
    for secret in [scene.who.token.as_str(), "svc_live_", "canary", "authorization"] {
        assert!(!all.contains(secret), "{secret}: {all}");
    }

    // A trace state that holds a secret does not go up.
    let scene = scene.anew();
    let request = scene
        .request("echo")
        .header("traceparent", trace)
        .header("tracestate", concat!("acme=ghp_", "F4k3F4k3abcdefghijklmnopqrst01234567"))
        .body(json!({"input": {}}).to_string());

    let answer = scene.gateway.send(request).await;

    scene.check(&answer, SUCCESS).await;
    let call = &scene.upstream.calls()[0];
    assert_eq!(call.message["params"]["_meta"]["traceparent"], trace);
    assert!(call.message["params"]["_meta"].get("tracestate").is_none(), "{}", call.body);
    assert!(!format!("{:?} {}", call.headers, call.body).contains("ghp_"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_judged_is_sent_on_as_the_bytes_that_came() {
    let value = r#"{"z" : 1.10, "a":[ 1E5,-0.0 ],"\u0061b":"\u00e9\/\"é", "e": { } }"#;
    let result = format!(r#"{{"content":[],"structuredContent":{value}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":{{id}},"result":{result}}}"#);
    let answers = tool("answers", Script::Typed("application/json", body));
    let scene = scene(vec![tool("echo", Script::Echo), answers]).await;

    let asked = scene.post("echo", &format!(r#"{{ "input" : {value} }}"#)).await;
    let answered = scene.post("answers", r#"{"input":{}}"#).await;

    scene.check(&asked, SUCCESS).await;
    scene.check(&answered, SUCCESS).await;
    let sent = &scene.upstream.calls()[0].body;
    assert!(sent.contains(&format!(r#""arguments":{value}"#)), "{sent}");
    assert!(answered.text.contains(&format!(r#""result":{value}"#)), "{}", answered.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_beyond_a_double_are_the_fault_of_whoever_sends_them() {
    let result = r#"{"content":[],"structuredContent":{"a":1e400}}"#;
    let answers = tool("answers", Script::Result(result.to_owned()));
    let scene = scene(vec![tool("echo", Script::Echo), answers]).await;

    for number in ["1e400", "-1e309", "1e-9990"] {
        let answer = scene.post("echo", &format!(r#"{{"input":{{"a":[1,{number}]}}}}"#)).await;
        assert_eq!(answer.refusal(), (400, "invalid_request"), "{number}");
        let message = answer.at("/error/message").as_str().expect("a message");
        assert!(message.contains("beyond the range of a double at line 1"), "{message}");
    }
    assert_eq!(scene.upstream.calls().len(), 0);
    let answer = scene.invoke("answers", json!({})).await;
    has!(answer, 502 "upstream_error", "/error/details/reason": "protocol_error");
}
