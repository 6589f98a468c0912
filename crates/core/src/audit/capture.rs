//! Capture: the part of a call's payload that its event keeps.

use serde::Serialize;

/// The longest payload that is kept, in bytes of its canonical form. Of a longer one there is the
/// commitment only.
pub const MOST_PAYLOAD_BYTES: usize = 64 * 1024;

/// The part of input and output that is kept. Of several that are asked for, the least counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Capture {
    /// Nothing, not even a commitment.
    Off,
    /// A salted commitment: a party that holds the original can prove that it is the one.
    #[default]
    Commit,
    /// The payload with everything masked that DLP found, whatever was done about it.
    Redacted,
    /// The payload as it was.
    Full,
}

impl Capture {
    /// All of them, the least first.
    pub const ALL: [Self; 4] = [Self::Off, Self::Commit, Self::Redacted, Self::Full];

    /// `off`, `commit`, `redacted` or `full`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Commit => "commit",
            Self::Redacted => "redacted",
            Self::Full => "full",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|capture| capture.as_str() == name)
    }
}
