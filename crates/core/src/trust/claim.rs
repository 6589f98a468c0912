//! Place of a claim in a JWT.

use std::{fmt, str::FromStr};

use serde_json::Value;

/// The name of a claim, or a JSON Pointer (RFC 6901) to one inside another, such as
/// `/kubernetes.io/serviceaccount/uid`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimPath(String);

/// The text names no claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a claim has a name of 1 to 200 characters, or a JSON Pointer such as `/kubernetes.io/namespace`"
)]
pub struct ClaimError;

impl ClaimPath {
    /// The name or pointer as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The claim's value among `claims`, which has to be an object.
    pub(crate) fn find<'a>(&self, claims: &'a Value) -> Option<&'a Value> {
        if self.0.starts_with('/') { claims.pointer(&self.0) } else { claims.get(&self.0) }
    }
}

impl FromStr for ClaimPath {
    type Err = ClaimError;
    fn from_str(text: &str) -> Result<Self, ClaimError> {
        let fits = (1..=200).contains(&text.chars().count()) && !text.chars().any(char::is_control);
        if fits && text != "/" { Ok(Self(text.to_owned())) } else { Err(ClaimError) }
    }
}

impl fmt::Display for ClaimPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
