//! JSON as policy values: declared members only, in their declared types.
//!
//! A member that is read is there in the form the tool declares it, or nothing is decided: what
//! cannot be shown to the policies is refused, never left out.

use std::{borrow::Cow, fmt};

use crate::{
    json::{JsonValue, Kind},
    policy::{
        engine::Plain,
        language::context_paths::{Paths, join},
        tool::shape::{Members, Shape},
    },
};

/// A value that policies read but cannot be shown; says where and why, never what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::policy) struct Unreadable {
    path: String,
    why: Why,
}

/// Reason that a value cannot be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::policy) enum Why {
    Mismatch,
    IntegerRange,
    DecimalRange,
    DecimalPlaces,
    Undeclared,
    Unbuildable,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.why {
            Why::Mismatch => "is not of the type that the tool declares",
            Why::IntegerRange => "is outside the range of a 64-bit integer",
            Why::DecimalRange => "is outside the range of a decimal",
            Why::DecimalPlaces => "has more than 4 decimal places",
            Why::Undeclared => "is not declared by the tool in a form that policies can read",
            Why::Unbuildable => "cannot be represented",
        };
        write!(f, "`{}` {why}", self.path)
    }
}

impl Unreadable {
    fn new(path: &str, why: Why) -> Self {
        Self { path: path.to_owned(), why }
    }

    /// The value at `path` cannot be built.
    pub(in crate::policy) fn unbuildable(path: &str) -> Self {
        Self::new(path, Why::Unbuildable)
    }
}

/// The members of `value` that `wanted` reads.
///
/// A member that is read, is there and is not declared is refused rather than left out: otherwise
/// a parameter that a server honours without declaring it would pass every rule about it.
pub(in crate::policy) fn record<'a, T: JsonValue<'a>>(
    members: &'a Members,
    value: T,
    wanted: &'a Paths,
    path: &str,
) -> Result<Plain<'a>, Unreadable> {
    let Kind::Object(_) = value.kind() else { return Err(Unreadable::new(path, Why::Mismatch)) };
    let fields = if wanted.is_whole() {
        every_field(members, value, path)?
    } else {
        wanted_fields(members, value, wanted, path)?
    };
    Ok(Plain::Record(fields))
}

type RecordFields<'a> = Vec<(Cow<'a, str>, Plain<'a>)>;

/// A member that is there and not `null`.
fn there<'a, T: JsonValue<'a>>(object: T, name: &str) -> Option<T> {
    object.get(name).filter(|value| !matches!(value.kind(), Kind::Null))
}

fn every_field<'a, T: JsonValue<'a>>(
    members: &'a Members,
    object: T,
    path: &str,
) -> Result<RecordFields<'a>, Unreadable> {
    let mut fields = RecordFields::new();
    for (name, member) in members {
        if let Some(value) = there(object, name) {
            let path = join(path, name);
            fields.push((name.into(), convert(&member.shape, value, Paths::whole(), &path)?));
        }
    }
    Ok(fields)
}

fn wanted_fields<'a, T: JsonValue<'a>>(
    members: &'a Members,
    object: T,
    wanted: &'a Paths,
    path: &str,
) -> Result<RecordFields<'a>, Unreadable> {
    let mut fields = RecordFields::new();
    for (name, wanted) in wanted.members() {
        let Some(value) = there(object, name) else { continue };
        let path = join(path, name);
        let member = members.get(name).ok_or_else(|| Unreadable::new(&path, Why::Undeclared))?;
        fields.push((name.into(), convert(&member.shape, value, wanted, &path)?));
    }
    Ok(fields)
}

fn convert<'a, T: JsonValue<'a>>(
    shape: &'a Shape,
    value: T,
    wanted: &'a Paths,
    path: &str,
) -> Result<Plain<'a>, Unreadable> {
    let fail = |why| Unreadable::new(path, why);
    match (shape, value.kind()) {
        (Shape::Text, Kind::Text(text)) => Ok(Plain::Text(text.into())),
        (Shape::Bool, Kind::Bool(flag)) => Ok(Plain::Bool(flag)),
        (Shape::Long, Kind::Number(literal)) => integer(literal).map(Plain::Long).map_err(fail),
        (Shape::Decimal, Kind::Number(literal)) => {
            decimal(literal).map(Plain::Decimal).map_err(fail)
        }
        (Shape::Set(element), Kind::Array(items)) => {
            let items = items.map(|item| convert(element, item, Paths::whole(), path));
            Ok(Plain::Set(items.collect::<Result<_, _>>()?))
        }
        (Shape::Record(members), Kind::Object(_)) => record(members, value, wanted, path),
        (
            Shape::Text
            | Shape::Bool
            | Shape::Long
            | Shape::Decimal
            | Shape::Set(_)
            | Shape::Record(_),
            _,
        ) => Err(fail(Why::Mismatch)),
    }
}

/// A JSON number as `± digits × 10^exponent`, without leading or trailing zeros.
struct Scientific {
    negative: bool,
    digits: String,
    exponent: i64,
}

/// Longest digit string that a 64-bit integer can have.
const MAX_DIGITS: i64 = 19;

impl Scientific {
    fn parse(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (text, None),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0').trim_end_matches('0');
        if digits.is_empty() {
            return Some(Self { negative: false, digits: String::new(), exponent: 0 });
        }
        let dropped = all.len() - all.trim_end_matches('0').len();
        let shift = i64::try_from(dropped).ok()? - i64::try_from(fraction.len()).ok()?;
        // An exponent beyond 64 bits is out of every range, in either direction.
        let stated = exponent.map_or(Some(0), |text| text.trim_start_matches('+').parse().ok())?;
        let exponent = shift.checked_add(stated)?;
        Some(Self { negative, digits: digits.to_owned(), exponent })
    }

    /// The value times 10^`places`, when that is an integer of 64 bits.
    fn scaled(&self, places: i64) -> Option<i64> {
        let zeros = self.exponent.checked_add(places)?;
        let length = i64::try_from(self.digits.len()).ok()?;
        if zeros < 0 || length.checked_add(zeros)? > MAX_DIGITS {
            return (length == 0).then_some(0);
        }
        let sign = if self.negative { "-" } else { "" };
        let zeros = "0".repeat(usize::try_from(zeros).ok()?);
        format!("{sign}{}{zeros}", self.digits).parse().ok().or((length == 0).then_some(0))
    }
}

/// A whole number of 64 bits, in any notation of JSON; never rounded.
pub(in crate::policy) fn integer(text: &str) -> Result<i64, Why> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let number = Scientific::parse(text).ok_or(Why::IntegerRange)?;
    if number.exponent < 0 {
        return Err(Why::Mismatch);
    }
    number.scaled(0).ok_or(Why::IntegerRange)
}

/// The number in ten-thousandths; never rounded, because a rounded number could be on the other
/// side of a limit.
pub(in crate::policy) fn decimal(text: &str) -> Result<i64, Why> {
    let number = Scientific::parse(text).ok_or(Why::DecimalRange)?;
    if number.exponent < -4 {
        return Err(Why::DecimalPlaces);
    }
    number.scaled(4).ok_or(Why::DecimalRange)
}

/// The same of a text that is a number.
pub(in crate::policy) fn decimal_text(text: &str) -> Result<i64, Why> {
    let number: serde_json::Number = serde_json::from_str(text).map_err(|_| Why::Mismatch)?;
    decimal(number.as_str())
}

/// Recorded value of a fact, in the type it is declared in.
pub(in crate::policy) fn kept<'a>(
    shape: &'a Shape,
    value: &'a serde_json::Value,
) -> Option<Plain<'a>> {
    convert(shape, value, Paths::whole(), "").ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_is_read_from_any_notation_and_never_rounded() {
        let table = [
            ("0", Ok(0)),
            ("-0", Ok(0)),
            ("0e999999999999999999999", Ok(0)),
            ("100", Ok(100)),
            ("1.0", Ok(1)),
            ("-1.5e1", Ok(-15)),
            ("1E+3", Ok(1000)),
            ("9223372036854775807", Ok(i64::MAX)),
            ("-9223372036854775808", Ok(i64::MIN)),
            ("-9223372036854775808.0", Ok(i64::MIN)),
            ("9223372036854775808", Err(Why::IntegerRange)),
            ("18446744073709551615", Err(Why::IntegerRange)),
            ("1e400", Err(Why::IntegerRange)),
            ("1e99999999999999999999", Err(Why::IntegerRange)),
            ("1.5", Err(Why::Mismatch)),
            ("1e-1", Err(Why::Mismatch)),
        ];
        for (text, expected) in table {
            assert_eq!(integer(text), expected, "{text}");
        }
    }

    #[test]
    fn a_decimal_keeps_four_places_or_is_refused() {
        let table = [
            ("0", Ok(0)),
            ("-0.0", Ok(0)),
            ("12.5", Ok(125_000)),
            ("-0.0001", Ok(-1)),
            ("1.00000000", Ok(10_000)),
            ("1e2", Ok(1_000_000)),
            ("922337203685477.5807", Ok(i64::MAX)),
            ("922337203685477.5808", Err(Why::DecimalRange)),
            ("1e300", Err(Why::DecimalRange)),
            ("100.00001", Err(Why::DecimalPlaces)),
            ("1e-400", Err(Why::DecimalPlaces)),
        ];
        for (text, expected) in table {
            assert_eq!(decimal(text), expected, "{text}");
        }
    }
}
