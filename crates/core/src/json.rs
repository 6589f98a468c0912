//! One JSON truth: a strict parser, and the canonical form that is hashed.
//!
//! The parser refuses what two readers could read differently: duplicate members, too much depth,
//! too many nodes, overlong numbers, numbers beyond the range of a double. Numbers keep their
//! digits, so nothing is rounded on the way.

pub(crate) mod number;
mod strict;

use std::cmp::Ordering;

use aws_lc_rs::digest;
use serde_json::{Map, Value};

pub use self::strict::{parse, parse_around, text_member};

/// Bounds on JSON that is accepted.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Levels of nested arrays and objects.
    pub depth: usize,
    /// Values, counting each array, object and scalar.
    pub nodes: usize,
    /// Bytes of one string or member name, after unescaping.
    pub string_bytes: usize,
    /// Characters of one number literal.
    pub number_chars: usize,
    /// Numbers that are accepted.
    pub numbers: NumberRange,
    /// True if the first name in an object may be one that `serde_json` keeps for itself.
    pub reserved: bool,
}

/// Numbers that are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberRange {
    /// Those in the range of a double, with exponents up to 600 in either direction. Beyond it nobody
    /// agrees on what a number is, and exact arithmetic takes time that its text does not show.
    Double,
    /// All: what was recorded once stays readable.
    Any,
}

impl Bounds {
    /// Bounds on what callers may send.
    pub const REQUEST: Self = Self {
        depth: 64,
        nodes: 20_000,
        string_bytes: 1 << 20,
        number_chars: 256,
        numbers: NumberRange::Double,
        reserved: false,
    };
    /// Bounds on what upstream servers may answer; the byte cap is the transport's.
    pub const UPSTREAM: Self = Self {
        depth: 64,
        nodes: 400_000,
        string_bytes: 4 << 20,
        number_chars: 256,
        numbers: NumberRange::Double,
        reserved: false,
    };
    /// Bounds on records: either of these, a few levels deeper in a record.
    pub const RECORDED: Self = Self {
        depth: 80,
        nodes: 1_000_000,
        string_bytes: 8 << 20,
        number_chars: 256,
        numbers: NumberRange::Any,
        reserved: true,
    };
}

/// Why a text was refused; says where, never what it contained.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JsonError {
    message: String,
}

/// The canonical form of RFC 8785 except for numbers: members sorted by UTF-16 code units, strings
/// escaped as the RFC does, no white space.
///
/// Numbers are written as they were read, with exponents in one form (`1E3` is `1e+3`), where the RFC
/// rounds them to doubles: `1.0` and `9007199254740993` stay what they are, so that a commitment
/// is to what was sent. For integers up to 2⁵³ that are written as such both forms are the same; audit
/// records have no other numbers.
#[must_use]
pub fn canonical(value: &Value) -> String {
    written(value, Numbers::AsRead)
}

/// A text that two values share exactly when JSON Schema calls them equal: the canonical form, with
/// numbers by their value. `1`, `1.0` and `1e0` are one number.
pub(crate) fn normal(value: &Value) -> String {
    written(value, Numbers::ByValue)
}

/// Format of numbers in the output.
#[derive(Clone, Copy)]
enum Numbers {
    AsRead,
    ByValue,
}

fn written(value: &Value, numbers: Numbers) -> String {
    // Room for a small payload, so that writing it moves nothing.
    let room = match value {
        Value::Array(_) | Value::Object(_) => 2048,
        Value::String(text) => text.len() + 2,
        Value::Null | Value::Bool(_) | Value::Number(_) => 16,
    };
    let mut writer = Canonical { out: String::with_capacity(room), numbers, sorted: Vec::new() };
    writer.write(value);
    writer.out
}

struct Canonical<'a> {
    out: String,
    numbers: Numbers,
    /// The members of the objects that are being written, those of the innermost last.
    sorted: Vec<(&'a str, &'a Value)>,
}

impl<'a> Canonical<'a> {
    fn write(&mut self, value: &'a Value) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(true) => self.out.push_str("true"),
            Value::Bool(false) => self.out.push_str("false"),
            Value::Number(literal) => match self.numbers {
                Numbers::AsRead => self.out.push_str(literal.as_str()),
                Numbers::ByValue => number::write_normal(literal.as_str(), &mut self.out),
            },
            Value::String(text) => write_string(text, &mut self.out),
            Value::Array(items) => {
                self.out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    self.write(item);
                }
                self.out.push(']');
            }
            Value::Object(members) => self.object(members),
        }
    }

    fn object(&mut self, members: &'a Map<String, Value>) {
        let first = self.sorted.len();
        self.sorted.extend(members.iter().map(|(name, value)| (name.as_str(), value)));
        if let Some(own) = self.sorted.get_mut(first..) {
            own.sort_unstable_by(|(a, _), (b, _)| by_utf16(a, b));
        }
        self.out.push('{');
        for index in first..first + members.len() {
            let Some((name, member)) = self.sorted.get(index).copied() else { break };
            if index > first {
                self.out.push(',');
            }
            write_string(name, &mut self.out);
            self.out.push(':');
            self.write(member);
        }
        self.out.push('}');
        self.sorted.truncate(first);
    }
}

/// UTF-16 order; for ASCII, and so for nearly every name, that is the order of bytes.
fn by_utf16(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = first_special(rest.as_bytes()) {
        let (clean, special) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(clean);
        let mut letters = special.chars();
        letters.next().into_iter().for_each(|letter| write_escaped(letter, out));
        rest = letters.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

/// Where the first byte stands that has to be escaped. Eight at a time: hardly any has to.
fn first_special(text: &[u8]) -> Option<usize> {
    let (words, rest) = text.as_chunks::<8>();
    let is_special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    for (index, word) in words.iter().enumerate() {
        if word.iter().map(|byte| u8::from(is_special(byte))).fold(0, |any, it| any | it) != 0 {
            return word.iter().position(is_special).map(|at| index * 8 + at);
        }
    }
    rest.iter().position(is_special).map(|at| text.len() - rest.len() + at)
}

fn write_escaped(letter: char, out: &mut String) {
    match letter {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{8}' => out.push_str("\\b"),
        '\u{9}' => out.push_str("\\t"),
        '\u{a}' => out.push_str("\\n"),
        '\u{c}' => out.push_str("\\f"),
        '\u{d}' => out.push_str("\\r"),
        other => {
            out.push_str("\\u00");
            push_hex(u8::try_from(u32::from(other)).unwrap_or(0), out);
        }
    }
}

/// The SHA-256 of these parts one after the other.
#[must_use]
pub fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(part);
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

/// A SHA-256 written as `sha256:` and 64 hexadecimal digits.
#[must_use]
pub fn digest_text(digest: &[u8; 32]) -> String {
    let mut text = String::with_capacity(71);
    text.push_str("sha256:");
    for byte in digest {
        push_hex(*byte, &mut text);
    }
    text
}

/// The SHA-256 of these parts one after the other, written as [`digest_text`] does.
#[must_use]
pub fn sha256(parts: &[&[u8]]) -> String {
    digest_text(&digest(parts))
}

fn push_hex(byte: u8, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for half in [byte >> 4, byte & 15] {
        out.push(char::from(DIGITS.get(usize::from(half)).copied().unwrap_or(b'0')));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn canonical_members_are_sorted_by_utf16() {
        let value = json!({"\u{1f600}": 1, "\u{fb33}": 2, "b": [true, null], "a": "x\"\n\u{1}"});

        let text = canonical(&value);

        assert_eq!(
            text,
            "{\"a\":\"x\\\"\\n\\u0001\",\"b\":[true,null],\"\u{1f600}\":1,\"\u{fb33}\":2}"
        );
    }

    /// The names of the sorting example in RFC 8785 §3.2.3, in the order that it gives.
    #[test]
    fn names_are_sorted_as_in_the_rfc() {
        let names = ["\r", "1", "\u{80}", "ö", "€", "\u{1f600}", "\u{fb33}"];
        let members = names.iter().rev().map(|name| ((*name).to_owned(), json!(1)));

        let text = canonical(&Value::Object(members.collect()));

        let wanted = names.map(|name| format!("{}:1", canonical(&json!(name)))).join(",");
        assert_eq!(text, format!("{{{wanted}}}"));
    }

    /// The string of the example in RFC 8785 §3.2.2: control characters in short or lower-case form,
    /// no escape for `/` or for what is not ASCII.
    #[test]
    fn strings_are_escaped_as_in_the_rfc() {
        let text = canonical(&json!("€$\u{f}\nA'B\"\\\\\"/"));

        assert_eq!(text, r#""€$\u000f\nA'B\"\\\\\"/""#);
    }

    /// Integers up to 2⁵³ have the RFC's form. The RFC would write the others as `1`, `1000`, `1000`,
    /// `0.001`, `0` and `9007199254740992`.
    #[test]
    fn numbers_keep_their_digits() {
        let form = |text: &str| canonical(&parse(text.as_bytes(), Bounds::REQUEST).unwrap());

        for text in ["0", "-1", "9007199254740992", "-9007199254740992"] {
            assert_eq!(form(text), text);
            assert_eq!(text.parse::<f64>().unwrap().to_string(), text);
        }
        for (text, wanted) in [
            ("1.0", "1.0"),
            ("1e3", "1e+3"),
            ("1E3", "1e+3"),
            ("1e-3", "1e-3"),
            ("-0", "-0"),
            ("9007199254740993", "9007199254740993"),
        ] {
            assert_eq!(form(text), wanted);
        }
    }

    #[test]
    fn the_published_sha256_of_nothing_matches() {
        let digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

        assert_eq!(sha256(&[]), digest);
    }

    proptest! {
        #[test]
        fn what_is_canonical_parses_to_the_same(text in "\\PC{0,40}", number in any::<i64>()) {
            let value = json!({"t": text, "n": [number]});

            let text = canonical(&value);
            let again = parse(text.as_bytes(), Bounds::REQUEST).unwrap();

            prop_assert_eq!(canonical(&again), text);
        }
    }
}
