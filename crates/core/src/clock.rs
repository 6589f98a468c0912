//! Points in time and where they come from.

use std::fmt;

use chrono::{DateTime, Datelike as _, SecondsFormat, Timelike as _, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        KnownFormat, Object, ObjectBuilder, RefOr, Schema, SchemaFormat, Type, schema::SchemaType,
    },
};

/// Tells the time. Only `boot.rs` makes the real one; tests hand in one they can set.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// A point in time in microseconds since 1970-01-01T00:00:00Z.
///
/// Displayed and serialised as RFC 3339 in UTC with milliseconds: `2026-11-20T11:02:15.123Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// The first and the last millisecond that RFC 3339 can write in UTC, in microseconds: years have four digits.
const WRITABLE: (i64, i64) = (-62_167_219_200_000_000, 253_402_300_799_999_000);

impl Timestamp {
    /// From microseconds since the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since the Unix epoch, rounded down.
    #[must_use]
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Whole milliseconds since the Unix epoch; 0 before it.
    #[must_use]
    pub fn as_millis(self) -> u64 {
        u64::try_from(self.0.div_euclid(1000)).unwrap_or(0)
    }

    /// The moment moved by `seconds`, clamped to what RFC 3339 can write.
    #[must_use]
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        Self::writable(self.0.saturating_add(seconds.saturating_mul(1_000_000)))
    }

    /// The moment, or the next one that RFC 3339 can write.
    const fn writable(micros: i64) -> Self {
        let (first, last) = WRITABLE;
        if micros < first {
            Self(first)
        } else if micros > last {
            Self(last)
        } else {
            Self(micros)
        }
    }

    /// The whole millisecond at or before this moment: the moment that its text tells.
    #[must_use]
    pub const fn floor_to_millis(self) -> Self {
        Self(self.0.saturating_sub(self.0.rem_euclid(1000)))
    }

    /// The first whole millisecond at or after this moment. As the bound of a range it selects the
    /// same of those moments that are written in milliseconds, and is itself written without loss.
    #[must_use]
    pub const fn ceil_to_millis(self) -> Self {
        Self::writable(self.0.saturating_add(999)).floor_to_millis()
    }

    /// Parses an RFC 3339 date-time with any offset; `None` for anything else, and for one that in UTC is in no year
    /// of four digits.
    #[must_use]
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let micros = DateTime::parse_from_rfc3339(text).ok()?.timestamp_micros();
        let (first, last) = WRITABLE;
        (first..last + 1_000).contains(&micros).then_some(Self(micros))
    }

    fn to_utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.0).unwrap_or_default()
    }

    /// The text of a moment whose year has four digits, without memory for it.
    fn digits(self) -> Option<[u8; 24]> {
        let utc = self.to_utc();
        let year = u32::try_from(utc.year()).ok().filter(|year| *year < 10_000)?;
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let parts = [
            (0..4, year),
            (5..7, utc.month()),
            (8..10, utc.day()),
            (11..13, utc.hour()),
            (14..16, utc.minute()),
            (17..19, utc.second()),
            (20..23, utc.timestamp_subsec_millis()),
        ];
        for (place, mut number) in parts {
            for digit in text.get_mut(place)?.iter_mut().rev() {
                *digit += u8::try_from(number % 10).unwrap_or(0);
                number /= 10;
            }
        }
        Some(text)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.digits() {
            Some(digits) => f.write_str(str::from_utf8(&digits).unwrap_or_default()),
            None => f.write_str(&self.to_utc().to_rfc3339_opts(SecondsFormat::Millis, true)),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialSchema for Timestamp {
    fn schema() -> RefOr<Schema> {
        let text: Object = ObjectBuilder::new()
            .schema_type(SchemaType::new(Type::String))
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("RFC 3339 in UTC with milliseconds."))
            .examples(["2026-11-20T11:02:15.123Z"])
            .into();
        text.into()
    }
}

impl ToSchema for Timestamp {}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let text = String::deserialize(reader)?;
        Self::parse_rfc3339(&text).ok_or_else(|| D::Error::custom("not a moment of RFC 3339"))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.digits() {
            Some(digits) => serializer.serialize_str(str::from_utf8(&digits).unwrap_or_default()),
            None => serializer.collect_str(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_timestamp_reads_back_what_it_wrote_to_the_millisecond() {
        let moment = Timestamp::from_micros(1_795_172_535_123_000);

        assert_eq!(moment.to_string(), "2026-11-20T11:02:15.123Z");
        assert_eq!(Timestamp::parse_rfc3339("2026-11-20T11:02:15.123Z"), Some(moment));
        assert_eq!(Timestamp::parse_rfc3339("2026-11-20T12:02:15.123+01:00"), Some(moment));
    }

    proptest! {
        #[test]
        fn a_timestamp_is_written_as_chrono_writes_it(micros in any::<i64>(), near in any::<i32>()) {
            for micros in [micros, i64::from(near) * 1_000_000, micros % 253_402_300_800_000_000] {
                let moment = Timestamp::from_micros(micros);
                let text = moment.to_utc().to_rfc3339_opts(SecondsFormat::Millis, true);
                prop_assert_eq!(moment.to_string(), text);
            }
        }
    }

    #[test]
    fn what_parses_can_be_written_and_moved() {
        let first = "0000-01-01T00:00:00.000Z";
        let last = "9999-12-31T23:59:59.999Z";
        for (text, wanted) in [
            ("9999-12-31T23:59:59.999999Z", last),
            ("9999-12-31T23:59:59+00:01", "9999-12-31T23:58:59.000Z"),
            ("0000-01-01T00:00:00Z", first),
            ("0000-01-01T00:00:00-23:59", "0000-01-01T23:59:00.000Z"),
        ] {
            let moment = Timestamp::parse_rfc3339(text).unwrap();
            assert_eq!(moment.to_string(), wanted);
            for moved in [moment.floor_to_millis(), moment.ceil_to_millis()] {
                assert_eq!(Timestamp::parse_rfc3339(&moved.to_string()), Some(moved), "{text}");
            }
            assert_eq!(moment.plus_seconds(i64::MAX).to_string(), last);
            assert_eq!(moment.plus_seconds(i64::MIN).to_string(), first);
        }
    }

    #[test]
    fn what_is_not_rfc3339_is_no_timestamp() {
        let of_other_years =
            ["9999-12-31T23:59:59-23:59", "0000-01-01T00:00:00+23:59", "9999-12-31T23:59:60Z"];
        let others = ["", "now", "2026-11-20", "2026-11-20 11:02", "1795172535"];
        for text in others.into_iter().chain(of_other_years) {
            assert_eq!(Timestamp::parse_rfc3339(text), None, "{text}");
        }
    }
}
