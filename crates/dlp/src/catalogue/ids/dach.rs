//! Numbers of persons in Germany, Austria and Switzerland.

use crate::catalogue::{
    checks::{at, is_short_date, mod_11_10, one_digit, part, value, varied, weighted},
    detector::Candidate,
};

/// Number, date of birth and date of expiry have a check digit each, and one for all.
pub(crate) fn card_line(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let mut all = Vec::new();
    for range in [0..10, 13..20, 21..28] {
        let field = matched.get(range)?;
        let (check, rest) = field.split_last()?;
        all.extend_from_slice(field);
        (icao(rest) == value(*check)).then_some(())?;
    }
    (icao(&all) == value(*matched.last()?)).then_some(14)
}

/// Check digit of ICAO 9303.
fn icao(text: &[u8]) -> u32 {
    let weights = [7, 3, 1].iter().cycle();
    text.iter().zip(weights).map(|(byte, weight)| value(*byte) * weight).sum::<u32>() % 10
}

/// In the first ten digits one digit comes two or three times, in samples none does; ISO 7064
/// checks the whole.
pub(crate) fn tax_id(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let head = digits.get(..10)?;
    let most = (0..10).map(|digit| head.iter().map(|d| u8::from(*d == digit)).sum::<u8>()).max()?;
    let fits = at(&digits, 0) != 0 && most <= 3 && mod_11_10(&digits);
    fits.then_some(if most == 1 { 2 } else { 7 })
}

/// Nine letters and digits, checked with weights 7, 3, 1 by a tenth if it is there.
pub(crate) fn document(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched().to_ascii_uppercase();
    let (serial, check) = matched.split_at_checked(9)?;
    let letters = serial.iter().filter(|byte| byte.is_ascii_alphabetic());
    let is_letter =
        |byte: &u8| !matches!(byte, b'A' | b'B' | b'D' | b'E' | b'I' | b'O' | b'Q' | b'S' | b'U');
    let starts = matches!(serial.first()?, b'L'..=b'P' | b'R' | b'T' | b'V'..=b'Y' | b'C' | b'F'..=b'H' | b'J' | b'K');
    let sum: u32 = serial.iter().zip([7, 3, 1].iter().cycle()).map(|(b, w)| value(*b) * w).sum();
    let is_checked = check.first().is_none_or(|check| value(*check) == sum % 10);
    let fits = starts && letters.clone().all(is_letter) && serial.iter().any(u8::is_ascii_digit);
    (fits && is_checked).then_some(if check.is_empty() { 0 } else { 4 })
}

/// Area, date of birth, initial, serial; the digits are cross-summed times 2, 1, 2, 5, 7, 1, 2, 1, …
pub(crate) fn pension(candidate: &Candidate<'_>) -> Option<i32> {
    let letter = candidate.matched().iter().find(|byte| byte.is_ascii_alphabetic())?;
    let mut digits = candidate.digits();
    let place = u8::try_from(value(letter.to_ascii_uppercase()) - 9).ok()?;
    digits.splice(8..8, [place / 10, place % 10]);
    let (check, rest) = digits.split_last()?;
    let crosses = rest.iter().zip([2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1]);
    let sum: u32 = crosses.map(|(d, weight)| u32::from(*d) * weight).map(|p| p / 10 + p % 10).sum();
    let day = part(&digits, 2, 4);
    let day = if day > 50 { day - 50 } else { day };
    let is_born = is_short_date(part(&digits, 6, 8), part(&digits, 4, 6), day);
    (is_born && sum % 10 == u32::from(*check)).then_some(10)
}

pub(crate) fn any_varied(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    (digits.len() >= 4 && varied(&digits)).then_some(0)
}

/// The fourth digit checks the others: serial and date of birth.
pub(crate) fn austria(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[3, 7, 9, 0, 5, 8, 4, 2, 1, 6]);
    one_digit(sum % 11 == at(&digits, 3) && at(&digits, 0) != 0 && part(&digits, 4, 6) <= 31)
}

/// An EAN-13 check digit.
pub(crate) fn ahv(candidate: &Candidate<'_>) -> Option<i32> {
    let sum = weighted(&candidate.digits(), &[1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1]);
    sum.is_multiple_of(10).then_some(10)
}
