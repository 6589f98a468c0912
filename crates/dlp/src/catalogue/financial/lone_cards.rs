//! Numbers that could be those of payment cards, with nothing beside them that says so.

use std::ops::Range;

use crate::catalogue::financial::cards::{is_counted, is_varied, issuer_bits};
use crate::{
    catalogue::{
        checks,
        detector::Candidate,
        lists::{COUNTING, SERIAL},
    },
    text::{digits::DigitRun, number::plain_number, window::Window, words},
};

/// The run, with its exponent, if it is one number and all of a value, or stands in a sentence.
pub(crate) fn lone_numbers(text: &Window<'_>, run: &DigitRun) -> Vec<Range<usize>> {
    let range = match run.groups.as_slice() {
        [whole] => whole.clone(),
        [whole, fraction] if text.get(whole.end) == Some(&b'.') => whole.start..fraction.end,
        _ => return Vec::new(),
    };
    let range = range.start..range.end + exponent(text.get(range.end..).unwrap_or_default());
    if is_whole_value(text, &range) || is_in_sentence(text, &range) {
        vec![range]
    } else {
        Vec::new()
    }
}

/// Length of the exponent that a text begins with.
fn exponent(text: &[u8]) -> usize {
    let digits = match text {
        [b'e' | b'E', b'+', rest @ ..] => (2, rest),
        [b'e' | b'E', rest @ ..] => (1, rest),
        _ => return 0,
    };
    match digits.1.iter().take_while(|byte| byte.is_ascii_digit()).count() {
        length @ 1..=2 => digits.0 + length,
        _ => 0,
    }
}

/// Returns true if nothing but white space stands beside it in its text, or it is a member's value
/// in JSON that is carried as text.
fn is_whole_value(text: &[u8], range: &Range<usize>) -> bool {
    let before = text.get(..range.start).unwrap_or_default();
    let after = text.get(range.end..).unwrap_or_default();
    let trimmed = trimmed_end(before);
    let rest = trimmed_start(after);
    if matches!(trimmed, [] | [.., 0]) && matches!(rest, [] | [0, ..]) {
        return true;
    }
    let (sign, rest) = match (before, after) {
        ([sign @ .., b'\\', b'"'], [b'\\', b'"', rest @ ..])
        | ([sign @ .., b'"'], [b'"', rest @ ..]) => (sign, rest),
        _ => (before, after),
    };
    let is_member = match trimmed_end(sign) {
        [name @ .., b':'] => trimmed_end(name).last() == Some(&b'"'),
        _ => false,
    };
    is_member && matches!(trimmed_start(rest), [] | [0 | b',' | b'}', ..])
}

/// Returns true if a word or a sign of a sentence stands before it or a word behind it, with space between.
fn is_in_sentence(text: &[u8], range: &Range<usize>) -> bool {
    let before = text.get(..range.start).unwrap_or_default();
    let after = match text.get(range.end..).unwrap_or_default() {
        [b'.' | b',' | b';' | b':' | b'!' | b'?' | b')', rest @ ..] => rest,
        after => after,
    };
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
    let trimmed = trimmed_end(before);
    let rest = trimmed_start(after);
    // A NUL stands between texts.
    let is_free = (matches!(before, [] | [.., 0]) || trimmed.len() < before.len())
        && (matches!(after, [] | [0, ..]) || rest.len() < after.len());
    let follows_word =
        trimmed.last().is_some_and(|last| is_letter(last) || b".,;:!?".contains(last));
    is_free && (follows_word || rest.first().is_some_and(is_letter))
}

/// White space that is looked through.
const WHITE: usize = 16;

fn trimmed_end(text: &[u8]) -> &[u8] {
    let spare = text.iter().rev().take(WHITE).take_while(|byte| byte.is_ascii_whitespace()).count();
    text.get(..text.len() - spare).unwrap_or_default()
}

fn trimmed_start(text: &[u8]) -> &[u8] {
    let spare = text.iter().take(WHITE).take_while(|byte| byte.is_ascii_whitespace()).count();
    text.get(spare..).unwrap_or_default()
}

/// Evidence of a number with an issuer's range, a length that its cards have, and a right check digit.
pub(crate) fn card(candidate: &Candidate<'_>) -> Option<i32> {
    let literal = std::str::from_utf8(candidate.matched()).ok()?;
    let plain = plain_number(literal);
    let digits: Vec<u8> =
        plain.bytes().map(|b| b.is_ascii_digit().then(|| b - b'0')).collect::<Option<_>>()?;
    let is_usual = match (digits.as_slice(), issuer_bits(&digits)?) {
        (_, 4..) => true,
        ([4, ..], _) => digits.len() == 13,
        ([6, 2, ..], _) => digits.len() == 19,
        ([3, ..], _) => digits.len() == 14,
        _ => false,
    };
    let is_card = is_usual && is_varied(&digits) && checks::luhn(&digits);
    let counts_near =
        |words: &&[&str]| words::stands_near(&candidate.text, &candidate.range, words);
    let is_other = || {
        is_in_sentence(&candidate.text, &candidate.range)
            && [*SERIAL, *COUNTING].iter().any(counts_near)
    };
    (is_card && !is_counted(candidate) && !is_other()).then_some(12)
}
