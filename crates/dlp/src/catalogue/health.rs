//! Numbers of patients, of those who treat them, and of what they suffer from.

use crate::catalogue::{
    checks::{at, cross_sum, luhn, one_digit, value, varied, weighted},
    detector::Candidate,
};

/// No letter that can be taken for a digit; the first digit is not zero.
pub(crate) fn mbi(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched().to_ascii_uppercase();
    let is_confusing = |byte: &u8| matches!(byte, b'S' | b'L' | b'O' | b'I' | b'B' | b'Z');
    (matched.first() != Some(&b'0') && !matched.iter().any(is_confusing)).then_some(4)
}

/// A Luhn digit over the number with the prefix of the United States and health care.
pub(crate) fn npi(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let whole: Vec<u8> = [8, 0, 8, 4, 0].into_iter().chain(digits.iter().copied()).collect();
    one_digit(matches!(at(&digits, 0), 1 | 2) && luhn(&whole))
}

pub(crate) fn dea(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let digits = digits.get(digits.len().checked_sub(7)?..)?;
    let sum = weighted(digits, &[1, 2, 1, 2, 1, 2]);
    one_digit(sum % 10 == at(digits, 6) && varied(digits))
}

/// A code with a point is more than a letter and two digits.
pub(crate) fn icd(candidate: &Candidate<'_>) -> Option<i32> {
    let is_used = candidate.matched().first()?.is_ascii_alphabetic();
    is_used.then_some(if candidate.matched().contains(&b'.') { 4 } else { 0 })
}

/// The letter counts as two digits; products of two digits are cross-summed.
pub(crate) fn kvnr(candidate: &Candidate<'_>) -> Option<i32> {
    let first = value(candidate.matched().first()?.to_ascii_uppercase()) - 9;
    let digits = candidate.digits();
    let all = [first / 10, first % 10].into_iter().chain(digits.iter().map(|d| u32::from(*d)));
    let products = all.take(10).zip([1, 2].iter().cycle()).map(|(digit, weight)| digit * weight);
    let sum: u32 = products.map(cross_sum).sum();
    one_digit(sum % 10 == at(&digits, 8))
}
