//! One JSON truth: a strict parser, and the canonical form that is hashed.
//!
//! The parser refuses what two readers could read differently: duplicate members, too much depth,
//! too many nodes, overlong numbers, numbers beyond the range of a double. Numbers keep their
//! digits, so nothing is rounded on the way.

mod canonical;
mod document;
pub mod number;
mod serialized;
mod strict;
mod table;
mod write;

use aws_lc_rs::digest;

pub use self::{
    canonical::{JsonValue, Kind, canonical, normal, write_canonical, write_string},
    document::{Document, Items, Leaf, Members, Node},
    serialized::{Unwritable, write_serialized},
    strict::{parse, parse_around, text_member, value_length},
    write::{Edits, ObjectWriter},
};

/// The member of an object that a JSON Pointer leads into.
#[must_use]
pub fn pointer_head(pointer: &str) -> Option<String> {
    let token = pointer.strip_prefix('/')?.split('/').next()?;
    Some(token.replace("~1", "/").replace("~0", "~"))
}

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
    pub numbers: NumberRange,
    /// True if the first name in an object may be one that `serde_json` keeps for itself.
    pub reserved: bool,
}

/// Numbers that are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberRange {
    /// Numbers in the range of a double, with exponents up to 600 in either direction. Beyond it
    /// parsers disagree on what a number is, and exact arithmetic takes time that its text does not
    /// show.
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

/// Reason that a text was refused; names the place, never the content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JsonError {
    message: String,
}

/// Bytes that are put together to be hashed at once, which takes no memory; more are hashed part by
/// part.
const AT_ONCE: usize = 2048;

/// The SHA-256 of these parts one after the other.
#[must_use]
pub fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let whole = match parts {
        [whole] => digest::digest(&digest::SHA256, whole),
        _ => digest_of_parts(parts),
    };
    let mut digest = [0; 32];
    digest.copy_from_slice(whole.as_ref());
    digest
}

fn digest_of_parts(parts: &[&[u8]]) -> digest::Digest {
    let mut whole = [0; AT_ONCE];
    let mut length = 0;
    for part in parts {
        let end = length + part.len();
        let Some(place) = whole.get_mut(length..end) else {
            let mut context = digest::Context::new(&digest::SHA256);
            for part in parts {
                context.update(part);
            }
            return context.finish();
        };
        place.copy_from_slice(part);
        length = end;
    }
    digest::digest(&digest::SHA256, whole.get(..length).unwrap_or_default())
}

/// A SHA-256 written as `sha256:` and 64 hexadecimal digits.
#[must_use]
pub fn digest_text(digest: &[u8; 32]) -> String {
    let mut text = String::with_capacity(71);
    text.push_str("sha256:");
    text.push_str(str::from_utf8(&hex(digest)).unwrap_or_default());
    text
}

/// The hexadecimal digits of a SHA-256.
#[must_use]
pub fn hex(digest: &[u8; 32]) -> [u8; 64] {
    let mut digits = [0; 64];
    let (pairs, _) = digits.as_chunks_mut::<2>();
    for (pair, byte) in pairs.iter_mut().zip(digest) {
        *pair = hex_of(*byte);
    }
    digits
}

/// The SHA-256 of these parts one after the other, written as [`digest_text`] does.
#[must_use]
pub fn sha256(parts: &[&[u8]]) -> String {
    digest_text(&digest(parts))
}

fn push_hex(byte: u8, out: &mut String) {
    out.extend(hex_of(byte).map(char::from));
}

/// Digits in lower case.
const fn hex_of(byte: u8) -> [u8; 2] {
    const fn digit(half: u8) -> u8 {
        half + if half < 10 { b'0' } else { b'a' - 10 }
    }
    [digit(byte >> 4), digit(byte & 15)]
}

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_digest_of_the_whole() {
        for length in [0, 1, 64, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 5 * AT_ONCE] {
            let whole: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let (one, other) = whole.split_at(length / 3);

            assert_eq!(digest(&[one, &[], other]), digest(&[&whole]), "{length}");
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{Bounds, parse};

    /// Any value of JSON.
    pub(crate) fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(|it| json!(it)),
            "\\PC{0,20}".prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        let any = leaf.prop_recursive(4, 60, 20, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::btree_map("[a-g\"é]{0,2}", inner, 0..20)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        });
        // Numbers as the parser reads them.
        any.prop_map(|value| parse(value.to_string().as_bytes(), Bounds::RECORDED).unwrap())
    }
}
