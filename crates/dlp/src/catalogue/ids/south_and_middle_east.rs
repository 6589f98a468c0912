//! Numbers of persons in Australia, New Zealand, Africa and the Middle East.

use crate::catalogue::{
    checks::{at, is_date, is_short_date, luhn, one_digit, part, two_digits, varied, weighted},
    detector::Candidate,
};

pub(crate) fn tfn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = match digits.len() {
        8 => weighted(&digits, &[10, 7, 8, 4, 6, 3, 5, 1]),
        _ => weighted(&digits, &[1, 4, 3, 7, 5, 8, 6, 9, 10]),
    };
    one_digit(varied(&digits) && sum.is_multiple_of(11))
}

/// One is taken from the first digit, and the weighted sum is divisible by 89.
pub(crate) fn abn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19]);
    two_digits(at(&digits, 0) > 0 && sum % 89 == 10)
}

pub(crate) fn acn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[8, 7, 6, 5, 4, 3, 2, 1]);
    one_digit(varied(&digits) && (10 - sum % 10) % 10 == at(&digits, 8))
}

/// When the first weights give ten, others decide.
pub(crate) fn ird(candidate: &Candidate<'_>) -> Option<i32> {
    let mut digits = candidate.digits();
    if digits.len() == 8 {
        digits.insert(0, 0);
    }
    let check = |weights: &[u32]| (11 - weighted(&digits, weights) % 11) % 11;
    let first = check(&[3, 2, 7, 6, 5, 4, 3, 2]);
    let check = if first == 10 { check(&[7, 4, 3, 2, 5, 2, 7, 6]) } else { first };
    one_digit(varied(&digits) && check == at(&digits, 8))
}

/// Date of birth, serial, citizenship, a digit once used, Luhn.
pub(crate) fn south_africa(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 0, 2), part(&digits, 2, 4), part(&digits, 4, 6));
    two_digits(is_born && at(&digits, 10) <= 2 && luhn(&digits))
}

/// Century, date of birth, governorate.
pub(crate) fn egypt(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let century = at(&digits, 0) + 17;
    let year = century * 100 + part(&digits, 1, 3);
    let is_born = is_date(year, part(&digits, 3, 5), part(&digits, 5, 7));
    let is_place = matches!(part(&digits, 7, 9), 1..=4 | 11..=19 | 21..=29 | 31..=35 | 88);
    (matches!(century, 19 | 20) && is_born && is_place).then_some(7)
}

/// The last two digits check the others; no number ends in an odd digit.
pub(crate) fn turkey(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let odd: u32 = [0, 2, 4, 6, 8].iter().map(|place| at(&digits, *place)).sum();
    let even: u32 = [1, 3, 5, 7].iter().map(|place| at(&digits, *place)).sum();
    let tenth = (odd * 7 + 10 * 9 - even) % 10;
    let last = (odd + even + at(&digits, 9)) % 10;
    let is_right = tenth == at(&digits, 9) && last == at(&digits, 10);
    two_digits(at(&digits, 0) != 0 && is_right)
}

pub(crate) fn israel(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    one_digit(varied(&digits) && luhn(&digits))
}

/// Country, year of birth, serial, Luhn.
pub(crate) fn emirates(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_year = matches!(part(&digits, 3, 7), 1900..=2035);
    two_digits(is_year && luhn(&digits))
}

/// Citizens' numbers begin with one, residents' with two.
pub(crate) fn saudi(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    one_digit(matches!(at(&digits, 0), 1 | 2) && luhn(&digits))
}
