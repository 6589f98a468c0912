//! Checks that a match looks random, as real secrets do.

use crate::catalogue::{checks, detector::Candidate};

/// Evidence that a dummy of a marked secret lacks.
const DUMMY_BITS: i32 = -12;

/// Nothing more, if the match is no mere placeholder; less if it is a row of one letter, as people
/// write them to try a scanner.
pub(crate) fn random(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    if is_inside_base64(candidate) {
        return None;
    }
    if checks::looks_random(matched, 3.0) {
        return Some(0);
    }
    is_row(matched).then_some(DUMMY_BITS)
}

/// Returns true if a text ends in a row of one letter that is not the usual sign for what is left
/// out.
pub(super) fn is_row(text: &[u8]) -> bool {
    const LEAST: usize = 16;
    let Some(last) = text.last() else { return false };
    let length = text.iter().rev().take_while(|byte| *byte == last).count();
    length >= LEAST && last.is_ascii_alphabetic() && !last.eq_ignore_ascii_case(&b'x')
}

/// Nothing more.
pub(crate) fn clear(candidate: &Candidate<'_>) -> Option<i32> {
    (!is_inside_base64(candidate)).then_some(0)
}

/// The same where what stands behind a row of one character looks random.
pub(crate) fn random_behind_row(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let row = matched.iter().take_while(|byte| matched.first() == Some(byte)).count();
    let rest = matched.get(row..).unwrap_or_default();
    clear(candidate).filter(|_| checks::looks_random(rest, 3.0))
}

/// Between two signs of base64 and among its letters. Segments of a path stand between such signs too, but in words.
fn is_inside_base64(candidate: &Candidate<'_>) -> bool {
    const NEAR: usize = 24;
    const CHANGES: usize = 4;
    let is_sign = |byte: Option<&&u8>| matches!(byte, Some(b'+' | b'/'));
    let is_letter = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    let before = candidate.text.get(..candidate.range.start).unwrap_or_default();
    let behind = candidate.text.get(candidate.range.end..).unwrap_or_default();
    let before: Vec<u8> = before.iter().rev().take(NEAR).take_while(is_letter).copied().collect();
    let behind: Vec<u8> = behind.iter().take(NEAR).take_while(is_letter).copied().collect();
    is_sign(before.first().as_ref())
        && is_sign(behind.first().as_ref())
        && candidate.matched().iter().all(|byte| is_letter(&byte))
        && case_changes(&before).max(case_changes(&behind)) >= CHANGES
}

pub(crate) fn random_with_digits(candidate: &Candidate<'_>) -> Option<i32> {
    let is_mixed = candidate.digits().len() >= 4 || case_changes(candidate.matched()) >= 8;
    if is_mixed { random(candidate) } else { None }
}

pub(crate) fn random_with_letters(candidate: &Candidate<'_>) -> Option<i32> {
    let is_beyond_hex = |byte: &u8| byte.to_ascii_lowercase() > b'f';
    let tail = candidate.matched().get(4..).unwrap_or_default();
    let telling = tail.iter().filter(|byte| byte.is_ascii_alphabetic() && is_beyond_hex(byte));
    if telling.count() < 4 { None } else { random(candidate) }
}

/// Both cases, changing more often than in names, or unpronounceable letters.
pub(crate) fn random_letters(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    if case_changes(matched) >= 8 || is_unspeakable(matched) { random(candidate) } else { None }
}

/// Number of changes of case from one letter or digit to the next. Joints are none: words have them, too.
fn case_changes(text: &[u8]) -> usize {
    let changes = text.array_windows().filter(|[a, b]| {
        a.is_ascii_alphanumeric()
            && b.is_ascii_alphanumeric()
            && a.is_ascii_lowercase() != b.is_ascii_lowercase()
    });
    changes.count()
}

/// Returns true if consonants stand in rows as no language has them.
fn is_unspeakable(text: &[u8]) -> bool {
    const ROW: usize = 5;
    const ROWS: usize = 2;
    let is_vowel = |byte: &u8| {
        !byte.is_ascii_alphabetic()
            || matches!(byte.to_ascii_lowercase(), b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
    };
    text.split(is_vowel).filter(|row| row.len() >= ROW).count() >= ROWS
}
