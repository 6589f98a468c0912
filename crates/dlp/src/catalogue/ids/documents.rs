//! Checks of documents and dates, and of numbers of countries of which few kinds are known.

use crate::catalogue::{
    checks::{
        at, is_date, is_short_date, one_digit, part, remainder, two_digits, value, varied,
        weighted, weighted_values,
    },
    detector::Candidate,
};

/// Number, date of birth and date of expiry have a check digit each.
pub(crate) fn mrz(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let second = matched.get(matched.len().checked_sub(44)?..)?;
    let is_right = |from: usize, to: usize| -> Option<bool> {
        let field = second.get(from..to)?;
        Some(weighted_values(field, &[7, 3, 1]) % 10 == value(*second.get(to)?))
    };
    (is_right(0, 9)? && is_right(13, 19)? && is_right(21, 27)?).then_some(28)
}

/// A day between 1850 and today's children, in any usual order.
pub(crate) fn birth(candidate: &Candidate<'_>) -> Option<i32> {
    // Behind another number it is one of several fields.
    if matches!(candidate.text.get(..candidate.range.start), Some([.., b'0'..=b'9', b' '])) {
        return None;
    }
    let numbers: Vec<u32> = candidate
        .matched()
        .split(|byte| !byte.is_ascii_digit())
        .map(|group| group.iter().map(|b| b.wrapping_sub(b'0')).collect::<Vec<u8>>())
        .map(|digits| part(&digits, 0, digits.len()))
        .collect();
    let [first, second, third] = match (numbers.as_slice(), candidate.matched().len()) {
        ([first, second, third], _) => [first, second, third].map(|number| *number),
        ([number], 8) => [*number / 10_000, *number / 100 % 100, *number % 100],
        _ => return None,
    };
    let is_day = is_date(first, second, third)
        || is_date(third, second, first)
        || is_date(third, first, second);
    is_day.then_some(0)
}

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

/// The weights count from the last digit before the check digit.
pub(crate) fn romania(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let (check, rest) = digits.split_last()?;
    let reversed: Vec<u8> = rest.iter().rev().copied().collect();
    let sum = weighted(&reversed, &[2, 3, 5, 7, 1, 2, 3, 5, 7]);
    one_digit(varied(&digits) && sum * 10 % 11 % 10 == u32::from(*check))
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

pub(crate) fn morocco(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    two_digits(varied(&digits) && remainder(&digits, 97) == 0)
}
