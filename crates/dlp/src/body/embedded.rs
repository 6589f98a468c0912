//! JSON in texts. Most servers answer with JSON inside a text, which is read like any other JSON: whole
//! texts, fenced parts, JSON Lines, and what stands between lines of prose.
//!
//! A part begins a line and ends one, holds an object or an array, and is parsed strictly. What is no
//! JSON, or JSON beyond the bounds, stays prose. JSON in the texts of JSON is read as deep as views are.

use std::ops::Range;

use portcullis_json::{Bounds, Document, NumberRange, value_length};

/// Levels of JSON in texts of JSON that are read.
pub(crate) const DEPTH: usize = 3;

/// The shortest text that may hold something: `["a@b.c"]`.
const SHORTEST: usize = 8;

/// The shortest text that may hold something below a line of prose.
const SHORTEST_LINES: usize = 24;

/// Parts of a text, at most.
const MOST: usize = 10_000;

/// Times the length of a text that may be gone through in vain.
const IN_VAIN: usize = 4;

/// Bounds on JSON in a text. A body may have a node less for each entry.
const BOUNDS: Bounds = Bounds {
    depth: 64,
    nodes: 100_000,
    string_bytes: 4 << 20,
    number_chars: 256,
    numbers: NumberRange::Any,
    reserved: true,
};

/// The same where no more levels may be nested.
pub(super) fn bounds(depth: usize) -> Bounds {
    Bounds { depth: depth.min(BOUNDS.depth), ..BOUNDS }
}

/// JSON in a text.
pub(crate) struct Part {
    /// Bytes of the text.
    pub(crate) range: Range<usize>,
    pub(crate) document: Document,
}

/// Returns false if a text holds no JSON, which its first byte tells of most.
#[inline]
pub(crate) fn may_hold(text: &str) -> bool {
    let text = text.as_bytes();
    text.len() >= SHORTEST
        && (matches!(text.first(), Some(b'{' | b'[' | b'"' | b' ' | b'\t'))
            || text.len() >= SHORTEST_LINES && memchr::memchr(b'\n', text).is_some())
}

/// The JSON in a text that is nested no deeper, in order.
pub(crate) fn parts(text: &str, depth: usize) -> Vec<Part> {
    let bounds = bounds(depth);
    if let Some(quoted) = quoted(text, bounds) {
        return vec![quoted];
    }
    let mut parts = Vec::new();
    let mut left = IN_VAIN * text.len();
    let mut at = 0;
    while parts.len() < MOST {
        let Some(start) = next_start(text.as_bytes(), at) else { break };
        let Some(length) = text.get(start..).and_then(|rest| value_length(rest.as_bytes())) else {
            // No bracket closes behind this one; those that follow may still be whole.
            let Some(less) = left.checked_sub(text.len() - start) else { break };
            left = less;
            at = start + 1;
            continue;
        };
        let range = start..start + length;
        if let Some(part) = part(text, range.clone(), bounds) {
            at = range.end;
            parts.push(part);
        } else {
            let Some(less) = left.checked_sub(length) else { break };
            left = less;
            at = start + 1;
        }
    }
    parts
}

/// All of a text that is JSON once more: `"{\"a\":1}"`.
fn quoted(text: &str, bounds: Bounds) -> Option<Part> {
    let start = text.len() - text.trim_ascii_start().len();
    let whole = text.trim_ascii();
    let begins = |inside: &str| inside.trim_start_matches('\\').starts_with(['{', '[', '"']);
    whole.strip_prefix('"').filter(|inside| begins(inside))?;
    let range = start..start + whole.len();
    let document = Document::parse(whole.as_bytes(), bounds).ok()?;
    Some(Part { range, document })
}

/// Offset of the next brace or bracket that begins a line.
fn next_start(text: &[u8], at: usize) -> Option<usize> {
    let mut line = at;
    if at > 0 {
        line = at + memchr::memchr(b'\n', text.get(at..)?)? + 1;
    }
    loop {
        let rest = text.get(line..)?;
        let spaces = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        if matches!(rest.get(spaces), Some(b'{' | b'[')) {
            return Some(line + spaces);
        }
        line += memchr::memchr(b'\n', rest)? + 1;
    }
}

/// The JSON that stands there, if nothing follows it in its line.
fn part(text: &str, range: Range<usize>, bounds: Bounds) -> Option<Part> {
    let after = text.as_bytes().get(range.end..)?;
    let ends = after.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
    matches!(ends, None | Some(b'\n')).then_some(())?;
    let document = Document::parse(text.get(range.clone())?.as_bytes(), bounds).ok()?;
    Some(Part { range, document })
}

/// Offsets in a text of JSON, without its quotation marks, that the bytes come from which stand there
/// without escapes; one more for the end.
pub(crate) fn offsets(raw: &[u8]) -> Vec<usize> {
    let mut from = Vec::with_capacity(raw.len() + 1);
    let mut at = 0;
    while let Some(byte) = raw.get(at) {
        let (taken, given) = match (byte, raw.get(at + 1)) {
            (b'\\', Some(b'u')) => code(raw.get(at..).unwrap_or_default()),
            (b'\\', _) => (2, 1),
            _ => (1, 1),
        };
        from.extend(std::iter::repeat_n(at, given));
        at += taken;
    }
    from.push(raw.len());
    from
}

/// Length of a `\u` escape, or of two that are one character, and of that character in UTF-8.
fn code(rest: &[u8]) -> (usize, usize) {
    let unit = |digits: Option<&[u8]>| {
        let digits = std::str::from_utf8(digits?).ok()?;
        u32::from_str_radix(digits, 16).ok()
    };
    match unit(rest.get(2..6)) {
        Some(0..0x80) => (6, 1),
        Some(0x80..0x800) => (6, 2),
        Some(0xD800..0xDC00) => (12, 4),
        Some(_) | None => (6, 3),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str) -> Vec<&str> {
        parts(text, 64).into_iter().map(|part| &text[part.range]).collect()
    }

    #[test]
    fn json_that_begins_and_ends_a_line_is_a_part() {
        for (text, expected) in [
            (r#"{"a": 1}"#, vec![r#"{"a": 1}"#]),
            ("  [1, 2]\n", vec!["[1, 2]"]),
            ("{\n  \"a\": [\n    1\n  ]\n}", vec!["{\n  \"a\": [\n    1\n  ]\n}"]),
            ("Found:\n```json\n{\"a\": 1}\n```\nand\n[2]", vec!["{\"a\": 1}", "[2]"]),
            ("{\"a\":1}\n{\"a\":2}\r\n\n{\"a\":3}", vec!["{\"a\":1}", "{\"a\":2}", "{\"a\":3}"]),
            ("{\"a\":1\n{\"b\":2}", vec!["{\"b\":2}"]),
            (r#""{\"a\":1}""#, vec![r#""{\"a\":1}""#]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn everything_else_stays_prose() {
        for text in [
            "see {\"a\": 1}", "[section]\nkey = 1", "{\"a\": 1} and more", "{'a': 1}",
            "[link](https://x.example)", "{\"a\":1,\"a\":2}", "\"only quoted\"", "{{{{{{",
        ] {
            assert!(found(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn brackets_without_end_are_gone_through_a_few_times_only() {
        let text = "{\n".repeat(50_000);

        assert!(found(&text).is_empty());
    }

    proptest! {
        #[test]
        fn offsets_lead_back_through_escapes(text in "(\\PC|[\\x00-\\x1f\"\\\\]){0,20}", all in any::<bool>()) {
            let raw = if all {
                text.encode_utf16().fold(String::new(), |raw, unit| format!("{raw}\\u{unit:04x}"))
            } else {
                let quoted = serde_json::to_string(&text).unwrap();
                quoted[1..quoted.len() - 1].to_owned()
            };

            let from = offsets(raw.as_bytes());

            prop_assert_eq!(from.len(), text.len() + 1);
            for (at, char) in text.char_indices() {
                let part = &raw[from[at]..from[at + char.len_utf8()]];
                let read: String = serde_json::from_str(&format!("\"{part}\"")).unwrap();
                prop_assert_eq!(read, char.to_string());
            }
        }
    }
}
