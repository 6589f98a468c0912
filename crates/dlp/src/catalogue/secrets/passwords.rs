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
    let before = candidate.text.get(..candidate.range.start)?;
    let name = if before.iter().all(is_spare) {
        let mut names = [candidate.key, candidate.head].into_iter().flatten();
        names.rfind(|name| names::kind(name).is_some())
    } else {
        let is_frame = |byte: &u8| matches!(byte, b' ' | b'"' | b'\'' | b'`');
        let last = before.iter().rev().find(|byte| !is_frame(byte));
        let begins_cell = last.is_some_and(|last| b",;|\t\n-*+.)".contains(last));
        match candidate.head.filter(|_| begins_cell) {
            Some(head) => Some(head).filter(|_| !candidate.matched().contains(&b' ')),
            None => return Some(IN_TEXT_BITS),
        }
    };
    let kind = names::kind(name?)?;
    may_be(kind, candidate.matched()).then_some(ALONE_BITS)
}
