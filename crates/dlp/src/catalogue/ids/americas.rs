//! Checks of numbers of persons and companies in America.

use crate::catalogue::{
    checks::{
        at, check_character, is_date, is_short_date, one_digit, part, two_digits, value, varied,
        weighted, weighted_values,
    },
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

/// A date of issue is no licence.
pub(crate) fn license(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_day = candidate.matched().len() == 8
        && digits.len() == 8
        && is_date(part(&digits, 0, 4), part(&digits, 4, 6), part(&digits, 6, 8));
    (varied(&digits) && !is_day).then_some(0)
}

/// Since 2026 the first twelve may be letters, which count from 17.
pub(crate) fn cnpj(candidate: &Candidate<'_>) -> Option<i32> {
    let alnum = candidate.matched().iter().filter(|byte| byte.is_ascii_alphanumeric());
    let values: Vec<u8> = alnum.map(|byte| byte.wrapping_sub(b'0')).collect();
    let is_right = |place: usize, weights: &[u32]| {
        let check = check_character(weighted(&values, weights), b"00987654321");
        check.map(value) == Some(at(&values, place))
    };
    let is_right = is_right(12, &[5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2])
        && is_right(13, &[6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2]);
    two_digits(varied(&values) && is_right)
}

/// Weights 2 to 7 from the right; ten is written `K`.
pub(crate) fn rut(candidate: &Candidate<'_>) -> Option<i32> {
    let alnum: Vec<u8> =
        candidate.matched().iter().filter(|b| b.is_ascii_alphanumeric()).copied().collect();
    let (check, rest) = alnum.split_last()?;
    let sum = weighted_values(rest.iter().rev(), &[2, 3, 4, 5, 6, 7]);
    let expected = check_character(sum, b"0K987654321");
    // A number of one digit alone stands for any, but belongs to somebody all the same.
    (Some(check.to_ascii_uppercase()) == expected).then(|| if varied(rest) { 5 } else { -4 })
}

/// Name, date of birth, sex, state, and a digit that checks all of it.
pub(crate) fn curp(candidate: &Candidate<'_>) -> Option<i32> {
    // `Ñ` would stand between `N` and `O`: letters after it count one more.
    let matched = candidate.matched().to_ascii_uppercase();
    let place = |byte: u8| value(byte) + u32::from(byte > b'N' && byte.is_ascii_alphabetic());
    let sum: u32 = matched.iter().zip((2..=18).rev()).map(|(byte, w)| place(*byte) * w).sum();
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 0, 2), part(&digits, 2, 4), part(&digits, 4, 6));
    let is_sex =
        matches!(matched.get(10), Some(b'H' | b'M' | b'X')) && matched.get(11) != Some(&b'X');
    let is_right = (10 - sum % 10) % 10 == value(*matched.last()?);
    (is_born && is_sex && is_right).then_some(12)
}

/// Name, date of birth, and a check character that not every office computes.
pub(crate) fn rfc(candidate: &Candidate<'_>) -> Option<i32> {
    const ORDER: &[u8; 38] = b"0123456789ABCDEFGHIJKLMN&OPQRSTUVWXYZ ";
    let matched = candidate.matched().to_ascii_uppercase();
    let digits: Vec<u8> = matched
        .iter()
        .skip(matched.len().checked_sub(9)?)
        .take(6)
        .map(|b| b.wrapping_sub(b'0'))
        .collect();
    let is_born = is_short_date(part(&digits, 0, 2), part(&digits, 2, 4), part(&digits, 4, 6));
    // A company's code has one letter less and a space before it.
    let padded: Vec<u8> =
        std::iter::repeat_n(b' ', 13_usize.checked_sub(matched.len())?).chain(matched).collect();
    let places =
        padded.iter().map(|byte| ORDER.iter().position(|known| known == byte).unwrap_or(0));
    let sum: usize = places.zip((2..=13).rev()).map(|(place, weight)| place * weight).sum();
    let expected = check_character(u32::try_from(sum).ok()?, b"0A987654321");
    let bits = if padded.last().copied() == expected { 8 } else { -2 };
    is_born.then_some(bits)
}

/// A tax number has a check digit, a citizenship number has none.
pub(crate) fn colombia(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    if !candidate.matched().contains(&b'-') {
        return varied(&digits).then_some(0);
    }
    let (check, rest) = digits.split_last()?;
    let weights = [3, 7, 13, 17, 19, 23, 29, 37, 41, 43];
    let sum: u32 = rest.iter().rev().zip(weights).map(|(digit, w)| u32::from(*digit) * w).sum();
    one_digit(check_character(sum, b"01987654321").map(value) == Some(u32::from(*check)))
}

pub(crate) fn rif(candidate: &Candidate<'_>) -> Option<i32> {
    let kind = match candidate.matched().first()? {
        b'V' => 4,
        b'E' => 8,
        b'J' => 12,
        b'P' => 16,
        b'G' => 20,
        _ => return None,
    };
    let digits = candidate.digits();
    let sum = kind + weighted(&digits, &[3, 2, 7, 6, 5, 4, 3, 2]);
    (check_character(sum, b"00987654321").map(value) == Some(at(&digits, 8))).then_some(6)
}
