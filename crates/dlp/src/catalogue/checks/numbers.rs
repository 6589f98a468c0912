//! Check digits and dates inside numbers that states, banks and clinics give.

/// The digit at a place; 0 beyond the end.
pub(crate) fn at(digits: &[u8], place: usize) -> u32 {
    digits.get(place).map_or(0, |digit| u32::from(*digit))
}

/// The digits from one place to before another, as a number; at most nine count.
pub(crate) fn part(digits: &[u8], from: usize, to: usize) -> u32 {
    let digits = digits.get(from..to).unwrap_or_default();
    digits.iter().take(9).fold(0, |sum, digit| sum * 10 + u32::from(*digit))
}

/// The sum of the digits, each times its weight.
pub(crate) fn weighted(digits: &[u8], weights: &[u32]) -> u32 {
    digits.iter().zip(weights).map(|(digit, weight)| u32::from(*digit) * weight).sum()
}

/// The remainder of all digits, read as one number.
pub(crate) fn remainder(digits: &[u8], divisor: u32) -> u32 {
    digits.iter().fold(0, |rest, digit| (rest * 10 + u32::from(*digit)) % divisor.clamp(1, 100_000))
}

/// The character that a sum has in a table, by its remainder.
pub(crate) fn check_character(sum: u32, table: &[u8]) -> Option<u8> {
    let place = usize::try_from(sum).ok()?.checked_rem(table.len())?;
    table.get(place).copied()
}

/// The sum of the values of letters and digits, each times its weight; the weights begin anew.
pub(crate) fn weighted_values<'a>(text: impl IntoIterator<Item = &'a u8>, weights: &[u32]) -> u32 {
    let weights = weights.iter().cycle();
    text.into_iter().zip(weights).map(|(byte, weight)| value(*byte) * weight).sum()
}

/// The sum of the digits of a number below a hundred.
pub(crate) const fn cross_sum(product: u32) -> u32 {
    product / 10 + product % 10
}

/// Returns true if the digits are not all the same.
pub(crate) fn varied(digits: &[u8]) -> bool {
    digits.iter().any(|digit| Some(digit) != digits.first())
}

/// Evidence of one check digit: bits if it is right, `None` if it is wrong.
pub(crate) fn one_digit(is_right: bool) -> Option<i32> {
    is_right.then_some(4)
}

/// Evidence of two check digits: bits if they are right, `None` if not.
pub(crate) fn two_digits(is_right: bool) -> Option<i32> {
    is_right.then_some(7)
}

/// Returns true if a day exists in the Gregorian calendar, between 1850 and 2099.
pub(crate) fn is_date(year: u32, month: u32, day: u32) -> bool {
    let year = i32::try_from(year).unwrap_or_default();
    (1850..2100).contains(&year) && chrono::NaiveDate::from_ymd_opt(year, month, day).is_some()
}

/// Returns true if a day exists in some century, for years of two digits.
pub(crate) fn is_short_date(year: u32, month: u32, day: u32) -> bool {
    // 2000 was a leap year, which is what a year `00` may be.
    year < 100 && is_date(2000 + year, month, day)
}

/// Returns true if the last digit is right by ISO/IEC 7064, MOD 11,10.
pub(crate) fn mod_11_10(digits: &[u8]) -> bool {
    let Some((last, rest)) = digits.split_last() else { return false };
    let product = rest.iter().fold(10, |product, digit| {
        let sum = (product + u32::from(*digit)) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    (11 - product) % 10 == u32::from(*last)
}

/// Returns true if the last digit is right by Verhoeff's scheme over the dihedral group of order
/// ten.
pub(crate) fn verhoeff(digits: &[u8]) -> bool {
    const SHIFT: [u8; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    let shifted = |digit: u8, times: usize| {
        (0..times).fold(digit, |digit, _| SHIFT.get(usize::from(digit)).copied().unwrap_or(digit))
    };
    let times = |a: u8, b: u8| match (a < 5, b < 5) {
        (true, true) => (a + b) % 5,
        (true, false) => (a + b - 5) % 5 + 5,
        (false, true) => (a - 5 + 5 - b) % 5 + 5,
        (false, false) => (a + 5 - b) % 5,
    };
    let digits = digits.iter().rev().enumerate();
    digits.fold(0, |sum, (place, digit)| times(sum, shifted(*digit, place % 8))) == 0
}

/// The value of a letter or digit, with `A` as ten.
pub(crate) fn value(byte: u8) -> u32 {
    char::from(byte).to_digit(36).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemes_accept_what_their_standards_print() {
        assert!(verhoeff(&[2, 3, 6, 3]) && !verhoeff(&[2, 3, 6, 4]));
        assert!(mod_11_10(&[0, 7, 9, 4, 5]) && !mod_11_10(&[0, 7, 9, 4, 6]));
        assert_eq!(remainder(&[1, 0, 0], 97), 3);
        assert_eq!(weighted(&[1, 2, 3], &[3, 2, 1]), 10);
    }

    #[test]
    fn days_exist_or_not() {
        assert!(is_date(2024, 2, 29) && !is_date(2023, 2, 29) && !is_date(1700, 1, 1));
        assert!(is_short_date(84, 3, 15) && !is_short_date(84, 13, 1));
    }
}
