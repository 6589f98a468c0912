//! Numbers and dates of persons that look the same in many countries.

use crate::catalogue::{
    checks::{is_date, part, value},
    detector::Candidate,
};

/// Number, date of birth and date of expiry have a check digit each.
pub(crate) fn mrz(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let second = matched.get(matched.len().checked_sub(44)?..)?;
    let is_right = |from: usize, to: usize| -> Option<bool> {
        let field = second.get(from..to)?;
        let sum: u32 = field.iter().zip([7, 3, 1].iter().cycle()).map(|(b, w)| value(*b) * w).sum();
        Some(sum % 10 == value(*second.get(to)?))
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
