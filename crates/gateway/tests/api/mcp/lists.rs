//! `tools/list`: the tools that a caller may use, their names and their pages.

use portcullis_testkit::tool as mcp_tool;

use super::{ask, ask_legacy, call, error, names, own};
use crate::prelude::*;

const POLICIES: &str = r#"
@id("all") permit (principal, action, resource);
@id("never") forbid (principal, action == Mcp::Action::"up:never", resource);
@id("small") forbid (principal, action == Mcp::Action::"up:sometimes", resource)
when { context.input has n && context.input.n > 10 };
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_list_holds_what_the_caller_may_use_as_it_was_accepted() {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer", "description": "How many"}},
    });
    let tools = vec![
        tool("zebra", Script::Echo).described("Stripes."),
        tool("never", Script::Echo),
        tool("sometimes", Script::Echo).taking(schema.clone()),
    ];
    let scene = scene_with(tools, "", |builder| builder.policies(POLICIES).sample()).await;
    let list =
        async |path: &str| ask(&scene.gateway, &scene.who, path, "tools/list", json!({})).await;

    let one = list("/mcp/up").await;
    let all = list("/mcp").await;

    assert_eq!(names(&one), ["sometimes", "zebra"]);
    let tool = one.at("/result/tools/0");
    has!(tool, "/inputSchema": schema, "/_meta/dev.portcullis~1tool": "up:sometimes");
    has!(one, "/result/tools/1/description": "Stripes.", "/result/cacheScope": "private",
        "/result/resultType": "complete", "/result/ttlMs": 60_000);
    let all = names(&all);
    assert!(all.contains(&"up__zebra") && all.iter().any(|name| name.starts_with("sample__")));
    assert!(all.is_sorted(), "{all:?}");
    let legacy = ask_legacy(&scene.gateway, &scene.who, "/mcp/up", "tools/list", json!({})).await;
    assert_eq!(names(&legacy), ["sometimes", "zebra"]);
    assert_eq!(legacy.at("/result/ttlMs"), &Value::Null);
    // It is what REST shows.
    let rest = scene.gateway.get(&scene.who, "/v1/mcps?access=allow,conditional&provider=up").await;
    assert_eq!(members(&rest, "name"), ["sometimes", "zebra"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_a_server_of_the_older_era_are_listed_to_clients_of_both() {
    let server = McpServer::start(vec![mcp_tool("one")]).await;
    let (gateway, who) = serve_as("mcps:read", gateway().http("up", &server.url(), ""));
    let legacy = || ask_legacy(&gateway, &who, "/mcp", "tools/list", json!({}));
    until(legacy, |it| !names(it).is_empty()).await;

    let modern = ask(&gateway, &who, "/mcp", "tools/list", json!({})).await;

    assert_eq!(names(&modern), ["up__one"]);
    assert_eq!(names(&legacy().await), ["up__one"]);
    let seen = server.requests();
    let hello = seen.iter().find(|(_, it)| it["method"] == "initialize").expect("a handshake");
    assert_eq!(hello.1["params"]["protocolVersion"], "2025-11-25");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_servers_that_keep_to_no_alphabet_are_mapped_and_encoded() {
    let long = format!("{} end", "x".repeat(200));
    let named = [
        ("repos/list", "repos%2Flist", "up__repos_list"),
        ("db:read all", "db%3Aread%20all", "up__db_read_all"),
        ("repos list", "repos%20list", ""),
        (long.as_str(), &long.replace(' ', "%20"), ""),
    ];
    let tools = named.iter().map(|(name, _, _)| tool(name, Script::Echo)).collect();
    let policies = "@id(\"permit\") permit (principal, action, resource);\n\
        @id(\"no-db\") forbid (principal, action == Mcp::Action::\"up:db:read all\", resource);";
    let scene = scene_under(policies, tools).await;
    let list = ask(&scene.gateway, &scene.who, "/mcp", "tools/list", json!({})).await;
    let own_list = ask(&scene.gateway, &scene.who, "/mcp/up", "tools/list", json!({})).await;

    for (name, encoded, listed) in named {
        let shown = scene.gateway.get(&scene.who, &format!("/v1/mcps/up:{encoded}")).await;
        let path = format!("/v1/mcps/up:{encoded}/invoke");
        let called = scene.gateway.post(&scene.who, &path, r#"{"input":{"n":1}}"#).await;
        if name == "repos list" {
            // The twin of the one before it.
            assert_eq!((shown.status.as_u16(), called.status.as_u16()), (404, 404), "{name}");
            continue;
        }
        assert_eq!(shown.at("/data/id"), &format!("up:{name}"), "{}", shown.text);
        if name.starts_with("db") {
            assert_eq!(called.at("/error/details/policy"), "no-db", "{}", called.text);
            continue;
        }
        assert_eq!(called.at("/result/n"), 1, "{}", called.text);
        let listed = names(&list).into_iter().find(|it| match listed {
            "" => it.starts_with("up__x"),
            listed => *it == listed,
        });
        let listed = listed.unwrap_or_else(|| panic!("{name}: {}", list.text)).to_owned();
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        assert!(listed.len() <= 64 && listed.bytes().all(fits), "{listed} fits model APIs");
        let message = call(&scene.gateway, &scene.who, "/mcp", &listed, json!({"n": 2})).await;
        assert_eq!(own(&message, "tool"), &format!("up:{name}"), "{}", message.text);
        assert!(names(&own_list).contains(&name), "{}", own_list.text);
        let message = call(&scene.gateway, &scene.who, "/mcp/up", name, json!({"n": 3})).await;
        assert_eq!(message.at("/result/structuredContent/n"), 3, "{}", message.text);
        assert_eq!(scene.upstream.count(name), 3, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_server_gives_the_name_of_a_tool_to_another() {
    for pin in ["", "pin = \"off\""] {
        let tools = ["x.y", "x_y", "z"].map(|name| tool(name, Script::Echo)).to_vec();
        let scene = scene_with(tools, pin, |builder| builder).await;
        let list =
            async |path| ask(&scene.gateway, &scene.who, path, "tools/list", json!({})).await;

        assert_eq!(names(&list("/mcp").await), ["up__x_y", "up__z"], "the first one has it");
        assert_eq!(names(&list("/mcp/up").await), ["x.y", "z"]);
        let first = call(&scene.gateway, &scene.who, "/mcp", "up__x_y", json!({"n": 1})).await;
        assert_eq!(own(&first, "tool"), "up:x.y", "{}", first.text);
        let twin = json!({"id": "up:x_y", "input": {}});
        let twin = call(&scene.gateway, &scene.who, "/mcp", "call_tool", twin).await;
        assert_eq!(error(&twin), (200, -32602), "{}", twin.text);
        assert_eq!((scene.upstream.count("x.y"), scene.upstream.count("x_y")), (1, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_called_by_the_name_that_is_listed_and_by_no_other() {
    let long = "l".repeat(100);
    let tools = ["a.b", "never", "plain", &long].map(|name| tool(name, Script::Echo));
    let scene = scene_under(POLICIES, tools.to_vec()).await;
    let calls = async |name: &str| {
        let direct = call(&scene.gateway, &scene.who, "/mcp", name, json!({"n": 1})).await;
        if name.contains(':') {
            return vec![direct];
        }
        let input = json!({"id": name, "input": {"n": 1}});
        vec![direct, call(&scene.gateway, &scene.who, "/mcp", "call_tool", input).await]
    };

    // Ids, and names before they are made to fit.
    let whole = format!("up__{long}");
    for name in ["up:plain", "up:a.b", "up:never", "up__a.b", &whole, "plain", "up__", "up__x"] {
        for answer in calls(name).await {
            assert_eq!(error(&answer), (200, -32602), "{name}: {}", answer.text);
            let events = events(&scene.gateway, &scene.who, answer.header("x-request-id")).await;
            assert_eq!(events.len(), 1, "{name} is recorded");
            assert_eq!(events[0]["outcome"]["executed"], "no", "{name}");
        }
    }
    assert!(scene.upstream.calls().is_empty());
    // One that the caller may not use has its name, and a policy that says so.
    for answer in calls("up__never").await {
        assert_eq!(own(&answer, "error")["details"]["policy"], "never", "{}", answer.text);
    }
    for name in ["up__plain", "up__a_b"] {
        for answer in calls(name).await {
            assert_eq!(answer.at("/result/structuredContent/n"), 1, "{}", answer.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_tools_are_one_list_and_more_are_pages() {
    let tools = || (0..700).map(|number| tool(&format!("t{number:04}"), Script::Echo)).collect();
    let one = Hostile::start(tools()).await;
    let other = Hostile::start(tools()).await;
    let builder = gateway().http("one", &one.url(), "").http("two", &other.url(), "");
    let (gateway, who) = serve_as(
        "mcps:read mcps:invoke",
        builder.config("[mcp]\ntools = \"list\"\nttl_seconds = 0"),
    );
    let list = async |cursor: Option<&str>| {
        let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        ask(&gateway, &who, "/mcp", "tools/list", params).await
    };

    // Servers may take their time to tell their tools.
    let first = until(|| list(None), |it| it.json.pointer("/result/nextCursor").is_some()).await;
    let cursor = first.at("/result/nextCursor").as_str().expect("a second page").to_owned();
    let second = list(Some(&cursor)).await;

    assert_eq!((names(&first).len(), names(&second).len()), (1_000, 400));
    assert_eq!(first.at("/result/ttlMs"), 0, "as long as the operator says");
    let all = [names(&first), names(&second)].concat();
    assert!(all.is_sorted_by(|one, other| one < other), "each stands once");
    assert_eq!(second.at("/result/nextCursor"), &Value::Null);
    let foreign = list(Some("c1.AAAA")).await;
    assert_eq!(error(&foreign), (400, -32602));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_caller_is_given_the_list_of_another() {
    let policies = r#"
        @id("all") permit (principal, action, resource);
        @id("careful") forbid (
            principal in Mcp::Role::"member", action == Mcp::Action::"up:danger", resource
        );"#;
    let tools = vec![tool("danger", Script::Echo), tool("safe", Script::Echo)];
    let scene = scene_under(policies, tools).await;
    let member = scene.gateway.user(&scene.who.org, "member", "mcps:read");
    let admin = scene.gateway.user(&scene.who.org, "admin", "mcps:read");
    let other = scene.gateway.user(&scene.gateway.org("other", &ENOUGH), "member", "mcps:read");
    let everybody = [&member, &admin, &other, &scene.who];

    // The first caller has it prepared; all ask again, for the other names, and in the other era.
    for round in 0..3 {
        for (who, may) in everybody.into_iter().zip([false, true, false, true]) {
            let of_one = ask(&scene.gateway, who, "/mcp/up", "tools/list", json!({})).await;
            let of_all = ask(&scene.gateway, who, "/mcp", "tools/list", json!({})).await;
            let legacy = ask_legacy(&scene.gateway, who, "/mcp/up", "tools/list", json!({})).await;

            let own: &[&str] = if may { &["danger", "safe"] } else { &["safe"] };
            let unique: Vec<String> = own.iter().map(|name| format!("up__{name}")).collect();
            assert_eq!((names(&of_one), names(&legacy)), (own.to_vec(), own.to_vec()), "{round}");
            assert_eq!(names(&of_all), unique, "{round}");
            assert_eq!(of_one.header("content-length"), of_one.text.len().to_string());
        }
    }
}
