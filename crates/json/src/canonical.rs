//! Values of JSON in either representation, and their canonical form: what is hashed and compared.

use std::{borrow::Cow, cmp::Ordering};

use serde_json::{Value, map};

use super::{number, push_hex};

/// A value of JSON: in a tree of `serde_json`, or in a [`Document`](super::Document).
pub trait JsonValue<'a>: Copy {
    /// The items of an array.
    type Items: Iterator<Item = Self> + Clone;
    /// The members of an object.
    type Members: Iterator<Item = (&'a str, Self)>;

    /// The value, one level deep.
    fn kind(self) -> Kind<'a, Self>;

    /// The member of an object.
    fn get(self, name: &str) -> Option<Self>;

    /// The text, if it is one.
    #[inline]
    fn text(self) -> Option<&'a str> {
        match self.kind() {
            Kind::Text(text) => Some(text),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Array(_) | Kind::Object(_) => None,
        }
    }

    /// The text of the value, if it is known to be its canonical form.
    #[inline]
    fn known_canonical(self) -> Option<&'a str> {
        None
    }

    /// The canonical form, as [`canonical`](super::canonical()) describes it.
    fn canonical(self) -> Cow<'a, str> {
        match self.known_canonical() {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(write_text(self, Form::Canonical)),
        }
    }
}

/// A value, one level deep.
pub enum Kind<'a, T: JsonValue<'a>> {
    Null,
    Bool(bool),
    /// A number, by its literal.
    Number(&'a str),
    /// A text without escapes.
    Text(&'a str),
    Array(T::Items),
    Object(T::Members),
}

impl<'a> JsonValue<'a> for &'a Value {
    type Items = std::slice::Iter<'a, Value>;
    type Members = TreeMembers<'a>;

    fn kind(self) -> Kind<'a, Self> {
        match self {
            Value::Null => Kind::Null,
            Value::Bool(flag) => Kind::Bool(*flag),
            Value::Number(number) => Kind::Number(number.as_str()),
            Value::String(text) => Kind::Text(text),
            Value::Array(items) => Kind::Array(items.iter()),
            Value::Object(members) => Kind::Object(TreeMembers(members.iter())),
        }
    }

    fn get(self, name: &str) -> Option<Self> {
        Value::get(self, name)
    }
}

/// The members of an object in a tree.
pub struct TreeMembers<'a>(map::Iter<'a>);

impl<'a> Iterator for TreeMembers<'a> {
    type Item = (&'a str, &'a Value);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, member)| (name.as_str(), member))
    }
}

/// The canonical form of RFC 8785 except for numbers: members sorted by UTF-16 code units, strings
/// escaped as the RFC does, no white space.
///
/// Numbers are written as they were read, with exponents in one form (`1E3` is `1e+3`), where the RFC
/// rounds them to doubles: `1.0` and `9007199254740993` stay what they are, so that a commitment
/// is to what was sent. For integers up to 2⁵³ that are written as such both forms are the same; audit
/// records have no other numbers.
#[must_use]
pub fn canonical<'a>(value: impl JsonValue<'a>) -> String {
    write_text(value, Form::Canonical)
}

/// Writes the canonical form, as [`canonical()`] describes it.
pub fn write_canonical<'a>(value: impl JsonValue<'a>, out: &mut String) {
    match value.known_canonical() {
        Some(text) => out.push_str(text),
        None => write_to(out, value, Form::Canonical),
    }
}

/// A text that two values share exactly when JSON Schema calls them equal: the canonical form, with
/// numbers by their value. `1`, `1.0` and `1e0` are one number.
pub fn normal<'a>(value: impl JsonValue<'a>) -> String {
    write_text(value, Form::ByValue)
}

/// Form of members and numbers in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Members in order, numbers as they were read.
    Canonical,
    /// Members in order, numbers by their value.
    ByValue,
    /// Members and numbers as they were read.
    Compact,
}

/// A value as text without white space.
pub(super) fn write_text<'a, T: JsonValue<'a>>(value: T, form: Form) -> String {
    let mut out = String::new();
    write_to(&mut out, value, form);
    out
}

fn write_to<'a, T: JsonValue<'a>>(out: &mut String, value: T, form: Form) {
    // Room for a small payload, so that writing it moves nothing.
    out.reserve(match value.kind() {
        Kind::Array(_) | Kind::Object(_) => 2048,
        Kind::Text(text) => text.len() + 2,
        Kind::Null | Kind::Bool(_) | Kind::Number(_) => 24,
    });
    Writer { out, form, sorted: Vec::new() }.write(value);
}

struct Writer<'o, 'a, T> {
    out: &'o mut String,
    form: Form,
    /// The members of the objects that are being written, those of the innermost last.
    sorted: Vec<(&'a str, T)>,
}

impl<'a, T: JsonValue<'a>> Writer<'_, 'a, T> {
    fn write(&mut self, value: T) {
        if self.form != Form::ByValue
            && let Some(text) = value.known_canonical()
        {
            self.out.push_str(text);
            return;
        }
        match value.kind() {
            Kind::Null => self.out.push_str("null"),
            Kind::Bool(true) => self.out.push_str("true"),
            Kind::Bool(false) => self.out.push_str("false"),
            Kind::Number(literal) => match self.form {
                Form::Canonical => write_number(literal, self.out),
                Form::Compact => self.out.push_str(literal),
                Form::ByValue => number::write_normal(literal, self.out),
            },
            Kind::Text(text) => write_string(text, self.out),
            Kind::Array(items) => {
                self.out.push('[');
                for (index, item) in items.enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    self.write(item);
                }
                self.out.push(']');
            }
            Kind::Object(members) => self.object(members),
        }
    }

    fn object(&mut self, members: T::Members) {
        let first = self.sorted.len();
        self.sorted.extend(members);
        if self.form != Form::Compact
            && let Some(own) = self.sorted.get_mut(first..)
        {
            own.sort_unstable_by(|(a, _), (b, _)| by_utf16(a, b));
        }
        let end = self.sorted.len();
        self.out.push('{');
        for index in first..end {
            let Some((name, member)) = self.sorted.get(index).copied() else { break };
            if index > first {
                self.out.push(',');
            }
            write_string(name, self.out);
            self.out.push(':');
            self.write(member);
        }
        self.out.push('}');
        self.sorted.truncate(first);
    }
}

/// UTF-16 order: that of bytes, but U+E000 to U+FFFF, in UTF-8 from EE or EF on, come behind the larger
/// ones, which are surrogates in UTF-16.
pub(super) fn by_utf16(a: &str, b: &str) -> Ordering {
    let place = |byte: u8| if matches!(byte, 0xEE | 0xEF) { byte + 0x10 } else { byte };
    let differing = a.bytes().zip(b.bytes()).find(|(a, b)| a != b);
    differing.map_or_else(|| a.len().cmp(&b.len()), |(a, b)| place(a).cmp(&place(b)))
}

/// The exponent of a literal if it has one, and the digits before it.
fn exponent(literal: &str) -> Option<(&str, &str)> {
    literal.split_once(['e', 'E'])
}

/// Returns true if a literal stands in the canonical form as it is.
pub(super) fn is_canonical_number(literal: &str) -> bool {
    let is_one = |(digits, exponent): (&str, &str)| {
        exponent.starts_with(['+', '-']) && literal.as_bytes().get(digits.len()) == Some(&b'e')
    };
    exponent(literal).is_none_or(is_one)
}

fn write_number(literal: &str, out: &mut String) {
    let Some((digits, exponent)) = exponent(literal) else {
        out.push_str(literal);
        return;
    };
    out.push_str(digits);
    out.push('e');
    if !exponent.starts_with(['+', '-']) {
        out.push('+');
    }
    out.push_str(exponent);
}

/// Writes a text in quotation marks, with the escapes of the canonical form.
pub fn write_string(text: &str, out: &mut String) {
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

/// Offset of the first byte that has to be escaped. Eight at a time: hardly any has to.
#[inline]
pub(super) fn first_special(text: &[u8]) -> Option<usize> {
    let (words, rest) = text.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let marks = specials(u64::from_le_bytes(*word));
        if marks != 0 {
            return Some(index * 8 + marks.trailing_zeros() as usize / 8);
        }
    }
    let is_special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    rest.iter().position(is_special).map(|at| text.len() - rest.len() + at)
}

/// Marks the bytes of a word that have to be escaped by their highest bits; the lowest mark is exact,
/// those above can be of bytes behind it that need none.
const fn specials(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const fn below(word: u64, limit: u64) -> u64 {
        word.wrapping_sub(ONES * limit) & !word
    }
    let quote = word ^ (ONES * 0x22);
    let backslash = word ^ (ONES * 0x5C);
    (below(word, 0x20) | below(quote, 1) | below(backslash, 1)) & (ONES << 7)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{Bounds, parse, sha256, testing::any_json};

    /// The RFC's form by another library.
    fn by_library(value: &Value) -> String {
        serde_json_canonicalizer::to_string(value).unwrap()
    }

    /// The value with numbers as the RFC writes them.
    fn with_doubles(value: Value) -> Value {
        match value {
            Value::Number(_) => parse(by_library(&value).as_bytes(), Bounds::RECORDED).unwrap(),
            Value::Array(items) => items.into_iter().map(with_doubles).collect(),
            Value::Object(members) => {
                members.into_iter().map(|(name, it)| (name, with_doubles(it))).collect()
            }
            Value::Null | Value::Bool(_) | Value::String(_) => value,
        }
    }

    #[test]
    fn canonical_members_are_sorted_by_utf16() {
        let value = json!({"\u{1f600}": 1, "\u{fb33}": 2, "b": [true, null], "a": "x\"\n\u{1}"});

        let text = canonical(&value);

        assert_eq!(
            text,
            "{\"a\":\"x\\\"\\n\\u0001\",\"b\":[true,null],\"\u{1f600}\":1,\"\u{fb33}\":2}"
        );
        assert_eq!(text, by_library(&value));
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

    /// Numbers that the RFC writes stay as they are, the examples of its appendix B among them; a number that it would
    /// round is not.
    #[test]
    fn numbers_keep_their_digits() {
        for (text, form, rfc) in [
            ("0", "0", "0"),
            ("-1", "-1", "-1"),
            ("9007199254740992", "9007199254740992", "9007199254740992"),
            ("-9007199254740992", "-9007199254740992", "-9007199254740992"),
            ("295147905179352830000", "295147905179352830000", "295147905179352830000"),
            ("1e+23", "1e+23", "1e+23"),
            ("5e-324", "5e-324", "5e-324"),
            ("-1.7976931348623157e+308", "-1.7976931348623157e+308", "-1.7976931348623157e+308"),
            ("333333333.3333332", "333333333.3333332", "333333333.3333332"),
            ("-0.0000033333333333333333", "-0.0000033333333333333333", "-0.0000033333333333333333"),
            ("1.0", "1.0", "1"),
            ("1e3", "1e+3", "1000"),
            ("1E3", "1e+3", "1000"),
            ("1e-3", "1e-3", "0.001"),
            ("-0", "-0", "0"),
            ("9007199254740993", "9007199254740993", "9007199254740992"),
        ] {
            let value = parse(text.as_bytes(), Bounds::REQUEST).unwrap();

            assert_eq!((canonical(&value).as_str(), by_library(&value).as_str()), (form, rfc));
        }
    }

    #[test]
    fn the_published_sha256_of_nothing_matches() {
        let digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

        assert_eq!(sha256(&[]), digest);
    }

    proptest! {
        #[test]
        fn names_are_in_the_order_of_their_utf16_units(
            one in "[a\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}]{0,3}",
            other in "[a\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}]{0,3}",
        ) {
            let by_units = one.encode_utf16().cmp(other.encode_utf16());

            prop_assert_eq!(by_utf16(&one, &other), by_units);
        }

        #[test]
        fn of_numbers_that_are_doubles_the_form_is_that_of_the_rfc(value in any_json()) {
            let value = with_doubles(value);

            prop_assert_eq!(canonical(&value), by_library(&value));
        }

        #[test]
        fn what_is_canonical_parses_to_the_same(text in "\\PC{0,40}", number in any::<i64>()) {
            let value = json!({"t": text, "n": [number]});

            let text = canonical(&value);
            let again = parse(text.as_bytes(), Bounds::REQUEST).unwrap();

            prop_assert_eq!(canonical(&again), text);
        }
    }
}
