//! Numbers of persons and employers in the United States.

use crate::catalogue::{
    checks::{is_date, part, varied},
    detector::Candidate,
};

pub(crate) fn ssn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let area = part(&digits, 0, 3);
    let group = part(&digits, 3, 5);
    let serial = part(&digits, 5, 9);
    let is_valid = !matches!(area, 0 | 666 | 900..) && group != 0 && serial != 0;
    // Two numbers that were printed on sample cards and in advertisements.
    let is_sample = matches!((area, group, serial), (78, 5, 1120) | (219, 9, 9999));
    // As in `111-22-3333`, which only stands for the form.
    let is_form = candidate.matched().contains(&b'-')
        && [0..3, 3..5, 5..9].into_iter().all(|it| is_row(digits.get(it)));
    let bits = if candidate.matched().contains(&b'-') { 4 } else { 0 };
    (is_valid && varied(&digits) && !is_sample && !is_form).then_some(bits)
}

/// Returns true if all digits are the same.
fn is_row(digits: Option<&[u8]>) -> bool {
    digits.is_some_and(|digits| digits.iter().all(|digit| digits.first() == Some(digit)))
}

pub(crate) fn itin(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let group = matches!(part(&digits, 3, 5), 50..=65 | 70..=88 | 90..=92 | 94..=99);
    (part(&digits, 0, 1) == 9 && group).then_some(4)
}

/// The prefixes that campuses of the IRS do not use.
pub(crate) fn ein(candidate: &Candidate<'_>) -> Option<i32> {
    let prefix = part(&candidate.digits(), 0, 2);
    let unused =
        matches!(prefix, 0 | 7..=9 | 17..=19 | 28 | 29 | 49 | 69 | 70 | 78 | 79 | 89 | 96 | 97);
    (!unused).then_some(2)
}

/// A date of issue is no licence.
pub(crate) fn license(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_day = candidate.matched().len() == 8
        && digits.len() == 8
        && is_date(part(&digits, 0, 4), part(&digits, 4, 6), part(&digits, 6, 8));
    (varied(&digits) && !is_day).then_some(0)
}
