//! Numbers of persons in Poland, Czechia, Slovakia, Hungary, Romania and Bulgaria.

use crate::catalogue::{
    checks::{at, is_short_date, one_digit, part, remainder, two_digits, value, varied, weighted},
    detector::Candidate,
};

/// The month tells the century: 81 to 92, 1 to 12, 21 to 32, …
pub(crate) fn pesel(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]);
    let is_born = is_short_date(part(&digits, 0, 2), part(&digits, 2, 4) % 20, part(&digits, 4, 6));
    two_digits(is_born && sum.is_multiple_of(10))
}

pub(crate) fn nip(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[6, 5, 7, 2, 3, 4, 5, 6, 7]);
    one_digit(varied(&digits) && sum % 11 == at(&digits, 9))
}

pub(crate) fn regon(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_right = if digits.len() == 9 {
        weighted(&digits, &[8, 9, 2, 3, 4, 5, 6, 7]) % 11 % 10 == at(&digits, 8)
    } else {
        weighted(&digits, &[2, 4, 8, 5, 0, 9, 7, 3, 6, 1, 2, 4, 8]) % 11 % 10 == at(&digits, 13)
    };
    one_digit(varied(&digits) && is_right)
}

/// Weights 7, 3, 1, 9, 7, 3, 1, 7, 3 over letters and digits.
pub(crate) fn polish_card(candidate: &Candidate<'_>) -> Option<i32> {
    let alnum = candidate.matched().iter().filter(|byte| byte.is_ascii_alphanumeric());
    let sum: u32 = alnum.zip([7, 3, 1, 9, 7, 3, 1, 7, 3]).map(|(b, w)| value(*b) * w).sum();
    one_digit(sum.is_multiple_of(10))
}

/// Women's months are 50 higher; since 1954 the whole is divisible by eleven.
pub(crate) fn birth_number(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let month = part(&digits, 2, 4) % 50;
    let month = if month > 20 { month - 20 } else { month };
    let is_born = is_short_date(part(&digits, 0, 2), month, part(&digits, 4, 6));
    // Until 1985 a remainder of ten was written as zero.
    let is_right = match digits.split_last() {
        Some((0, nine @ [_, _, _, _, _, _, _, _, _])) if remainder(nine, 11) == 10 => true,
        _ => digits.len() == 9 || remainder(&digits, 11) == 0,
    };
    two_digits(is_born && is_right)
}

pub(crate) fn hungary_tax(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    one_digit(at(&digits, 0) == 8 && sum % 11 == at(&digits, 9))
}

pub(crate) fn hungary_person(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 1, 3), part(&digits, 3, 5), part(&digits, 5, 7));
    let up = weighted(&digits, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) % 11;
    let down = weighted(&digits, &[10, 9, 8, 7, 6, 5, 4, 3, 2, 1]) % 11;
    two_digits(is_born && [up, down].contains(&at(&digits, 10)))
}

/// Sex and century, date of birth, county, serial.
pub(crate) fn cnp(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let check = match weighted(&digits, &[2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]) % 11 {
        10 => 1,
        check => check,
    };
    let is_born = is_short_date(part(&digits, 1, 3), part(&digits, 3, 5), part(&digits, 5, 7));
    two_digits(is_born && at(&digits, 0) > 0 && check == at(&digits, 12))
}

/// Months are 20 higher before 1900 and 40 higher from 2000.
pub(crate) fn egn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[2, 4, 8, 5, 10, 9, 7, 3, 6]);
    let is_born = is_short_date(part(&digits, 0, 2), part(&digits, 2, 4) % 20, part(&digits, 4, 6));
    two_digits(is_born && sum % 11 % 10 == at(&digits, 9))
}
