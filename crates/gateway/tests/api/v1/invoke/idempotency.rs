//! The same request with the same key is one call, whatever happens to it.

use crate::{prelude::*, v1::policies::write};

const REUSED: Ending = Ending { code: "idempotency_key_reused", ..INVALID };
const UNDER_WAY: Ending =
    Ending { status: 409, code: "idempotency_in_progress", decision: "", ..OVERLOADED };

impl Scene {
    async fn keyed(&self, key: &str, tool: &str, input: Value) -> Answer {
        self.keyed_of(&self.who, key, tool, input).await
    }

    async fn keyed_of(&self, who: &Principal, key: &str, tool: &str, input: Value) -> Answer {
        self.gateway.invoke_keyed(who, &format!("up:{tool}"), key, &input).await
    }

    /// The replays that were recorded, oldest first.
    async fn replays(&self) -> Vec<Value> {
        let path = "/v1/audit/events?type=mcp.replayed&order=asc&limit=200";
        items(&self.gateway.get(&self.who, path).await).clone()
    }
}

/// Everything of an answer but `meta`, which is new each time.
fn all_but_meta(answer: &Answer) -> (u16, Value, Value, Value, Value) {
    let part = |pointer| answer.at(pointer).clone();
    let status = answer.status.as_u16();
    (status, part("/result"), part("/error"), part("/governance"), part("/meta/outcome"))
}

fn assert_replayed(again: &Answer, first: &Answer) {
    assert_eq!(all_but_meta(again), all_but_meta(first), "{}", again.text);
    assert_eq!(again.header("idempotency-replayed"), "true", "{}", again.text);
    assert_eq!(first.header("idempotency-replayed"), "");
    assert_ne!(request_id(again), request_id(first));
    assert_eq!(again.header("x-request-id"), request_id(again));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_is_given_the_same_answer_and_costs_no_invocation() {
    // The same request is given the same answer and reaches no tool.
    let scene = scene(vec![tool("echo", Script::Echo)]).await;
    let input = json!({"b": 12_345_678_901_234_567_890_u64, "a": ["ü"]});
    let first = scene.keyed("a-key", "echo", input.clone()).await;
    has!(scene.check(&first, SUCCESS).await, "/request/idempotent": true);

    // Quoted it is the same key, and the order of members is no part of a request.
    let reordered = json!({"a": ["ü"], "b": 12_345_678_901_234_567_890_u64});
    let answers = [
        scene.keyed("a-key", "echo", input).await,
        scene.keyed("\"a-key\"", "echo", reordered).await,
    ];

    assert_eq!(scene.upstream.calls().len(), 1);
    let replays = scene.replays().await;
    assert_eq!(replays.len(), 2);
    for (answer, replay) in answers.iter().zip(&replays) {
        assert_replayed(answer, &first);
        has!(replay, "/target/id": first.event_id(), "/target/type": "audit_event",
            "/actor/id": scene.who.id.as_str(), "/request/id": request_id(answer).as_str(),
            "/request/idempotent": true);
        let outcome = json!({
            "status": "success", "http_status": 200, "error_code": null, "executed": "no",
        });
        assert_eq!(replay["outcome"], outcome);
        let called = events(&scene.gateway, &scene.who, &request_id(answer)).await;
        assert!(called.is_empty(), "{called:?}");
    }
    assert_eq!(list(&scene.gateway, &scene.who, "").await.len(), 1);

    // What is no key is refused and recorded.
    let scene = scene.anew();
    let wrong = Ending { code: "invalid_request", ..REUSED };
    let long = "k".repeat(256);

    for key in ["", "a b", "\"open", long.as_str()] {
        let answer = scene.keyed(key, "echo", json!({})).await;

        has!(scene.check(&answer, wrong).await, "/request/idempotent": false);
        assert_eq!(answer.at("/error/details/parameter"), "Idempotency-Key", "{key}");
    }
    let twice = scene.request("echo");
    let twice = twice.header("idempotency-key", "a").header("idempotency-key", "b");
    let answer = scene.gateway.send(twice.body(r#"{"input":{}}"#)).await;
    scene.check(&answer, wrong).await;
    assert!(scene.upstream.calls().is_empty());

    // A replay costs a request and no invocation.
    let scene = scene.anew();
    let org = org_with_time_left(&scene.gateway, &plan("5", "1")).await;
    let who = scene.gateway.service(&org, "mcps:invoke");
    let call = async |key, n: u32| scene.keyed_of(&who, key, "echo", json!({"n": n})).await;
    let first = call("k", 1).await.ok();

    let fresh = call("fresh", 1).await;
    let reused = call("k", 2).await;
    let again = call("k", 1).await;

    // Beyond the limit only the answer that is there already can be had.
    for answer in [&fresh, &reused] {
        assert_eq!(answer.at("/error/details/resource"), "invocations", "{}", answer.text);
    }
    assert_replayed(&again, &first);
    assert_eq!(call("k", 1).await.status, 200);
    has!(call("k", 1).await, "/error/details/resource": "requests");
    assert_eq!(scene.upstream.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_request_with_the_same_key_is_refused_and_one_that_was_never_made_is_free() {
    // Another request with the same key is refused and the first named.
    let scene = scene(vec![tool("echo", Script::Echo), tool("other", Script::Echo)]).await;
    let first = scene.keyed("k", "echo", json!({"n": 1})).await;
    let path = "/v1/mcps/up:echo/invoke?view=mcp";
    let viewed = scene.gateway.json(&scene.who, path, r#"{"input":{"n":1}}"#);
    let viewed = viewed.header("idempotency-key", "k");

    let answers =
        [scene.keyed("k", "echo", json!({"n": 2})).await, scene.gateway.send(viewed).await];

    for answer in &answers {
        has!(scene.check(answer, REUSED).await, "/request/idempotent": true);
        assert_eq!(answer.at("/error/details/first_request_id"), request_id(&first).as_str());
    }
    assert_eq!(scene.upstream.calls().len(), 1);
    // Elsewhere it is another key.
    let stranger = scene.gateway.service(&scene.who.org, "mcps:invoke audit:read");
    let foreigner = scene.gateway.service(&scene.gateway.org("others", &ENOUGH), "mcps:invoke");
    scene.check(&scene.keyed("k", "other", json!({"n": 1})).await, SUCCESS).await;
    for who in [&stranger, &foreigner] {
        let answer = scene.keyed_of(who, "k", "echo", json!({"n": 1})).await;
        check(&scene.gateway, who, &answer, SUCCESS).await;
        assert_eq!(answer.header("idempotency-replayed"), "");
    }
    assert_eq!(scene.upstream.calls().len(), 4);

    // A call that never reached its server leaves the key free.
    let mut scene = scene.anew();
    scene.upstream.stop();

    let first = scene.keyed("k", "echo", json!({})).await;
    let again = scene.keyed("k", "echo", json!({})).await;

    for answer in [&first, &again] {
        scene.check(answer, Ending { executed: "no", ..FAILED }).await;
        has!(answer, "/error/details/reason": "connect_failed");
        assert_eq!(answer.header("idempotency-replayed"), "");
    }
    assert_ne!(first.event_id(), again.event_id());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_ending_after_the_dispatch_is_kept() {
    let policies = "@id(\"all\") permit (principal, action, resource);\n\
        @id(\"no-mail\") @reason(\"addresses stay inside\") @phase(\"response\") \
        forbid (principal, action, resource) \
        when { context has dlp_output && context.dlp_output.findings.contains(\"email\") };";
    let tools = vec![
        giving("leaks", &json!({"content": [], "structuredContent": {"to": "ann@example.org"}})),
        giving("errs", &json!({"content": [{"type": "text", "text": "no"}], "isError": true})),
        tool("closes", Script::CloseAtOnce),
        tool("fails", Script::Status(500)),
        tool("hangs", Script::Silence),
    ];
    let scene = scene_with(tools, "timeout_seconds = 1", |it| it.policies(policies)).await;
    let cases = [
        ("leaks", 403, "yes"),
        ("errs", 200, ""),
        ("closes", 502, "unknown"),
        ("fails", 502, "unknown"),
        ("hangs", 504, "unknown"),
    ];

    for (tool, status, executed) in cases {
        let first = scene.keyed("k", tool, json!({})).await;
        let again = scene.keyed("k", tool, json!({})).await;

        assert_eq!(first.status.as_u16(), status, "{tool}: {}", first.text);
        let told = first.at("/error/details/executed").as_str().unwrap_or_default();
        assert_eq!(told, executed, "{tool}");
        assert_replayed(&again, &first);
        assert_eq!(scene.upstream.count(tool), 1, "{tool}");
    }
    let codes: Vec<_> = scene.replays().await.iter().map(|it| it["outcome"].clone()).collect();
    assert_eq!(codes[0]["error_code"], "policy_denied");
    assert_eq!(codes[4]["error_code"], "upstream_timeout");
    assert_eq!(codes[4]["http_status"], 504);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_before_the_dispatch_leaves_the_key_free() {
    let closed = "@id(\"closed\") forbid (principal, action, resource);";
    let open = "@id(\"open\") permit (principal, action, resource);";
    let schema = json!({
        "type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}},
    });
    let scene = scene_under(closed, vec![tool("echo", Script::Echo).taking(schema)]).await;

    assert_eq!(scene.keyed("k", "echo", json!({})).await.code(), "invalid_input");
    assert_eq!(scene.keyed("k", "nothing", json!({"n": 1})).await.code(), "not_found");
    let denied = scene.keyed("k", "echo", json!({"n": 1})).await;
    assert_eq!(denied.code(), "policy_denied", "{}", denied.text);
    assert_eq!(denied.header("idempotency-replayed"), "");
    write(&scene.gateway, open);
    scene.gateway.hang_up();
    let first = until(|| scene.keyed("k", "echo", json!({"n": 1})), |it| it.status == 200).await;
    let again = scene.keyed("k", "echo", json!({"n": 1})).await;

    scene.check(&first, SUCCESS).await;
    assert_replayed(&again, &first);
    assert_eq!(scene.upstream.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_asks_no_policy_again_but_who_asks() {
    let tools = vec![giving("echo", &json!({"structuredContent": {"word": "canary-7f3a"}}))];
    let scene = scene(tools).await;
    let first = scene.keyed("k", "echo", json!({})).await;
    let closed = "@id(\"closed\") forbid (principal, action, resource);";
    write(&scene.gateway, closed);
    scene.gateway.hang_up();
    let fresh = || scene.gateway.invoke(&scene.who, "up:echo", json!({}));
    until(fresh, |it| it.code() == "policy_denied").await;
    let calls = scene.upstream.calls().len();

    let again = scene.keyed("k", "echo", json!({})).await;

    assert_replayed(&again, &first);
    assert_eq!(scene.upstream.calls().len(), calls);
    let stored = String::from_utf8_lossy(&scene.gateway.stored()).into_owned();
    assert!(!stored.contains("canary-7f3a"), "the answer is kept in clear");
    scene.gateway.admin(&["token", "revoke", &scene.who.token_id]);
    let gone = until(|| scene.keyed("k", "echo", json!({})), |it| it.status == 401).await;
    assert_eq!(gone.header("idempotency-replayed"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_under_way_is_waited_for() {
    let done = json!({"content": [], "structuredContent": {"done": true}}).to_string();
    let scene = scene(vec![tool("held", Script::Held(done))]).await;
    let meanwhile = async {
        scene.upstream.wait_for(1).await;
        let answer = scene.keyed("k", "held", json!({})).await;
        let other = scene.keyed("k", "held", json!({"n": 1})).await;
        scene.upstream.release();
        (answer, other)
    };

    let (first, (answer, other)) = tokio::join!(scene.keyed("k", "held", json!({})), meanwhile);

    scene.check(&answer, UNDER_WAY).await;
    assert_eq!(answer.header("retry-after"), "1");
    assert_eq!(answer.at("/error/details/first_request_id"), request_id(&first).as_str());
    scene.check(&other, REUSED).await;
    assert_replayed(&scene.keyed("k", "held", json!({})).await, &first);
    assert_eq!(scene.upstream.calls().len(), 1);
}

/// Many callers with few keys at once: each key reaches the tool once, and all are told the same.
async fn race(scene: &Scene) {
    const KEYS: usize = 5;
    let calls = (0..100).map(|n| {
        let key = format!("key-{}", n % KEYS);
        async move { (n % KEYS, scene.keyed(&key, "echo", json!({"key": n % KEYS})).await) }
    });

    let answers = join_all(calls).await;

    assert_eq!(scene.upstream.calls().len(), KEYS, "one call for each key");
    let mut given = 0;
    for key in 0..KEYS {
        let settled = scene.keyed(&format!("key-{key}"), "echo", json!({ "key": key })).await;
        assert_eq!(settled.header("idempotency-replayed"), "true");
        let mine = answers.iter().filter(|(its, _)| *its == key).map(|(_, answer)| answer);
        for answer in mine {
            match answer.status.as_u16() {
                200 => {
                    assert_eq!(all_but_meta(answer), all_but_meta(&settled));
                    given += 1;
                }
                409 => assert_eq!(answer.code(), "idempotency_in_progress"),
                // A slow machine turns away some of so many at once.
                503 => assert_eq!(answer.at("/error/details/executed"), "no"),
                _ => panic!("{}", answer.text),
            }
        }
    }
    assert!(given >= KEYS, "somebody was answered: {given}");
    let events = list(&scene.gateway, &scene.who, "outcome=success").await;
    assert_eq!(events.len(), KEYS);
    let replayed = answers.iter().filter(|(_, it)| it.header("idempotency-replayed") == "true");
    assert_eq!(scene.replays().await.len(), replayed.count() + KEYS, "each replay has its event");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_requests_at_once_one_reaches_the_tool() {
    race(&scene(vec![tool("echo", Script::Echo)]).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_requests_at_once_one_reaches_the_tool_on_postgresql() {
    let Some(database) = PostgresDatabase::create("idempotency") else { return };

    let tools = vec![tool("echo", Script::Echo)];
    race(&scene_with(tools, "", |it| it.config(&database.config())).await).await;
}
