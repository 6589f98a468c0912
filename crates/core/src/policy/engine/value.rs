//! Values as they are shown to rules, before they take the form that an evaluator wants.
//!
//! They are built one by one and never decoded from JSON by the policy library, whose own decoding
//! gives a meaning to members named `__entity` and `__extn`.

use std::{borrow::Cow, net::IpAddr};

/// A value that rules can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plain<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// A whole number.
    Long(i64),
    /// Yes or no.
    Bool(bool),
    /// A number of ten-thousandths.
    Decimal(i64),
    /// A moment, as RFC 3339.
    Time(String),
    /// An address.
    Ip(IpAddr),
    /// Values without order.
    Set(Vec<Self>),
    /// Named values; no name twice.
    Record(Vec<(Cow<'a, str>, Self)>),
}

/// The text that the policy language reads as this many ten-thousandths.
pub(super) fn decimal(scaled: i64) -> String {
    let sign = if scaled < 0 { "-" } else { "" };
    let (whole, fraction) = (scaled.unsigned_abs() / 10_000, scaled.unsigned_abs() % 10_000);
    format!("{sign}{whole}.{fraction:04}")
}
