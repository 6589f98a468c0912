//! Mapping of a `CallToolResult` to `result`.

use crate::prelude::*;

fn block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A scene with one tool `t` of this result.
async fn answering(result: &Value) -> Scene {
    scene(vec![giving("t", result)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_mapped_by_three_rules() {
    let structured = json!({"repositories": [{"name": "api", "private": true}]});
    let listed = json!({"content": [block("x")], "structuredContent": [1, 2]});
    let failed = json!({"content": [block("no")], "structuredContent": {"a": 1}, "isError": true});
    let posing = json!({"isError": true, "content": "mine"});
    let cases = [
        // Rule 1: an object stands for itself.
        (json!({"content": [block("x")], "structuredContent": structured}), structured, SUCCESS),
        (json!({"structuredContent": {}}), json!({}), SUCCESS),
        // A tool's own member `isError` is no error.
        (json!({"content": [], "structuredContent": posing}), posing, SUCCESS),
        // Rule 2: everything else keeps its form.
        (json!({"content": [block("x")]}), json!({"content": [block("x")]}), SUCCESS),
        (json!({"content": [], "isError": false}), json!({"content": []}), SUCCESS),
        (listed.clone(), listed, SUCCESS),
        (failed.clone(), failed, TOOL_ERROR),
    ];
    let tools = cases.iter().enumerate();
    let tools = tools.map(|(number, (result, ..))| giving(&format!("t{number}"), result)).collect();
    let scene = scene(tools).await;

    for (number, (_, expected, ending)) in cases.iter().enumerate() {
        let answer = scene.invoke(&format!("t{number}"), json!({})).await;

        scene.check(&answer, *ending).await;
        assert_eq!(answer.at("/result"), expected, "{number}: {}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mcp_view_loses_nothing_of_the_protocol() {
    let result = json!({
        "resultType": "complete",
        "content": [
            block("x"),
            {"type": "image", "data": "aGFsbG8=", "mimeType": "image/png", "annotations": {"priority": 1}},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "b"}},
            {"type": "of the future", "anything": [null, 1.50, 12_345_678_901_234_567_890_u64]},
        ],
        "structuredContent": {"a": 1, "isError": true},
        "_meta": {"example.org/took_ms": 12},
        "extra": "left out",
    });
    let scene = answering(&result).await;
    let path = "/v1/mcps/up:t/invoke?view=mcp";

    let answer = scene.gateway.post(&scene.who, path, r#"{"input":{}}"#).await;

    scene.check(&answer, SUCCESS).await;
    let mut expected = result;
    for name in ["resultType", "extra"] {
        expected.as_object_mut().expect("an object").remove(name);
    }
    assert_eq!(answer.at("/result"), &expected, "{}", answer.text);
    has!(scene.invoke("t", json!({})).await, "/result": {"a": 1, "isError": true});
}
