//! Decimal literals: the range that is accepted of them, and their value in one normal form.
//!
//! Everything here takes time linear in the text of a literal, whatever its exponent says.

use std::{cmp::Ordering, fmt::Write as _, iter};

/// The largest exponent that may stand in a literal, in either direction. It leaves room for the digits
/// beside it: `0.000…1e300` is a small number with a large exponent.
const MAX_EXPONENT: u64 = 600;
/// Below this exponent no literal of 256 characters leaves the range of a double.
const SAFE_EXPONENT: u64 = 40;

/// The parts of a literal.
struct Literal<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    exponent: i64,
}

impl<'a> Literal<'a> {
    fn of(text: &'a str) -> Self {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, saturated(exponent)),
            None => (digits, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        Self { negative: digits.len() < text.len(), whole, fraction, exponent }
    }

    fn is_zero(&self) -> bool {
        [self.whole, self.fraction].iter().all(|part| part.bytes().all(|digit| digit == b'0'))
    }

    /// The digits, beginning with the first that is not zero.
    fn digits(&self) -> impl Iterator<Item = u8> + use<'a> {
        self.whole.bytes().chain(self.fraction.bytes()).skip_while(|digit| *digit == b'0')
    }

    /// The exponent before which the first digit that is not zero stands.
    fn first_exponent(&self) -> i64 {
        let whole = self.whole.len() - zeros(self.whole.bytes());
        let place = match whole {
            0 => -signed(zeros(self.fraction.bytes())),
            digits => signed(digits),
        };
        self.exponent.saturating_add(place)
    }

    fn sign(&self) -> i8 {
        match (self.is_zero(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    /// Zeros at the end of the digits.
    fn zeros(&self) -> usize {
        let in_fraction = zeros(self.fraction.bytes().rev());
        let is_all = in_fraction == self.fraction.len();
        in_fraction + if is_all { zeros(self.whole.bytes().rev()) } else { 0 }
    }

    /// The exponent of the last digit that is not zero.
    fn last_exponent(&self) -> i64 {
        let behind = signed(self.zeros()) - signed(self.fraction.len());
        self.exponent.saturating_add(behind)
    }
}

/// Number of zeros that digits begin with.
fn zeros(digits: impl Iterator<Item = u8>) -> usize {
    digits.take_while(|digit| *digit == b'0').count()
}

fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// An exponent; one that no integer holds is as large as an integer can be.
fn saturated(exponent: &str) -> i64 {
    let largest = if exponent.starts_with('-') { i64::MIN / 2 } else { i64::MAX / 2 };
    exponent.parse().map_or(largest, |exponent: i64| exponent.clamp(i64::MIN / 2, i64::MAX / 2))
}

/// Returns true if the number of a literal, of at most 256 characters, is in the range of a double
/// and its exponent at most 600 in either direction. A number that a double rounds to zero is in
/// its range.
pub fn is_in_range(text: &str) -> bool {
    let Some((_, exponent)) = text.split_once(['e', 'E']) else { return true };
    let exponent = saturated(exponent).unsigned_abs();
    exponent <= SAFE_EXPONENT
        || (exponent <= MAX_EXPONENT && text.parse().is_ok_and(f64::is_finite))
}

/// Returns true if the number of a literal is an integer: `1.0` and `10e-1` are.
#[must_use]
pub fn is_integer(text: &str) -> bool {
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return true;
    }
    let literal = Literal::of(text);
    literal.is_zero() || literal.last_exponent() >= 0
}

/// Writes the number of a literal so that equal numbers have equal texts: its digits without zeros
/// at either end, and the exponent of the last one. `1`, `1.0` and `10e-1` are all `1e0`.
pub fn write_normal(text: &str, out: &mut String) {
    let literal = Literal::of(text);
    if literal.is_zero() {
        out.push('0');
        return;
    }
    if literal.negative {
        out.push('-');
    }
    let first = out.len();
    out.extend(literal.digits().map(char::from));
    let zeros = out.bytes().rev().take_while(|byte| *byte == b'0').count();
    out.truncate((out.len() - zeros).max(first));
    // Writing to a string cannot fail.
    let _ = write!(out, "e{}", literal.last_exponent());
}

/// Compares the numbers of two literals, exactly.
#[must_use]
pub fn compare(one: &str, other: &str) -> Ordering {
    if let (Some(one), Some(other)) = (short_integer(one), short_integer(other)) {
        return one.cmp(&other);
    }
    let one = Literal::of(one);
    let other = Literal::of(other);
    let sign = one.sign();
    let signs = sign.cmp(&other.sign());
    if signs.is_ne() || sign == 0 {
        return signs;
    }
    let size = one.first_exponent().cmp(&other.first_exponent()).then_with(|| digits(&one, &other));
    if one.negative { size.reverse() } else { size }
}

/// The number of a literal, if it is an integer of few digits without an exponent.
#[must_use]
pub fn short_integer(text: &str) -> Option<i64> {
    if text.len() < 19 { text.parse().ok() } else { None }
}

/// Compares the digits of two numbers whose first ones stand at the same place.
fn digits(one: &Literal<'_>, other: &Literal<'_>) -> Ordering {
    let mut one = one.digits();
    let mut other = other.digits();
    let pairs = iter::from_fn(|| match (one.next(), other.next()) {
        (None, None) => None,
        (a, b) => Some((a.unwrap_or(b'0'), b.unwrap_or(b'0'))),
    });
    pairs.map(|(a, b)| a.cmp(&b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// A number that others may be multiples of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Divisor {
    digits: u64,
    exponent: i64,
}

impl Divisor {
    /// The number of a literal; `None` for zero and for more than 18 digits between the zeros at either
    /// end.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let literal = Literal::of(text);
        let mut normal = String::new();
        write_normal(text, &mut normal);
        let (digits, _) = normal.trim_start_matches('-').split_once('e')?;
        let digits = (digits.len() <= 18).then(|| digits.parse().ok())??;
        Some(Self { digits, exponent: literal.last_exponent() })
    }

    /// Returns true if the number of a literal is an exact multiple of it.
    #[must_use]
    pub fn divides(self, text: &str) -> bool {
        let literal = Literal::of(text);
        if literal.is_zero() {
            return true;
        }
        // Its last digit is not zero, so it cannot be divided by ten any further.
        let Ok(shift) = u64::try_from(literal.last_exponent().saturating_sub(self.exponent)) else {
            return false;
        };
        let divisor = u128::from(self.digits);
        let digits = literal.whole.bytes().chain(literal.fraction.bytes());
        let without_zeros =
            digits.take(literal.whole.len() + literal.fraction.len() - literal.zeros());
        let rest = without_zeros
            .fold(0_u128, |rest, digit| (rest * 10 + u128::from(digit - b'0')) % divisor);
        (rest * power_of_ten(shift, divisor)).is_multiple_of(divisor)
    }
}

/// The rest of a power of ten. The divisor has at most 18 digits, so nothing overflows.
fn power_of_ten(mut exponent: u64, divisor: u128) -> u128 {
    let mut power = 1 % divisor;
    let mut factor = 10 % divisor;
    while exponent > 0 {
        if exponent % 2 == 1 {
            power = power * factor % divisor;
        }
        factor = factor * factor % divisor;
        exponent /= 2;
    }
    power
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normal(text: &str) -> String {
        let mut out = String::new();
        write_normal(text, &mut out);
        out
    }

    #[test]
    fn equal_numbers_have_one_normal_form() {
        for (same, form) in [
            (vec!["1", "1.0", "1e0", "10e-1", "0.1E+1", "1.000"], "1e0"),
            (vec!["0", "-0", "0.0", "0e9", "-0.00e-7"], "0"),
            (vec!["100", "1e2", "1.00e2", "0.001e5"], "1e2"),
            (vec!["-0.5", "-5e-1", "-50E-2"], "-5e-1"),
            (vec!["12345678901234567890.5"], "123456789012345678905e-1"),
            (vec!["1e99999999999999999999"], "1e4611686018427387903"),
        ] {
            for text in same {
                assert_eq!(normal(text), form, "{text}");
            }
        }
        assert_ne!(normal("0.1"), normal("0.10000000000000000001"));
    }

    #[test]
    fn integers_are_told_by_value_and_not_by_look() {
        for text in ["1", "-7", "1.0", "1e3", "1.5e1", "10e-1", "0e-400", "0.0", "1e308"] {
            assert!(is_integer(text), "{text}");
        }
        for text in ["1.5", "1e-1", "15e-1", "1e-308", "0.000001"] {
            assert!(!is_integer(text), "{text}");
        }
    }

    #[test]
    fn numbers_beyond_a_double_or_with_absurd_exponents_are_out_of_range() {
        let wide = format!("0.{}1e300", "0".repeat(200));
        for text in ["1e308", "-1.7976931348623157e308", "5e-324", "1e-400", "0e400", "1e40", &wide]
        {
            assert!(is_in_range(text), "{text}");
        }
        for text in ["1e309", "1e400", "-1e400", "1e-601", "1e-9990", "0e9990", "1E+601"] {
            assert!(!is_in_range(text), "{text}");
        }
    }

    #[test]
    fn numbers_are_compared_exactly() {
        for (small, large) in [
            ("-1e300", "-1"),
            ("-1", "0"),
            ("-0.5", "1e-300"),
            ("0", "5e-324"),
            ("0.1", "0.10000000000000000001"),
            ("12345678901234567890", "12345678901234567891"),
            ("9.99", "10"),
            ("99e1", "1e3"),
            ("-0.02", "-0.019"),
        ] {
            assert_eq!(compare(small, large), Ordering::Less, "{small} {large}");
            assert_eq!(compare(large, small), Ordering::Greater, "{large} {small}");
        }
        for (one, same) in [("1", "1.0"), ("-0", "0e3"), ("100", "1e2"), ("0.05", "5E-2")] {
            assert_eq!(compare(one, same), Ordering::Equal, "{one} {same}");
        }
    }

    #[test]
    fn multiples_are_told_exactly() {
        for (divisor, multiples, others) in [
            ("0.01", vec!["0", "0.07", "19.99", "1e300", "-3"], vec!["0.075", "1e-300", "1e-3"]),
            ("3", vec!["1500", "3.0", "-9", "3e300"], vec!["1", "1e300", "1.5", "0.3"]),
            ("1e3", vec!["5000", "1e3", "1e99"], vec!["1500", "1"]),
            ("2.5", vec!["5", "7.5", "1e2"], vec!["1", "2.25"]),
            ("999999999999999999", vec!["999999999999999999e9"], vec!["1e300"]),
        ] {
            let divisor = Divisor::of(divisor).unwrap();
            for text in multiples {
                assert!(divisor.divides(text), "{text} of {divisor:?}");
            }
            for text in others {
                assert!(!divisor.divides(text), "{text} of {divisor:?}");
            }
        }
        assert_eq!(Divisor::of("0.0"), None);
        assert_eq!(Divisor::of("1.0000000000000000001"), None);
    }

    proptest! {
        #[test]
        fn integers_are_compared_and_divided_as_integers(a: i64, b in -1_000_000_i64..1_000_000) {
            prop_assert_eq!(compare(&a.to_string(), &b.to_string()), a.cmp(&b));
            prop_assert_eq!(compare(&format!("{a}e-3"), &format!("{b}e-3")), a.cmp(&b));
            prop_assume!(b != 0);
            let divisor = Divisor::of(&b.to_string()).unwrap();
            prop_assert_eq!(divisor.divides(&a.to_string()), a % b == 0);
            prop_assert!(divisor.divides(&(i128::from(a) * i128::from(b)).to_string()));
        }

        #[test]
        fn shifting_the_point_changes_nothing(
            digits in "[1-9][0-9]{0,30}", fraction in "[0-9]{0,30}", shift in -30_i32..30,
        ) {
            let plain = format!("{digits}.{fraction}0");
            let shifted = format!("{digits}{fraction}e{}", -i64::try_from(fraction.len()).unwrap());

            prop_assert_eq!(normal(&plain), normal(&shifted));
            prop_assert_eq!(is_integer(&plain), is_integer(&shifted));
            let moved = format!("{plain}e{shift}");
            prop_assert_eq!(is_integer(&moved), normal(&moved).split_once('e')
                .unwrap().1.parse::<i64>().unwrap() >= 0);
        }
    }
}
