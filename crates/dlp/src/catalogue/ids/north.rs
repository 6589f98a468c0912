//! Numbers of persons in Sweden, Finland, Norway, Denmark and Iceland.

use crate::catalogue::{
    checks::{
        at, is_date, is_short_date, luhn, one_digit, part, two_digits, value, varied, weighted,
    },
    detector::Candidate,
};

/// Weights 7, 9, 10, 5, 8, 4 and 2; the check digit makes the sum divisible by eleven.
pub(crate) fn y_tunnus(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let rest = weighted(&digits, &[7, 9, 10, 5, 8, 4, 2]) % 11;
    one_digit(rest != 1 && (11 - rest) % 11 == at(&digits, 7))
}

/// Born as written, with a Luhn digit over the last ten; coordination numbers add 60 to the day.
pub(crate) fn personnummer(candidate: &Candidate<'_>) -> Option<i32> {
    // The letter of a number that is given for some time counts as 1.
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'T' | b'R' | b'S' | b'U' | b'W' | b'X' | b'J'..=b'N' => Some(1),
        _ => None,
    };
    let digits: Vec<u8> = candidate.matched().iter().filter_map(digit).collect();
    let short = digits.get(digits.len().checked_sub(10)?..)?;
    let day = part(short, 4, 6);
    let day = if day > 60 { day - 60 } else { day };
    let month = part(short, 2, 4);
    let is_born = if digits.len() == 12 {
        is_date(part(&digits, 0, 4), month, day)
    } else {
        is_short_date(part(short, 0, 2), month, day)
    };
    two_digits(is_born && luhn(short))
}

/// The third digit is at least two, so that it is no month.
pub(crate) fn orgnr(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let digits = digits.get(..10)?;
    one_digit(at(digits, 2) >= 2 && luhn(digits))
}

/// The sign between date and serial tells the century; the last one is a remainder by 31.
pub(crate) fn hetu(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched().to_ascii_uppercase();
    let sign = matched.get(6)?;
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 4, 6), part(&digits, 2, 4), part(&digits, 0, 2));
    let number = part(&digits, 0, 9);
    let check = b"0123456789ABCDEFHJKLMNPRSTUVWXY".get(usize::try_from(number % 31).ok()?);
    let is_sign = b"+-YXWVUABCDEF".contains(sign);
    (is_born && is_sign && matched.last() == check).then_some(10)
}

/// Two check digits; D numbers add 40 to the day, synthetic ones 40 or 80 to the month.
pub(crate) fn norway(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let first = (11 - weighted(&digits, &[3, 7, 6, 1, 8, 9, 4, 5, 2]) % 11) % 11;
    let second = (11 - weighted(&digits, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 11;
    let day = part(&digits, 0, 2) % 40;
    let month = part(&digits, 2, 4) % 40;
    let is_born = is_short_date(part(&digits, 4, 6), month, day);
    two_digits(is_born && first == at(&digits, 9) && second == at(&digits, 10))
}

/// Numbers given since 2007 have no check digit.
pub(crate) fn cpr(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let day = part(&digits, 0, 2);
    let day = if day > 60 { day - 60 } else { day };
    is_short_date(part(&digits, 4, 6), part(&digits, 2, 4), day).then_some(3)
}

pub(crate) fn kennitala(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[3, 2, 7, 6, 5, 4, 3, 2, 1]);
    let is_born = is_short_date(part(&digits, 4, 6), part(&digits, 2, 4), part(&digits, 0, 2) % 40);
    two_digits(is_born && sum.is_multiple_of(11))
}

pub(crate) fn norway_org(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let check = (11 - weighted(&digits, &[3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 11;
    one_digit(varied(&digits) && check == value(*candidate.digits().last()? + b'0'))
}
