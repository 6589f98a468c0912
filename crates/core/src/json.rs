//! One JSON truth: a strict parser, and the canonical form that is hashed.
//!
//! The parser refuses what two readers could read differently: duplicate members, too much depth,
//! too many nodes, overlong numbers. Numbers keep their text, so nothing is rounded on the way.

use std::{cell::Cell, cmp::Ordering, fmt};

use aws_lc_rs::digest;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The member name by which `serde_json` hands over a number with its text.
const NUMBER: &str = "$serde_json::private::Number";

/// How much JSON is accepted.
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
}

impl Bounds {
    /// What callers may send.
    pub const REQUEST: Self =
        Self { depth: 64, nodes: 20_000, string_bytes: 1 << 20, number_chars: 256 };
    /// What upstream servers may answer; the byte cap is the transport's.
    pub const UPSTREAM: Self =
        Self { depth: 64, nodes: 400_000, string_bytes: 4 << 20, number_chars: 256 };
}

/// Why a text was refused; says where, never what it contained.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JsonError {
    message: String,
}

/// Parses one JSON value strictly. Says no to duplicate members and whatever exceeds `bounds`.
pub fn parse(bytes: &[u8], bounds: Bounds) -> Result<Value, JsonError> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let nodes = Cell::new(0);
    let seed = Strict { bounds, nodes: &nodes, depth: 0 };
    let value = seed.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| JsonError { message: plain(&error) })
}

/// The library's message without anything taken from the text itself.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let known = ["duplicate member", "nested deeper", "more than", "longer than"];
    if known.iter().any(|start| text.starts_with(start)) {
        return text;
    }
    let what = if error.is_eof() { "the JSON ends too early" } else { "not valid JSON" };
    format!("{what} at line {} column {}", error.line(), error.column())
}

#[derive(Clone, Copy)]
struct Strict<'a> {
    bounds: Bounds,
    nodes: &'a Cell<usize>,
    depth: usize,
}

impl Strict<'_> {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth >= self.bounds.depth {
            return Err(E::custom(format_args!("nested deeper than {} levels", self.bounds.depth)));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }

    fn sized<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        if text.len() > self.bounds.string_bytes {
            let limit = self.bounds.string_bytes;
            return Err(E::custom(format_args!("longer than {limit} bytes in one string")));
        }
        Ok(())
    }

    fn number<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        if text.len() > self.bounds.number_chars {
            let limit = self.bounds.number_chars;
            return Err(E::custom(format_args!("longer than {limit} characters in one number")));
        }
        if let Some(number) = short_integer(text) {
            return Ok(Value::Number(number.into()));
        }
        text.parse::<Number>().map(Value::Number).map_err(|_| E::custom("not a number"))
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        let count = self.nodes.get() + 1;
        if count > self.bounds.nodes {
            let limit = self.bounds.nodes;
            return Err(D::Error::custom(format_args!("more than {limit} values")));
        }
        self.nodes.set(count);
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        self.sized(text)?;
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Value, E> {
        self.sized(&text)?;
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key_seed(Name { first: object.is_empty() })? {
            let Some(name) = name else {
                return self.number(&members.next_value::<String>()?);
            };
            self.sized(&name)?;
            let value = members.next_value_seed(self.deeper()?)?;
            if object.insert(name, value).is_some() {
                return Err(A::Error::custom("duplicate member in an object"));
            }
        }
        Ok(Value::Object(object))
    }
}

/// Reads the name of a member; `None` is the library's sign for a number.
struct Name {
    first: bool,
}

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Option<String>;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok((!self.first || text != NUMBER).then(|| text.to_owned()))
    }
}

/// An integer that is written as it would be written again.
fn short_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let plain = match digits {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', ..] => digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if plain { text.parse().ok() } else { None }
}

/// The canonical form of RFC 8785: members sorted by UTF-16 code units, no white space.
///
/// Numbers are written as they were read; what we hash as evidence has only integers below 2⁵³,
/// for which that is the RFC's form.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(number.as_str()),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by(|(a, _), (b, _)| by_utf16(a, b));
            out.push('{');
            for (index, (name, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(name, out);
                out.push(':');
                write_canonical(member, out);
            }
            out.push('}');
        }
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

    fn strict(text: &str) -> Result<Value, JsonError> {
        parse(text.as_bytes(), Bounds::REQUEST)
    }

    #[test]
    fn duplicate_members_are_refused_wherever_they_stand() {
        for text in [r#"{"a":1,"a":2}"#, r#"[{"b":{"a":1,"\u0061":1}}]"#] {
            let error = strict(text).unwrap_err().to_string();

            assert!(error.starts_with("duplicate member"), "{error}");
        }
    }

    #[test]
    fn numbers_keep_their_text() {
        for text in [
            "12345678901234567890123456789",
            "1.10",
            "-0",
            "0",
            "-7",
            "1e+400",
            "0.1000",
            "999999999999999999",
            "-999999999999999999",
            "1000000000000000000",
            "9223372036854775808",
        ] {
            assert_eq!(strict(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn depth_nodes_and_lengths_are_bounded() {
        let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
        let fits = format!("{}{}", "[".repeat(64), "]".repeat(64));
        let many = format!("[{}1]", "1,".repeat(20_000));
        let long = "1".repeat(257);

        assert!(strict(&fits).is_ok());
        assert!(strict(&deep).unwrap_err().to_string().starts_with("nested deeper than 64"));
        assert!(strict(&many).unwrap_err().to_string().starts_with("more than 20000"));
        assert!(strict(&long).unwrap_err().to_string().starts_with("longer than 256"));
    }

    #[test]
    fn what_is_not_json_is_refused_without_an_echo() {
        for text in
            ["", "{", "nul", "{'hunter2':1}", "[1,]", "1 2", "\u{feff}{}", "NaN", "\"\\ud800\""]
        {
            let error = strict(text).unwrap_err().to_string();

            assert!(error.contains("line"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert!(parse(b"\"\xff\"", Bounds::REQUEST).is_err());
    }

    #[test]
    fn a_member_that_looks_like_the_library_s_own_number_is_no_way_around() {
        let twin = format!(r#"{{"{NUMBER}":"not a number"}}"#);

        assert!(strict(&twin).is_err());
    }

    #[test]
    fn canonical_members_are_sorted_by_utf16() {
        let value = json!({"\u{1f600}": 1, "\u{fb33}": 2, "b": [true, null], "a": "x\"\n\u{1}"});

        let text = canonical(&value);

        assert_eq!(
            text,
            "{\"a\":\"x\\\"\\n\\u0001\",\"b\":[true,null],\"\u{1f600}\":1,\"\u{fb33}\":2}"
        );
    }

    #[test]
    fn the_published_sha256_of_nothing_matches() {
        let digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

        assert_eq!(sha256(&[]), digest);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes, Bounds::REQUEST);
        }

        #[test]
        fn what_is_canonical_parses_to_the_same(text in "\\PC{0,40}", number in any::<i64>()) {
            let value = json!({"t": text, "n": [number]});

            prop_assert_eq!(canonical(&strict(&canonical(&value)).unwrap()), canonical(&value));
        }
    }
}
