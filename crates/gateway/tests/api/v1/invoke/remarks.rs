//! Tools and results that are odd and served nevertheless: the event says so.

use crate::{mcp::call, prelude::*};

/// As `slice` leaves a text that it cuts through an emoji.
const CUT: &str =
    r#"{"content":[{"type":"text","text":"Hi \ud83d"}],"structuredContent":{"t":"\ude00!"}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn half_a_character_in_a_result_is_replaced_and_noted() {
    let scene = scene(vec![tool("cut", Script::Result(CUT.to_owned()))]).await;

    let answer = scene.invoke("cut", json!({})).await;
    let message = call(&scene.gateway, &scene.who, "/mcp", "up__cut", json!({})).await;

    has!(scene.check(&answer, SUCCESS).await, "/detached/remarks": ["characters_replaced"]);
    assert_eq!(answer.at("/result"), &json!({"t": "\u{fffd}!"}));
    assert_eq!(message.at("/result/content/0/text"), "Hi \u{fffd}", "{}", message.text);
    let plain = scene.invoke("cut", json!({"t": "\u{1F600}"})).await;
    assert_eq!(plain.status, 200, "a request may hold whole characters");
    has!(scene.post("cut", r#"{"input":{"t":"\ud83d"}}"#).await, 400);
}

/// A pattern that no engine matches in linear time.
fn addressed() -> Value {
    json!({"type": "object", "properties": {
        "to": {"type": "string", "pattern": "^(?!\\.)[a-z.]+@[a-z]+$", "maxLength": 20},
    }})
}

const GUARDED: &str = "@id(\"permit\") permit (principal, action, resource);\n\
    @id(\"checked\") forbid (principal, action, resource == Mcp::Tool::\"up:strict\") \
    unless { resource.schema_enforced };";

#[tokio::test(flavor = "multi_thread")]
async fn a_pattern_that_cannot_be_enforced_is_noted_and_told_to_policies() {
    let tools = ["mail", "strict"].map(|name| tool(name, Script::Echo).taking(addressed()));
    let scene = scene_under(GUARDED, tools.to_vec()).await;

    let odd = scene.invoke("mail", json!({"to": ".a@b"})).await;
    let long = scene.invoke("mail", json!({"to": "a".repeat(21)})).await;
    has!(scene.invoke("strict", json!({"to": "a@b"})).await, "/error/details/policy": "checked");

    has!(scene.check(&odd, SUCCESS).await, "/detached/remarks": ["patterns_unenforced"]);
    assert_eq!(long.code(), "invalid_input", "the rest of the schema holds");
}

const METRICS: &str = "[server]\nmetrics_listen = \"127.0.0.1:0\"";

/// A tool that answers `result` and declares a number `n` in its structured content.
fn declaring(name: &str, result: &Value) -> HostileTool {
    let output = json!({
        "type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}},
    });
    tool(name, Script::Result(result.to_string())).giving(output)
}

fn declaring_tools() -> Vec<HostileTool> {
    let text = json!([{"type": "text", "text": "?"}]);
    vec![
        declaring("fits", &json!({"content": text, "structuredContent": {"n": 1}})),
        declaring("text", &json!({"content": text, "structuredContent": {"n": "1"}})),
        declaring("none", &json!({"content": text})),
        declaring("fails", &json!({"content": text, "isError": true})),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_not_what_the_tool_declares_is_noted_denied_or_passed() {
    for setting in ["note", "deny", "off"] {
        let noted = setting != "off";
        let denied = setting == "deny";
        let more = format!("output_schema = \"{setting}\"");
        let scene = scene_with(declaring_tools(), &more, |it| it.config(METRICS)).await;
        for (tool, misfits) in [("fits", false), ("text", true), ("none", true), ("fails", false)] {
            let answer = scene.invoke(tool, json!({})).await;

            let what = format!("{setting}, {tool}: {}", answer.text);
            let event = &events(&scene.gateway, &scene.who, &request_id(&answer)).await[0];
            let remarks = if misfits && noted { json!(["output_mismatch"]) } else { Value::Null };
            assert_eq!(event["detached"]["remarks"], remarks, "{what}");
            if misfits && denied {
                assert_eq!(answer.refusal(), (502, "upstream_error"), "{what}");
                let details = answer.at("/error/details");
                has!("{what}"; details, "/reason": "output_mismatch", "/executed": "yes");
            } else {
                assert_eq!(answer.status, 200, "{what}");
            }
        }
        let counted = "portcullis_output_mismatches_total{provider=\"up\"} 2";
        assert_eq!(scene.gateway.metrics().await.contains(counted), noted, "{setting}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_may_want_every_pattern_enforced() {
    let mut odd = portcullis_testkit::tool("mail");
    odd["inputSchema"] = addressed();
    let server = McpServer::start(vec![portcullis_testkit::tool("plain"), odd]).await;
    let more = "protocol = \"legacy\"\npatterns = \"refuse\"";
    let (gateway, who) = serve(gateway().http("up", &server.url(), more));
    until(|| gateway.get(&who, "/v1/mcps/up:plain"), |it| it.status == 200).await;

    has!(gateway.get(&who, "/v1/mcps/up:mail").await, 404);

    let log = gateway.log();
    assert!(log.contains("/properties/to/pattern of its input schema cannot be matched"), "{log}");
}
