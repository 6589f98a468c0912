//! Resources that two providers have, that ask first, that are many, large or far away; and names in headers.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    ask, ask_legacy, error,
    list_cases::{EXPOSED, entries, skill},
    modern, modern_named, questions, raw,
};
use crate::prelude::*;

/// A resource with this text.
fn note(uri: &str, text: &str) -> HostileTool {
    let content = json!({"uri": uri, "mimeType": "text/plain", "text": text});
    of_contents(uri, &content, &Value::Null)
}

fn of_contents(uri: &str, content: &Value, ttl: &Value) -> HostileTool {
    let result = json!({"contents": [content], "ttlMs": ttl});
    tool(uri, Script::Result(result.to_string())).reading(json!({"name": "a name"}))
}

async fn read(scene: &Scene, path: &str, uri: &str) -> Answer {
    ask(&scene.gateway, &scene.who, path, "resources/read", json!({ "uri": uri })).await
}

async fn rest_read(gateway: &Gateway, who: &Principal, body: &Value) -> Answer {
    gateway.post(who, "/v1/resources/read", &body.to_string()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_providers_with_one_uri_each_answer_for_their_own() {
    let policies = r#"@id("all") permit (principal, action, resource);
        @id("not-two") forbid (principal is Mcp::User, action == Mcp::Action::"resource:two", resource);"#;
    let one = Hostile::start(vec![note("notes://a", "of one"), note("notes://b", "of one")]).await;
    let two = Hostile::start(vec![note("notes://a", "of two")]).await;
    let builder = gateway().policies(policies).http("one", &one.url(), EXPOSED);
    let (gateway, who) =
        serve_as("mcps:read mcps:invoke", builder.http("two", &two.url(), EXPOSED));
    let listed = || ask(&gateway, &who, "/mcp", "resources/list", json!({}));
    let listed = until(listed, |it| it.text.contains("one+") && it.text.contains("two+")).await;
    let all = ["one+notes://a", "one+notes://b", "two+notes://a"];
    assert_eq!(entries(&listed, "resources", "uri"), all);

    for (path, uri, text) in [
        ("/mcp", "one+notes://a", "of one"),
        ("/mcp", "two+notes://a", "of two"),
        ("/mcp/one", "notes://a", "of one"),
        ("/mcp/two", "notes://a", "of two"),
    ] {
        let before = (one.calls().len(), two.calls().len());
        let answer = ask(&gateway, &who, path, "resources/read", json!({ "uri": uri })).await;
        has!("{path}"; answer, 200, "/result/contents/0/text": text, "/result/contents/0/uri": uri);
        let sent = (one.calls().len() - before.0, two.calls().len() - before.1);
        assert_eq!(sent, if text == "of one" { (1, 0) } else { (0, 1) }, "{path} {uri}");
        let event = events(&gateway, &who, answer.header("x-request-id")).await.remove(0);
        has!(event, "/target/id": format!("resource:{}:notes://a", text.replace("of ", "")));
    }

    let before = (one.calls().len(), two.calls().len());
    let undecided = rest_read(&gateway, &who, &json!({"uri": "notes://a"})).await;
    assert_eq!(undecided.refusal(), (400, "invalid_request"), "{}", undecided.text);
    let message = undecided.at("/error/message").as_str().expect("a message");
    assert!(message.contains("`one`") && message.contains("`two`"), "{message}");
    assert_eq!((one.calls().len(), two.calls().len()), before);
    // Of a provider that is hidden from the caller nothing is told.
    let member = gateway.user(&who.org, "member", "mcps:read mcps:invoke");
    for (who, body, text) in [
        (&who, json!({"uri": "notes://a", "provider": "one"}), "of one"),
        (&who, json!({"uri": "notes://a", "provider": "two"}), "of two"),
        (&who, json!({"uri": "notes://b"}), "of one"),
        (&member, json!({"uri": "notes://a"}), "of one"),
    ] {
        let answer = rest_read(&gateway, who, &body).await;
        has!("{body}"; answer, 200, "/result/contents/0/text": text);
    }
}

/// A resource, a template, a prompt and a tool that ask before they answer.
fn asking() -> Vec<HostileTool> {
    let steps = |end: Value| Script::Steps(vec![questions::asking().to_string(), end.to_string()]);
    let contents = |uri: &str| json!({"contents": [{"uri": uri, "text": "told"}], "ttlMs": 7});
    let content = json!({"type": "text", "text": "told"});
    let messages = json!({"messages": [{"role": "user", "content": content}]});
    vec![
        tool("notes://asks", steps(contents("notes://asks"))).reading(json!({"name": "a"})),
        tool("notes://files/{name}", steps(contents("notes://files/a")))
            .reading(json!({"name": "a"})),
        tool("asks", steps(messages.clone())).prompting(json!([])),
        tool("other", steps(messages)).prompting(json!([])),
        tool("asks", Script::Asks(questions::asking().to_string())),
    ]
}

/// A use at an address.
#[derive(Debug, Clone, Copy)]
struct UseAt<'a> {
    path: &'a str,
    method: &'a str,
    params: &'a Value,
}

/// A leg of a use by a client that can fill in forms.
async fn leg(scene: &Scene, who: &Principal, used: UseAt<'_>, state: Option<&str>) -> Answer {
    let UseAt { path, method, params } = used;
    let mut params = params.clone();
    params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
    if let Some(state) = state {
        params["requestState"] = json!(state);
        params["inputResponses"] = questions::answers();
    }
    scene.gateway.send(modern(&scene.gateway, who, path, method, &params)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_and_prompts_ask_and_go_on_with_the_state_of_that_use_alone() {
    let scene = scene_with(asking(), EXPOSED, |builder| builder).await;
    let of = |name: &str| {
        if name.contains(':') {
            ("resources/read", json!({ "uri": name }))
        } else {
            ("prompts/get", json!({"name": name, "arguments": {}}))
        }
    };
    let rival = scene.gateway.org("rival", &ENOUGH);
    let strangers = [
        scene.gateway.service(&rival, "mcps:read mcps:invoke"),
        scene.gateway.service(&scene.who.org, "mcps:invoke"),
    ];
    // What is used, at `/mcp` and at its provider, and another of its kind.
    for (path, name, other, told) in [
        ("/mcp", "up+notes://asks", "up+notes://files/a", "/result/contents/0/text"),
        ("/mcp/up", "notes://asks", "notes://files/a", "/result/contents/0/text"),
        ("/mcp/up", "notes://files/a", "notes://files/b", "/result/contents/0/text"),
        ("/mcp", "up__asks", "up__other", "/result/messages/0/content/text"),
        ("/mcp/up", "asks", "other", "/result/messages/0/content/text"),
    ] {
        scene.upstream.forget();
        let (method, params) = of(name);
        let own = UseAt { path, method, params: &params };
        let asked = leg(&scene, &scene.who, own, None).await;

        has!("{path} {name}"; asked, 200, "/result/resultType": "input_required",
            "/result/inputRequests": questions::asking()["inputRequests"], "/result/ttlMs": null);
        assert!(!asked.text.contains("theirs"), "{}", asked.text);
        let event = events(&scene.gateway, &scene.who, asked.header("x-request-id")).await;
        has!(event[0], "/outcome/status": "input_required", "/outcome/executed": "yes");
        let state = asked.at("/result/requestState").as_str().expect("a state");
        let (head, tail) = state.split_at(state.len() / 2);
        let (letter, rest) = tail.split_at(1);
        let altered = format!("{head}{}{rest}", if letter == "A" { "B" } else { "A" });
        for state in [&altered, head, "theirs", ""] {
            let refused = leg(&scene, &scene.who, own, Some(state)).await;
            assert_eq!(error(&refused), (400, -32602), "{name} {}", refused.text);
        }
        let (_, others) = of(other);
        let tool =
            json!({"name": if path == "/mcp" { "up__asks" } else { "asks" }, "arguments": {}});
        for (who, used) in [
            (&strangers[0], own),
            (&strangers[1], own),
            (&scene.who, UseAt { params: &others, ..own }),
            (&scene.who, UseAt { method: "tools/call", params: &tool, ..own }),
        ] {
            let refused = leg(&scene, who, used, Some(state)).await;
            assert_eq!(error(&refused), (400, -32602), "{name} {used:?} {}", refused.text);
        }
        assert_eq!(scene.upstream.calls().len(), 1, "nothing of it was sent");
        goes_on(&scene, own, state, told).await;
    }
}

/// The use goes on with what its provider gave and the client answered.
async fn goes_on(scene: &Scene, own: UseAt<'_>, state: &str, told: &str) {
    let done = leg(scene, &scene.who, own, Some(state)).await;
    has!("{own:?}"; done, 200, told: "told", "/result/resultType": "complete");
    if own.method == "resources/read" {
        // What depends on answers is not kept.
        has!(done, 200, "/result/ttlMs": 0, "/result/cacheScope": "private");
    }
    let sent = scene.upstream.calls();
    assert_eq!(sent.len(), 2, "{own:?}");
    has!(sent[1].message, "/params/requestState": "theirs",
        "/params/inputResponses": questions::answers());
}

#[tokio::test(flavor = "multi_thread")]
async fn rest_callers_are_asked_for_resources_and_prompts_and_answer_in_the_same_use() {
    let scene = scene_with(asking(), EXPOSED, |builder| builder).await;
    let prompt = json!({"input": {}});
    let uri = |uri: &str| json!({ "uri": uri });
    let (read, asks, other) =
        ("/v1/resources/read", "/v1/prompts/up:asks/get", "/v1/prompts/up:other/get");
    for ((path, body), (other, others), told) in [
        ((read, uri("notes://asks")), (read, uri("notes://files/a")), "/result/contents/0/text"),
        ((asks, prompt.clone()), (other, prompt), "/result/messages/0/content/text"),
    ] {
        scene.upstream.forget();
        let post = async |path: &str, body: &Value, interaction: Value| {
            let mut body = body.clone();
            body["interaction"] = interaction;
            scene.gateway.post(&scene.who, path, &body.to_string()).await
        };
        let asked = post(path, &body, json!({"capabilities": {"elicitation": {}}})).await;
        scene.check(&asked, Ending { outcome: "input_required", ..SUCCESS }).await;
        has!("{path}"; asked, 200,
            "/result/interaction/requests": questions::asking()["inputRequests"]);
        let state = asked.at("/result/interaction/state");
        let answered = json!({"state": state, "responses": questions::answers()});

        let foreign = post(other, &others, answered.clone()).await;
        has!("{path}"; foreign, 400 "invalid_request", "/meta/outcome": "invalid");
        assert_eq!(scene.upstream.calls().len(), 1, "nothing of it was sent");
        let done = post(path, &body, answered).await;
        scene.check(&done, SUCCESS).await;
        has!("{path}"; done, 200, told: "told");
        has!(scene.upstream.calls()[1].message, "/params/requestState": "theirs",
            "/params/inputResponses": questions::answers());
    }
}

/// Times for which an answer holds, as servers say them and as clients are told them.
fn times() -> [(Value, u64); 8] {
    [
        (json!(7), 7),
        (json!(1_000_000_000), 60_000),
        (json!(u64::MAX), 60_000),
        (json!(0), 0),
        (json!(-1), 0),
        (json!(7.5), 0),
        (json!("7"), 0),
        (Value::Null, 0),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_hold_no_longer_than_their_server_and_the_gateway_say() {
    for (list_ttl, config, most) in
        [(7, "", 60_000), (1_000_000_000, "[mcp]\nttl_seconds = 1", 1_000)]
    {
        let uri = |at: usize| format!("notes://{at}");
        let mut offered: Vec<HostileTool> = Vec::new();
        for (at, (told, _)) in times().iter().enumerate() {
            let content = json!({"uri": uri(at), "text": "a"});
            offered.push(of_contents(&uri(at), &content, told));
        }
        let named = (0..offered.len()).map(|at| json!({"uri": uri(at), "name": "a"}));
        for (list, member, all) in [
            ("resources/list", "resources", named.collect::<Value>()),
            ("prompts/list", "prompts", json!([{"name": "greet"}])),
            ("resources/templates/list", "resourceTemplates", json!([])),
        ] {
            let result = json!({(member): all, "ttlMs": list_ttl, "cacheScope": "public"});
            offered.push(tool(list, Script::Result(result.to_string())));
        }
        let scene = scene_with(offered, EXPOSED, |builder| builder.config(config)).await;

        for path in ["/mcp", "/mcp/up"] {
            for method in
                ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]
            {
                let listed = ask(&scene.gateway, &scene.who, path, method, json!({})).await;
                has!("{method}"; listed, 200, "/result/ttlMs": most, "/result/cacheScope": "private");
            }
            for (at, (told, wanted)) in times().iter().enumerate() {
                let begin = if path == "/mcp" { "up+" } else { "" };
                let answer = read(&scene, path, &format!("{begin}{}", uri(at))).await;
                has!("{told}"; answer, 200, "/result/ttlMs": (*wanted).min(most),
                    "/result/cacheScope": "private");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_megabytes_are_refused_and_two_pass_as_they_are() {
    let blob = |uri: &str, megabytes: usize| {
        let blob = STANDARD.encode(vec![b'x'; (megabytes << 20) / 4 * 3]);
        json!({"uri": uri, "mimeType": "application/octet-stream", "blob": blob})
    };
    let large = of_contents("notes://large", &blob("notes://large", 20), &Value::Null);
    let small = of_contents("notes://small", &blob("notes://small", 2), &Value::Null);
    let content = json!({"type": "text", "text": "x".repeat(20 << 20)});
    let messages = json!({"messages": [{"role": "user", "content": content}]});
    let prompt = tool("large", Script::Result(messages.to_string())).prompting(json!([]));
    let scene = scene_with(vec![large, small, prompt], EXPOSED, |builder| builder).await;

    let ending = Ending { executed: "yes", ..FAILED };
    for (path, method, params) in [
        ("/mcp", "resources/read", json!({"uri": "up+notes://large"})),
        ("/mcp/up", "resources/read", json!({"uri": "notes://large"})),
        ("/mcp/up", "prompts/get", json!({"name": "large", "arguments": {}})),
    ] {
        let answer = ask(&scene.gateway, &scene.who, path, method, params).await;
        let details = "/error/data/dev.portcullis~1error/details";
        has!("{path} {method}"; answer, 200, "/error/code": 502,
            (&format!("{details}/reason")): "response_too_large",
            (&format!("{details}/executed")): "yes");
        let event = events(&scene.gateway, &scene.who, answer.header("x-request-id")).await;
        has!("{path} {method}"; event[0], "/outcome/status": ending.outcome,
            "/outcome/executed": "yes", "/detached/output": null);
    }
    for (path, body) in [
        ("/v1/resources/read", json!({"uri": "notes://large"})),
        ("/v1/prompts/up:large/get", json!({"input": {}})),
    ] {
        let answer = scene.gateway.post(&scene.who, path, &body.to_string()).await;
        has!("{path}"; answer, 502, "/error/details/reason": "response_too_large");
        scene.check(&answer, ending).await;
    }
    let answer = read(&scene, "/mcp/up", "notes://small").await;
    let told = answer.at("/result/contents/0");
    assert!(*told == blob("notes://small", 2), "{} bytes of another blob", answer.text.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn uris_of_other_providers_and_of_64_kib_reach_no_server() {
    let policies = r#"@id("all") permit (principal, action in Mcp::Action::"*:*", resource);
        @id("unlisted") permit (principal, action == Mcp::Action::"resource:up", resource)
        when { !context.resource.listed };"#;
    let offered = || vec![note("notes://a", "a"), note("notes://{name}", "a")];
    let scene = scene_with(offered(), EXPOSED, |builder| builder).await;
    let open = scene_with(offered(), EXPOSED, |builder| builder.policies(policies)).await;
    let long = format!("notes://{}", "a".repeat(64 << 10));
    for (scene, path, uri) in [
        (&scene, "/mcp", "other+notes://a"),
        (&open, "/mcp", "other+notes://a"),
        (&open, "/mcp", "notes://a"),
        (&open, "/mcp", "UP+notes://a"),
        (&open, "/mcp", "+notes://a"),
        (&open, "/mcp", "ui://other/a"),
        (&open, "/mcp", &format!("up+{long}")),
        (&open, "/mcp/up", &long),
        (&scene, "/mcp/up", "up+notes://a"),
    ] {
        let params = json!({ "uri": uri });
        let old = ask_legacy(&scene.gateway, &scene.who, path, "resources/read", params).await;
        assert_eq!(error(&old), (200, -32002), "{path} {uri:.40}");
        assert_eq!(old.at("/error/data/uri"), uri, "{path} {uri:.40}");
        let uri: String = uri.chars().take(48 << 10).collect();
        let new = read(scene, path, &uri).await;
        assert_eq!(error(&new), (200, -32602), "{path} {uri:.40}");
        assert_eq!(new.at("/error/data/uri"), &json!(uri), "{path} {uri:.40}");
    }
    for (body, status) in [
        (json!({ "uri": long }), 404),
        (json!({"uri": long, "provider": "up"}), 404),
        (json!({"uri": "other+notes://a"}), 404),
        (json!({"uri": "notes://a", "provider": "other"}), 404),
    ] {
        let answer = rest_read(&open.gateway, &open.who, &body).await;
        assert_eq!(answer.refusal(), (status, "not_found"), "{:.60}", body.to_string());
    }
    assert!(scene.upstream.calls().is_empty() && open.upstream.calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_sent_their_own_names_in_headers() {
    let offered = vec![
        tool("greet.you", Script::Echo).prompting(json!([])),
        tool("say hi", Script::Echo).prompting(json!([])),
        note("notes://a%20b", "a"),
        skill("refunds"),
    ];
    let scene = scene_with(offered, EXPOSED, |builder| builder).await;
    let Scene { gateway, who, upstream } = &scene;
    let encoded = |name: &str| format!("=?base64?{}?=", STANDARD.encode(name));
    for (method, member, name, own) in [
        ("prompts/get", "name", "up__greet_you", "greet.you"),
        ("prompts/get", "name", "up__say_hi", "say hi"),
        ("resources/read", "uri", "up+notes://a%20b", "notes://a%20b"),
        ("skills/get", "uri", "up+skill://refunds/SKILL.md", "skill://refunds/SKILL.md"),
    ] {
        let params = |name: &str| json!({ (member): name });
        let as_base64 = encoded(name);
        let mut requests = vec![
            modern(gateway, who, "/mcp", method, &params(name)),
            modern_named(gateway, who, "/mcp", method, &params(name), Some(&as_base64)),
            modern(gateway, who, "/mcp/up", method, &params(own)),
        ];
        if method != "skills/get" {
            let message =
                json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params(name)});
            let request = raw(gateway, who, "/mcp", &message.to_string());
            requests.push(request.header("mcp-protocol-version", "2025-11-25"));
        }
        for request in requests {
            upstream.forget();
            let answer = gateway.send(request).await;
            assert_eq!(
                (answer.status.as_u16(), answer.at("/error")),
                (200, &Value::Null),
                "{method} {}",
                answer.text
            );
            let sent = upstream.calls().remove(0);
            let headers = ["mcp-method", "mcp-name"].map(|it| sent.headers[it].as_str());
            assert_eq!(headers, [method, own]);
            assert_eq!(sent.message["params"][member], own, "{method}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_names_another_skill_or_folder_is_refused() {
    let offered = vec![skill("refunds"), skill("audits")];
    let scene = scene_with(offered, EXPOSED, |builder| builder).await;
    for (method, uri, name, status) in [
        ("skills/get", "skill://refunds/SKILL.md", Some("skill://audits/SKILL.md"), 400),
        ("skills/get", "skill://refunds/SKILL.md", Some("up+skill://refunds/SKILL.md"), 400),
        ("skills/get", "skill://refunds/SKILL.md", Some("skill://refunds/SKILL.md"), 200),
        ("skills/get", "skill://refunds/SKILL.md", None, 200),
        ("resources/directory/read", "skill://refunds", Some("skill://audits"), 400),
        ("resources/directory/read", "skill://refunds", Some("skill://refunds"), 200),
        ("resources/directory/read", "skill://refunds", None, 200),
    ] {
        scene.upstream.forget();
        let params = json!({ "uri": uri });
        let request = modern_named(&scene.gateway, &scene.who, "/mcp/up", method, &params, name);
        let answer = scene.gateway.send(request).await;
        let code = if status == 400 { -32020 } else { 0 };
        assert_eq!(error(&answer), (status, code), "{method} {name:?} {}", answer.text);
        let sent = usize::from(status == 200 && method == "skills/get");
        assert_eq!(scene.upstream.calls().len(), sent, "{method} {name:?}");
    }
}
