//! Numbers of countries of which one or two kinds are known, each with its check.

use crate::catalogue::{
    checks::{at, is_short_date, one_digit, part, remainder, two_digits, value, varied, weighted},
    detector::Candidate,
};

pub(crate) fn macedonia(candidate: &Candidate<'_>) -> Option<i32> {
    let is_prefixed = candidate.matched().first().is_some_and(u8::is_ascii_alphabetic);
    let is_own = !is_prefixed || candidate.matched().starts_with(b"MK");
    let digits = candidate.digits();
    let rest = weighted(&digits, &[7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
    one_digit(is_own && varied(&digits) && (11 - rest) % 11 % 10 == at(&digits, 12))
}

/// Initial of the name, date of birth, serial, check character.
pub(crate) fn mauritius(candidate: &Candidate<'_>) -> Option<i32> {
    let (check, rest) = candidate.matched().split_last()?;
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 4, 6), part(&digits, 2, 4), part(&digits, 0, 2));
    let sum: u32 = (2..=14).rev().zip(rest).map(|(weight, byte)| weight * value(*byte)).sum();
    two_digits(is_born && (17 + 17 * sum - sum) % 17 == value(*check))
}

/// Year and day of birth, five hundred higher for women, and a letter for the right to vote.
pub(crate) fn lanka(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let (year, day) = if digits.len() == 9 {
        let has_right = matches!(candidate.matched().last(), Some(b'V' | b'X' | b'v' | b'x'));
        has_right.then(|| (1900 + part(&digits, 0, 2), part(&digits, 2, 5)))?
    } else {
        (part(&digits, 0, 4), part(&digits, 4, 7))
    };
    let is_day = matches!(day, 1..=366 | 501..=866);
    (is_day && (1900..2030).contains(&year)).then_some(4)
}

/// Letters count ten and more; every second character from the end is doubled.
pub(crate) fn citizen_card(candidate: &Candidate<'_>) -> Option<i32> {
    let kept = candidate.matched().iter().filter(|byte| byte.is_ascii_alphanumeric());
    let sum: u32 = kept
        .rev()
        .zip([false, true].iter().cycle())
        .map(|(byte, is_doubled)| match (value(*byte), *is_doubled) {
            (value, false) => value,
            (value, true) if value > 4 => 2 * value - 9,
            (value, true) => 2 * value,
        })
        .sum();
    two_digits(varied(&candidate.digits()) && sum.is_multiple_of(10))
}

pub(crate) fn ico(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let check = (11 - weighted(&digits, &[8, 7, 6, 5, 4, 3, 2]) % 11) % 10;
    one_digit(varied(&digits) && check == at(&digits, 7))
}

/// The weights count from the last digit before the check digit.
pub(crate) fn romania(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let (check, rest) = digits.split_last()?;
    let reversed: Vec<u8> = rest.iter().rev().copied().collect();
    let sum = weighted(&reversed, &[2, 3, 5, 7, 1, 2, 3, 5, 7]);
    one_digit(varied(&digits) && sum * 10 % 11 % 10 == u32::from(*check))
}

/// Bank and branch, then the account, with a check digit each.
pub(crate) fn cbu(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let (bank, account) = digits.split_at_checked(8)?;
    let check = |sum: u32| (10 - sum % 10) % 10;
    let is_bank = check(weighted(bank, &[7, 1, 3, 9, 7, 1, 3])) == at(bank, 7);
    let weights = [3, 9, 7, 1, 3, 9, 7, 1, 3, 9, 7, 1, 3];
    two_digits(is_bank && check(weighted(account, &weights)) == at(account, 13))
}

pub(crate) fn uruguay(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_right = if digits.len() == 8 {
        (10 - weighted(&digits, &[2, 9, 8, 7, 6, 3, 4]) % 10) % 10 == at(&digits, 7)
    } else {
        (11 - weighted(&digits, &[4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2]) % 11) % 11 == at(&digits, 11)
            && (1..=22).contains(&part(&digits, 0, 2))
    };
    one_digit(varied(&digits) && is_right)
}

pub(crate) fn iran(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let rest = weighted(&digits, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
    let check = if rest < 2 { rest } else { 11 - rest };
    one_digit(varied(&digits) && check == at(&digits, 9))
}

/// Century, date of birth, serial.
pub(crate) fn kuwait(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = matches!(at(&digits, 0), 2 | 3) && is_day(&digits, 1);
    let check = 11 - weighted(&digits, &[2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]) % 11;
    two_digits(is_born && check == at(&digits, 11))
}

/// Date of birth, century, serial, sex.
pub(crate) fn cuba(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    (varied(&digits) && is_day(&digits, 0)).then_some(4)
}

fn is_day(digits: &[u8], from: usize) -> bool {
    is_short_date(
        part(digits, from, from + 2),
        part(digits, from + 2, from + 4),
        part(digits, from + 4, from + 6),
    )
}

pub(crate) fn morocco(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    two_digits(varied(&digits) && remainder(&digits, 97) == 0)
}
