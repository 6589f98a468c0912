//! `/mcp?tools=search`: three tools instead of many.

use super::{ask, call, error, names, own};
use crate::prelude::*;

const POLICIES: &str = r#"
@id("all") permit (principal, action, resource);
@id("hidden") forbid (principal, action == Mcp::Action::"up:delete_issue", resource);
@id("small") @reason("Only small numbers")
forbid (principal, action == Mcp::Action::"up:count_issues", resource)
when { context.input has n && context.input.n > 10 };
"#;

async fn scene(many: usize) -> Scene {
    let number = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let mut tools = vec![
        tool("create_issue", Script::Echo).described("Opens an issue in a repository."),
        tool("delete_issue", Script::Echo).described("Deletes an issue."),
        tool("count_issues", Script::Echo).described("Counts issues.").taking(number),
        tool("weather", Script::Echo).described("The sky tomorrow."),
    ];
    tools.extend((0..many).map(|number| tool(&format!("filler{number}"), Script::Echo)));
    scene_under(POLICIES, tools).await
}

/// The ids that were found.
fn found(answer: &Answer) -> Vec<&str> {
    let tools = answer.at("/result/structuredContent/tools").as_array();
    let tools = tools.unwrap_or_else(|| panic!("{}", answer.text));
    tools.iter().map(|tool| tool["id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_finds_reads_and_calls_a_tool_that_is_not_listed_and_is_governed() {
    // A model finds reads and calls a tool that is not listed.
    let scene = scene(0).await;
    let gateway = &scene.gateway;
    let who = &scene.who;
    let path = "/mcp?tools=search";

    let list = ask(gateway, who, path, "tools/list", json!({})).await;
    let hits = call(gateway, who, path, "find_tools", json!({"query": "issues"})).await;
    let first = json!({"query": "create an issue", "limit": 1});
    let first = call(gateway, who, path, "find_tools", first).await;
    let described =
        call(gateway, who, path, "describe_tool", json!({"id": "up:count_issues"})).await;
    let hidden = call(gateway, who, path, "describe_tool", json!({"id": "up:delete_issue"})).await;
    let counted = json!({"id": "up:count_issues", "input": {"n": 3}});
    let called = call(gateway, who, path, "call_tool", counted).await;

    assert_eq!(names(&list), ["find_tools", "describe_tool", "call_tool"]);
    assert!(list.at("/result/tools/0/description").as_str().unwrap().contains(": up."));
    let mut ids = found(&hits);
    ids.sort_unstable();
    assert_eq!(ids, ["up:count_issues", "up:create_issue"], "a denied one is not found");
    assert_eq!(found(&first), ["up:create_issue"]);
    assert_eq!(described.at("/result/structuredContent/inputSchema/properties/n/type"), "integer");
    assert_eq!(hidden.at("/result/isError"), true);
    assert_eq!(called.at("/result/structuredContent"), &json!({"n": 3}));
    assert_eq!(own(&called, "tool"), "up:count_issues");
    assert_eq!(called.header("x-ratelimit-resource"), "invocations");
    assert_eq!(hits.header("x-ratelimit-resource"), "requests");
    let events = events(gateway, who, called.header("x-request-id")).await;
    assert_eq!(events[0]["target"]["id"], "up:count_issues");

    // A call by id is governed like any other.
    let call = async |arguments: Value| call(gateway, who, "/mcp", "call_tool", arguments).await;

    let denied = call(json!({"id": "up:count_issues", "input": {"n": 11}})).await;
    let forbidden = call(json!({"id": "up:delete_issue", "input": {}})).await;
    let unknown = call(json!({"id": "up:nothing", "input": {}})).await;
    let by_name = call(json!({"id": "up__weather", "input": {"a": 1}})).await;

    assert_eq!(own(&denied, "error")["details"]["policy"], "small");
    assert_eq!(own(&forbidden, "error")["details"]["policy"], "hidden");
    assert_eq!(error(&unknown), (200, -32602));
    assert_eq!(own(&by_name, "tool"), "up:weather");
    for wrong in [
        json!({}),
        json!({"id": 1}),
        json!({"id": "up:weather", "input": []}),
        json!({"id": "up:weather", "input": {}, "more": 1}),
    ] {
        has!("{wrong}"; call(wrong.clone()).await, "/result/isError": true);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tools_are_listed_by_the_tools_to_find_them_with() {
    let (few, many) = tokio::join!(scene(37), scene(38));
    let list = async |scene: &Scene, path: &str| {
        ask(&scene.gateway, &scene.who, path, "tools/list", json!({})).await
    };

    assert_eq!(names(&list(&few, "/mcp").await).len(), 40);
    assert_eq!(names(&list(&many, "/mcp").await).len(), 3);
    assert_eq!(names(&list(&many, "/mcp?tools=list").await).len(), 41);
    assert_eq!(names(&list(&many, "/mcp/up").await).len(), 41);
    let wrong = ask(&many.gateway, &many.who, "/mcp?tools=x", "tools/list", json!({})).await;
    assert_eq!(error(&wrong), (400, -32602));
    // Whatever is listed, each can be called by its name.
    let answer = call(&many.gateway, &many.who, "/mcp", "up__weather", json!({"a": 1})).await;
    assert_eq!(answer.at("/result/structuredContent/a"), 1);
}
