//! Numbers of persons in Croatia, the states of former Yugoslavia, the Baltic states, Russia,
//! Ukraine and Kazakhstan.

use crate::catalogue::{
    checks::{at, is_short_date, mod_11_10, one_digit, part, two_digits, varied, weighted},
    detector::Candidate,
};

pub(crate) fn oib(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    one_digit(varied(&digits) && mod_11_10(digits.get(digits.len().checked_sub(11)?..)?))
}

/// Day, month, last three digits of the year, region, serial.
pub(crate) fn jmbg(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 5, 7), part(&digits, 2, 4), part(&digits, 0, 2));
    let check = 11 - weighted(&digits, &[7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
    let check = if check > 9 { 0 } else { check };
    let is_year = matches!(at(&digits, 4), 0 | 8 | 9);
    two_digits(is_born && is_year && check == at(&digits, 12))
}

pub(crate) fn slovenia(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let check = (11 - weighted(&digits, &[8, 7, 6, 5, 4, 3, 2]) % 11) % 10;
    one_digit(at(&digits, 0) != 0 && check == at(&digits, 7))
}

/// Century and sex, date of birth, serial; when the first weights give ten, others decide.
pub(crate) fn baltic(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 1, 3), part(&digits, 3, 5), part(&digits, 5, 7));
    let first = weighted(&digits, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 1]) % 11;
    let second = weighted(&digits, &[3, 4, 5, 6, 7, 8, 9, 1, 2, 3]) % 11 % 10;
    let check = if first == 10 { second } else { first };
    two_digits(matches!(at(&digits, 0), 1..=8) && is_born && check == at(&digits, 10))
}

/// Codes given since 2017 begin with 32 and hold no date.
pub(crate) fn latvia(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 4, 6), part(&digits, 2, 4), part(&digits, 0, 2));
    (is_born || part(&digits, 0, 2) == 32).then_some(4)
}

pub(crate) fn inn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let check = |weights: &[u32]| weighted(&digits, weights) % 11 % 10;
    let is_right = match digits.len() {
        10 => check(&[2, 4, 10, 3, 5, 9, 4, 6, 8]) == at(&digits, 9),
        _ => {
            check(&[7, 2, 4, 10, 3, 5, 9, 4, 6, 8]) == at(&digits, 10)
                && check(&[3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8]) == at(&digits, 11)
        }
    };
    one_digit(varied(&digits) && is_right)
}

pub(crate) fn snils(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[9, 8, 7, 6, 5, 4, 3, 2, 1]);
    two_digits(sum % 101 % 100 == part(&digits, 9, 11))
}

/// Days since 1899, serial, sex.
pub(crate) fn ukraine(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    // The first weight is -1, which is ten modulo eleven.
    let sum = weighted(&digits, &[10, 5, 7, 9, 4, 6, 10, 5, 7]);
    one_digit(varied(&digits) && sum % 11 % 10 == at(&digits, 9))
}

pub(crate) fn kazakhstan(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 0, 2), part(&digits, 2, 4), part(&digits, 4, 6));
    let first = weighted(&digits, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]) % 11;
    let second = weighted(&digits, &[3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2]) % 11;
    let check = if first == 10 { second } else { first };
    two_digits(is_born && check == at(&digits, 11))
}
