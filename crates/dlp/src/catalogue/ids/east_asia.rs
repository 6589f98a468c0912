//! Numbers of persons in China, Taiwan, Hong Kong, Japan and Korea.

use crate::catalogue::{
    checks::{at, is_date, is_short_date, one_digit, part, value, varied, weighted},
    detector::Candidate,
};

/// Region, date of birth, serial, and a remainder by eleven in which `X` is ten.
pub(crate) fn resident(candidate: &Candidate<'_>) -> Option<i32> {
    let (last, rest) = candidate.matched().split_last()?;
    let digits: Vec<u8> = rest.iter().map(|byte| byte.wrapping_sub(b'0')).collect();
    let weights = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    let place = usize::try_from(weighted(&digits, &weights) % 11).ok()?;
    let is_right = b"10X98765432".get(place) == Some(&last.to_ascii_uppercase());
    let year = part(&digits, 6, 10);
    let is_born =
        matches!(year, 1900..=2035) && is_date(year, part(&digits, 10, 12), part(&digits, 12, 14));
    let is_district = matches!((part(&digits, 2, 4), part(&digits, 4, 6)), (1..=90, 0..=99));
    let is_place = is_district
        && matches!(part(&digits, 0, 2), 11..=15 | 21..=23 | 31..=37 | 41..=46 | 50..=54 | 61..=65 | 71 | 81..=83);
    (is_right && is_born && is_place).then_some(8)
}

/// The letter stands for two digits.
pub(crate) fn taiwan(candidate: &Candidate<'_>) -> Option<i32> {
    const ORDER: &[u8; 26] = b"ABCDEFGHJKLMNPQRSTUVXYWZIO";
    let first = candidate.matched().first()?.to_ascii_uppercase();
    let place = ORDER.iter().position(|letter| *letter == first)?;
    let number = u32::try_from(place).ok()? + 10;
    let digits = candidate.digits();
    let sum = number / 10 + number % 10 * 9 + weighted(&digits, &[8, 7, 6, 5, 4, 3, 2, 1, 1]);
    one_digit(matches!(at(&digits, 0), 1 | 2 | 8 | 9) && sum.is_multiple_of(10))
}

/// Letters count from ten; a missing first letter counts 36.
pub(crate) fn hkid(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched().to_ascii_uppercase();
    let alnum: Vec<u8> = matched.into_iter().filter(u8::is_ascii_alphanumeric).collect();
    let (check, rest) = alnum.split_last()?;
    let padding = 8_usize.checked_sub(rest.len())?;
    let values = std::iter::repeat_n(36, padding).chain(rest.iter().map(|byte| value(*byte)));
    let sum: u32 = values.zip((2..=9).rev()).map(|(value, weight)| value * weight).sum();
    let expected = match (11 - sum % 11) % 11 {
        10 => b'A',
        digit => b'0' + u8::try_from(digit).ok()?,
    };
    (*check == expected).then_some(6)
}

pub(crate) fn my_number(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let rest = weighted(&digits, &[6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
    let check = if rest <= 1 { 0 } else { 11 - rest };
    one_digit(varied(&digits) && check == at(&digits, 11))
}

/// Commission, year, serial, check digit, times reissued.
pub(crate) fn japanese_licence(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]);
    let check = match 11 - sum % 11 {
        10 | 11 => 0,
        check => check,
    };
    one_digit(check == at(&digits, 10))
}

/// Date of birth, then century and sex. Numbers given since 2020 have no check digit.
pub(crate) fn rrn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 0, 2), part(&digits, 2, 4), part(&digits, 4, 6));
    (is_born && matches!(at(&digits, 6), 1..=8)).then_some(6)
}

pub(crate) fn brn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[1, 3, 7, 1, 3, 7, 1, 3, 5]) + at(&digits, 8) * 5 / 10;
    one_digit(varied(&digits) && (10 - sum % 10) % 10 == at(&digits, 9))
}

/// Regions have the codes 11 to 28.
pub(crate) fn korean_licence(candidate: &Candidate<'_>) -> Option<i32> {
    matches!(part(&candidate.digits(), 0, 2), 11..=28).then_some(4)
}
