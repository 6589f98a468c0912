//! Images, recordings and other binary contents: counted, for nothing looks into them.

use serde_json::{Map, Value};

/// Whether a member holds one: the `data` of an MCP image or audio block, or the `blob` of a
/// resource that says it is an image, a recording or a film.
pub(super) fn is_one(key: &str, value: &Value, members: &Map<String, Value>) -> bool {
    match (key, value) {
        ("data", Value::String(_)) => matches!(text(members, "type"), "image" | "audio"),
        ("blob", Value::String(_)) => {
            let kind = text(members, "mimeType");
            ["image/", "audio/", "video/"].iter().any(|start| kind.starts_with(start))
        }
        (_, _) => false,
    }
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> &'a str {
    members.get(name).and_then(Value::as_str).unwrap_or_default()
}
