//! `GET /v1/mcps`, `GET /v1/mcps/{id}`, `GET /v1/tools/left-out`: the catalogue as a caller sees it, and what is not in it.

use portcullis_testkit::tool;
use reqwest::StatusCode;

use crate::prelude::*;

const SAMPLE: &str = "sample:always_fails sample:create_note sample:get_customer \
                      sample:list_items sample:slow_echo";
const LEGACY: &str = "protocol = \"legacy\"";

#[tokio::test(flavor = "multi_thread")]
async fn the_catalogue_is_listed_by_id_and_filtered() {
    let server = McpServer::start(vec![tool("b"), tool("C"), tool("a"), tool("d.e-f_1")]).await;
    let (gateway, who) = serve(gateway().sample().http("other", &server.url(), LEGACY));
    let other = "other:C other:a other:b other:d.e-f_1";
    let all = format!("{other} {SAMPLE}");

    for (query, wanted) in [
        ("", all.as_str()),
        ("?provider=other", other),
        ("?provider=other,sample", &all),
        ("?provider=nothing", ""),
        ("?q=CUSTOMER", "sample:get_customer"),
        ("?q=d.E-f", "other:d.e-f_1"),
        ("?q=gives%20back&provider=other", other),
        ("?q=echo+slowly", "sample:slow_echo"),
        ("?access=allow&provider=sample", SAMPLE),
        ("?access=deny", ""),
        ("?limit=200", &all),
    ] {
        let answer = gateway.get(&who, &format!("/v1/mcps{query}")).await;

        assert_eq!(members(&answer, "id").join(" "), wanted, "{query}");
        assert_eq!(answer.at("/meta/pagination/next_cursor"), &Value::Null, "{query}");
        assert_enveloped(&answer, query);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_shown_with_its_claims_and_pages_join_without_gaps() {
    // A tool is shown with its claims and in full with its schemas.
    let (gateway, who) = serve(gateway().sample());

    let basic = gateway.get(&who, "/v1/mcps?q=sample:list_items").await;
    let full = gateway.get(&who, "/v1/mcps?q=sample:list_items&view=full").await;
    let one = gateway.get(&who, "/v1/mcps/sample:list_items").await;

    let basic = items(&basic)[0].as_object().unwrap();
    let names: Vec<&str> = basic.keys().map(String::as_str).collect();
    let wanted = "id provider name title description access status version annotations updated_at";
    assert_eq!(names.join(" "), wanted);
    assert_eq!((&basic["provider"], &basic["name"]), (&json!("sample"), &json!("list_items")));
    assert_eq!((&basic["access"], &basic["status"]), (&json!("allow"), &json!("available")));
    assert!(basic["version"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(basic["annotations"]["readOnlyHint"], true);
    assert_eq!(&items(&full)[0], one.at("/data"));
    assert_eq!(one.at("/data/input_schema/properties/limit/maximum").to_string(), "1000");
    assert_eq!(one.at("/data/output_schema/type"), "object");
    let provider = gateway.get(&who, "/v1/providers").await;
    assert_eq!(one.at("/data/provider_id"), &items(&provider)[0]["id"]);

    // Pages join without gaps and a cursor opens its own list only.
    let other = gateway.service(&gateway.org("other", &ENOUGH), ALL_SCOPES);
    let mut seen = Vec::new();
    let mut query = "?limit=2".to_owned();
    loop {
        let page = gateway.get(&who, &format!("/v1/mcps{query}")).await;
        seen.extend(members(&page, "id").into_iter().map(str::to_owned));
        let Some(cursor) = page.at("/meta/pagination/next_cursor").as_str() else { break };
        assert!(!cursor.contains("sample"), "{cursor}");
        query = format!("?limit=1&cursor={cursor}");
    }
    assert_eq!(seen.join(" "), SAMPLE);

    let page = gateway.get(&who, "/v1/mcps?limit=1").await;
    let cursor = page.at("/meta/pagination/next_cursor").as_str().unwrap();
    assert_eq!(page.at("/meta/pagination/limit"), 1);
    for (who, path) in [
        (&who, format!("/v1/mcps?q=note&cursor={cursor}")),
        (&who, format!("/v1/mcps?cursor={}", cursor.trim_start_matches("c1."))),
        (&who, format!("/v1/audit/events?cursor={cursor}")),
        (&other, format!("/v1/mcps?cursor={cursor}")),
    ] {
        let answer = gateway.get(who, &path).await;

        has!("{path}"; answer, 400 "invalid_request", "/error/details/parameter": "cursor");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn access_is_what_policy_would_say_to_this_caller() {
    let policies = r#"
        @id("members") permit (principal in Mcp::Role::"member", action, resource);
        @id("no-notes") forbid (principal, action == Mcp::Action::"sample:create_note", resource);
        @id("short-lists") forbid (principal, action == Mcp::Action::"sample:list_items", resource)
            when { context has input && context.input has limit && context.input.limit > 100 };
    "#;
    let gateway = gateway().sample().policies(policies).start();
    let org = gateway.org("acme", &ENOUGH);
    let member = gateway.user(&org, "member", "mcps:read");
    let service = gateway.service(&org, "mcps:read");

    let ids = async |who, access: &str| {
        let answer = gateway.get(who, &format!("/v1/mcps?access={access}")).await;
        members(&answer, "id").join(" ")
    };

    assert_eq!(ids(&member, "deny").await, "sample:create_note");
    assert_eq!(ids(&member, "conditional").await, "sample:list_items");
    let allowed = "sample:always_fails sample:get_customer sample:slow_echo";
    assert_eq!(ids(&member, "allow").await, allowed);
    assert_eq!(ids(&member, "deny,conditional").await, "sample:create_note sample:list_items");
    assert_eq!(ids(&service, "deny").await, SAMPLE);
    has!(gateway.get(&service, "/v1/mcps/sample:slow_echo").await, "/data/access": "deny");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_a_server_announces_is_picked_up() {
    let server = McpServer::start(vec![tool("a"), tool("b"), tool("c")]).await;
    let more = "protocol = \"legacy\"\npin = \"off\"";
    let (gateway, who) = serve(gateway().http("other", &server.url(), more));
    let before = gateway.get(&who, "/v1/mcps/other:a").await;
    let gone = gateway.get(&who, "/v1/mcps/other:b").await;
    assert_eq!((before.status.as_u16(), gone.status.as_u16()), (200, 200));

    let mut changed = tool("a");
    changed["description"] = json!("Now something else.");
    server.change_tools(vec![changed, tool("d")]);
    let ids = |answer: &Answer| members(answer, "id").join(" ");
    until(|| gateway.get(&who, "/v1/mcps"), |answer| ids(answer) == "other:a other:d").await;

    // A list that was being read, page by page, when the tools changed has some of both.
    let is_new = |answer: &Answer| answer.at("/data/description") == "Now something else.";
    let after = until(|| gateway.get(&who, "/v1/mcps/other:a"), is_new).await;
    assert_ne!(after.at("/data/version"), before.at("/data/version"));
    assert_ne!(after.at("/data/updated_at"), before.at("/data/updated_at"));
    has!(gateway.invoke(&who, "other:b", json!({})).await, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_goes_down_keeps_its_tools_marked_unavailable_until_it_is_back() {
    let server = McpServer::start(vec![tool("a")]).await;
    let (gateway, who) = serve(gateway().sample().http("other", &server.url(), LEGACY));

    server.fail(Some(StatusCode::INTERNAL_SERVER_ERROR));
    let path = "/v1/mcps/other:a";
    until(|| gateway.get(&who, path), |it| it.at("/data/status") == "unavailable").await;
    let provider = gateway.get(&who, "/v1/providers?slug=other").await;
    assert_eq!(items(&provider)[0]["status"], "error");
    assert!(items(&provider)[0]["last_error"].is_string());
    has!(gateway.get(&who, "/v1/mcps/sample:list_items").await, "/data/status": "available");

    server.fail(None);
    until(|| gateway.get(&who, path), |it| it.at("/data/status") == "available").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_out_is_listed_with_its_reason_to_those_who_use_the_provider() {
    let odd = |name: &str, schema: Value| {
        let mut odd = tool("odd");
        odd["name"] = json!(name);
        odd["inputSchema"] = schema;
        odd
    };
    let remote = json!({"type": "object", "properties": {"a": {"$ref": "https://x.example/a"}}});
    let secret = "say glpat-F4k3abcdefghijklmnop";
    let object = json!({"type": "object"});
    let tools = [odd("create*issue", object.clone()), odd("remote", remote), odd(secret, object)];
    let server = McpServer::start([vec![tool("good")], tools.to_vec()].concat()).await;
    let (gateway, who) = serve(gateway().sample().http("other", &server.url(), LEGACY));
    until(|| gateway.get(&who, "/v1/mcps/other:good"), |it| it.status == 200).await;

    let all = gateway.get(&who, "/v1/tools/left-out").await;
    let first = gateway.get(&who, "/v1/tools/left-out?limit=2&provider=other").await;
    let cursor = first.at("/meta/pagination/next_cursor").as_str().unwrap();
    let path = format!("/v1/tools/left-out?limit=2&provider=other&cursor={cursor}");
    let rest = gateway.get(&who, &path).await;
    let none = gateway.get(&who, "/v1/tools/left-out?provider=sample").await;
    let prompts = gateway.get(&who, "/v1/tools/left-out?kind=prompt,resource").await;
    let poor = gateway.service(&who.org, "mcps:invoke");

    assert_enveloped(&all, "left out");
    let mut told: Vec<(&str, &str)> =
        members(&all, "name").into_iter().zip(members(&all, "reason")).collect();
    told.sort_unstable();
    assert_eq!(members(&all, "provider"), ["other"; 3]);
    let names: Vec<&str> = told.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["create*issue", "remote", "say [REDACTED:gitlab_token]"]);
    assert!(told[0].1.contains("A-Z") && told[1].1.contains("outside itself"), "{told:?}");
    let lengths = [&first, &rest, &none, &prompts].map(|it| items(it).len());
    assert_eq!(lengths, [2, 1, 0, 0]);
    assert_eq!(gateway.get(&poor, "/v1/tools/left-out").await.status, 403);
}
