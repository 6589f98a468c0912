//! Payment cards.

use std::ops::Range;

use crate::{
    catalogue::{
        checks,
        detector::Candidate,
        lists::{CARD_BETWEEN, CARD_CODE, CARD_NAMING, COUNTED, COUNTING, SERIAL},
        naming::{member, name},
    },
    text::{digits::DigitRun, window::Window, words},
};

/// Digits that are the value of no other member.
pub(crate) fn security_code(candidate: &Candidate<'_>) -> Option<i32> {
    let is_other = member(candidate).is_some_and(|name| !words::names(name, &CARD_CODE));
    (!is_other).then_some(0)
}

/// The card number of a track.
pub(crate) fn track(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let number = matched.split(|byte| matches!(byte, b'^' | b'=')).next()?;
    let digits: Vec<u8> = number.iter().filter(|b| b.is_ascii_digit()).map(|b| b - b'0').collect();
    checks::luhn(&digits).then_some(26)
}

/// Runs of groups in this run that may be a card: from each group on in the usual groups, or all of
/// the run.
pub(crate) fn cards(text: &Window<'_>, run: &DigitRun) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for first in 0..run.groups.len() {
        let groups = run.groups.get(first..).unwrap_or_default();
        let usual = CARD_GROUPS.iter().filter(|lengths| {
            groups.len() >= lengths.len()
                && groups.iter().zip(**lengths).all(|(g, l)| g.len() == *l)
        });
        let alone = groups.first().is_some_and(|group| (13..=19).contains(&group.len()));
        // Any other grouping counts only when it is all there is: `4 1 1 1 …`.
        let whole = (first == 0 && !alone).then_some(groups.len());
        let taken = usual.map(|lengths| lengths.len()).chain(alone.then_some(1)).chain(whole);
        found.extend(taken.filter_map(|taken| card_at(text, groups, taken, first == 0)));
    }
    found.dedup();
    found
}

/// The ways people group card numbers.
const CARD_GROUPS: &[&[usize]] =
    &[&[4, 4, 4, 4], &[4, 6, 5], &[4, 6, 4], &[4, 4, 4, 4, 3], &[4, 4, 5]];

fn card_at(
    text: &[u8],
    groups: &[Range<usize>],
    taken: usize,
    is_first: bool,
) -> Option<Range<usize>> {
    let range = groups.first()?.start..groups.get(taken - 1)?.end;
    let digits: usize = groups.get(..taken)?.iter().map(Range::len).sum();
    let free = stands_free(text, &range, groups.len() > taken, is_first);
    let even = has_one_separator(text, groups.get(..taken)?);
    // Two groups with a dot between them are a decimal fraction.
    let is_fraction = taken == 2 && groups.first().is_some_and(|g| text.get(g.end) == Some(&b'.'));
    ((13..=19).contains(&digits) && free && even && !is_fraction).then_some(range)
}

/// A card is no part of a decimal, a version or a dashed identifier.
fn stands_free(text: &[u8], range: &Range<usize>, goes_on: bool, is_first: bool) -> bool {
    let before = range.start.checked_sub(1).and_then(|at| text.get(at));
    let after = text.get(range.end);
    let joins = |byte: Option<&u8>| matches!(byte, Some(b'.' | b'-'));
    (is_first || !joins(before)) && (!goes_on || !joins(after))
}

fn has_one_separator(text: &[u8], groups: &[Range<usize>]) -> bool {
    let mut separators = groups.windows(2).map(|pair| pair.first().and_then(|g| text.get(g.end)));
    let first = separators.next();
    separators.all(|separator| Some(separator) == first)
}

pub(crate) fn card(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let issuer = issuer_bits(&digits)?;
    if !is_varied(&digits) || !checks::luhn(&digits) {
        return None;
    }
    // In one row, so many digits are a snowflake unless their word stands right beside them.
    let is_row = matches!(candidate.matched().len(), 17 | 18) && digits.len() > 16;
    if is_row && !is_named(candidate) {
        return None;
    }
    // In JSON or code that is carried as text, a name before the number may tell what it is.
    if name(candidate)
        .is_some_and(|name| words::names(name, &SERIAL) || words::names(name, &COUNTING))
    {
        return None;
    }
    Some(issuer + grouping_bits(candidate.matched()))
}

/// A number without a known issuer needs its word right before it, or a key that names the card.
pub(crate) fn named(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let different = (0..10).filter(|digit| digits.contains(digit)).count();
    // Times, snowflakes and SIM cards begin otherwise than cards do.
    let begins = match digits.as_slice() {
        [0, ..] => false,
        [1, ..] => digits.len() == 15,
        [8, 9, ..] => digits.len() < 19,
        _ => true,
    };
    let issuer = issuer_bits(&digits);
    let is_number = different > 1 && begins && checks::luhn(&digits);
    let is_found = issuer.is_some() && digits.len() > 12 && is_even(candidate.matched());
    let is_told = issuer.is_some() || is_named(candidate);
    (is_number && !is_found && is_told && !is_counted(candidate)).then_some(4)
}

/// Returns true if single spaces, dashes or dots part the groups, the same everywhere.
fn is_even(matched: &[u8]) -> bool {
    let mut joints = matched.split(u8::is_ascii_digit).filter(|joint| !joint.is_empty());
    let first = joints.next().unwrap_or(b" ");
    matches!(first, b" " | b"-" | b".") && joints.all(|joint| joint == first)
}

/// Returns true if a word that names a card stands right before or after it, or in the key.
fn is_named(candidate: &Candidate<'_>) -> bool {
    const NEAR: usize = 32;
    const MOST_BETWEEN: usize = 5;
    let before = candidate.text.get(..candidate.range.start).unwrap_or_default();
    let near = before.get(before.len().saturating_sub(NEAR)..).unwrap_or_default().trim_ascii();
    let after = candidate.text.get(candidate.range.end..).unwrap_or_default();
    let after = after.get(..after.len().min(NEAR)).unwrap_or_default();
    if near.is_empty() {
        // All of a value: the keys name it, or it begins a sentence.
        return true;
    }
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte >= 0x80;
    let before = near.rsplit(|byte| !is_letter(byte)).filter(|word| !word.is_empty());
    let mut told = before.take(MOST_BETWEEN).skip_while(|word| words::names(word, &CARD_BETWEEN));
    let mut after = after.split(|byte| !is_letter(byte)).filter(|word| !word.is_empty());
    let names = |word: &[u8]| words::names(word, &CARD_NAMING);
    told.next().is_some_and(names) || after.by_ref().take(3).any(names)
}

/// Returns true if a name before the number, or its key, says that it counts something.
pub(super) fn is_counted(candidate: &Candidate<'_>) -> bool {
    let counts =
        |name: &[u8]| [*SERIAL, *COUNTING, *COUNTED].iter().any(|words| words::names(name, words));
    name(candidate).is_some_and(counts) || candidate.key.is_some_and(counts)
}

/// Returns true if there is more than one digit.
pub(super) fn is_varied(digits: &[u8]) -> bool {
    digits.iter().any(|digit| Some(digit) != digits.first())
}

/// Evidence of the grouping. People group a card's digits in one of a few ways; digits in one row,
/// or in groups that no card has, are rather a number that programs count with.
fn grouping_bits(matched: &[u8]) -> i32 {
    let groups: Vec<usize> =
        matched.split(|byte| !byte.is_ascii_digit()).map(<[u8]>::len).collect();
    let is_usual = CARD_GROUPS.iter().any(|usual| **usual == groups);
    let is_spelled = groups.iter().all(|length| *length == 1);
    if is_usual {
        12
    } else if is_spelled {
        0
    } else {
        -4
    }
}

/// Evidence of issuer range and length; `None` for a range no scheme uses.
pub(super) fn issuer_bits(digits: &[u8]) -> Option<i32> {
    let prefix = digits.iter().take(4).fold(0_u32, |sum, digit| sum * 10 + u32::from(*digit));
    let usual = match prefix {
        4000..=4999 | 5100..=5599 | 2221..=2720 | 6011 | 6440..=6599 | 3528..=3589 => 16,
        3400..=3499 | 3700..=3799 => 15,
        3000..=3059 | 3095 | 3600..=3699 | 3800..=3999 => 14,
        6200..=6299
        | 8100..=8171
        | 2200..=2204
        | 5000
        | 5018..=5099
        | 5600..=5999
        | 6000..=6399
        | 6700..=6799 => 17,
        _ => return None,
    };
    match (usual, digits.len()) {
        (15, 15) | (16, 16) => Some(10),
        (17, 16) => Some(4),
        (14, 14 | 16) | (16, 13 | 18 | 19) | (17, 13..=19) => Some(1),
        _ => None,
    }
}
