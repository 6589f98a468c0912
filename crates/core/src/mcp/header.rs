//! Headers of streamable HTTP, and the form of values that are no plain text.

use std::borrow::Cow;

use base64::{Engine, prelude::BASE64_STANDARD};

/// Version of the protocol that a request is of.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// Method of the request, as in its body.
pub const METHOD: &str = "mcp-method";
/// Tool that is called, or task that is asked for, as in the body.
pub const NAME: &str = "mcp-name";
/// Session that a server of the older era opened.
pub const SESSION_ID: &str = "mcp-session-id";
/// Prefix of the headers that mirror arguments.
pub const PARAM_PREFIX: &str = "mcp-param-";

const OPENING: &str = "=?base64?";
const CLOSING: &str = "?=";

/// The text as a header value: in base64 where it would not survive as it is.
#[must_use]
pub fn encode(text: &str) -> Cow<'_, str> {
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
        && text.trim_ascii() == text
        && !is_encoded(text);
    if plain {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{OPENING}{}{CLOSING}", BASE64_STANDARD.encode(text)))
}

/// The text that a header value stands for; `None` if its base64 is none, or no UTF-8.
#[must_use]
pub fn decode(value: &str) -> Option<Cow<'_, str>> {
    if !is_encoded(value) {
        return Some(Cow::Borrowed(value));
    }
    let inner = value.strip_prefix(OPENING)?.strip_suffix(CLOSING)?;
    let bytes = BASE64_STANDARD.decode(inner).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn is_encoded(text: &str) -> bool {
    text.len() >= OPENING.len() + CLOSING.len()
        && text.starts_with(OPENING)
        && text.ends_with(CLOSING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_no_plain_text_travel_in_base64() {
        for (text, expected) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("", ""),
        ] {
            assert_eq!(encode(text), expected, "{text}");
            assert_eq!(decode(expected).as_deref(), Some(text), "{text}");
        }
    }

    #[test]
    fn a_value_whose_base64_is_broken_stands_for_nothing() {
        for value in ["=?base64?!?=", "=?base64?/w==?=", "=?base64?YQ?="] {
            assert_eq!(decode(value), None, "{value}");
        }
        assert_eq!(decode("=?base64?=").as_deref(), Some("=?base64?="), "too short to be one");
    }
}
