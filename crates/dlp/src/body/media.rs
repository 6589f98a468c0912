//! Images, recordings and other binary contents: counted, for nothing looks into them.

use portcullis_json::JsonValue;

/// Returns true if a member holds one: the `data` of an MCP image or audio block, or the `blob` of
/// a resource that says it is an image, a recording or a film.
pub(crate) fn is_one<'a, T: JsonValue<'a>>(key: &str, value: T, holder: T) -> bool {
    let told = |name| holder.get(name).and_then(T::text).unwrap_or_default();
    match key {
        "data" => value.text().is_some() && matches!(told("type"), "image" | "audio"),
        "blob" => {
            let kind = || told("mimeType");
            let is_media = |start: &&str| kind().starts_with(*start);
            value.text().is_some() && ["image/", "audio/", "video/"].iter().any(is_media)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn blocks_and_resources_that_nothing_looks_into_are_counted() {
        let is_media = |holder: Value, key: &str| is_one(key, &holder[key], &holder);

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
