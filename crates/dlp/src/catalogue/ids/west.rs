//! Numbers of persons in France, Belgium and the Netherlands.

use crate::catalogue::{
    checks::{at, luhn, one_digit, part, remainder, two_digits, varied, weighted},
    detector::Candidate,
};

/// Sex, year, month, place, serial; the last two digits make it divisible with 97.
pub(crate) fn nir(candidate: &Candidate<'_>) -> Option<i32> {
    // Corsica's departments `2A` and `2B` count as 19 and 18.
    let mut digits = candidate.digits();
    match candidate.matched().iter().find(|byte| byte.is_ascii_alphabetic()) {
        Some(b'A') => digits.splice(6..6, [9]).for_each(drop),
        Some(b'B') => digits.splice(6..6, [8]).for_each(drop),
        Some(_) => return None,
        None => {}
    }
    if digits.len() == 15 && candidate.matched().iter().any(u8::is_ascii_alphabetic) {
        digits.splice(5..6, [1]).for_each(drop);
    }
    let is_person = matches!(at(&digits, 0), 1..=4 | 7 | 8);
    let is_month = matches!(part(&digits, 3, 5), 1..=12 | 20..=42 | 50..=99);
    let rest = remainder(digits.get(..13)?, 97);
    two_digits(is_person && is_month && 97 - rest == part(&digits, 13, 15))
}

/// The last three digits are the remainder of the first ten.
pub(crate) fn french_tax(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_right = remainder(digits.get(..10)?, 511) == part(&digits, 10, 13);
    two_digits(at(&digits, 0) <= 3 && is_right)
}

pub(crate) fn siret(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let enterprise = digits.get(..9)?;
    // Establishments of the post have a sum of their own.
    let is_of_post = part(&digits, 0, 9) == 356_000_000 && digits.len() == 14;
    if is_of_post && digits.iter().map(|digit| u32::from(*digit)).sum::<u32>().is_multiple_of(5) {
        return one_digit(true);
    }
    one_digit(varied(&digits) && luhn(enterprise) && (digits.len() == 9 || luhn(&digits)))
}

/// Born in this century, a 2 is put before the nine digits.
pub(crate) fn belgium(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let nine = part(&digits, 0, 9);
    let check = part(&digits, 9, 11);
    let is_right = [0, 2_000_000_000].iter().any(|before| 97 - (before + nine) % 97 == check);
    let is_born =
        matches!(part(&digits, 2, 4), 0..=12 | 20..=32 | 40..=52) && part(&digits, 4, 6) <= 31;
    (is_right && is_born).then_some(8)
}

/// Weights 9 to 2 and -1: the sum is divisible by eleven.
pub(crate) fn bsn(candidate: &Candidate<'_>) -> Option<i32> {
    let mut digits = candidate.digits();
    if digits.len() == 8 {
        digits.insert(0, 0);
    }
    let sum = weighted(&digits, &[9, 8, 7, 6, 5, 4, 3, 2, 10]);
    one_digit(varied(&digits) && sum.is_multiple_of(11))
}

/// Date of birth, then a Luhn digit over the first eleven.
pub(crate) fn luxembourg(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = crate::catalogue::checks::is_date(
        part(&digits, 0, 4),
        part(&digits, 4, 6),
        part(&digits, 6, 8),
    );
    two_digits(is_born && luhn(digits.get(..12)?))
}
