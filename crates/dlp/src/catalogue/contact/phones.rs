//! Telephone numbers: ITU-T E.164 and what people write.

use std::ops::Range;

use crate::{
    catalogue::{
        checks::{part, varied},
        detector::Candidate,
        lists::{NOT_PHONE, PHONE},
        naming::member,
    },
    text::{digits::DigitRun, window::Window, words},
};

/// A run after a `+`, which may begin in brackets: `+1 (415) 555-0132`.
pub(crate) fn international(text: &Window<'_>, run: &DigitRun) -> Vec<Range<usize>> {
    let Some(first) = run.groups.first() else { return Vec::new() };
    let Some(start) = first.start.checked_sub(1).filter(|at| text.get(*at) == Some(&b'+')) else {
        return Vec::new();
    };
    if start.checked_sub(1).and_then(|at| text.get(at)).is_some_and(u8::is_ascii_alphanumeric) {
        return Vec::new();
    }
    let mut end = run.groups.last().map_or(first.end, |last| last.end);
    let rest = text.get(end..).unwrap_or_default();
    if let Some(bracket) = rest.iter().take(2).position(|byte| *byte == b'(') {
        end = through_brackets(text, end + bracket).unwrap_or(end);
    } else if goes_on(text, start, end) {
        end = through_signs(text, end);
    }
    let longest = text.get(start..end).unwrap_or_default();
    let found = start..start + at_most_fifteen(longest);
    Vec::from([found])
}

/// Returns true where a number goes on behind a bracket around its country code, a slash, or a dash between
/// spaces: `(+46) 8 123`, `+49 30/901820`, `+43 1 - 58858`.
fn goes_on(text: &[u8], start: usize, end: usize) -> bool {
    let is_bracketed = start.checked_sub(1).and_then(|at| text.get(at)) == Some(&b'(');
    match text.get(end..).unwrap_or_default() {
        [b')', b' ' | b'-', next, ..] | [b')', next, ..] => is_bracketed && next.is_ascii_digit(),
        [b'/', next, ..] | [b' ', b'-', b' ', next, ..] => next.is_ascii_digit(),
        _ => false,
    }
}

/// The end of the digits and signs behind an offset.
fn through_signs(text: &[u8], end: usize) -> usize {
    const LONGEST: usize = 24;
    let is_part =
        |byte: &&u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'-' | b'.' | b'/' | b')');
    let rest = text.get(end..).unwrap_or_default();
    let length = rest.iter().take(LONGEST).take_while(is_part).count();
    let taken = rest.get(..length).unwrap_or_default();
    end + length - taken.iter().rev().take_while(|byte| !byte.is_ascii_digit()).count()
}

/// After `(`: digits, `)`, then digits and separators.
fn through_brackets(text: &[u8], open: usize) -> Option<usize> {
    let rest = text.get(open + 1..)?;
    let area = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let close = open + 1 + area;
    (text.get(close) == Some(&b')')).then_some(())?;
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'-' | b'.');
    let tail = text.get(close + 1..)?.iter().take(16).take_while(|byte| is_part(byte));
    let taken = tail.collect::<Vec<_>>();
    let spare = taken.iter().rev().take_while(|byte| !byte.is_ascii_digit()).count();
    Some(close + 1 + taken.len() - spare)
}

/// The length up to the end of the last group with which there are no more than 15 digits.
fn at_most_fifteen(text: &[u8]) -> usize {
    let mut digits = 0;
    let mut end = 0;
    for (at, byte) in text.iter().enumerate() {
        digits += usize::from(byte.is_ascii_digit());
        if digits > 15 {
            return end;
        }
        if byte.is_ascii_digit() && !text.get(at + 1).is_some_and(u8::is_ascii_digit) {
            end = at + 1;
        }
    }
    end
}

/// A country code that is in use, and a number of digits its numbers have.
pub(crate) fn has_country(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let length = digits.len();
    let fits = match part(&digits, 0, 1) {
        1 => return (length == 11 && part(&digits, 1, 2) >= 2).then_some(4),
        7 => length == 11,
        _ => match part(&digits, 0, 2) {
            20
            | 27
            | 30..=34
            | 36
            | 39..=41
            | 43..=49
            | 51..=58
            | 60..=66
            | 81
            | 82
            | 84
            | 86
            | 90..=95
            | 98 => (9..=14).contains(&length),
            _ => has_long_code(part(&digits, 0, 3), length),
        },
    };
    (fits && varied(digits.get(2..)?)).then_some(0)
}

/// Countries of a few thousand people have numbers of four or five digits.
fn has_long_code(code: u32, length: usize) -> bool {
    let least = match code {
        290 | 683 | 690 => 7,
        247 | 500 | 676..=678 | 682 | 685 | 686 | 688 => 8,
        _ => 9,
    };
    is_long_code(code) && (least..=14).contains(&length)
}

/// Country codes of three digits.
fn is_long_code(code: u32) -> bool {
    matches!(
        code,
        211..=213 | 216 | 218 | 220..=258 | 260..=269 | 290 | 291 | 297..=299 | 350..=359
            | 370..=383 | 385..=387 | 389 | 420 | 421 | 423 | 500..=509 | 590..=599 | 670
            | 672..=683 | 685..=692 | 850 | 852 | 853 | 855 | 856 | 880 | 886 | 960..=968
            | 970..=977 | 992..=996 | 998
    )
}

/// Area and exchange begin with 2 to 9 in the North American plan.
pub(crate) fn north_american(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    // An extension follows.
    let has_extension = candidate.matched().contains(&b'x');
    let end = if has_extension { 10 } else { digits.len() };
    if digits.len() > 11 && !has_extension {
        return None;
    }
    let local = digits.get(end.checked_sub(10)?..end)?;
    let is_plan =
        |from: usize| part(local, from, from + 1) >= 2 && part(local, from + 1, from + 3) != 11;
    (is_plan(0) && is_plan(3) && varied(local)).then_some(0)
}

/// Beginnings of such numbers: 0 and no second one, 5 for mobiles in Turkey, brackets.
pub(crate) fn grouped(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let matched = candidate.matched();
    let first = part(&digits, 0, 1);
    let second = part(&digits, 1, 2);
    let begins = match (matched.first()?, matched.len()) {
        (b'(', _) if matched.get(4..7).is_some_and(|near| near.contains(&b')')) => first == 0,
        (b'(', _) => first != 0,
        (_, 13) if digits.len() == 10 => first == 5,
        // A mobile number: in Australia 04, in the United Kingdom 07.
        (_, 12) => first == 0 && matches!(second, 4 | 7),
        _ => first == 0 && second != 0,
    };
    (begins && varied(&digits)).then_some(0)
}

/// Digits that differ, below no key and behind no word that makes them something else, and no
/// number that another detector knows by itself.
pub(crate) fn dialled(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let different = (0..10).filter(|digit| digits.contains(digit)).count();
    let before = candidate.text.get(..candidate.range.start).unwrap_or_default();
    let is_known = match before {
        [.., b'+'] => has_country(candidate).is_some(),
        [.., b'+', b'('] => true,
        _ => is_grouped_alone(candidate),
    };
    let is_other = candidate.key.is_some_and(|key| words::names(key, &NOT_PHONE))
        || member(candidate)
            .is_some_and(|name| !words::names(name, &PHONE) || words::ends_name(name, &NOT_PHONE))
        || before.ends_with(b"/");
    (different > 2 && !is_known && !is_other).then_some(0)
}

/// Returns true if the grouping is one that is telling by itself.
fn is_grouped_alone(candidate: &Candidate<'_>) -> bool {
    let matched = candidate.matched();
    let lengths: Vec<usize> = matched
        .split(|byte| !byte.is_ascii_digit())
        .map(<[u8]>::len)
        .filter(|length| *length > 0)
        .collect();
    let last = matched.len().checked_sub(5).and_then(|at| matched.get(at));
    let is_spaced = !matched.iter().any(|byte| matches!(byte, b'-' | b'/' | b'.'));
    let is_dotted = matched.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    match (lengths.as_slice(), matched.get(3), last) {
        ([3, 3, 4], Some(b'-' | b')'), Some(b'-')) | ([3, 3, 4], Some(b'.'), Some(b'.')) => {
            north_american(candidate).is_some()
        }
        ([2, 2, 2, 2, 2], ..) => (is_spaced || is_dotted) && grouped(candidate).is_some(),
        ([3, 4, 4] | [4, 3, 4] | [5, 6], ..) => is_spaced && grouped(candidate).is_some(),
        _ => false,
    }
}
