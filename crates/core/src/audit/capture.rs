//! Capture: the part of a call's payload that its event keeps.

use serde::Serialize;

/// The longest payload that is kept, in bytes of its canonical form. Of a longer one there is the
/// commitment only.
pub const MOST_PAYLOAD_BYTES: usize = 64 * 1024;

crate::words! { listed
    /// The part of input and output that is kept. Of several that are asked for, the least counts.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Capture {
        /// Nothing, not even a commitment.
        Off = "off",
        /// A salted commitment: a party that holds the original can prove that it is the one.
        #[default]
        Commit = "commit",
        /// The payload with everything masked that DLP found, whatever was done about it.
        Redacted = "redacted",
        /// The payload as it was.
        Full = "full",
    }
}
