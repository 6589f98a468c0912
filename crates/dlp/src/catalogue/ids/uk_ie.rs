//! Numbers of persons in the United Kingdom and Ireland.

use crate::catalogue::{
    checks::{at, is_short_date, one_digit, part, varied, weighted},
    detector::Candidate,
};

pub(crate) fn nino(candidate: &Candidate<'_>) -> Option<i32> {
    const UNUSED: [&[u8; 2]; 7] = [b"BG", b"GB", b"NK", b"KN", b"TN", b"NT", b"ZZ"];
    let [first, second, ..] = candidate.matched() else { return None };
    let first = first.to_ascii_uppercase();
    let second = second.to_ascii_uppercase();
    let last = candidate.matched().last()?.to_ascii_uppercase();
    let is_unused = UNUSED.contains(&&[first, second]);
    let is_letter = |byte: u8| !matches!(byte, b'D' | b'F' | b'I' | b'Q' | b'U' | b'V');
    let fits =
        is_letter(first) && is_letter(second) && second != b'O' && matches!(last, b'A'..=b'D');
    (fits && !is_unused && varied(&candidate.digits())).then_some(2)
}

/// The first digit checks the others.
pub(crate) fn utr(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(digits.get(1..)?, &[6, 7, 8, 9, 10, 5, 4, 3, 2]);
    let check = match 11 - sum % 11 {
        10 => 1,
        11 => 2,
        check => check,
    };
    one_digit(at(&digits, 0) == check)
}

/// The month is five higher for women: `607054` is July 5th, 1964.
pub(crate) fn licence(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let name = candidate.matched().iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    // A short name is filled up with nines.
    let from = 5_usize.checked_sub(name)?;
    if digits.iter().take(from).any(|digit| *digit != 9) {
        return None;
    }
    let year = at(&digits, from) * 10 + at(&digits, from + 5);
    let month = part(&digits, from + 1, from + 3);
    let month = if month > 50 { month - 50 } else { month };
    is_short_date(year, month, part(&digits, from + 3, from + 5)).then_some(12)
}

/// The letter after the digits checks them and a second letter.
pub(crate) fn pps(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched().to_ascii_uppercase();
    let second = match matched.get(8) {
        None | Some(b'W' | b'T' | b'X') => 0,
        Some(letter @ b'A'..=b'I') => u32::from(letter - b'A' + 1),
        Some(_) => return None,
    };
    let sum = weighted(&candidate.digits(), &[8, 7, 6, 5, 4, 3, 2]) + 9 * second;
    let expected = b"WABCDEFGHIJKLMNOPQRSTUV".get(usize::try_from(sum % 23).ok()?);
    one_digit(matched.get(7) == expected)
}
