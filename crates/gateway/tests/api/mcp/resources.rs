//! Resources and templates: listed, read and refused on the law of tools, at both MCP addresses and over REST.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{ask, ask_legacy, error, modern_named, own};
use crate::prelude::*;

const EXPOSED: &str = "expose = [\"resources\", \"tools\"]";

const POLICIES: &str = r#"
@id("all") permit (principal, action in Mcp::Action::"*:*", resource);
@id("open-site") permit (principal, action == Mcp::Action::"resource:up", resource == Mcp::Resource::"up")
when { !context.resource.listed && context.resource.scheme == "https" && context.resource.host == "open.example" };
@id("no-host") @reason("That host is shut")
forbid (principal, action == Mcp::Action::"resource:up", resource)
when { context.resource.host == "shut.example" };
@id("no-board") @reason("Minutes stay inside")
forbid (principal, action in Mcp::Action::"kind:resource", resource is Mcp::Resource)
when { context.resource.path like "*/board/*" };
@id("small") @reason("Only small requests")
forbid (principal, action == Mcp::Action::"resource:up", resource)
when { context.resource.host == "large" && context.request.bytes > 1 };
@id("mask-mail") @phase("response") @redact("output: email")
forbid (principal, action in Mcp::Action::"provider:up", resource)
when { context has dlp_output && context.dlp_output.findings.contains("email") };
"#;

fn offered() -> Vec<HostileTool> {
    let contents = |content: Value| Script::Result(json!({"contents": [content]}).to_string());
    let text = |uri: &str, text: &str| {
        contents(json!({"uri": uri, "mimeType": "text/plain", "text": text}))
    };
    let blob = |uri: &str, bytes: &[u8]| {
        contents(json!({"uri": uri, "mimeType": "image/png", "blob": STANDARD.encode(bytes)}))
    };
    let resource = |uri: &str, script: Script| {
        tool(uri, script).reading(json!({"name": "a name", "mimeType": "text/plain", "size": 7}))
    };
    let wide = |end: &str| {
        let variables: Vec<String> = (0..60).map(|at| format!("v{at}")).collect();
        resource(&format!("notes://wide/{{{}}}/{end}", variables.join(",")), Script::Echo)
    };
    let asked = json!({"resultType": "input_required", "requestState": "theirs", "inputRequests": {
        "a": {"method": "sampling/createMessage", "params": {"maxTokens": 5, "messages": [
            {"role": "user", "content": {"type": "resource_link", "uri": "notes://a", "name": "a"}},
        ]}},
    }});
    let link = json!({"content": [
        {"type": "resource_link", "uri": "notes://a", "name": "a"},
        {"type": "resource", "resource": {"uri": "ui://panel", "text": "notes://a"}},
    ]});
    vec![
        tool("link", Script::Result(link.to_string())),
        tool("asks", Script::Asks(asked.to_string())),
        resource("notes://a", Script::Echo),
        resource("notes://board/b", Script::Echo),
        resource("notes://large", Script::Echo),
        resource("notes://x/board/b", Script::Echo),
        resource("notes://mail", text("notes://mail", "Write to ada@acme.example.")),
        resource("notes://key", text("notes://key", "AKIAIOSFODNN7EXAMPLX")),
        resource(
            "notes://picture",
            blob("notes://picture", b"my key: AKIAIOSFODNN7EXAMPLX, keep it"),
        ),
        resource("notes://empty", Script::Result(json!({"contents": []}).to_string())),
        resource("notes://gone", Script::Rpc(-32002)),
        resource("notes://odd", contents(json!({"uri": "notes://odd"}))),
        resource(
            "notes://null",
            contents(json!({"uri": "notes://null", "text": "a", "blob": null})),
        ),
        tool("notes://bare", Script::Echo).reading(
            json!({"annotations": {"audience": "all", "priority": 7, "lastModified": "x"}}),
        ),
        wide("a"),
        wide("b"),
        resource("notes://files/waits", Script::Echo),
        resource("notes://files/{name}", Script::Echo),
        resource("https://{host}/t/{name}", Script::Echo),
        resource("https://open.example/x{y}{z}", Script::Echo),
        resource("notes://up/../a", Script::Echo),
        resource("*", Script::Echo),
    ]
}

pub(super) async fn exposed() -> Scene {
    scene_with(offered(), EXPOSED, |builder| builder.policies(POLICIES)).await
}

fn admin(scene: &Scene) -> Principal {
    let scopes = "admin audit:read mcps:read policies:read providers:read providers:write";
    scene.gateway.user(&scene.who.org, "admin", scopes)
}

async fn read(scene: &Scene, path: &str, uri: &str) -> Answer {
    ask(&scene.gateway, &scene.who, path, "resources/read", json!({ "uri": uri })).await
}

fn uris(answer: &Answer, list: &str, member: &str) -> Vec<String> {
    let all = answer.at(&format!("/result/{list}")).as_array().expect("a list").iter();
    all.map(|it| it[member].as_str().expect("a URI").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_are_listed_where_they_are_exposed_and_carry_their_provider_where_there_are_several()
 {
    let scene = exposed().await;
    let hidden = scene_with(offered(), "", |builder| builder).await;

    for (path, first, template) in [
        ("/mcp", "up+notes://a", "up+notes://files/{name}"),
        ("/mcp/up", "notes://a", "notes://files/{name}"),
    ] {
        let listed = ask(&scene.gateway, &scene.who, path, "resources/list", json!({})).await;
        let made =
            ask(&scene.gateway, &scene.who, path, "resources/templates/list", json!({})).await;
        let told = ask(&scene.gateway, &scene.who, path, "server/discover", json!({})).await;
        let legacy =
            ask_legacy(&scene.gateway, &scene.who, path, "resources/list", json!({})).await;

        let found = uris(&listed, "resources", "uri");
        assert_eq!((found.len(), found[0].as_str()), (12, first), "{}", listed.text);
        assert_eq!(found, uris(&legacy, "resources", "uri"));
        let templates = uris(&made, "resourceTemplates", "uriTemplate");
        assert!(templates.contains(&template.to_owned()), "{templates:?}");
        // Clients refuse a list of which an entry is not as MCP has it.
        let all = listed.at("/result/resources").as_array().expect("a list");
        let bare = all.iter().find(|it| it.get("mimeType").is_none()).expect("a bare one");
        assert_eq!(bare["annotations"], json!({"lastModified": "x"}), "{bare}");
        assert_eq!(bare["name"], "notes://bare", "{bare}");
        has!(listed, 200, "/result/cacheScope": "private", "/result/resources/0/name": "a name",
            "/result/resources/0/mimeType": "text/plain", "/result/resources/0/size": 7);
        has!(told, 200, "/result/capabilities/resources/listChanged": true);
        for (method, params) in [
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("resources/read", json!({"uri": first})),
        ] {
            let refused = ask(&hidden.gateway, &hidden.who, path, method, params).await;
            assert_eq!(error(&refused).1, -32601, "{}", refused.text);
        }
    }
    assert!(hidden.upstream.calls().is_empty());
    let hidden = scene.gateway.get(&scene.who, "/v1/tools/left-out").await.text;
    assert!(!hidden.contains("notes://up"), "{hidden}");
    let names = scene.gateway.get(&admin(&scene), "/v1/tools/left-out").await.text;
    assert!(names.contains("notes://up/../a") && names.contains("{y}{z}"), "{names}");
}

const FILE: &str = "resource:up:notes://files/{name}";
const SITE: &str = "resource:up:https://{host}/t/{name}";
const UNLISTED: &str = "resource:up:*";
/// Stands for a URI that templates could make within too many steps.
const LONG: &str = "notes://wide/…/c";

/// URI: code of the JSON-RPC error or 0, outcome of the event, its target, requests upstream.
const READS: &[(&str, i64, &str, &str, usize)] = &[
    ("notes://a", 0, "success", "resource:up:notes://a", 1),
    ("notes://files/b.txt", 0, "success", FILE, 1),
    ("https://open.example/xpage", 0, "success", UNLISTED, 1),
    // Policies that look at the resource alone deny these, so no list shows them.
    ("https://open.example/x/board/page", -32602, "not_found", UNLISTED, 0),
    ("https://shut.example/page", -32602, "not_found", UNLISTED, 0),
    ("notes://b", -32602, "not_found", UNLISTED, 0),
    ("notes://x/board/b", -32602, "not_found", UNLISTED, 0),
    ("notes://files/a%2Fb", -32602, "not_found", UNLISTED, 0),
    ("notes://large", 403, "denied", "resource:up:notes://large", 0),
    ("notes://files/AKIAIOSFODNN7EXAMPLX", 403, "denied", FILE, 0),
    ("notes://mail", 0, "success", "resource:up:notes://mail", 1),
    ("notes://empty", -32602, "not_found", "resource:up:notes://empty", 1),
    ("notes://gone", -32602, "not_found", "resource:up:notes://gone", 1),
    ("notes://odd", 502, "upstream_error", "resource:up:notes://odd", 1),
    ("notes://null", 0, "success", "resource:up:notes://null", 1),
    ("notes://wide/a/c", -32602, "not_found", UNLISTED, 0),
    // Templates that could make it cost more steps than a read has.
    (LONG, -32602, "not_found", UNLISTED, 0),
    ("https://h.example/t/a", 0, "success", SITE, 1),
    ("https://shut.example/t/a", -32602, "not_found", UNLISTED, 0),
    // Readers that decode or read addresses otherwise would find another place than the policy.
    ("https://shut.example./t/a", -32602, "not_found", UNLISTED, 0),
    ("https://%EF%BD%93hut.example/t/a", -32602, "not_found", UNLISTED, 0),
    ("https://2130706433/t/a", -32602, "not_found", UNLISTED, 0),
    ("notes://files/x%5Cboard%5Cb", -32602, "not_found", UNLISTED, 0),
    ("notes://files/board;x", -32602, "not_found", UNLISTED, 0),
    ("https://open.example/x%2Fboard%2Fpage", -32602, "not_found", UNLISTED, 0),
    ("https://open.example//x", -32602, "not_found", UNLISTED, 0),
    ("notes://up/../a", -32602, "not_found", "", 0),
    ("notes://up/%2e%2E/a", -32602, "not_found", "", 0),
    ("notes://me@up/a", -32602, "not_found", "", 0),
    ("a", -32602, "not_found", "", 0),
    ("*", -32602, "not_found", "", 0),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_is_read_under_the_law_of_calls_and_leaves_one_event() {
    let scene = exposed().await;
    for &(uri, code, outcome, target, sent) in READS {
        let uri = uri.replace('…', &"a".repeat(1_900));
        for path in ["/mcp", "/mcp/up"] {
            scene.upstream.forget();
            let asked = if path == "/mcp" { format!("up+{uri}") } else { uri.clone() };
            let answer = read(&scene, path, &asked).await;

            assert_eq!(
                answer.at("/error/code").as_i64().unwrap_or(0),
                code,
                "{uri} {}",
                answer.text
            );
            assert_eq!(answer.status, 200, "{uri} {}", answer.text);
            assert_eq!(scene.upstream.calls().len(), sent, "{uri}");
            let events = events(&scene.gateway, &scene.who, answer.header("x-request-id")).await;
            assert_eq!(events.len(), 1, "{uri}");
            has!("{uri}"; events[0], "/type": "mcp.invocation");
            assert_eq!(events[0]["outcome"]["status"], outcome, "{uri}");
            assert_eq!(events[0]["target"]["id"].as_str().unwrap_or_default(), target, "{uri}");
            if code == -32602 {
                assert_eq!(answer.at("/error/data/uri"), &json!(asked), "{}", answer.text);
                assert_eq!(own(&answer, "governance"), &Value::Null, "{}", answer.text);
            }
            if outcome == "success" {
                assert_eq!(own(&answer, "governance")["decision"], "allow");
                let told = answer.at("/result/contents/0/uri").as_str().expect("a URI");
                assert_eq!(told, asked, "{}", answer.text);
                has!(answer, 200, "/result/cacheScope": "private", "/result/ttlMs": 0);
                assert_eq!(answer.at("/result/content"), &Value::Null, "{}", answer.text);
            }
        }
    }
}

/// Neither answers nor the caller's own events tell resources that are denied in any case from those that there are not,
/// nor what a provider of another org lists.
#[tokio::test(flavor = "multi_thread")]
async fn events_do_not_tell_of_what_is_hidden() {
    let policies = r#"@id("all") permit (principal, action, resource);
        @id("none") @reason("x") forbid (principal, action == Mcp::Action::"resource:up", resource);"#;
    let scene = scene_with(offered(), EXPOSED, |builder| builder.policies(policies)).await;
    for uri in ["notes://a", "notes://files/b", "notes://absent", "https://h.example/t/a"] {
        let answer = read(&scene, "/mcp/up", uri).await;
        let event = events(&scene.gateway, &scene.who, answer.header("x-request-id")).await;
        assert_eq!(error(&answer), (200, -32602), "{}", answer.text);
        assert_eq!(event[0]["target"]["id"], "resource:up:*", "{uri}");
        assert_eq!(event[0]["target"]["version"], Value::Null, "{uri}");
    }
    assert!(scene.upstream.calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_part_of_a_uri_is_kept_that_policies_read() {
    for (condition, kept) in [
        (r#"context.resource.host == "shut.example""#, "https://h.example"),
        (r#"context.resource.path like "*/b""#, "https://h.example/t/zz9path"),
        ("!context.resource.listed", "https://-"),
        (
            r#"context.resource.host == "b" || context.input.uri == "b""#,
            "https://h.example/t/zz9path",
        ),
    ] {
        keeps(condition, kept).await;
    }
}

async fn keeps(condition: &str, kept_uri: &str) {
    let policies = format!(
        r#"@id("all") permit (principal, action, resource);
        @id("site") @reason("x") forbid (principal, action == Mcp::Action::"resource:up", resource)
        when {{ {condition} }};"#
    );
    let scene = scene_with(offered(), EXPOSED, |builder| builder.policies(&policies)).await;

    let answer = read(&scene, "/mcp/up", "https://h.example/t/zz9path").await;

    let event = events(&scene.gateway, &scene.who, answer.header("x-request-id")).await.remove(0);
    let path = format!("/v1/audit/events/{}", event["id"].as_str().expect("an id"));
    let kept = scene.gateway.get(&scene.who, &path).await.ok();
    let inputs = kept.at("/data/detached/decision_inputs");
    assert_eq!(inputs.pointer("/input/uri"), Some(&json!(kept_uri)), "{inputs}");
    let explained = scene.gateway.get(&admin(&scene), &format!("{path}?explain=1")).await.ok();
    has!(explained, "/data/explanation/decision/policy": "all", "/data/explanation/missing": []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_not_read_by_another_way() {
    let exposed = format!("{EXPOSED}\npin = \"review\"");
    let scene = scene_with(offered(), &exposed, |builder| builder.policies(POLICIES)).await;
    let accept = |id: &str| drop(scene.gateway.admin(&["tool", "accept", id]));
    accept("resource:up:https://{host}/t/{name}");
    accept("resource:up:notes://files/{name}");
    accept("resource:up:*");
    let files = async || read(&scene, "/mcp/up", "notes://files/b").await;
    until(files, |it| it.at("/result/contents/0") != &Value::Null).await;

    for uri in ["notes://files/waits", "notes://files/waits?x", "notes://files:1/waits"] {
        assert_eq!(error(&read(&scene, "/mcp/up", uri).await), (200, -32602), "{uri}");
    }
    let waiting = scene.gateway.admin(&["tool", "list", "--waiting", "--provider", "up"]);
    assert!(waiting.to_string().contains("notes://files/waits"), "{waiting}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_fails_later_leaves_what_was_listed() {
    let policies = r#"@id("all") permit (principal, action, resource);
        @id("mime") @reason("x") forbid (principal, action == Mcp::Action::"resource:up", resource)
        when { context.resource has mime && context.resource.mime == "text/plain" };"#;
    // The server fails, or says that it has no resources.
    for code in [-32603, -32601] {
        leaves_what_was_listed(policies, code).await;
    }
}

async fn leaves_what_was_listed(policies: &str, code: i64) {
    let scene = scene_with(offered(), EXPOSED, |builder| builder.policies(policies)).await;
    assert_eq!(error(&read(&scene, "/mcp/up", "notes://files/waits").await), (200, -32602));

    scene.upstream.break_method("resources/list", code);
    let admin = admin(&scene);
    let id = scene.gateway.get(&admin, "/v1/providers").await.ok();
    let id = id.at("/data/items/0/id").as_str().expect("an id").to_owned();
    let path = format!("/v1/providers/{id}/test");
    scene.gateway.post(&admin, &path, "{}").await.ok();

    assert_eq!(error(&read(&scene, "/mcp/up", "notes://files/waits").await), (200, -32602));
    has!(read(&scene, "/mcp/up", "notes://bare").await, 200, "/result/contents/0/text": "notes://bare");
    let listed = ask(&scene.gateway, &scene.who, "/mcp/up", "resources/list", json!({})).await;
    assert_eq!(uris(&listed, "resources", "uri"), ["notes://bare"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_both_eras_and_servers_are_told_in_their_words() {
    let scene = exposed().await;
    let legacy = ask_legacy(
        &scene.gateway,
        &scene.who,
        "/mcp/up",
        "resources/read",
        json!({"uri": "notes://gone"}),
    );
    assert_eq!(error(&legacy.await), (200, -32002));
    let named = read(&scene, "/mcp", "up+notes://a").await;
    has!(named, 200, "/result/contents/0/text": "notes://a");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_resource_holds_is_scanned_also_in_base64() {
    let scene = exposed().await;

    let mail = read(&scene, "/mcp/up", "notes://mail").await;
    let key = read(&scene, "/mcp/up", "notes://key").await;
    let picture = read(&scene, "/mcp/up", "notes://picture").await;

    has!(mail, 200, "/result/contents/0/text": "Write to [REDACTED:email].");
    has!(key, 200, "/result/contents/0/text": "[REDACTED:aws_access_key]");
    let blob = picture.at("/result/contents/0/blob").as_str().expect("a blob");
    let opened = STANDARD.decode(blob).expect("base64");
    assert_eq!(String::from_utf8(opened).unwrap(), "my key: [REDACTED:aws_access_key], keep it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_beside_tools_that_fails_leaves_the_tools() {
    for (list, script) in [
        ("prompts/list", Script::Silence),
        ("prompts/list", Script::Rpc(-32603)),
        ("resources/list", Script::Body("{".to_owned())),
        ("resources/list", Script::Status(500)),
        ("resources/templates/list", Script::CloseAtOnce),
    ] {
        let offered = vec![tool("echo", Script::Echo), tool(list, script)];
        let exposed = "expose = [\"tools\", \"prompts\", \"resources\"]";
        let scene = scene_with(offered, exposed, |builder| builder).await;

        let listed = ask(&scene.gateway, &scene.who, "/mcp/up", "tools/list", json!({})).await;
        has!("{list}"; listed, 200, "/result/tools/0/name": "echo");
        scene.invoke("echo", json!({})).await.ok();
    }
}

/// `GET /v1/resources` and `POST /v1/resources/read`.
#[tokio::test(flavor = "multi_thread")]
async fn rest_lists_resources_and_reads_them() {
    let scene = exposed().await;
    let who = &scene.who;

    let listed = scene.gateway.get(who, "/v1/resources?provider=up").await;
    let ids: Vec<_> = listed.at("/data/items").as_array().expect("items").iter().collect();
    assert_eq!(ids.len(), 16, "{}", listed.text);
    let template = "https://{host}/t/{name}";
    has!(listed, 200, "/data/items/0/uri_template": template, "/data/items/1/uri": "notes://a",
        "/data/items/1/size": 7, "/data/items/1/mime_type": "text/plain",
        "/data/items/1/access": "conditional");
    for (body, status, code) in [
        (json!({"uri": "notes://a"}), 200, ""),
        (json!({"uri": "notes://a", "provider": "up"}), 200, ""),
        (json!({"uri": "notes://files/x"}), 200, ""),
        (json!({"uri": "https://open.example/xpage", "provider": "up"}), 200, ""),
        (json!({"uri": "https://open.example/xpage"}), 404, "not_found"),
        (json!({"uri": "notes://a", "provider": "other"}), 404, "not_found"),
        (json!({"uri": "//a", "provider": "up:notes"}), 400, "invalid_request"),
        (json!({"uri": "notes://x/board/b"}), 404, "not_found"),
        (json!({"uri": "notes://large"}), 403, "policy_denied"),
        (json!({"uri": 7}), 400, "invalid_request"),
        (json!({"provider": "up"}), 400, "invalid_request"),
        (json!({"uri": "notes://a", "more": 1}), 400, "invalid_request"),
    ] {
        let answer = scene.gateway.post(who, "/v1/resources/read", &body.to_string()).await;
        assert_eq!(answer.status, status, "{body} {}", answer.text);
        match status {
            200 => assert_eq!(answer.at("/result/contents/0/uri"), &body["uri"], "{}", answer.text),
            _ => assert_eq!(answer.refusal().1, code, "{body} {}", answer.text),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_uri_in_a_header_has_to_be_that_of_the_resource() {
    let scene = exposed().await;
    for (told, status) in [
        ("up+notes://a", 200),
        ("=?base64?dXArbm90ZXM6Ly9h?=", 200),
        ("notes://a", 400),
        ("up+notes://x/board/b", 400),
    ] {
        let params = json!({"uri": "up+notes://a"});
        let Scene { gateway, who, .. } = &scene;
        let request = modern_named(gateway, who, "/mcp", "resources/read", &params, Some(told));
        let answer = gateway.send(request).await;
        assert_eq!(answer.status, status, "{told} {}", answer.text);
    }
    assert_eq!(scene.upstream.calls().len(), 2);
}
