//! Times as people write them.

use serde::{Deserialize, Deserializer, de::Error};

/// A time in a configuration: `"15m"`, `"12h"`, `"90d"` or a number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seconds(pub(crate) i64);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        seconds(&written(reader)?).map(Self).map_err(D::Error::custom)
    }
}

/// Reads the same for a key in `…_seconds`, whose own check says whether it may be 0.
pub(super) fn whole<'de, D: Deserializer<'de>, T: From<u64>>(reader: D) -> Result<T, D::Error> {
    let text = written(reader)?;
    let seconds = amount(&text).and_then(|seconds| u64::try_from(seconds).ok());
    seconds.map(T::from).ok_or_else(|| D::Error::custom(wrong(&text)))
}

fn written<'de, D: Deserializer<'de>>(reader: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a time such as \"15m\" or a number of seconds")]
    enum NumberOrText {
        Number(u32),
        Text(String),
    }
    Ok(match NumberOrText::deserialize(reader)? {
        NumberOrText::Number(number) => number.to_string(),
        NumberOrText::Text(text) => text,
    })
}

/// Reads `15m`, `12h`, `90d` or a number of seconds; rejects zero.
pub(crate) fn seconds(text: &str) -> Result<i64, String> {
    amount(text).filter(|seconds| *seconds > 0).ok_or_else(|| wrong(text))
}

fn wrong(text: &str) -> String {
    format!("`{text}` is neither a time such as 90s, 15m, 12h or 90d nor a number of seconds")
}

fn amount(text: &str) -> Option<i64> {
    let (number, unit) = match text.char_indices().last() {
        Some((at, 's')) => (text.get(..at), 1),
        Some((at, 'm')) => (text.get(..at), 60),
        Some((at, 'h')) => (text.get(..at), 3600),
        Some((at, 'd')) => (text.get(..at), 86_400),
        Some(_) | None => (Some(text), 1),
    };
    let number: i64 = number?.parse().ok()?;
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_unit() {
        assert_eq!(seconds("90"), Ok(90));
        assert_eq!(seconds("15m"), Ok(900));
        assert_eq!(seconds("365d"), Ok(31_536_000));
        for text in ["", "d", "-5m", "0", "1w", "99999999999999999d", "5é"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
