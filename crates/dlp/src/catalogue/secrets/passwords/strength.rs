//! Texts that are strong enough for the name they are given to.

use super::{names::SecretKind, values};
use crate::catalogue::{
    checks::looks_random,
    secrets::{
        general::{classes, is_camel_case, is_uuid, is_worded},
        pairs,
    },
};

/// Returns true if a text that is all of the value of a name is a secret of the kind.
pub(super) fn may_be(kind: SecretKind, value: &[u8]) -> bool {
    values::may_be_secret(value)
        && match kind {
            SecretKind::Password => value.len() >= 4,
            SecretKind::ShortPassword => {
                let is_count = value.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
                value.len() >= if is_count { 6 } else { 4 }
            }
            SecretKind::Key => is_key(value),
        }
}

/// Returns true if a text looks like a key: letters and digits without words.
fn is_key(value: &[u8]) -> bool {
    const SHORTEST: usize = 8;
    let is_graphic = value.iter().all(u8::is_ascii_graphic);
    let is_address = value.contains(&b'@') || value.windows(3).any(|part| part == b"://");
    value.len() >= SHORTEST
        && is_graphic
        && !is_uuid(value)
        && !is_address
        && (is_mixed(value) && !is_worded(value) && !is_camel_case(value) || is_scattered(value))
}

/// Returns true for letters alone whose case changes as in no word and no name.
fn is_scattered(value: &[u8]) -> bool {
    const SHORTEST: usize = 16;
    let rises = value
        .array_windows()
        .filter(|[one, other]| one.is_ascii_lowercase() && other.is_ascii_uppercase());
    value.len() >= SHORTEST
        && value.iter().all(u8::is_ascii_alphabetic)
        && 5 * rises.count() >= value.len()
        && pairs::is_odd(&value.to_ascii_lowercase())
}

/// Returns true if a key looks so random that it needs no more than its name: digits among letters of
/// both cases, no word and no name of a program.
pub(super) fn is_random_key(value: &[u8]) -> bool {
    const SHORTEST: usize = 12;
    let has = |is: fn(&u8) -> bool| value.iter().any(is);
    value.len() >= SHORTEST
        && value.iter().all(u8::is_ascii_alphanumeric)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && (has(u8::is_ascii_digit) || is_scattered(value))
        && looks_random(value, 3.0)
        && is_key(value)
}

/// Returns true if a text has digits and letters.
pub(super) fn is_mixed(value: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| value.iter().any(is);
    has(u8::is_ascii_digit) && (has(u8::is_ascii_alphabetic) || !value.is_ascii())
}

/// Returns true if a text has digits among letters, or many kinds of characters.
pub(super) fn is_strong(value: &[u8], least: usize) -> bool {
    value.len() >= least && is_mixed(value) || value.len() >= 8 && classes(value) >= 3
}
