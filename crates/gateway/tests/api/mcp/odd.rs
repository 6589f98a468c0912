//! Definitions as servers write them, which clients and validators read otherwise or not at all: none takes
//! the list away from the others.

use portcullis_testkit::tool;
use rmcp::ClientLifecycleMode;

use super::{
    ask, ask_legacy,
    clients::{programs, rust_sdk, stateless},
    names,
};
use crate::prelude::*;

/// Input schemas that can be used.
fn inputs() -> Vec<Value> {
    let one = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
    let id = "https://schemas.example/a.json";
    vec![
        one(json!(true)),
        one(json!(false)),
        one(json!(null)),
        one(json!({"anyOf": [true, {"type": "string"}]})),
        one(json!({"items": true})),
        one(json!({"type": "array", "items": {"properties": {"b": true}}})),
        one(json!({"minimum": 0, "exclusiveMinimum": true})),
        one(json!({"maximum": 9, "exclusiveMaximum": false})),
        one(json!({"type": "string", "pattern": "^(?!\\.)(?!.*\\.\\.)[a-z.]+@[a-z.]+$"})),
        one(json!({"type": "string", "pattern": "^(a|b)\\1$"})),
        one(json!({"type": "string", "pattern": "^[\\w-.]+$"})),
        one(json!({"type": "string", "pattern": "(?<=x)y"})),
        one(json!({"type": "string", "format": "who-knows"})),
        one(json!({"type": "string", "description": null})),
        one(json!({"type": ["string", "null"], "default": null})),
        one(json!({"enum": []})),
        one(json!({"$ref": "#"})),
        json!({"type": "object", "properties": null}),
        json!({"type": "object", "properties": {}, "required": null}),
        json!({"type": "object", "properties": {"a": {}}, "required": ["a", "a"]}),
        json!({"type": "object", "additionalProperties": null}),
        json!({"properties": {"a": {}}}),
        json!({}),
        json!({"type": "object", "$id": id, "properties": {"a": {"$ref": format!("{id}#/$defs/a")}},
            "$defs": {"a": {"type": "string"}}}),
        json!({"type": "object", "$id": id, "properties": {"a": {"$ref": "a.json#/$defs/a"}},
            "$defs": {"a": true}}),
        json!({"type": "object", "id": "a", "properties": {"id": {"type": "string"}}}),
        json!({"type": "object", "patternProperties": {"^(?=x)": {"type": "string"}}}),
        json!({"type": "object", "$schema": "http://json-schema.org/draft-04/schema#"}),
        json!({"type": "object", "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"a": true}, "properties": {"a": {"$ref": "#/definitions/a"}}}),
        json!({"type": "object", "title": 7, "examples": null}),
        json!({"type": "object", "not": {"properties": {"a": {"pattern": "(?=x)"}}}}),
        json!({"type": "object", "oneOf": [{"required": ["a"]}, true]}),
    ]
}

/// Definitions that are odd elsewhere.
fn others() -> Vec<Value> {
    let output = |schema: Value| json!({ "outputSchema": schema });
    let hints = |hints: Value| json!({ "annotations": hints });
    vec![
        output(json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}})),
        output(json!({"type": "object", "properties": {"a": {"$ref": "https://x.example/a"}}})),
        output(json!({"type": "object", "properties": {"a": true, "b": false}})),
        output(json!({"type": "object", "properties": null})),
        output(json!({"type": "object", "$id": "https://schemas.example/same.json"})),
        output(json!({"type": "object", "$id": "https://schemas.example/same.json"})),
        output(json!({"type": "object", "id": "same"})),
        output(json!({"type": "array", "items": {"type": "string"}})),
        output(json!({"type": "string"})),
        output(json!({"type": "nothing"})),
        output(json!({"type": "object", "properties": {"a": {"pattern": "^[\\w-.]+$"}}})),
        output(json!({"type": "object", "properties": {"a": {"pattern": "(?=x)"}}})),
        output(json!({"type": "object", "required": "a"})),
        output(json!({"minimum": 1, "exclusiveMinimum": true})),
        output(
            json!({"type": "object", "properties": {"a": {"minimum": 1, "exclusiveMinimum": true}}}),
        ),
        output(json!({"anyOf": [{"type": "object"}, {"type": "null"}]})),
        output(json!(null)),
        output(json!(true)),
        output(json!("object")),
        hints(json!({"readOnlyHint": null})),
        hints(json!({"readOnlyHint": "yes", "destructiveHint": 0})),
        hints(json!({"title": 7, "idempotentHint": false})),
        hints(json!({"title": null, "openWorldHint": null})),
        hints(json!(null)),
        hints(json!([])),
        hints(json!("safe")),
        json!({"title": 7}),
        json!({"title": null}),
        json!({"description": ["a"]}),
        json!({"description": null}),
        json!({"_meta": "x"}),
        json!({"icons": "x"}),
    ]
}

/// The tool that nothing is wrong with.
const GOOD: &str = "good";

fn odd_name(number: usize) -> String {
    format!("odd_{number}")
}

/// A good tool and these, each of which differs from it in some members.
fn beside(odd: Vec<Value>) -> Vec<Value> {
    let odd = odd.into_iter().enumerate().map(|(number, members)| {
        let mut odd = tool(&odd_name(number));
        odd.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        odd
    });
    [tool(GOOD)].into_iter().chain(odd).collect()
}

struct Odd {
    gateway: Gateway,
    who: Principal,
    _servers: [McpServer; 2],
}

async fn odd() -> Odd {
    let inputs = inputs().into_iter().map(|schema| json!({ "inputSchema": schema })).collect();
    let servers =
        [McpServer::start(beside(inputs)).await, McpServer::start(beside(others())).await];
    let more = "protocol = \"legacy\"";
    let (gateway, who) =
        serve(gateway().http("in", &servers[0].url(), more).http("out", &servers[1].url(), more));
    for slug in ["in", "out"] {
        let path = format!("/v1/mcps/{slug}:{GOOD}");
        until(|| gateway.get(&who, &path), |it| it.status == 200).await;
    }
    Odd { gateway, who, _servers: servers }
}

/// The names at `/mcp`.
fn all() -> Vec<String> {
    let of = |slug: &str, count: usize| {
        let odd = (0..count).map(odd_name).chain([GOOD.to_owned()]);
        odd.map(|name| format!("{slug}__{name}")).collect::<Vec<_>>()
    };
    let mut all = [of("in", inputs().len()), of("out", others().len())].concat();
    all.sort();
    all
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn no_odd_definition_takes_the_list_away_and_what_is_pinned_is_the_original() {
    // No odd definition takes the list away from a client.
    let Odd { gateway, who, _servers } = odd().await;
    let url = format!("{}/mcp?tools=list", gateway.url());
    for era in ["legacy", "modern"] {
        for (mut client, language) in programs(era) {
            client.arg(&url).args(["in__good", "{\"n\":3}"]);
            client.env("TOKEN", &who.token).env("PORTCULLIS_TEST_SERVERS", servers());

            let output = client.output().await.unwrap();

            let failed = String::from_utf8_lossy(&output.stderr);
            let said: Value = serde_json::from_slice(&output.stdout)
                .unwrap_or_else(|error| panic!("{language}, {era}: {error}: {failed}"));
            let listed = said["tools"].as_array().unwrap();
            let listed = listed.iter().map(|name| name.as_str().unwrap().to_owned()).collect();
            assert_eq!(sorted(listed), all(), "{language}, {era}");
            let text = said["result"]["content"][0]["text"].as_str().unwrap_or_default();
            assert!(text.contains("\"n\":3"), "{language}, {era}: {said}");
        }
    }
    for lifecycle in [ClientLifecycleMode::Initialize, stateless()] {
        let client = rust_sdk((), &url, &who.token, lifecycle).await;

        let listed = client.list_all_tools().await.expect("a list");

        let listed = listed.iter().map(|tool| tool.name.to_string()).collect();
        assert_eq!(sorted(listed), all(), "Rust");
    }

    // What is listed is what clients read and what is pinned is the original.
    let modern = ask(&gateway, &who, "/mcp?tools=list", "tools/list", json!({})).await;
    let legacy = ask_legacy(&gateway, &who, "/mcp?tools=list", "tools/list", json!({})).await;

    for answer in [&modern, &legacy] {
        let mut listed = names(answer);
        listed.sort_unstable();
        assert_eq!(listed, all());
    }
    let tools = modern.at("/result/tools").as_array().unwrap();
    for tool in tools {
        let name = &tool["name"];
        let input = &tool["inputSchema"];
        assert_eq!(input["type"], "object", "{name}");
        for members in [&input["properties"], &tool["outputSchema"]["properties"]] {
            let members = members.as_object().into_iter().flatten();
            assert!(members.into_iter().all(|(_, schema)| schema.is_object()), "{name}: {tool}");
        }
        let hints = tool["annotations"].as_object().into_iter().flatten();
        let fits = |(name, value): (&String, &Value)| {
            if name == "title" { value.is_string() } else { value.is_boolean() }
        };
        assert!(hints.into_iter().all(fits), "{name}: {tool}");
    }

    let get = async |id: &str| gateway.get(&who, &format!("/v1/mcps/{id}")).await;
    has!(get("out:odd_2").await, "/data/output_schema/properties": {"a": {}, "b": {"not": {}}});
    has!(get("in:odd_8").await, "/data/unenforced_patterns": ["/properties/a/pattern"]);
    assert_eq!(get("in:good").await.at("/data").get("unenforced_patterns"), None);
    let lost = get("out:odd_0").await;
    assert_eq!(lost.at("/data/output_schema"), &Value::Null);
    let why = lost.at("/data/output_schema_error").as_str().unwrap();
    assert!(why.contains("not a valid JSON Schema"), "{why}");
    let pinned = gateway.admin(&["tool", "list", "--provider", "out"]);
    let pins = pinned.as_array().unwrap();
    let of = |id: &str| pins.iter().find(|it| it["id"] == id).unwrap().clone();
    let same = [of("out:odd_4"), of("out:odd_5")].map(|it| it["version"].clone());
    assert_ne!(same[0], same[1], "their names differ");
    assert_eq!(lost.at("/data/version"), &of("out:odd_0")["version"]);
}
