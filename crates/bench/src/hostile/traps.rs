//! An MCP server whose tools have schemas that are slow to check or large, and bodies for them.

use axum::{Router, body::Bytes, response::Response, routing::post};
use serde_json::{Value, json};

use super::reply;
use crate::{
    Failure,
    upstream::{self, PATH},
};

/// The tool that any gateway can list.
pub(super) const PLAIN: &str = "plain";

/// A tool and the text of an input for it.
pub(super) struct Trap {
    pub(super) tool: &'static str,
    pub(super) input: String,
}

/// Inputs that are slow to hold against the schemas of [`serve`].
pub(super) fn of_schemas() -> Vec<Trap> {
    let list = |items: Vec<String>| format!("{{\"x\":[{}]}}", items.join(","));
    let long = "1".repeat(200);
    let nested = format!("{}1{}", "{\"n\":".repeat(50), "}".repeat(50));
    vec![
        Trap { tool: "integers", input: list(vec!["1e-9990".to_owned(); 19_000]) },
        Trap { tool: "integers", input: list(vec!["1e-300".to_owned(); 19_000]) },
        Trap { tool: "enums", input: list(vec!["1e-9990".to_owned(); 3_500]) },
        Trap { tool: "enums", input: list(vec!["1e-300".to_owned(); 3_500]) },
        Trap {
            tool: "unique",
            input: list((0..3_000).map(|number| format!("{number}.{long}")).collect()),
        },
        Trap {
            tool: "unique",
            input: list((0..3_000).map(|number| format!("\"{long}{number}\"")).collect()),
        },
        Trap { tool: "doubles", input: format!("{{\"x\":{nested}}}") },
    ]
}

/// Inputs that are slow to match.
pub(super) fn of_patterns() -> Vec<Trap> {
    let text = format!("{{\"x\":\"{}\"}}", "ab".repeat(15_000));
    vec![Trap { tool: "match", input: text.clone() }, Trap { tool: "slow", input: text }]
}

/// Lines of names and values: what looks for the end of a line looks far.
pub(super) fn of_assignments() -> Vec<Trap> {
    const SIZE: usize = 31_000;
    let units =
        ["password=x1y2 ", "secret: z9 ", "token=q ", "user: a password: b ", "{password: x}"];
    let text = |unit: &str| format!("{{\"x\":\"{}\"}}", unit.repeat(SIZE / unit.len()));
    units.map(|unit| Trap { tool: PLAIN, input: text(unit) }).into()
}

/// Serves until standard input ends.
pub(crate) async fn serve() -> Result<(), Failure> {
    upstream::serve_at(upstream::ANYWHERE, Router::new().route(PATH, post(answer))).await
}

async fn answer(body: Bytes) -> Response {
    reply(&body, tools)
}

fn tools() -> Value {
    let tool = |name: &str, x: Value| json!({"name": name, "inputSchema": {"type": "object", "properties": {"x": x}}});
    let items = |items: Value| json!({"type": "array", "items": items});
    let again = json!({"properties": {"n": {"$ref": "#/properties/x"}}});
    let large: Vec<Value> =
        (0..60).map(|number| json!({"pattern": format!("{number}[ab]{{100000}}")})).collect();
    json!([
        tool(PLAIN, json!({})),
        tool("integers", items(json!({"type": "integer"}))),
        tool("enums", items(json!({"enum": (0..100).map(f64::from).collect::<Vec<_>>()}))),
        tool("unique", json!({"type": "array", "uniqueItems": true})),
        tool("doubles", json!({"oneOf": [again, again]})),
        tool("match", json!({"type": "string", "pattern": "a[ab]{20000}c"})),
        tool("slow", json!({"type": "string", "pattern": "a[ab]{900}c"})),
        tool("large", json!({ "anyOf": large })),
    ])
}
