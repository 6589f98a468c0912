//! Passwords, by their names: below a key, beside a label, in a column, and in a text.
//!
//! A name that says password and nothing else is enough where a value stands alone: below a key, in a
//! cell, behind `DB_PASSWORD=`. The value may be any text that is no reference to a secret kept
//! elsewhere, no mask, no type and no dummy. A line of a program or a sentence needs more: digits
//! among letters, or three kinds of characters.

pub(crate) mod assignments;
mod given;
mod letters;
mod lists;
mod loud;
mod members;
mod names;
mod places;
mod strength;
mod values;

use crate::catalogue::detector::Candidate;
use strength::may_be;

/// Evidence of a value that is all that is given to a name.
const ALONE_BITS: i32 = 8;
/// Evidence of a value in a line of a program or a sentence.
const IN_TEXT_BITS: i32 = 2;

/// A candidate that is all of a value or a cell needs a name; one in a text was looked at when it was
/// found.
pub(crate) fn password(candidate: &Candidate<'_>) -> Option<i32> {
    let is_spare = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`');
    if !candidate.text.get(..candidate.range.start)?.iter().all(is_spare) {
        return Some(IN_TEXT_BITS);
    }
    let kind = [candidate.head, candidate.key].into_iter().flatten().find_map(names::kind)?;
    may_be(kind, candidate.matched()).then_some(ALONE_BITS)
}
