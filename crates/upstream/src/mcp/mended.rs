//! Texts of JSON that break no rule but that of whole characters: half a surrogate pair, as programs make
//! that cut a text in UTF-16, and bytes that are no UTF-8.

use std::borrow::Cow;

/// The text with U+FFFD in place of what is no character; `None` if there is nothing of that kind. Takes one
/// look at each byte.
pub(super) fn mended(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(bytes);
    let mut mended = Vec::new();
    let mut rest = text.as_bytes();
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (before, escape) = rest.split_at(at);
        mended.extend_from_slice(before);
        let length = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(Half::High), Some(Half::Low)) => 12,
            (Some(Half::High | Half::Low), _) => {
                mended.extend_from_slice(b"\\ufffd");
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            // Of an escaped backslash the second one begins nothing.
            (Some(Half::Whole) | None, _) => 2,
        };
        let (escape, after) = escape.split_at(length.min(escape.len()));
        mended.extend_from_slice(escape);
        rest = after;
    }
    mended.extend_from_slice(rest);
    (matches!(text, Cow::Owned(_)) || mended != bytes).then_some(mended)
}

/// Half of a surrogate pair, or a character of its own.
#[derive(Clone, Copy)]
enum Half {
    High,
    Low,
    Whole,
}

/// The unit of UTF-16 that an escape at the beginning stands for.
fn unit(escape: &[u8]) -> Option<Half> {
    let digits = escape.strip_prefix(b"\\u")?.get(..4)?;
    let digits = std::str::from_utf8(digits).ok()?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xD800..=0xDBFF => Some(Half::High),
        0xDC00..=0xDFFF => Some(Half::Low),
        _ => Some(Half::Whole),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_pair_becomes_the_replacement_character() {
        for (given, wanted) in [
            (r#"{"a":"x\ud83d"}"#, r#"{"a":"x\ufffd"}"#),
            (r#"{"a":"\ude00x"}"#, r#"{"a":"\ufffdx"}"#),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, r#"{"a":"\ufffd\ud83d\ude00"}"#),
            (r#"{"a":"\uD83D\n"}"#, r#"{"a":"\ufffd\n"}"#),
            (r#"{"\ud800":1}"#, r#"{"\ufffd":1}"#),
        ] {
            assert_eq!(mended(given.as_bytes()).as_deref(), Some(wanted.as_bytes()), "{given}");
        }
        for whole in [
            r#"{"a":"\ud83d\ude00"}"#, r#"{"a":"\\ud83d"}"#, r#"{"a":"\u00e9"}"#, "{", "\\",
            "\\u12",
        ] {
            assert_eq!(mended(whole.as_bytes()), None, "{whole}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_become_the_replacement_character() {
        assert_eq!(
            mended(b"{\"a\":\"\xff\xc3(\"}").unwrap(),
            "{\"a\":\"\u{fffd}\u{fffd}(\"}".as_bytes()
        );
    }
}
