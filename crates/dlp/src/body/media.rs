//! Images, recordings and other binary contents: counted, for nothing looks into them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use portcullis_json::JsonValue;

/// Characters that are decoded to tell at little cost that a content is no text.
const START: usize = 4096;

/// Returns true if a member holds one: the `data` of an MCP image or audio block, or the `blob` of
/// a resource, unless it is a text in truth. A `blob` that is no base64 counts if it claims to be one.
pub(crate) fn is_one<'a, T: JsonValue<'a>>(key: &str, value: T, holder: T) -> bool {
    let told = |name| holder.get(name).and_then(T::text).unwrap_or_default();
    let claims = match key {
        "data" if matches!(told("type"), "image" | "audio") => true,
        "blob" => {
            let kind = told("mimeType");
            ["image/", "audio/", "video/"].iter().any(|start| kind.starts_with(start))
        }
        _ => return false,
    };
    let is_binary = |text: &str| match decoded(text) {
        Some(bytes) => !is_text(&bytes),
        None => claims && !text.contains(['<', '{', ' ']),
    };
    value.text().is_some_and(is_binary)
}

/// The text that is written in base64 here; `None` if this is no base64, or that of something else.
#[must_use]
pub fn text_in_base64(text: &str) -> Option<String> {
    let bytes = decoded(text).filter(|bytes| is_text(bytes))?;
    String::from_utf8(bytes).ok()
}

/// Returns true for UTF-8 without NUL, which stands in most binary files and in no text.
fn is_text(bytes: &[u8]) -> bool {
    memchr::memchr(0, bytes).is_none() && std::str::from_utf8(bytes).is_ok()
}

/// The bytes that are written in base64 here; of bytes that begin as no text does, the first alone.
fn decoded(text: &str) -> Option<Vec<u8>> {
    if let Some(start) = text.get(..START) {
        let bytes = STANDARD.decode(start).ok()?;
        if std::str::from_utf8(&bytes).is_err_and(|error| error.error_len().is_some()) {
            return Some(bytes);
        }
    }
    STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const PNG: &str = "iVBORw0KGgoAAAANSUhEUg==";

    #[test]
    fn blocks_and_resources_that_nothing_looks_into_are_counted() {
        let is_media = |holder: &Value, key: &str| is_one(key, &holder[key], holder);
        let long = STANDARD.encode([0xFF; 9000]);

        for (holder, key) in [
            (json!({"type": "image", "data": PNG, "mimeType": "image/png"}), "data"),
            (json!({"type": "audio", "data": PNG}), "data"),
            (json!({"type": "image", "data": "iVBORw0KGgo\nAAAANSUhEUg"}), "data"),
            (json!({"blob": PNG, "mimeType": "audio/wav"}), "blob"),
            (json!({"blob": "iVBORw-_", "mimeType": "video/mp4", "uri": "x:y"}), "blob"),
            // The type that a blob claims changes nothing about its bytes.
            (json!({"blob": PNG, "mimeType": "text/plain"}), "blob"),
            (json!({"blob": PNG}), "blob"),
            (json!({"blob": long}), "blob"),
            (json!({"blob": STANDARD.encode("\0\0\u{1}\0an icon of ASCII")}), "blob"),
        ] {
            assert!(is_media(&holder, key), "{holder}");
        }
        for (holder, key) in [
            (json!({"type": "text", "data": PNG}), "data"),
            (json!({"type": "image", "data": 7}), "data"),
            (json!({"data": PNG}), "data"),
            (json!({"blob": "aGk=", "mimeType": "text/plain"}), "blob"),
            (json!({"blob": "aGk=", "mimeType": "image/svg+xml"}), "blob"),
            (json!({"type": "image", "data": "aGk="}), "data"),
            (json!({"blob": "<svg/>", "mimeType": "image/svg+xml"}), "blob"),
            (json!({"blob": "no base64"}), "blob"),
            (json!({"type": "image", "text": "hi"}), "text"),
        ] {
            assert!(!is_media(&holder, key), "{holder}");
        }
    }

    #[test]
    fn a_text_in_base64_is_read_whole() {
        let long = "käse ".repeat(3000);

        assert_eq!(text_in_base64(&STANDARD.encode(&long)), Some(long));
        assert_eq!(text_in_base64("aGk="), Some("hi".to_owned()));
        assert_eq!(text_in_base64(&(STANDARD.encode([b'a'; 6000]) + "gICA")), None);
        assert_eq!([text_in_base64("aGk"), text_in_base64(PNG)], [None, None]);
    }
}
