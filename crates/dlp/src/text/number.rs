//! Number literals without the notation that hides their digits.

use std::borrow::Cow;

/// A number as it is written; without its point and exponent when they leave a whole number of
/// a length of interest. A card number does not hide behind `.0` or `e3`.
pub(crate) fn plain_number(literal: &str) -> Cow<'_, str> {
    const LONGEST: usize = 40;
    let is_plain = |byte: u8| byte != b'.' && byte | 0x20 != b'e';
    if literal.bytes().all(is_plain) {
        return Cow::Borrowed(literal);
    }
    let (mantissa, exponent) = literal.split_once(['e', 'E']).unwrap_or((literal, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let zeros = exponent.parse::<usize>().ok().and_then(|e| e.checked_sub(fraction.len()));
    match zeros {
        Some(0) if fraction.is_empty() => Cow::Borrowed(whole),
        Some(zeros) if whole.len() + fraction.len() + zeros <= LONGEST => {
            Cow::Owned(format!("{whole}{fraction}{}", "0".repeat(zeros)))
        }
        Some(_) | None => Cow::Borrowed(literal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lose_what_hides_them() {
        for (literal, plain) in [
            ("12", "12"),
            ("-12.50", "-12.50"),
            ("12.00", "12"),
            ("1.25e2", "125"),
            ("1.2E+3", "1200"),
            ("12e-1", "12e-1"),
            ("1e99", "1e99"),
            ("1e999999999999999999999", "1e999999999999999999999"),
        ] {
            assert_eq!(plain_number(literal), plain);
        }
    }
}
