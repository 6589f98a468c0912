//! Values as they are shown to rules, before they take the form that an evaluator wants.
//!
//! Values are built one by one and never decoded from JSON by the policy library, whose own decoding
//! gives a meaning to members named `__entity` and `__extn`.

use std::{borrow::Cow, net::IpAddr};

use serde_json::Value;

/// A value that rules can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plain<'a> {
    Text(Cow<'a, str>),
    Long(i64),
    Bool(bool),
    /// A number of ten-thousandths.
    Decimal(i64),
    /// A moment, as RFC 3339.
    Time(String),
    Ip(IpAddr),
    Set(Vec<Self>),
    /// Named values; no name twice.
    Record(Vec<(Cow<'a, str>, Self)>),
}

impl Plain<'_> {
    /// The value as JSON; what JSON has no type for is text, decimals are numbers.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(&**text),
            Self::Long(number) => Value::from(*number),
            Self::Bool(flag) => Value::from(*flag),
            Self::Decimal(scaled) => serde_json::from_str(&decimal(*scaled)).unwrap_or(Value::Null),
            Self::Time(text) => Value::from(text.as_str()),
            Self::Ip(ip) => Value::from(ip.to_string()),
            Self::Set(items) => items.iter().map(Self::to_json).collect(),
            Self::Record(members) => {
                let members = members.iter();
                members.map(|(name, value)| (name.to_string(), value.to_json())).collect()
            }
        }
    }
}

/// The text that the policy language reads as this many ten-thousandths.
pub(super) fn decimal(scaled: i64) -> String {
    let sign = if scaled < 0 { "-" } else { "" };
    let whole = scaled.unsigned_abs() / 10_000;
    let fraction = scaled.unsigned_abs() % 10_000;
    format!("{sign}{whole}.{fraction:04}")
}
