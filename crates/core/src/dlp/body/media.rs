//! Images, recordings and other binary contents: counted, for nothing looks into them.

use serde_json::{Map, Value};

/// Returns true if a member holds one: the `data` of an MCP image or audio block, or the `blob` of
/// a resource that says it is an image, a recording or a film.
pub(in crate::dlp) fn is_one(key: &str, value: &Value, members: &Map<String, Value>) -> bool {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_and_resources_that_nothing_looks_into_are_counted() {
        let is_media = |holder: Value, key: &str| {
            let members = holder.as_object().unwrap();
            is_one(key, &members[key], members)
        };

        for (holder, key) in [
            (json!({"type": "image", "data": "aGk=", "mimeType": "image/png"}), "data"),
            (json!({"type": "audio", "data": "aGk="}), "data"),
            (json!({"blob": "aGk=", "mimeType": "image/svg+xml"}), "blob"),
            (json!({"blob": "aGk=", "mimeType": "audio/wav"}), "blob"),
            (json!({"blob": "aGk=", "mimeType": "video/mp4", "uri": "x:y"}), "blob"),
        ] {
            assert!(is_media(holder.clone(), key), "{holder}");
        }
        for (holder, key) in [
            (json!({"type": "text", "data": "aGk="}), "data"),
            (json!({"type": "image", "data": 7}), "data"),
            (json!({"data": "aGk="}), "data"),
            (json!({"blob": "aGk=", "mimeType": "text/plain"}), "blob"),
            (json!({"blob": "aGk="}), "blob"),
            (json!({"type": "image", "text": "hi"}), "text"),
        ] {
            assert!(!is_media(holder.clone(), key), "{holder}");
        }
    }
}
