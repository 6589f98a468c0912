//! Numbers of persons in Spain, Portugal, Italy and Greece.

use crate::catalogue::{
    checks::{at, is_short_date, luhn, one_digit, part, two_digits, value, varied, weighted},
    detector::Candidate,
};

const LETTERS: &[u8; 23] = b"TRWAGMYFPDXBNJZSQVHLCKE";

fn letter(number: u32) -> Option<u8> {
    LETTERS.get(usize::try_from(number % 23).ok()?).copied()
}

/// The letter is the number's remainder by 23.
pub(crate) fn dni(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let last = candidate.matched().last()?.to_ascii_uppercase();
    let is_right = letter(part(&digits, 0, 8)) == Some(last);
    (varied(&digits) && is_right).then_some(4)
}

/// `X`, `Y` and `Z` count as 0, 1 and 2 before the digits.
pub(crate) fn nie(candidate: &Candidate<'_>) -> Option<i32> {
    let first = candidate.matched().first()?.to_ascii_uppercase();
    let last = candidate.matched().last()?.to_ascii_uppercase();
    let before = u32::from(first.checked_sub(b'X').filter(|place| *place < 3)?);
    let digits = candidate.digits();
    let is_right = letter(before * 10_000_000 + part(&digits, 0, 7)) == Some(last);
    (varied(&digits) && is_right).then_some(6)
}

/// A Luhn sum over the seven digits, shown as a digit or a letter.
pub(crate) fn cif(candidate: &Candidate<'_>) -> Option<i32> {
    let first = candidate.matched().first()?;
    let last = candidate.matched().last()?;
    let digits = candidate.digits();
    let sum: u32 = (0..7)
        .map(|place| match (place % 2, at(&digits, place)) {
            (0, digit) => digit * 2 / 10 + digit * 2 % 10,
            (_, digit) => digit,
        })
        .sum();
    let check = (10 - sum % 10) % 10;
    let is_letter = b"JABCDEFGHI".get(usize::try_from(check).ok()?) == Some(last);
    let is_kind = b"ABCDEFGHJNPQRSUVW".contains(first);
    one_digit(is_kind && varied(&digits) && (is_letter || value(*last) == check))
}

/// Province and number, then their remainder by 97.
pub(crate) fn affiliation(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let rest = crate::catalogue::checks::remainder(digits.get(..10)?, 97);
    two_digits(rest == part(&digits, 10, 12))
}

pub(crate) fn portugal(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let check = match 11 - weighted(&digits, &[9, 8, 7, 6, 5, 4, 3, 2]) % 11 {
        10 | 11 => 0,
        check => check,
    };
    let starts = matches!(at(&digits, 0), 1..=3 | 5 | 6 | 8 | 9) || part(&digits, 0, 2) == 45;
    one_digit(starts && check == at(&digits, 8))
}

/// The last letter checks the others: those at odd places by a table of their own.
pub(crate) fn codice_fiscale(candidate: &Candidate<'_>) -> Option<i32> {
    const ODD: &[u32; 26] = &[
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24,
        23,
    ];
    let matched = candidate.matched().to_ascii_uppercase();
    let (last, rest) = matched.split_last()?;
    let place = |byte: u8| if byte.is_ascii_digit() { value(byte) } else { value(byte) - 10 };
    let sum: u32 = rest
        .iter()
        .enumerate()
        .map(|(at, byte)| match at % 2 {
            0 => usize::try_from(place(*byte)).ok().and_then(|p| ODD.get(p)).copied().unwrap_or(0),
            _ => place(*byte),
        })
        .sum();
    let is_month = b"ABCDEHLMPRST".contains(matched.get(8)?);
    (is_month && sum % 26 + 10 == value(*last)).then_some(10)
}

pub(crate) fn piva(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    one_digit(varied(&digits) && luhn(&digits))
}

/// Powers of two as weights.
pub(crate) fn afm(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[256, 128, 64, 32, 16, 8, 4, 2]);
    one_digit(varied(&digits) && sum % 11 % 10 == at(&digits, 8))
}

/// Date of birth, serial, Luhn digit.
pub(crate) fn amka(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 4, 6), part(&digits, 2, 4), part(&digits, 0, 2));
    two_digits(is_born && luhn(&digits))
}
